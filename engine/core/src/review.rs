//! Events out of AdmissionReviews.

use portal_document::Node;
use portal_expr::Moment;

use crate::{
    event::{Event, Front, Operation},
    kinds::Kinds,
};

/// Why a review is none that can be judged.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReviewError {
    /// It is something else.
    #[error("this is no AdmissionReview of admission.k8s.io/v1: {0}")]
    Other(String),
    /// A field is missing or has a value that it cannot have.
    #[error("`{0}` of the AdmissionReview is missing or not what it should be")]
    Field(&'static str),
    /// The kind is not one that is served.
    #[error("no kind is served as `{resource}` in group `{group}`")]
    Kind {
        /// The group.
        group: String,
        /// The plural.
        resource: String,
    },
}

impl<'a> Event<'a> {
    /// The event that a review asks about.
    pub fn of_review(review: Node<'a>, kinds: &'a Kinds, now: Moment) -> Result<Event<'a>, ReviewError> {
        let text = |node: Node<'a>, name: &str| node.get_str(name).and_then(Node::as_str);
        let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
        if (version, kind) != (Some("admission.k8s.io/v1"), Some("AdmissionReview")) {
            let found = format!("it is {} {}", version.unwrap_or("of no version"), kind.unwrap_or("of no kind"));
            return Err(ReviewError::Other(found));
        }
        let request = review.get_str("request").ok_or(ReviewError::Field("request"))?;
        let operation = match text(request, "operation") {
            Some("CREATE") => Operation::Create,
            Some("UPDATE") => Operation::Update,
            Some("DELETE") => Operation::Delete,
            Some("CONNECT") => Operation::Connect,
            _ => return Err(ReviewError::Field("request.operation")),
        };
        let resource = request.get_str("resource").ok_or(ReviewError::Field("request.resource"))?;
        let plural = text(resource, "resource").ok_or(ReviewError::Field("request.resource.resource"))?;
        let version = text(resource, "version").ok_or(ReviewError::Field("request.resource.version"))?;
        let group = text(resource, "group").unwrap_or_default();
        let kind = kinds
            .iter()
            .find(|kind| kind.plural == plural && kind.group == group)
            .ok_or_else(|| ReviewError::Kind { group: group.to_owned(), resource: plural.to_owned() })?;
        let object = |name: &str| request.get_str(name).filter(|object| !object.is_null());
        let (new, old) = (object("object"), object("oldObject"));
        let generated = || {
            let metadata = new.and_then(|object| object.get_str("metadata"));
            metadata.and_then(|metadata| text(metadata, "name").or_else(|| text(metadata, "generateName")))
        };
        let filled = |text: Option<&'a str>| text.filter(|text| !text.is_empty());
        Ok(Event {
            front: Some(Front::Admission),
            operation,
            kind,
            version,
            subresource: filled(text(request, "subResource")),
            namespace: filled(text(request, "namespace")).filter(|_| kind.namespaced || kind.kind == "Namespace"),
            name: filled(text(request, "name")).or_else(generated).unwrap_or_default(),
            object: new,
            old_object: old,
            request: Some(request),
            now,
        })
    }
}
