//! Judges an event by rules. Pure: the same input gives the same answer, and the answer says what was asked.

pub(crate) mod host;
#[cfg(test)]
mod panics;
mod reference;
mod saw;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use portal_crds::{EnforcementAction, Severity};
use portal_document::{Document, Node};
use portal_expr::{Arena, Limits, Value};

use crate::{
    context::{
        CONTAINER, METADATA, OBJECT, REQUEST, ROOTS, SECURITY_CONTEXT, SPEC,
        pod::{ContainerType, Containers, Pod},
    },
    evaluate::{
        host::{Names, RuleHost},
        saw::{MAX_SEEN, describe},
    },
    event::Event,
    language::{self, EvaluationError},
    lookup::{Answer, Filter, Lookup, Query},
    object::Visible,
    rule::{
        JudgedKind, Rule, RuleSet,
        matching::{NamespaceSelector, Verdict},
        message::{harmless, shorten, show},
        source::RuleId,
    },
};

/// What came of judging an event.
#[derive(Debug, Default)]
pub struct Evaluation {
    /// What violates which rule.
    pub violations: Vec<Violation>,
    /// Rules that could not be evaluated. Admission treats these as denials when failing closed.
    pub failures: Vec<Failure>,
    /// The rules that were asked, by their places in the set.
    pub asked: Vec<usize>,
    /// Violations that could not be told in full, because what puts them into words panicked. They are violations all the
    /// same; the caller counts these.
    pub unexplained: Vec<Failure>,
    /// Every lookup that a rule made, found or not, so that a change to what it asks for re-evaluates this event's object.
    pub reads: Vec<Query>,
    /// Consistent reads that were not at hand. Not empty: fetch them and evaluate again.
    pub needs: Vec<Query>,
    /// The containers that violate the rule which is being asked, beyond those that are violations of their own.
    untold: usize,
}

/// An object, or a container of it, that violates a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The rule.
    pub rule: RuleId,
    /// How bad it is.
    pub severity: Severity,
    /// What admission does about it.
    pub enforcement: EnforcementAction,
    /// The name of the container, for rules that run per container.
    pub container: Option<String>,
    /// What people are told.
    pub message: String,
    /// What the rule saw.
    pub saw: Option<String>,
}

/// A rule that could not be evaluated.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The rule.
    pub rule: RuleId,
    /// What admission would have done about a violation.
    pub enforcement: EnforcementAction,
    /// The name of the container, for rules that run per container.
    pub container: Option<String>,
    /// Why.
    pub error: EvaluationError,
}

/// What rules are evaluated with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) lookup: &'a dyn Lookup,
    pub(crate) limits: &'a Limits,
    /// Whether the time for the request is over.
    pub(crate) is_over: &'a dyn Fn() -> bool,
    /// Whether anybody will read what violates rules.
    pub(crate) in_words: bool,
}

/// What every rule is asked with about an event.
struct Asking<'a> {
    means: Means<'a>,
    event: &'a Event<'a>,
    /// Where evaluations make their values. Nothing is in it between them.
    arena: Arena,
    /// The object as the last rule saw it, which is as nearly all see it.
    seen: Option<Sight<'a>>,
}

/// An object as rules of a kind see it.
struct Sight<'a> {
    judged: &'a JudgedKind,
    pod: Option<Pod<'a>>,
    security_context: Option<Node<'a>>,
    metadata: Option<Node<'a>>,
    /// The metadata of the pods that it makes, which takes the place of its own.
    made_metadata: Option<Document>,
    containers: Containers<'a>,
}

/// A container, and which list it is in.
type Container<'a> = (ContainerType, Node<'a>);

/// Of so many containers that violate a rule each is a violation of its own, and the others are one together: a body of some megabytes
/// holds tens of thousands of them, and no pod that runs. As many failures of a rule are kept.
pub(crate) const MAX_TOLD: usize = 100;

/// It is looked at the clock after so many containers, because that takes as long as a short rule.
const CONTAINERS_PER_LOOK: usize = 8;

/// Judges an event by every rule that is for it.
pub fn evaluate(rules: &RuleSet, lookup: &dyn Lookup, event: &Event<'_>, limits: &Limits) -> Evaluation {
    evaluate_until(rules, lookup, event, limits, &|| false)
}

/// The same as long as there is time. It is asked before each rule, and now and then between containers, whether the time is over: then
/// the rule fails, and those behind it.
pub fn evaluate_until(
    rules: &RuleSet,
    lookup: &dyn Lookup,
    event: &Event<'_>,
    limits: &Limits,
    is_over: &dyn Fn() -> bool,
) -> Evaluation {
    let mut evaluation = Evaluation::default();
    let mut asking = Asking::new(Means { lookup, limits, is_over, in_words: true }, event);
    let mut is_late = false;
    for (number, rule, judged) in rules.numbered(event.kind) {
        is_late = is_late || is_over();
        let is_asked = match is_late {
            true if is_for(rule, judged, event) && rule.matching.verdict(event, judged) != Verdict::Differs => {
                evaluation.fail(rule, None, EvaluationError::TooLate);
                true
            }
            true => false,
            false => evaluation.consider(rule, judged, &mut asking),
        };
        if is_asked {
            evaluation.asked.push(number);
        }
    }
    evaluation.reads.sort();
    evaluation.reads.dedup();
    evaluation.needs.sort();
    evaluation.needs.dedup();
    evaluation
}

/// Judges an event by those of the rules that are wanted, by their places in the set, and hands on what came of each, also of those that
/// are not for the event.
pub fn evaluate_each(
    rules: &RuleSet,
    is_wanted: &dyn Fn(usize) -> bool,
    lookup: &dyn Lookup,
    event: &Event<'_>,
    limits: &Limits,
    take: &mut dyn FnMut(usize, Evaluation),
) {
    let mut asking = Asking::new(Means { lookup, limits, is_over: &|| false, in_words: true }, event);
    let mut rules = rules.numbered(event.kind).filter(|(number, ..)| is_wanted(*number)).peekable();
    while let Some((number, rule, judged)) = rules.next() {
        let mut evaluation = Evaluation::default();
        let mut is_asked = evaluation.consider(rule, judged, &mut asking);
        // A rule that looks for pods in two places of a kind judges it twice.
        while let Some((_, rule, judged)) = rules.next_if(|(next, ..)| *next == number) {
            is_asked |= evaluation.consider(rule, judged, &mut asking);
        }
        if is_asked {
            evaluation.asked.push(number);
        }
        take(number, evaluation);
    }
}

/// Judges an event by one rule, if that is for it.
pub(crate) fn evaluate_rule(rule: &Rule, judged: &JudgedKind, means: Means<'_>, event: &Event<'_>) -> Evaluation {
    let mut evaluation = Evaluation::default();
    evaluation.consider(rule, judged, &mut Asking::new(means, event));
    evaluation
}

/// Whether a rule is asked about such an event at all, whatever its `match` says of the object.
fn is_for(rule: &Rule, judged: &JudgedKind, event: &Event<'_>) -> bool {
    event.front.is_none_or(|front| rule.fronts.contains(&front))
        && event.entry.is_none_or(|entry| entry.namespaced == rule.id.namespace.is_some())
        && judged.takes(event.version, event.entry)
        && !(judged.expanded && event.subresource.is_some())
}

impl<'a> Asking<'a> {
    fn new(means: Means<'a>, event: &'a Event<'a>) -> Asking<'a> {
        Asking { means, event, arena: Arena::new(), seen: None }
    }
}

impl<'a> Sight<'a> {
    fn of(judged: &'a JudgedKind, event: &Event<'a>) -> Sight<'a> {
        let object = event.judged();
        let pod = judged.template.as_ref().zip(object).map(|(template, object)| template.pod(object));
        Sight {
            judged,
            pod,
            security_context: pod.and_then(|pod| pod.spec?.get_str("securityContext")),
            metadata: object.and_then(|object| object.get_str("metadata")),
            made_metadata: pod.filter(|_| judged.expanded).and_then(|pod| pod.metadata_of_made(event)),
            containers: pod.map(Pod::lists).unwrap_or_default(),
        }
    }

    /// Whether rules of another kind see the same.
    fn is_alike(&self, judged: &JudgedKind) -> bool {
        (&self.judged.template, self.judged.expanded) == (&judged.template, judged.expanded)
    }
}

impl Evaluation {
    /// Asks a rule, if it is for the event. Returns whether it was.
    fn consider<'a>(&mut self, rule: &Rule, judged: &'a JudgedKind, asking: &mut Asking<'a>) -> bool {
        let Asking { means, event, .. } = *asking;
        if !is_for(rule, judged, event) {
            return false;
        }
        let failures = self.failures.len();
        let is_match = match rule.matching.verdict(event, judged) {
            Verdict::Differs => false,
            Verdict::Matches => true,
            Verdict::AskNamespace => self.ask_namespace(rule, means.lookup, event) == Some(true),
        };
        if is_match {
            self.judge(rule, judged, asking);
        }
        // Whether it is for the event may have been what could not be found out.
        is_match || self.failures.len() > failures
    }

    /// Whether the labels of the event's namespace fit. Nothing if that cannot be told, which is a failure of the rule.
    fn ask_namespace(&mut self, rule: &Rule, lookup: &dyn Lookup, event: &Event<'_>) -> Option<bool> {
        let (NamespaceSelector { kind, selector }, namespace) =
            (rule.matching.namespace_selector.as_ref()?, event.namespace?);
        // The labels of a namespace that is being written are in the request.
        if event.kind.group.is_empty() && event.kind.kind == "Namespace" {
            let Some(object) = event.judged() else {
                self.fail(rule, None, EvaluationError::NoObject(event.judged_field()));
                return None;
            };
            return Some(selector.matches(labels(object)));
        }
        let query = Query {
            kind: Arc::clone(kind),
            namespace: None,
            filter: Filter::Name(namespace.to_owned()),
            consistent: false,
        };
        let answer = language::guard(|| lookup.answer(&query));
        self.reads.push(query);
        match answer {
            Ok(Answer::Found(found)) => Some(selector.matches(found.first().and_then(|found| labels(found.root())))),
            Ok(Answer::Needs) => {
                self.needs.extend(self.reads.last().cloned());
                None
            }
            Err(panic) => {
                self.fail(rule, None, EvaluationError::Panicked(panic));
                None
            }
            Ok(other) => {
                let message = host::unanswered(&other, &format!("namespace {namespace}"));
                self.fail(rule, None, EvaluationError::Unanswered(message));
                None
            }
        }
    }

    fn judge<'a>(&mut self, rule: &Rule, judged: &'a JudgedKind, asking: &mut Asking<'a>) {
        let object = asking.event.judged();
        if object.is_none() && rule.needs_object {
            return self.fail(rule, None, EvaluationError::NoObject(asking.event.judged_field()));
        }
        let Asking { means, event, arena, seen } = asking;
        let (means, event) = (*means, *event);
        if !seen.as_ref().is_some_and(|seen| seen.is_alike(judged)) {
            *seen = None;
        }
        let seen = &*seen.get_or_insert_with(|| Sight::of(judged, event));
        let pod = seen.pod;
        let metadata = seen.made_metadata.as_ref().map(Document::root).or(seen.metadata);
        let mut roots = [Value::Nil; ROOTS];
        roots[usize::from(OBJECT.0)] = value_of(object);
        roots[usize::from(METADATA.0)] = value_of(metadata);
        roots[usize::from(REQUEST.0)] = value_of(event.request.map(Visible::root));
        roots[usize::from(SPEC.0)] = value_of(pod.and_then(|pod| pod.spec));
        roots[usize::from(SECURITY_CONTEXT.0)] = value_of(seen.security_context);
        self.untold = 0;
        let mut run = |evaluation: &mut Evaluation, container: Option<Container<'_>>| {
            let mut roots = roots;
            if let Some((_, container)) = container {
                roots[usize::from(CONTAINER.0)] = Value::from_node(container);
            }
            let host = RuleHost::new(rule, event, means.lookup, pod, roots, Names(judged));
            evaluation.run(rule, &host, event, container, means, arena);
            arena.reset();
        };
        if pod.is_none() || !rule.per_container {
            return run(self, None);
        }
        for (number, container) in seen.containers.iter().enumerate() {
            if number % CONTAINERS_PER_LOOK == CONTAINERS_PER_LOOK - 1 && (means.is_over)() {
                self.fail(rule, None, EvaluationError::TooLate);
                break;
            }
            run(self, Some(container));
        }
        if self.untold > 0 {
            self.violate(rule, None, format!("{} more containers violate it", self.untold), None);
        }
    }

    fn run(
        &mut self,
        rule: &Rule,
        host: &RuleHost<'_>,
        event: &Event<'_>,
        container: Option<Container<'_>>,
        means: Means<'_>,
        arena: &Arena,
    ) {
        let outcome = language::evaluate(&*rule.expression, host, arena, means.limits, event.now);
        let is_violation = match outcome {
            Ok(Value::Bool(is_violation)) => Ok(is_violation),
            Ok(Value::Nil) => Ok(false),
            Ok(other) => Err(EvaluationError::NotBool(with_kind(other))),
            Err(error) => Err(error),
        };
        let (reads, needs) = host.asked();
        self.reads.extend(reads);
        if !needs.is_empty() {
            // The answer would be a guess; the caller fetches and asks again.
            self.needs.extend(needs);
            return;
        }
        // Most containers violate nothing, and need no name.
        let name = || container.map(|(kind, container)| container_name(kind, container));
        match is_violation {
            Ok(false) => {}
            Ok(true) => self.tell(rule, host, event, name(), means, arena),
            Err(error) => self.fail(rule, name(), error),
        }
    }

    /// Puts a violation into words. It stays one, whatever happens to the words.
    fn tell(
        &mut self,
        rule: &Rule,
        host: &RuleHost<'_>,
        event: &Event<'_>,
        container: Option<String>,
        means: Means<'_>,
        arena: &Arena,
    ) {
        if self.has_told_enough_of(rule) {
            self.untold += 1;
            return;
        }
        // Words may take longer than the rule itself.
        if !means.in_words || (means.is_over)() {
            return self.violate(rule, container, format!("violates rule {}", rule.id), None);
        }
        let limits = means.limits;
        let explain = || rule.expression.explain(host, arena, limits, event.now);
        let (saw, explaining) =
            match language::guard(|| describe(&explain(), container.as_deref(), host.names(), &host.assumed())) {
                Ok(saw) => (saw, None),
                Err(panic) => (None, Some(panic)),
            };
        let (message, rendering) = match (&rule.message, &saw) {
            (Some(message), _) => message.render(host, limits, event.now),
            (None, Some(saw)) => (saw.clone(), None),
            (None, None) => (format!("violates rule {}", rule.id), None),
        };
        let panics = explaining.into_iter().chain(rendering).map(EvaluationError::Panicked);
        self.unexplained.extend(panics.map(|error| failure(rule, container.clone(), error)));
        self.violate(rule, container, message, saw);
    }

    /// Whether so many containers violate a rule that nobody would read of another one. Violations of a rule follow each other.
    fn has_told_enough_of(&self, rule: &Rule) -> bool {
        let first = self.violations.len().checked_sub(MAX_TOLD).map(|first| &self.violations[first]);
        first.is_some_and(|first| first.rule == rule.id)
    }

    fn violate(&mut self, rule: &Rule, container: Option<String>, message: String, saw: Option<String>) {
        let (id, severity, enforcement) = (rule.id.clone(), rule.severity, rule.enforcement);
        self.violations.push(Violation { rule: id, severity, enforcement, container, message, saw });
    }

    /// Keeps why a rule could not be evaluated. It has failed, however many containers it failed for.
    fn fail(&mut self, rule: &Rule, container: Option<String>, error: EvaluationError) {
        let first = self.failures.len().checked_sub(MAX_TOLD).map(|first| &self.failures[first]);
        if first.is_none_or(|first| first.rule != rule.id) {
            self.failures.push(failure(rule, container, error));
        }
    }
}

impl fmt::Display for Failure {
    /// Why, and for which container.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error.to_string();
        match &self.container {
            Some(container) => formatter.write_str(&harmless(&format!("container {container}: {error}"))),
            None => formatter.write_str(&harmless(&error)),
        }
    }
}

fn failure(rule: &Rule, container: Option<String>, error: EvaluationError) -> Failure {
    Failure { rule: rule.id.clone(), enforcement: rule.enforcement, container, error }
}

fn value_of(node: Option<Node<'_>>) -> Value<'_> {
    node.map_or(Value::Nil, Value::from_node)
}

/// A value and what kind of value it is: the text `true` is not true.
fn with_kind(value: Value<'_>) -> String {
    let kind = match value {
        Value::Text(text) => return harmless(&format!("the text {:?}", shorten(text, MAX_SEEN))),
        Value::Int(_) | Value::Float(_) => "the number",
        _ if value.elements().is_some() => "the list",
        _ if value.entries().is_some() => "the map",
        _ => "the value",
    };
    format!("{kind} {}", shorten(&harmless(&show(value)), MAX_SEEN))
}

fn labels(object: Node<'_>) -> Option<Node<'_>> {
    object.get_str("metadata")?.get_str("labels")
}

pub(crate) fn container_name(kind: ContainerType, container: Node<'_>) -> String {
    let name = container.get_str("name").and_then(Node::as_str).unwrap_or_default();
    if name.is_empty() { format!("({} container without a name)", kind.name()) } else { name.to_owned() }
}
