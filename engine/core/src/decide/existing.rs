//! Whether a violation was there before the request, and the request leaves alone whatever the rule looks at.

use portal_document::{Key, Node, Path, Segment};
use portal_expr::{Limits, Read, Segment as Step};

use crate::{
    context::{
        CONTAINER, METADATA, OBJECT, SECURITY_CONTEXT, SPEC,
        pod::{ContainerType, Pod},
    },
    evaluate::{Violation, container_name, evaluate_rule},
    event::{Event, Operation},
    lookup::Lookup,
    object::Visible,
    rule::{JudgedKind, RequestReads, Rule, RuleSet},
};

/// Where the roots of a rule are in an object.
#[derive(Clone, Copy)]
struct Roots<'a> {
    object: Node<'a>,
    metadata: Option<Node<'a>>,
    pod: Option<Pod<'a>>,
    container: Option<(ContainerType, Node<'a>)>,
}

/// Whether the object violated the same rule before, and nothing has changed that the rule reads.
pub(super) fn violated_before(
    violation: &Violation,
    rules: &RuleSet,
    lookup: &dyn Lookup,
    event: &Event<'_>,
    limits: &Limits,
) -> bool {
    let (Some(old), Some(new)) = (event.old_object, event.object) else { return false };
    let Some((rule, judged)) = rules.for_kind(event.kind).find(|(rule, _)| rule.id == violation.rule) else {
        return false;
    };
    // Who asks and what for is never what it was. And a rule that is not for objects as they are made, such as one that forbids
    // every change, is about the change itself.
    if rule.request != RequestReads::Nothing || !rule.matching.operations.contains(&Operation::Create) {
        return false;
    }
    let container = violation.container.as_deref();
    is_unchanged(rule, judged, old, new, container) && {
        let before = Event { object: Some(old), old_object: None, ..*event };
        let evaluation = evaluate_rule(rule, judged, lookup, &before, limits);
        evaluation.violations.iter().any(|before| before.container == violation.container)
    }
}

/// Whether the rule reads the same of both objects, and of the containers of this name if it runs per container.
fn is_unchanged(rule: &Rule, judged: &JudgedKind, old: Visible<'_>, new: Visible<'_>, container: Option<&str>) -> bool {
    let [old, new] = [old, new].map(|object| Roots::of(judged, object.root(), container));
    // A container that was not there, or that ran as another type of container, is not the one that violated.
    if rule.per_container && old.container_type() != new.container_type() {
        return false;
    }
    rule.expression.facts().reads.iter().all(|read| {
        let path = path(read);
        match (old.find(read), new.find(read)) {
            (Some(Some(old)), Some(Some(new))) => old.same_at(new, &path),
            (Some(None), Some(None)) => true,
            // One of them has nothing there, or it is no part of the object.
            _ => false,
        }
    })
}

impl<'a> Roots<'a> {
    fn of(judged: &JudgedKind, object: Node<'a>, container: Option<&str>) -> Roots<'a> {
        let pod = judged.template.as_ref().map(|template| template.pod(object));
        let metadata = match pod.filter(|_| judged.expanded) {
            Some(pod) => pod.metadata,
            None => object.get_str("metadata"),
        };
        let is_named = |(kind, found): &(ContainerType, Node<'a>)| Some(&*container_name(*kind, *found)) == container;
        let container = pod.and_then(|pod| pod.containers().find(is_named));
        Roots { object, metadata, pod, container }
    }

    fn container_type(&self) -> Option<ContainerType> {
        self.container.map(|(kind, _)| kind)
    }

    /// The root that is read, which may be missing. None for a root that is no part of the object.
    fn find(&self, read: &Read) -> Option<Option<Node<'a>>> {
        let spec = self.pod.and_then(|pod| pod.spec);
        Some(match read.root {
            OBJECT => Some(self.object),
            METADATA => self.metadata,
            SPEC => spec,
            SECURITY_CONTEXT => spec.and_then(|spec| spec.get_str("securityContext")),
            CONTAINER => self.container.map(|(_, container)| container),
            _ => return None,
        })
    }
}

fn path(read: &Read) -> Path {
    let segment = |step: &Step| match step {
        Step::Field(name) => Segment::Field(Key::new(name)),
        Step::Each => Segment::AnyIndex,
    };
    Path::new(read.path.iter().map(segment).collect::<Vec<_>>())
}
