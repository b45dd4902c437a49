//! Whether a violation was there before the request, and the request leaves alone whatever the rule looks at.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

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
    rule::{JudgedKind, RequestReads, Rule, RuleSet},
};

/// What was there before the request. What is worked out for a rule is kept while its violations are asked about: there may be one for
/// each of thousands of containers.
pub(super) struct Before<'a> {
    rules: &'a RuleSet,
    lookup: &'a dyn Lookup,
    event: &'a Event<'a>,
    limits: &'a Limits,
    asked: Option<Asked<'a>>,
}

/// A rule, and both objects as it sees them.
struct Asked<'a> {
    rule: &'a Rule,
    judged: &'a JudgedKind,
    old: Roots<'a>,
    new: Roots<'a>,
    /// The containers of the old object that violated it, or nothing in place of a name. Worked out when it is needed.
    violated: OnceCell<HashSet<Option<String>>>,
}

/// Where the roots of a rule are in an object.
struct Roots<'a> {
    object: Node<'a>,
    metadata: Option<Node<'a>>,
    pod: Option<Pod<'a>>,
    /// By their names, if the rule runs per container. Of two with one name the first.
    containers: HashMap<String, (ContainerType, Node<'a>)>,
}

impl<'a> Before<'a> {
    pub(super) fn new(rules: &'a RuleSet, lookup: &'a dyn Lookup, event: &'a Event<'a>, limits: &'a Limits) -> Self {
        Before { rules, lookup, event, limits, asked: None }
    }

    /// Whether the object violated the same rule before, and nothing has changed that the rule reads.
    pub(super) fn violated(&mut self, violation: &Violation) -> bool {
        if self.asked.as_ref().is_none_or(|asked| asked.rule.id != violation.rule) {
            self.asked = self.ask(violation);
        }
        let Some(asked) = &self.asked else { return false };
        asked.is_unchanged(violation.container.as_deref()) && {
            let violated = asked.violated.get_or_init(|| {
                let before = Event { object: self.event.old_object, old_object: None, ..*self.event };
                let evaluation = evaluate_rule(asked.rule, asked.judged, self.lookup, &before, self.limits);
                evaluation.violations.into_iter().map(|violation| violation.container).collect()
            });
            violated.contains(&violation.container)
        }
    }

    /// The rule of a violation, if it may be about what was there before.
    fn ask(&self, violation: &Violation) -> Option<Asked<'a>> {
        let (old, new) = self.event.old_object.zip(self.event.object)?;
        let (rule, judged) = self.rules.for_kind(self.event.kind).find(|(rule, _)| rule.id == violation.rule)?;
        // Who asks and what for is never what it was. And a rule that is not for objects as they are made, such as one that forbids
        // every change, is about the change itself.
        if rule.request != RequestReads::Nothing || !rule.matching.operations.contains(&Operation::Create) {
            return None;
        }
        let [old, new] = [old, new].map(|object| Roots::of(rule, judged, object.root()));
        Some(Asked { rule, judged, old, new, violated: OnceCell::new() })
    }
}

impl Asked<'_> {
    /// Whether the rule reads the same of both objects, and of the containers of this name if it runs per container.
    fn is_unchanged(&self, container: Option<&str>) -> bool {
        let Asked { rule, old, new, .. } = self;
        // It stands for many, of which some may be new.
        if rule.per_container && container.is_none() {
            return false;
        }
        let [old_container, new_container] = [old, new].map(|roots| roots.containers.get(container?).copied());
        // A container that was not there, or that ran as another type of container, is not the one that violated.
        let container_type = |container: Option<(ContainerType, Node<'_>)>| container.map(|(kind, _)| kind);
        if rule.per_container && container_type(old_container) != container_type(new_container) {
            return false;
        }
        rule.expression.facts().reads.iter().all(|read| {
            let path = path(read);
            match (old.find(read, old_container), new.find(read, new_container)) {
                (Some(Some(old)), Some(Some(new))) => old.same_at(new, &path),
                (Some(None), Some(None)) => true,
                // One of them has nothing there, or it is no part of the object.
                _ => false,
            }
        })
    }
}

impl<'a> Roots<'a> {
    fn of(rule: &Rule, judged: &JudgedKind, object: Node<'a>) -> Roots<'a> {
        let pod = judged.template.as_ref().map(|template| template.pod(object));
        let metadata = match pod.filter(|_| judged.expanded) {
            Some(pod) => pod.metadata,
            None => object.get_str("metadata"),
        };
        let mut containers = HashMap::new();
        for (kind, container) in pod.filter(|_| rule.per_container).into_iter().flat_map(Pod::containers) {
            containers.entry(container_name(kind, container)).or_insert((kind, container));
        }
        Roots { object, metadata, pod, containers }
    }

    /// The root that is read, which may be missing. None for a root that is no part of the object.
    fn find(&self, read: &Read, container: Option<(ContainerType, Node<'a>)>) -> Option<Option<Node<'a>>> {
        let spec = self.pod.and_then(|pod| pod.spec);
        Some(match read.root {
            OBJECT => Some(self.object),
            METADATA => self.metadata,
            SPEC => spec,
            SECURITY_CONTEXT => spec.and_then(|spec| spec.get_str("securityContext")),
            CONTAINER => container.map(|(_, container)| container),
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
