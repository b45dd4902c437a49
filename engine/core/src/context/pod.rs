//! Where pods are: the object itself, or the template in what makes pods.

use std::fmt;
use std::sync::{Arc, LazyLock};

use portal_document::{Array, Builder, Document, Interning, Node, Options};

use crate::event::Event;

/// The way from an object to what has a pod's `metadata` and `spec`: empty for a pod itself. A clone shares it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Template(Arc<[String]>);

/// A kind of Kubernetes whose objects are pods or make some.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) template: Template,
}

/// Which of a pod's lists a container is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ContainerType {
    Standard,
    Init,
    Ephemeral,
}

/// A pod, or the template of one.
#[derive(Clone, Copy)]
pub(crate) struct Pod<'a> {
    pub(crate) spec: Option<Node<'a>>,
    pub(crate) metadata: Option<Node<'a>>,
}

/// The containers of a pod, by their types.
#[derive(Clone, Copy, Default)]
pub(crate) struct Containers<'a>([Option<Array<'a>>; 3]);

pub(crate) static BUILTIN: LazyLock<[Builtin; 9]> = LazyLock::new(|| {
    [
        ("", "Pod", ""),
        ("apps", "Deployment", "spec.template"),
        ("apps", "StatefulSet", "spec.template"),
        ("apps", "DaemonSet", "spec.template"),
        ("apps", "ReplicaSet", "spec.template"),
        ("batch", "Job", "spec.template"),
        ("batch", "CronJob", "spec.jobTemplate.spec.template"),
        ("", "ReplicationController", "spec.template"),
        ("", "PodTemplate", "template"),
    ]
    .map(|(group, kind, path)| Builtin { group, kind, template: Template::new(path) })
});

pub(crate) const CONTAINER_TYPES: [ContainerType; 3] =
    [ContainerType::Standard, ContainerType::Init, ContainerType::Ephemeral];

impl Template {
    /// The template of a kind of Kubernetes, if it has one.
    pub(crate) fn of(group: &str, kind: &str) -> Option<Template> {
        let found = BUILTIN.iter().find(|builtin| (builtin.group, builtin.kind) == (group, kind));
        found.map(|builtin| builtin.template.clone())
    }

    /// The template at the fields of these names, with dots between. None if that is no way to a field.
    pub(crate) fn parse(path: &str) -> Option<Template> {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_letter);
        path.split('.').all(is_name).then(|| Template::new(path))
    }

    fn new(path: &str) -> Template {
        Template(path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn pod<'a>(&self, object: Node<'a>) -> Pod<'a> {
        let template = self.0.iter().try_fold(object, |node, name| node.get_str(name));
        let part = |name| template.and_then(|template| template.get_str(name));
        Pod { spec: part("spec"), metadata: part("metadata") }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("."))
    }
}

impl ContainerType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ContainerType::Standard => "standard",
            ContainerType::Init => "init",
            ContainerType::Ephemeral => "ephemeral",
        }
    }

    pub(crate) fn list(self) -> &'static str {
        match self {
            ContainerType::Standard => "containers",
            ContainerType::Init => "initContainers",
            ContainerType::Ephemeral => "ephemeralContainers",
        }
    }
}

impl<'a> Containers<'a> {
    /// Every container, and which list it is in.
    pub(crate) fn iter(self) -> impl Iterator<Item = (ContainerType, Node<'a>)> {
        CONTAINER_TYPES.into_iter().zip(self.0).flat_map(|(kind, list)| {
            list.into_iter().flat_map(|list| list.iter()).map(move |container| (kind, container))
        })
    }
}

impl<'a> Pod<'a> {
    /// Its containers, for those who go through them more than once.
    pub(crate) fn lists(self) -> Containers<'a> {
        Containers(CONTAINER_TYPES.map(|kind| self.spec?.get_str(kind.list())?.as_array()))
    }

    /// Every container, of all three lists.
    pub(crate) fn containers(self) -> impl Iterator<Item = (ContainerType, Node<'a>)> {
        self.lists().iter()
    }

    /// Which list a container is in. Found by its place: two containers may be equal.
    pub(crate) fn container_type(self, container: Node<'_>) -> Option<ContainerType> {
        self.containers().find(|(_, candidate)| candidate.is_at(container)).map(|(kind, _)| kind)
    }

    /// The metadata of the pods that an owner makes: the template's, with the owner's name and namespace, because a pod
    /// gets its own from them.
    pub(crate) fn metadata_of_made(self, event: &Event<'_>) -> Option<Document> {
        // Whatever anybody writes into a template must not stay in the process.
        let mut builder = Builder::with_options(&Options { interning: Interning::LookUpOnly, ..Options::default() });
        builder.begin_object();
        for (key, value) in self.metadata.and_then(Node::as_object).into_iter().flat_map(|object| object.iter()) {
            if !matches!(key, "name" | "namespace") {
                builder.key(key).node(value);
            }
        }
        builder.key("name").string(event.name);
        if let Some(namespace) = event.namespace {
            builder.key("namespace").string(namespace);
        }
        builder.end();
        builder.finish().ok()
    }
}
