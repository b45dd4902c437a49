//! Whether a violation was there before the request, and the request leaves alone whatever the rule looks at.

use std::collections::{HashMap, HashSet};

use portal_document::Node;
use portal_expr::Slot;

use crate::{
    context::{
        CONTAINER,
        pod::{ContainerType, Pod},
    },
    evaluate::{Means, Violation, container_name, evaluate_rule},
    event::{Event, Operation},
    lookup::Query,
    object::Visible,
    rule::{
        JudgedKind, RequestReads, Rule, RuleSet,
        reads::{PathOfRoot, Roots},
        source::RuleId,
    },
};

/// What an object that is changed was to the rules before.
pub(super) struct Before<'a> {
    rules: &'a RuleSet,
    means: Means<'a>,
    event: &'a Event<'a>,
    /// Of the rule that was asked about last: violations of a rule follow each other, and there may be thousands of them.
    last: Option<OfRule<'a>>,
    /// Fresh reads that were not at hand.
    needs: Vec<Query>,
}

/// What a rule said of the object before, in each of the places where the rule looks for pods in it.
struct OfRule<'a> {
    rule: RuleId,
    /// None if the rule excuses nothing.
    places: Vec<OfPlace<'a>>,
}

/// What a rule reads of an object as it was and as it is to be.
struct OfPlace<'a> {
    rule: &'a Rule,
    old: Compared<'a>,
    new: Compared<'a>,
    /// The containers that violated, or nothing for a rule that does not run per container.
    violated: HashSet<Option<String>>,
}

/// An object as it is compared.
struct Compared<'a> {
    roots: Roots<'a>,
    /// By their names. Nothing for a name that two of them have: which of them was which, nobody can tell.
    containers: HashMap<String, Option<(ContainerType, Node<'a>)>>,
}

/// In a pod of more containers none is excused. No pod that runs has so many.
const MAX_COMPARED: usize = 1000;

impl<'a> Before<'a> {
    pub(super) fn new(rules: &'a RuleSet, means: Means<'a>, event: &'a Event<'a>) -> Before<'a> {
        Before { rules, means, event, last: None, needs: Vec::new() }
    }

    /// What was not at hand: with it, more may be excused.
    pub(super) fn into_needs(mut self) -> Vec<Query> {
        self.needs.sort();
        self.needs.dedup();
        self.needs
    }

    /// Whether the object violated the same rule before, and nothing has changed that the rule reads.
    pub(super) fn excuses(&mut self, violation: &Violation) -> bool {
        let Before { rules, means, event, .. } = *self;
        let last = self.last.take().filter(|last| last.rule == violation.rule);
        let needs = &mut self.needs;
        let last = last.unwrap_or_else(|| OfRule::of(&violation.rule, rules, means, event, needs));
        let last = self.last.insert(last);
        let container = violation.container.as_deref();
        // One place may have become what another one was.
        last.places.iter().all(|place| place.is_same(container))
            && last.places.iter().any(|place| place.violated.contains(&violation.container))
    }
}

impl<'a> OfRule<'a> {
    fn of(
        id: &RuleId,
        rules: &'a RuleSet,
        means: Means<'a>,
        event: &'a Event<'a>,
        needs: &mut Vec<Query>,
    ) -> OfRule<'a> {
        let none = OfRule { rule: id.clone(), places: Vec::new() };
        let (Some(old), Some(new)) = (event.old_object, event.object) else { return none };
        if (means.is_over)() {
            return none;
        }
        // Who asks and what for is never what it was. And a rule that is not for objects as they are made, such as one that forbids
        // every change, is about the change itself.
        let excuses = |rule: &Rule| {
            rule.request == RequestReads::Nothing && rule.matching.operations.contains(&Operation::Create)
        };
        let own = || rules.for_kind(event.kind).filter(|(rule, _)| rule.id == *id && excuses(rule));
        if own()
            .any(|(rule, judged)| rule.per_container && [old, new].iter().any(|object| is_crowd(judged, object.root())))
        {
            return none;
        }
        let compared = own().map(|(rule, judged)| {
            let [old, new] = [old, new].map(|object| Compared::of(rule, judged, object));
            (judged, OfPlace { rule, old, new, violated: HashSet::new() })
        });
        let mut compared: Vec<_> = compared.collect();
        if !compared.iter().all(|(_, place)| place.is_same_around()) {
            return none;
        }
        for (judged, place) in &mut compared {
            let before = Event { object: Some(old), old_object: None, ..*event };
            let evaluation = evaluate_rule(place.rule, judged, means, &before);
            needs.extend(evaluation.needs);
            place.violated = evaluation.violations.into_iter().map(|violation| violation.container).collect();
        }
        OfRule { places: compared.into_iter().map(|(_, place)| place).collect(), ..none }
    }
}

impl<'a> OfPlace<'a> {
    /// Whether the rule reads the same of both objects, containers apart.
    fn is_same_around(&self) -> bool {
        self.reads(|root| root != CONTAINER).all(|read| self.old.roots.is_same_at(&self.new.roots, read))
    }

    /// Whether the rule reads the same of the containers of a name, if it runs per container. Of those that are a violation together
    /// nobody can tell.
    fn is_same(&self, container: Option<&str>) -> bool {
        let Some(name) = container else { return !self.rule.per_container };
        match (self.old.containers.get(name), self.new.containers.get(name)) {
            (None, None) => true,
            (Some(Some((old_type, old))), Some(Some((new_type, new)))) => {
                // One that ran as another type of container is not the one that violated.
                old_type == new_type && self.reads(|root| root == CONTAINER).all(|read| old.same_at(*new, &read.path))
            }
            // One that was not there is not the one that violated.
            _ => false,
        }
    }

    fn reads(&self, is_wanted: impl Fn(Slot) -> bool) -> impl Iterator<Item = &PathOfRoot> {
        self.rule.reads().expression.iter().filter(move |read| is_wanted(read.root))
    }
}

impl<'a> Compared<'a> {
    fn of(rule: &Rule, judged: &JudgedKind, object: Visible<'a>) -> Compared<'a> {
        let roots = Roots::of(judged, object.root());
        let mut containers = HashMap::new();
        for (kind, container) in roots.pod.filter(|_| rule.per_container).into_iter().flat_map(Pod::containers) {
            let known = containers.entry(container_name(kind, container));
            known.and_modify(|found| *found = None).or_insert(Some((kind, container)));
        }
        Compared { roots, containers }
    }
}

/// Whether so many containers are in a pod that to tell them apart by their names would take more memory than the request.
fn is_crowd(judged: &JudgedKind, object: Node<'_>) -> bool {
    let pod = judged.template.as_ref().map(|template| template.pod(object));
    pod.is_some_and(|pod| pod.containers().nth(MAX_COMPARED).is_some())
}
