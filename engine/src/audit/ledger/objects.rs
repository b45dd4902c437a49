//! What the ledger has to know of an object, wherever it is from.

use portal_core::object::Object;
use portal_document::Node;

fn metadata<'a>(object: &'a Object<'_>, field: &str) -> Option<Node<'a>> {
    object.root().get_str("metadata")?.get_str(field)
}

pub(super) fn uid_of<'a>(object: &'a Object<'_>) -> &'a str {
    metadata(object, "uid").and_then(Node::as_str).unwrap_or_default()
}

pub(super) fn version_of<'a>(object: &'a Object<'_>) -> &'a str {
    metadata(object, "resourceVersion").and_then(Node::as_str).unwrap_or_default()
}

/// Whether an object is a later version of another one. What cannot be compared came later.
pub(super) fn is_newer(object: &Object<'_>, known: &Object<'_>) -> bool {
    let number = |object| version_of(object).parse::<u64>().ok();
    match (number(object), number(known)) {
        (Some(version), Some(known)) => version > known,
        _ => true,
    }
}

/// The uid of what made an object and looks after it.
pub(super) fn owner_of<'a>(object: &'a Object<'_>) -> Option<&'a str> {
    let owners = metadata(object, "ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get_str("controller").and_then(Node::as_bool) == Some(true))?;
    owner.get_str("uid")?.as_str()
}

pub(super) fn labels(object: Node<'_>) -> Option<Node<'_>> {
    object.get_str("metadata")?.get_str("labels")
}
