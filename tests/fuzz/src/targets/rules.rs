//! Rules out of YAML: whatever the text, what is wrong with a rule has its place in it, a rule that compiles says what it
//! needs and can be evaluated, and no rule changes what another one is.

use std::collections::HashSet;
use std::sync::LazyLock;

use portal_core::{
    evaluate::evaluate,
    event::{Event, Front, Operation},
    kinds::{Kind, Kinds},
    language::{EvaluationError, ExprEngine},
    layers::Layers,
    lookup::{Answer, Lookup, Query},
    object::Object,
    requirements::{Reach, Reason, Requirements},
    rule::{
        Rule, RuleSet,
        compile::{compile, compile_rule, ended_exceptions},
        diagnostic::{Diagnostic, Level},
        load::load,
        source::{Origin, RuleId, RuleSource},
    },
};
use portal_document::{Document, DocumentLimits, Interning, Options, from_yaml, locate};
use portal_expr::{Limits, Moment};

use super::check_position;

const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, depth: 100 };

/// Nobody's rules may fill the interner.
const OPTIONS: Options =
    Options { drop: &[], mask: &[], interning: Interning::LookUpOnly, origin: None, limits: LIMITS };

/// Small, so that an input takes little time whatever it asks for.
const EVALUATION: Limits = Limits { fuel: 5_000, elements: 1_000, bytes: 1 << 18 };

/// A rule that is right, and violated by the pod.
static GOOD: LazyLock<RuleSource> = LazyLock::new(|| {
    let text = "{name: 'good', match: {gvk: [{kind: Pod}]}, rule: container.securityContext.privileged == true}";
    let documents = from_yaml(text, &Options::default()).expect("the text is YAML");
    load(documents[0].document.root(), origin(0), Vec::new()).expect("the rule is right")
});

/// What is judged by the rules that compile.
static POD: LazyLock<Document> = LazyLock::new(|| {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"app":"c"}},
        "spec":{"hostNetwork":true,"containers":[{"name":"d","image":"e:1","securityContext":{"privileged":true}}]}}"#;
    Document::parse(pod.as_bytes(), &Options::default()).expect("the pod is JSON")
});

/// A cluster with nothing in it.
struct Empty;

impl Lookup for Empty {
    fn answer(&self, _: &Query) -> Answer {
        Answer::Found(Vec::new())
    }
}

/// Loads and compiles rules.
pub fn rules(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let Ok(documents) = from_yaml(text, &OPTIONS) else { return };
    let mut sources = Vec::new();
    for (number, found) in documents.iter().enumerate() {
        match load(found.document.root(), origin(number), Vec::new()) {
            Ok(source) => sources.push(source),
            Err(problems) => {
                assert!(!problems.is_empty(), "a rule that is refused is refused for a reason");
                problems.iter().for_each(|problem| check_diagnostic(problem, text));
            }
        }
    }
    let rule_set = check_alone_and_together(&mut sources, text);
    check_requirements(&rule_set);
    check_evaluation(&rule_set);
}

/// Where a rule is: the number of its document stands for the line.
fn origin(document: usize) -> Origin {
    Origin::File { path: String::new(), line: document }
}

/// Checks that rules come to the same alone, together, and beside one that is right.
fn check_alone_and_together(sources: &mut Vec<RuleSource>, text: &str) -> RuleSet {
    // Of rules with the same name the first one stays.
    sources.insert(0, GOOD.clone());
    let (rule_set, mut together) = compile(sources, Kinds::builtin(), &ExprEngine);
    together.retain(|diagnostic| !diagnostic.message.starts_with("another rule is called"));
    let (mut ids, mut alone, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for source in sources.iter().filter(|source| names.insert(source.id.clone())) {
        let (rule, mut diagnostics) = compile_rule(source, Kinds::builtin(), &ExprEngine);
        let has_error = diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Error);
        assert_eq!(rule.is_some(), !has_error && source.spec.enabled, "{} compiles or has an error", source.id);
        let ended = ended_exceptions(source, Moment::new(1_800_000_000, 0));
        diagnostics.iter().chain(&ended).for_each(|diagnostic| check_diagnostic(diagnostic, text));
        ids.extend(rule.map(|rule| rule.id));
        alone.append(&mut diagnostics);
    }
    assert_eq!(rule_set.rules().iter().map(|rule| rule.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(together, alone, "a rule is told the same beside others");
    rule_set
}

fn check_diagnostic(diagnostic: &Diagnostic, text: &str) {
    assert!(!diagnostic.message.is_empty() && diagnostic.to_string().contains(&diagnostic.message));
    assert!(!diagnostic.message.starts_with("compiling the rule panicked"), "{diagnostic}");
    let Origin::File { line: document, .. } = diagnostic.origin else { panic!("the rule is in a file") };
    let place = locate(text, document, &diagnostic.document_steps()).expect("the document of a rule has a place");
    check_position(place, text.as_bytes());
}

/// Checks that what a rule needs is known.
fn check_requirements(rule_set: &RuleSet) {
    let requirements = Requirements::of(rule_set, Layers::ALL);
    let watched = |rule: &Rule, kind: &Kind| {
        let reasons = requirements.watches.get(kind);
        let reach = reasons.and_then(|reasons| reasons.get(&Reason::Match));
        reach.is_some_and(|reach| rules_of(reach).any(|id| *id == rule.id))
    };
    for rule in rule_set.rules() {
        assert!(!Requirements::of_author(rule).is_empty(), "{} judges nothing", rule.id);
        let is_audited = rule.fronts.contains(&Front::Audit);
        let is_watched = rule.judged.iter().all(|judged| watched(rule, &judged.kind) == is_audited);
        assert!(is_watched, "what {} judges is watched if it is audited", rule.id);
    }
}

fn rules_of(reach: &Reach) -> impl Iterator<Item = &RuleId> {
    reach.cluster.iter().chain(reach.namespaces.values().flatten()).map(|rule| &**rule)
}

/// Checks that a panic of the engine is none that an evaluation hides.
fn check_evaluation(rule_set: &RuleSet) {
    let kind = Kinds::builtin().get("", "Pod").expect("pods are known");
    let pod = Object::of(POD.root(), kind);
    let event = Event {
        front: None,
        entry: None,
        operation: Operation::Create,
        kind,
        version: "v1",
        subresource: None,
        namespace: Some("b"),
        name: "a",
        object: Some(pod.visible()),
        old_object: None,
        request: None,
        now: Moment::new(1_800_000_000, 0),
    };
    let evaluation = evaluate(rule_set, &Empty, &event, &EVALUATION);
    for failure in evaluation.failures.iter().chain(&evaluation.unexplained) {
        assert!(!matches!(failure.error, EvaluationError::Panicked(_)), "{}", failure.error);
    }
    let found = evaluation.violations.iter().any(|violation| violation.rule == GOOD.id);
    assert!(found, "the rule that is right is violated, whatever is beside it");
}
