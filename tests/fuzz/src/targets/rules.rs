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
    manifest::{Manifest, Problem},
    object::Object,
    requirements::{Reach, Reason, Requirements},
    rule::{
        Rule, RuleSet,
        compile::{compile, compile_rule, ended_exceptions},
        diagnostic::{Diagnostic, Level},
        file::{RuleFile, place, read},
        source::{RuleId, RuleSource},
    },
};
use portal_document::{Document, Options};
use portal_expr::{Limits, Moment};

use super::check_place;

/// Small, so that an input takes little time whatever it asks for.
const EVALUATION: Limits = Limits { fuel: 5_000, elements: 1_000, bytes: 1 << 18 };

/// A rule that is right, and violated by the pod.
static GOOD: LazyLock<RuleSource> = LazyLock::new(|| {
    let text = "{name: 'good', match: {gvk: [{kind: Pod}]}, rule: container.securityContext.privileged == true}";
    read(&Manifest::new("good.yaml", text.as_bytes())).sources.pop().expect("the rule is right")
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
    let manifest = Manifest::new("rules.yaml", input);
    let RuleFile { mut sources, problems, is_empty, .. } = read(&manifest);
    assert!(!is_empty || (sources.is_empty() && problems.is_empty()), "nothing is wrong with what is empty");
    problems.iter().for_each(|problem| check_problem(problem, input));
    let rule_set = check_alone_and_together(&mut sources, &manifest, input);
    check_requirements(&rule_set);
    check_evaluation(&rule_set);
}

/// Checks that rules come to the same alone, together, and beside one that is right.
fn check_alone_and_together(sources: &mut Vec<RuleSource>, manifest: &Manifest, input: &[u8]) -> RuleSet {
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
        diagnostics.iter().chain(&ended).for_each(|diagnostic| check_diagnostic(diagnostic, manifest, input));
        ids.extend(rule.map(|rule| rule.id));
        alone.append(&mut diagnostics);
    }
    assert_eq!(rule_set.rules().iter().map(|rule| rule.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(together, alone, "a rule is told the same beside others");
    rule_set
}

fn check_diagnostic(diagnostic: &Diagnostic, manifest: &Manifest, input: &[u8]) {
    assert!(!diagnostic.message.is_empty() && diagnostic.to_string().contains(&diagnostic.message));
    assert!(!diagnostic.message.starts_with("compiling the rule panicked"), "{diagnostic}");
    check_problem(&place(diagnostic, Some(manifest)), input);
}

/// Checks that what is wrong has a place in the input.
fn check_problem(problem: &Problem, input: &[u8]) {
    assert!(!problem.message.is_empty() && problem.to_string().contains(&problem.message));
    let line = problem.line.expect("what is wrong has a place");
    // Where the text of a block begins is told by the line before it, so that what is no rule at all may have no column.
    assert!(problem.column.is_some() || problem.rule.is_none(), "what is wrong with a rule has a column: {problem}");
    check_place(line, problem.column.unwrap_or(1), input);
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
    let event = Event::of(pod.visible(), kind, "v1", Operation::Create, None, Moment::new(1_800_000_000, 0));
    let evaluation = evaluate(rule_set, &Empty, &event, &EVALUATION);
    for failure in evaluation.failures.iter().chain(&evaluation.unexplained) {
        assert!(!matches!(failure.error, EvaluationError::Panicked(_)), "{}", failure.error);
    }
    let found = evaluation.violations.iter().any(|violation| violation.rule == GOOD.id);
    assert!(found, "the rule that is right is violated, whatever is beside it");
}
