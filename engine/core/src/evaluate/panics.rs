//! A panic, wherever it happens, costs a rule its answer or a violation its words, and nothing else.

use expect_test::{Expect, expect};
use portal_expr::{CallSite, Error, Facts, Host, Moment, Observation, Schema, Warning};

use super::*;
use crate::{
    kinds::Kinds,
    language::{ExprEngine, Expression, ExpressionEngine},
    testing::{Objects, creation, objects, rules, rules_with},
};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop}
spec: {hostNetwork: true, containers: [{name: app, image: nginx}, {name: side, image: nginx}]}
";

/// An engine with bugs: products panic when they are compiled, sums when they are evaluated, and everything when it is
/// explained.
struct FaultyEngine;

#[derive(Debug)]
struct FaultyExpression {
    inner: Box<dyn Expression>,
    adds: bool,
}

impl ExpressionEngine for FaultyEngine {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn compile(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error> {
        assert!(!source.contains('*'), "cannot multiply");
        let inner = ExprEngine.compile(source, schema)?;
        Ok(Box::new(FaultyExpression { inner, adds: source.contains('+') }))
    }

    fn compile_condition(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error> {
        assert!(!source.contains('*'), "cannot multiply");
        let inner = ExprEngine.compile_condition(source, schema)?;
        Ok(Box::new(FaultyExpression { inner, adds: source.contains('+') }))
    }
}

impl Expression for FaultyExpression {
    fn evaluate<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Arena,
        limits: &Limits,
        now: Moment,
    ) -> Result<Value<'a>, Error> {
        assert!(!self.adds, "cannot add");
        self.inner.evaluate(host, arena, limits, now)
    }

    fn explain<'a>(&'a self, _: &'a dyn Host, _: &'a Arena, _: &Limits, _: Moment) -> Vec<Observation<'a>> {
        panic!("cannot explain")
    }

    fn facts(&self) -> &Facts {
        self.inner.facts()
    }

    fn calls(&self) -> &[CallSite] {
        self.inner.calls()
    }

    fn warnings(&self) -> &[Warning] {
        self.inner.warnings()
    }

    fn declarations(&self) -> &str {
        self.inner.declarations()
    }
}

/// Judges a pod by a rule that a faulty engine compiled.
#[track_caller]
fn check(rule: &str, message: Option<&str>, expected: Expect) {
    let message = message.map(|message| format!("message: {message:?}\n")).unwrap_or_default();
    let rule = format!("name: r\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: {rule:?}\n{message}");
    let (rules, problems) = rules_with(&rule, Kinds::builtin(), &FaultyEngine);
    let evaluation = evaluate(&rules, &Objects(Vec::new()), &creation(&objects(POD)[0]), &Limits::default());
    let violations =
        evaluation.violations.iter().map(|found| format!("{}: {} ({:?})", found.rule, found.message, found.saw));
    let failures = evaluation.failures.iter().map(|failure| format!("{} failed: {failure}", failure.rule));
    let unexplained = evaluation.unexplained.iter().map(|failure| format!("{} unexplained: {failure}", failure.rule));
    expected.assert_eq(
        &problems.into_iter().chain(violations).chain(failures).chain(unexplained).collect::<Vec<_>>().join("\n"),
    );
}

#[test]
fn a_panic_while_explaining_costs_the_explanation_and_is_counted() {
    check(
        "spec.hostNetwork",
        None,
        expect![[r#"
            r: violates rule r (None)
            r unexplained: evaluation panicked, which is a bug in Portal: cannot explain"#]],
    );
    check(
        "container.name == 'app'",
        Some("no"),
        expect![[r#"
            r: no (None)
            r unexplained: container app: evaluation panicked, which is a bug in Portal: cannot explain"#]],
    );
}

#[test]
fn a_panic_in_a_message_costs_the_value_and_is_counted() {
    check(
        "spec.hostNetwork",
        Some("{{ 1 + 1 }} of {{ metadata.name }}"),
        expect![[r#"
            r: ? of api (None)
            r unexplained: evaluation panicked, which is a bug in Portal: cannot explain
            r unexplained: evaluation panicked, which is a bug in Portal: cannot add"#]],
    );
}

#[test]
fn a_panic_in_a_rule_is_a_failure() {
    check(
        "len(spec.containers) + 1 == 3",
        None,
        expect!["r failed: evaluation panicked, which is a bug in Portal: cannot add"],
    );
}

#[test]
fn a_panic_of_the_compiler_is_an_error_in_the_rule() {
    check(
        "len(spec.containers) * 2 == 4",
        None,
        expect!["Error: rule r: rule: compiling the rule panicked, which is a bug in Portal: cannot multiply"],
    );
    check(
        "spec.hostNetwork",
        Some("{{ 2 * 2 }}"),
        expect!["Error: rule r: rule: compiling the rule panicked, which is a bug in Portal: cannot multiply"],
    );
}

/// A cluster that cannot be asked.
struct Broken;

impl Lookup for Broken {
    fn answer(&self, query: &Query) -> Answer {
        panic!("no {} at hand", query.kind.plural)
    }
}

#[test]
fn a_panic_of_a_lookup_is_a_failure() {
    let (rules, _) = rules(
        "
name: expression
match: {gvk: [{kind: Pod}]}
rule: len(cluster.services.list('shop')) == 0
---
name: match
match: {gvk: [{kind: Pod}], namespaceSelector: {matchLabels: {a: b}}}
rule: spec.hostNetwork
",
    );
    let evaluation = evaluate(&rules, &Broken, &creation(&objects(POD)[0]), &Limits::default());
    let failures: Vec<_> = evaluation.failures.iter().map(|failure| format!("{}: {failure}", failure.rule)).collect();
    expect![[r#"
        expression: evaluation panicked, which is a bug in Portal: no services at hand
        match: evaluation panicked, which is a bug in Portal: no namespaces at hand"#]]
    .assert_eq(&failures.join("\n"));
}
