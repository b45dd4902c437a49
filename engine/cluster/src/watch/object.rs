//! Objects as a watch brings them: from the bytes of the answer into their flat form, with nothing in between.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{Resource, api::ApiResource, core::DynamicResourceScope};
use portal_document::{Error, Key, Node, View};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What the objects of a watch are read into. What it leaves out or masks is never in memory.
pub trait Form: Clone + Debug + Send + Sync + Sized + 'static {
    /// Reads the JSON of an object. Called on the task of the watch for one object after another.
    fn read(json: &[u8]) -> Result<Self, Error>;

    /// The object.
    fn root(&self) -> Node<'_>;

    /// What is told of an object beside its form. Those who watch many objects tell no more than [who they are](identity).
    fn metadata(&self) -> ObjectMeta {
        let metadata = self.root().get_str("metadata");
        let field = |name: &str| metadata.and_then(|metadata| metadata.get_str(name));
        let text = |name: &str| field(name).and_then(Node::as_str).map(str::to_owned);
        ObjectMeta {
            uid: text("uid"),
            creation_timestamp: text("creationTimestamp").and_then(|time| time.parse().ok()).map(Time),
            generation: match field("generation").map(Node::view) {
                Some(View::Int(generation)) => Some(generation),
                _ => None,
            },
            ..identity(self.root())
        }
    }
}

/// An object of a watch.
///
/// kube's watcher wants a type that it can deserialise. This one takes the bytes of the object as they are and reads them itself:
/// what lies between, such as kube's `DynamicObject`, is many times as large as the bytes.
#[derive(Clone, Debug)]
pub struct Watched<F> {
    /// Who it is and which version, and what else its form [tells](Form::metadata).
    pub metadata: Box<ObjectMeta>,
    /// The object, or why it cannot be read. One that cannot be read must not keep the others from being watched.
    pub form: Result<F, Error>,
}

impl<F: Form> Watched<F> {
    /// Reads the JSON of an object. Nothing if that cannot be read.
    pub(super) fn read(json: &[u8]) -> Option<Watched<F>> {
        let form = F::read(json).ok()?;
        Some(Watched { metadata: Box::new(form.metadata()), form: Ok(form) })
    }
}

impl<F> Watched<F> {
    /// The version of the object.
    pub(super) fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }
}

/// What is needed of an object that cannot be read.
#[derive(Deserialize)]
struct Unread {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, F: Form> Deserialize<'de> for Watched<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Borrowed from the text of the answer, which kube holds as a whole.
        let json = <&'de RawValue>::deserialize(deserializer)?.get();
        let form = F::read(json.as_bytes());
        let metadata = match &form {
            Ok(form) => form.metadata(),
            Err(_) => serde_json::from_str::<Unread>(json).map_err(serde::de::Error::custom)?.metadata,
        };
        Ok(Watched { metadata: Box::new(metadata), form })
    }
}

/// Who an object is, and which version of it: all that a watch has to know.
pub fn identity(object: Node<'_>) -> ObjectMeta {
    // Prepared, because they are looked for in every object of a list.
    static METADATA: LazyLock<Key> = LazyLock::new(|| Key::new("metadata"));
    static FIELDS: LazyLock<[Key; 3]> = LazyLock::new(|| ["name", "namespace", "resourceVersion"].map(Key::new));
    let metadata = object.get(&METADATA);
    let [name, namespace, resource_version] = FIELDS.each_ref().map(|key| {
        let text = metadata.and_then(|metadata| metadata.get(key)).and_then(Node::as_str);
        text.map(str::to_owned)
    });
    ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() }
}

impl<F> Resource for Watched<F> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};
    use portal_document::{Document, DocumentLimits, Options};

    use super::*;

    #[derive(Clone, Debug)]
    struct Shallow(Document);

    impl Form for Shallow {
        fn read(json: &[u8]) -> Result<Self, Error> {
            let limits = DocumentLimits { depth: 4, ..DocumentLimits::default() };
            Document::parse(json, &Options { limits, ..Options::default() }).map(Shallow)
        }

        fn root(&self) -> Node<'_> {
            self.0.root()
        }
    }

    const GOOD: &str =
        r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3},"spec":{"b":[1]}}"#;
    const DEEP: &str =
        r#"{"kind":"Pod","metadata":{"name":"b","resourceVersion":"8","labels":{"x":"y"}},"spec":[[[[[1]]]]]}"#;

    #[track_caller]
    fn check(watched: &Watched<Shallow>, expected: &str) {
        let ObjectMeta { name, namespace, resource_version, generation, .. } = &*watched.metadata;
        let form = watched.form.as_ref().map_or_else(|error| error.reason(), |form| form.root().to_json());
        assert_eq!(format!("{name:?} {namespace:?} {resource_version:?} {generation:?} {form}"), expected);
    }

    #[test]
    fn the_objects_of_a_list_and_of_events_are_read_from_their_bytes() {
        let expected = format!(r#"Some("a") Some("n") Some("7") Some(3) {GOOD}"#);
        let list = format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{GOOD}]}}"#);
        let list: ObjectList<Watched<Shallow>> = serde_json::from_str(&list).unwrap();
        check(&list.items[0], &expected);
        for event in ["ADDED", "MODIFIED", "DELETED"] {
            let event = format!(r#"{{"type":"{event}","object":{GOOD}}}"#);
            match serde_json::from_str(&event).unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    check(&object, &expected);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_keeps_its_name_and_its_version() {
        let event = format!(r#"{{"type":"ADDED","object":{DEEP}}}"#);
        let Ok(WatchEvent::Added(object)) = serde_json::from_str(&event) else { panic!("no event") };
        check(&object, "Some(\"b\") None Some(\"8\") None nesting is over the limit of 4 levels");
    }
}
