//! References whose kind is data, such as `scaleTargetRef`, `ownerReferences` and `roleRef`: which of the kinds that a rule has written
//! out one means, and the object that it leads to.

use portal_expr::{Failure, Value};

use super::host::RuleHost;
use crate::{
    context::BY_NAME,
    object::metadata_text,
    rule::{LookupSite, message::show},
};

/// A reference that says what it means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Reference<'a> {
    /// The group, if the reference says one. Empty for the core group.
    group: Option<&'a str>,
    kind: &'a str,
    name: &'a str,
    namespace: Option<&'a str>,
    uid: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Reads a reference. None for one that is missing, or names nothing.
    fn of(value: Value<'a>) -> Result<Option<Reference<'a>>, Failure> {
        let field = |name: &str| match value {
            Value::Node(node) => node.get_str(name).map_or(Value::Nil, Value::from_node),
            Value::Map(map) => map.get(Value::Text(name)).unwrap_or(Value::Nil),
            _ => Value::Nil,
        };
        let text = |name: &str| match field(name) {
            Value::Nil => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            other => Err(Failure::new(format!("the {name} of a reference is text, not {}", show(other)))),
        };
        // Kubernetes leaves out what is empty.
        let filled = |name: &str| text(name).map(|text| text.filter(|text| !text.is_empty()));
        if value.is_nil() {
            return Ok(None);
        }
        let is_map = match value {
            Value::Map(_) => true,
            Value::Node(node) => node.as_object().is_some(),
            _ => false,
        };
        if !is_map {
            return Err(Failure::new(format!("a reference is a map with a kind and a name, not {}", show(value))));
        }
        let group = match filled("apiVersion")? {
            // The version says how the object was written down, and not which one it is.
            Some(version) => Some(version.split_once('/').map_or("", |(group, _)| group)),
            None => text("apiGroup")?.or(text("group")?),
        };
        let (namespace, uid) = (filled("namespace")?, filled("uid")?);
        let named = filled("kind")?.zip(filled("name")?);
        Ok(named.map(|(kind, name)| Reference { group, kind, name, namespace, uid }))
    }

    /// The kind that is meant, of those that are written out. A reference without a group means the first of its kind's name.
    fn site<'s>(&self, sites: &'s [LookupSite]) -> Option<&'s LookupSite> {
        let is_meant =
            |site: &&LookupSite| site.kind.kind == self.kind && self.group.is_none_or(|group| site.kind.group == group);
        sites.iter().find(is_meant)
    }
}

/// The namespace and the reference, as kinds take them: those in no namespace need none.
fn arguments_of<'a>(sites: &[LookupSite], arguments: &[Value<'a>]) -> (Value<'a>, Value<'a>) {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(Value::Nil);
    match sites.iter().any(|site| site.kind.namespaced) {
        false if argument(1).is_nil() => (Value::Nil, argument(0)),
        _ => (argument(0), argument(1)),
    }
}

impl RuleHost<'_> {
    /// The object that a reference leads to, or nil if none of these kinds has it.
    pub(super) fn follow<'h>(&'h self, sites: &[LookupSite], arguments: &[Value<'h>]) -> Result<Value<'h>, Failure> {
        let (namespace, reference) = arguments_of(sites, arguments);
        let Some(reference) = Reference::of(reference)? else { return Ok(Value::Nil) };
        let Some(site) = reference.site(sites) else { return Ok(Value::Nil) };
        let name = Value::Text(reference.name);
        let found = match site.kind.namespaced {
            true => {
                let Some(within) = self.namespace(site, namespace)? else {
                    return Err(Failure::new("a reference leads into one namespace, and \"*\" stands for all"));
                };
                // The rule says where it looks, and the reference what it means: what is elsewhere is not here.
                if reference.namespace.is_some_and(|meant| within != meant) {
                    return Ok(Value::Nil);
                }
                self.look_up(site, BY_NAME, &[namespace, name])?
            }
            false => self.look_up(site, BY_NAME, &[name])?,
        };
        let is_meant = |uid: Option<&str>| uid.is_none() || reference.uid.is_none() || uid == reference.uid;
        // Another object may have the name by now. One without a uid is from a file, and nobody can tell.
        let found = found.into_iter().find(|object| is_meant(metadata_text(*object, "uid")));
        Ok(found.map_or(Value::Nil, Value::from_node))
    }

    /// What a reference leads to, for what people are told: `deployments["shop/web"]`.
    pub(super) fn name_of_reference(&self, sites: &[LookupSite], arguments: &[Value<'_>]) -> Option<String> {
        let (namespace, reference) = arguments_of(sites, arguments);
        let reference = Reference::of(reference).ok()??;
        let Some(site) = reference.site(sites) else {
            let plurals: Vec<&str> = sites.iter().map(|site| site.kind.plural.as_str()).collect();
            let group = reference.group.filter(|group| !group.is_empty()).map(|group| format!(".{group}"));
            let (kind, group, name) = (reference.kind, group.unwrap_or_default(), reference.name);
            return Some(format!("{kind}{group}[{name:?}] among {}", plurals.join(" and ")));
        };
        let within = match namespace {
            Value::Text(namespace) if site.kind.namespaced => Some(namespace),
            _ => None,
        };
        let meant = within.map(|within| reference.namespace.unwrap_or(within));
        let name = meant.map_or_else(|| reference.name.to_owned(), |meant| format!("{meant}/{}", reference.name));
        let place = within.filter(|_| within != meant).map(|within| format!(" in {within}")).unwrap_or_default();
        let uid = reference.uid.map(|uid| format!(" with uid {uid}")).unwrap_or_default();
        Some(format!("{}[{name:?}]{place}{uid}", site.kind.plural))
    }
}
