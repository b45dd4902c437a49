//! What a request is about, in the words of RBAC, and which requests a fault is for.

use std::fmt;
use std::sync::Arc;

use http::Method;
use hyper::body::Bytes;

use crate::audit_log::ObjectRef;

/// What a request does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verb {
    /// Reads one object, or a path that is no resource.
    Get,
    /// Reads many objects.
    List,
    /// Follows changes.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes a part of an object.
    Patch,
    /// Removes one object.
    Delete,
    /// Removes many objects.
    DeleteCollection,
}

/// Which requests are meant. What is not set fits every request.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    client: Option<String>,
    verbs: Vec<Verb>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// Resources that are not meant.
    others: Vec<String>,
    word: Option<String>,
}

/// One request, or one event of a watch.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The name that the test gave to the client.
    pub(super) client: Arc<str>,
    pub(super) verb: Verb,
    /// For an event the name is that of its object.
    pub(super) object: ObjectRef,
    /// `ADDED` and so on, for an event.
    pub(super) event: Option<String>,
    /// The resourceVersion that a read asks for; 0 is any, and nothing is the newest.
    pub(super) resource_version: Option<u64>,
    /// What is sent. Nothing for an event.
    pub(super) body: Bytes,
}

impl Verb {
    /// Every verb that changes something.
    pub const WRITES: [Self; 5] = [Self::Create, Self::Update, Self::Patch, Self::Delete, Self::DeleteCollection];

    /// Whether it changes something.
    pub fn is_write(self) -> bool {
        Self::WRITES.contains(&self)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        })
    }
}

impl Requests {
    /// Every request.
    pub fn all() -> Self {
        Self::default()
    }

    /// Requests about a resource, by its plural.
    pub fn of(resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..Self::default() }
    }

    /// Only those of a client, by the name that the test gave it.
    pub fn from(self, client: &str) -> Self {
        Self { client: Some(client.to_owned()), ..self }
    }

    /// Only those with one of these verbs.
    pub fn verbs(self, verbs: &[Verb]) -> Self {
        Self { verbs: verbs.to_vec(), ..self }
    }

    /// Only those in an API group. The core group is the empty one.
    pub fn group(self, group: &str) -> Self {
        Self { group: Some(group.to_owned()), ..self }
    }

    /// Only those for a subresource, `status` for example. The empty one is the object itself.
    pub fn subresource(self, subresource: &str) -> Self {
        Self { subresource: Some(subresource.to_owned()), ..self }
    }

    /// Only those in a namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Only those that name an object. A create names none in its path, and neither do a list and a watch; an event does.
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Only those that are not about these resources.
    pub fn but(self, resources: &[&str]) -> Self {
        Self { others: resources.iter().map(|resource| (*resource).to_owned()).collect(), ..self }
    }

    /// Only those with this word in the namespace or the name, or as a whole text in what is sent: a create names nothing in its path.
    pub fn about(self, word: &str) -> Self {
        Self { word: Some(word.to_owned()), ..self }
    }

    pub(super) fn include(&self, subject: &Subject) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.client, &subject.client)
            && (self.verbs.is_empty() || self.verbs.contains(&subject.verb))
            && is(&self.group, &subject.object.api_group)
            && is(&self.resource, &subject.object.resource)
            && is(&self.subresource, &subject.object.subresource)
            && is(&self.namespace, &subject.object.namespace)
            && is(&self.name, &subject.object.name)
            && !self.others.contains(&subject.object.resource)
            && self.word.as_ref().is_none_or(|word| subject.mentions(word))
    }
}

impl Subject {
    pub(super) fn of_request(client: Arc<str>, method: &Method, path: &str, query: &str) -> Self {
        let object = object_of(path);
        let named = !object.name.is_empty() || object.resource.is_empty();
        let verb = match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ if matches!(parameter(query, "watch"), Some("true" | "1")) => Verb::Watch,
            _ if named => Verb::Get,
            _ => Verb::List,
        };
        let resource_version = parameter(query, "resourceVersion").and_then(|version| version.parse().ok());
        Self { client, verb, object, event: None, resource_version, body: Bytes::new() }
    }

    /// Whether a word is in the namespace or the name, or is a text in what is sent.
    fn mentions(&self, word: &str) -> bool {
        let text = format!("\"{word}\"");
        let is_sent = || self.body.windows(text.len()).any(|part| part == text.as_bytes());
        self.object.namespace.contains(word) || self.object.name.contains(word) || is_sent()
    }

    /// What makes two requests the same in two runs. Namespaces are left out: tests that share a cluster number them.
    pub(super) fn key(&self) -> String {
        let ObjectRef { api_group, resource, subresource, name, .. } = &self.object;
        let event = self.event.as_deref().unwrap_or_default();
        format!("{} {} {event} {api_group}/{resource}/{subresource}/{name}", self.client, self.verb)
    }
}

/// The value of a parameter, as it is written in the query.
pub(super) fn parameter<'query>(query: &'query str, name: &str) -> Option<&'query str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn object_of(path: &str) -> ObjectRef {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, rest) = match segments.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return ObjectRef::default(),
    };
    let (namespace, rest) = match rest {
        // These two belong to the Namespace itself.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let segment = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
    if rest.is_empty() {
        return ObjectRef::default();
    }
    ObjectRef {
        resource: segment(0),
        name: segment(1),
        subresource: segment(2),
        namespace: namespace.to_owned(),
        api_group: group.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: Method, path_and_query: &str, expected: &str) {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let subject = Subject::of_request("a".into(), &method, path, query);
        assert_eq!(format!("{} in {:?}", subject.key(), subject.object.namespace), expected);
    }

    #[test]
    fn a_request_is_named_as_rbac_names_it() {
        check(Method::GET, "/api/v1/namespaces/x/pods/p", r#"a get  /pods//p in "x""#);
        check(Method::GET, "/api/v1/pods?limit=5", r#"a list  /pods// in """#);
        check(Method::GET, "/api/v1/pods?limit=5&watch=true", r#"a watch  /pods// in """#);
        check(Method::POST, "/apis/apps/v1/namespaces/x/deployments", r#"a create  apps/deployments// in "x""#);
        check(Method::PATCH, "/apis/g/v1/namespaces/x/rs/r/status", r#"a patch  g/rs/status/r in "x""#);
        check(Method::DELETE, "/apis/g/v1/namespaces/x/rs", r#"a deletecollection  g/rs// in "x""#);
        check(Method::DELETE, "/api/v1/namespaces/x", r#"a delete  /namespaces//x in """#);
        check(Method::PUT, "/api/v1/namespaces/x/finalize", r#"a update  /namespaces/finalize/x in """#);
        check(Method::GET, "/apis/apps/v1", r#"a get  /// in """#);
        check(Method::GET, "/readyz", r#"a get  /// in """#);
    }
}
