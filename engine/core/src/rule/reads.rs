//! What a rule reads of the object that it judges, prepared to be compared.

use portal_document::{Key, Node, Path, Segment};
use portal_expr::{Read, Segment as Step, Slot};

use crate::{
    context::{
        CONTAINER, METADATA, OBJECT, REQUEST, SECURITY_CONTEXT, SPEC,
        pod::{ContainerType, Pod},
    },
    evaluate::container_name,
    kinds::Kind,
    rule::{JudgedKind, Rule},
};

/// The paths that a rule reads.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Its expression.
    pub(crate) expression: Vec<PathOfRoot>,
    /// Its message alone.
    message: Vec<PathOfRoot>,
}

/// A path below a root.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct PathOfRoot {
    pub(crate) root: Slot,
    pub(crate) path: Path,
}

/// Where the roots of a rule are in an object.
#[derive(Clone, Copy)]
pub(crate) struct Roots<'a> {
    object: Node<'a>,
    metadata: Option<Node<'a>>,
    pub(crate) pod: Option<Pod<'a>>,
}

impl Rule {
    /// Whether the rule must say the same of an object as it was and as it is, as far as the object itself decides: nothing differs that
    /// it reads, and nothing by which `match` chooses. What the rule looks up, and the time, are not asked here.
    pub fn is_unaffected(&self, kind: &Kind, old: Node<'_>, new: Node<'_>) -> bool {
        let own =
            self.judged.iter().filter(|judged| (&judged.kind.group, &judged.kind.kind) == (&kind.group, &kind.kind));
        own.into_iter().all(|judged| self.is_same(judged, old, new))
    }

    fn is_same(&self, judged: &JudgedKind, old: Node<'_>, new: Node<'_>) -> bool {
        let is_chosen_alike = !self.matching.reads_labels() || same(judged.labels(old), judged.labels(new));
        let (old, new) = (Roots::of(judged, old), Roots::of(judged, new));
        let reads = || self.reads().expression.iter().chain(&self.reads().message);
        let (of_containers, around) =
            (|read: &&PathOfRoot| read.root == CONTAINER, |read: &&PathOfRoot| read.root != CONTAINER);
        is_chosen_alike
            && reads().filter(around).all(|read| old.is_same_at(&new, read))
            && (!self.per_container || {
                let mut pairs = (old.containers(), new.containers());
                loop {
                    match (pairs.0.next(), pairs.1.next()) {
                        (None, None) => break true,
                        (Some((old_type, old)), Some((new_type, new))) => {
                            let is_same = old_type == new_type
                                && container_name(old_type, old) == container_name(new_type, new)
                                && reads().filter(of_containers).all(|read| old.same_at(new, &read.path));
                            if !is_same {
                                break false;
                            }
                        }
                        _ => break false,
                    }
                }
            })
    }

    /// Whether it compares the UID of what is judged with others: it reads it, and looks objects up.
    pub fn compares_uid(&self) -> bool {
        let is_field = |step: &Step, name: &str| matches!(step, Step::Field(field) if field == name);
        let is_path = |path: &[Step], names: &[&str]| {
            path.len() == names.len() && path.iter().zip(names).all(|(step, name)| is_field(step, name))
        };
        let is_uid = |read: &Read| match read.root {
            METADATA => is_path(&read.path, &["uid"]),
            OBJECT => is_path(&read.path, &["metadata", "uid"]),
            REQUEST => is_path(&read.path, &["object", "metadata", "uid"]),
            _ => false,
        };
        self.reads_others() && self.expression.facts().reads.iter().any(is_uid)
    }

    /// The paths that it reads.
    pub(crate) fn reads(&self) -> &Reads {
        self.reads.get_or_init(|| {
            let expression: Vec<PathOfRoot> = self.expression.facts().reads.iter().map(PathOfRoot::of).collect();
            let inserted = self.message.iter().flat_map(|message| message.expressions());
            let message = inserted.flat_map(|expression| &expression.facts().reads).map(PathOfRoot::of);
            let message = message.filter(|read| !expression.contains(read)).collect();
            Reads { expression, message }
        })
    }
}

impl PathOfRoot {
    fn of(read: &Read) -> PathOfRoot {
        let segment = |step: &Step| match step {
            Step::Field(name) => Segment::Field(Key::new(name)),
            Step::Each => Segment::AnyIndex,
        };
        PathOfRoot { root: read.root, path: Path::new(read.path.iter().map(segment).collect::<Vec<_>>()) }
    }
}

impl<'a> Roots<'a> {
    pub(crate) fn of(judged: &JudgedKind, object: Node<'a>) -> Roots<'a> {
        let pod = judged.template.as_ref().map(|template| template.pod(object));
        let metadata = match pod.filter(|_| judged.expanded) {
            Some(pod) => pod.metadata,
            None => object.get_str("metadata"),
        };
        Roots { object, metadata, pod }
    }

    /// Whether both have the same at a path that is not of a container.
    pub(crate) fn is_same_at(&self, other: &Roots<'_>, read: &PathOfRoot) -> bool {
        match (self.find(read.root), other.find(read.root)) {
            (Some(Some(one)), Some(Some(another))) => one.same_at(another, &read.path),
            (Some(None), Some(None)) => true,
            // One of them has nothing there, or it is no part of the object.
            _ => false,
        }
    }

    fn containers(self) -> impl Iterator<Item = (ContainerType, Node<'a>)> {
        self.pod.into_iter().flat_map(Pod::containers)
    }

    /// The root that is read, which may be missing. None for a root that is no part of the object.
    fn find(&self, root: Slot) -> Option<Option<Node<'a>>> {
        let spec = self.pod.and_then(|pod| pod.spec);
        Some(match root {
            OBJECT => Some(self.object),
            METADATA => self.metadata,
            SPEC => spec,
            SECURITY_CONTEXT => spec.and_then(|spec| spec.get_str("securityContext")),
            _ => return None,
        })
    }
}

fn same(one: Option<Node<'_>>, another: Option<Node<'_>>) -> bool {
    match (one, another) {
        (Some(one), Some(another)) => one.same(another),
        (None, None) => true,
        _ => false,
    }
}
