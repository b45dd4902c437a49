use std::fmt::Write as _;

use expect_test::{Expect, expect};
use portal_document::Document;

use super::*;
use crate::{
    evaluate::evaluate,
    event::Front,
    kinds::Kinds,
    object::Object,
    testing::{Objects, documents, rules},
};

const POLICY: Policy = Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true };

/// Decides about a pod that is changed, or made if there was none before.
#[track_caller]
fn check(yaml: &str, policy: Policy, old: Option<&str>, new: &str, expected: &Expect) {
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let pod = |spec: &str| documents(&format!("metadata: {{name: web, namespace: shop}}\n{spec}")).remove(0);
    let (old, new) = (old.map(pod), pod(new));
    let seen = |document: &Document| Object::kept(document.root(), kind);
    let (old, new) = (old.as_ref().map(seen), seen(&new));
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let event = Event::of(new.visible(), kind, "v1", operation, Some(Front::Admission), Default::default());
    let event = Event { old_object: old.as_ref().map(Object::visible), ..event };
    let (lookup, limits) = (Objects(Vec::new()), Limits::default());
    let evaluation = evaluate(&rules, &lookup, &event, &limits);
    let decision = Decision::of(&evaluation, &rules, &lookup, &event, &limits, policy);
    let mut text = String::new();
    match decision.is_allowed() {
        true => text.push_str("allowed\n"),
        false => text = format!("denied: {}\n", decision.message()),
    }
    for warning in decision.warnings() {
        let _ = writeln!(text, "warning: {warning}");
    }
    for (key, rules) in decision.annotations() {
        let _ = writeln!(text, "{key}: {rules}");
    }
    expected.assert_eq(&text);
}

const RULES: &str = "
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
message: container {{ container.name }} is privileged
---
name: host-network
enforcementAction: warn
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: latest
enforcementAction: dryrun
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == 'latest'
";

const BAD: &str = "spec: {hostNetwork: true, containers: [{name: app, image: a, securityContext: {privileged: true}}, {name: b, image: 'b:1'}]}";

#[test]
fn deny_wins_and_the_others_are_told() {
    check(
        RULES,
        POLICY,
        None,
        BAD,
        &expect![[r#"
            denied: privileged: container app is privileged (container app: securityContext.privileged is true)
            warning: host-network: spec.hostNetwork is true
            denied-by: privileged
            recorded-by: latest
            warned-by: host-network
        "#]],
    );
}

#[test]
fn every_rule_that_refuses_is_named() {
    let pod = BAD.replace("b, image: 'b:1'", "b, image: 'b:1', securityContext: {privileged: true}");
    check(
        "
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
---
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
",
        POLICY,
        None,
        &pod,
        &expect![[r#"
            denied: 2 rules refuse this:
            - privileged: container app: securityContext.privileged is true
            - privileged: container b: securityContext.privileged is true
            - host-network: spec.hostNetwork is true
            denied-by: privileged,host-network
        "#]],
    );
}

#[test]
fn an_instance_caps_its_rules() {
    check(
        RULES,
        Policy { max_enforcement: EnforcementAction::Warn, ..POLICY },
        None,
        BAD,
        &expect![[r#"
            allowed
            warning: privileged: container app is privileged (container app: securityContext.privileged is true)
            warning: host-network: spec.hostNetwork is true
            recorded-by: latest
            warned-by: privileged,host-network
        "#]],
    );
    check(
        RULES,
        Policy { max_enforcement: EnforcementAction::Dryrun, ..POLICY },
        None,
        BAD,
        &expect![[r#"
            allowed
            recorded-by: privileged,host-network,latest
        "#]],
    );
}

const PRIVILEGED: &str = "
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
";

#[test]
fn what_violated_before_may_change_where_the_rule_does_not_look() {
    let with_label = format!("{BAD}\nstatus: {{phase: Running}}");
    let admitted = expect![[r#"
        allowed
        warning: privileged, as before this change: container app: securityContext.privileged is true
        violated-before: privileged
        warned-by: privileged
    "#]];
    check(PRIVILEGED, POLICY, Some(BAD), &with_label, &admitted);
    // A good sidecar, in front of the container that violates.
    let with_sidecar = BAD.replace("containers: [", "containers: [{name: sidecar, image: 'c:1'}, ");
    check(PRIVILEGED, POLICY, Some(BAD), &with_sidecar, &admitted);
    let debugged = BAD.replace("hostNetwork: true", "ephemeralContainers: [{name: debugger, image: 'd:1'}]");
    check(PRIVILEGED, POLICY, Some(&BAD.replace("hostNetwork: true, ", "")), &debugged, &admitted);
}

#[test]
fn a_change_of_what_the_rule_reads_is_judged() {
    let denied = expect![[r#"
        denied: privileged: container app: securityContext.privileged is true
        denied-by: privileged
    "#]];
    // It did not violate before.
    let good = BAD.replace("privileged: true", "privileged: false");
    check(PRIVILEGED, POLICY, Some(&good), BAD, &denied);
    // Another container did.
    let other = BAD.replace("name: app", "name: old");
    check(PRIVILEGED, POLICY, Some(&other), BAD, &denied);
    // It was a container of another type.
    let other = BAD.replace("containers: [", "initContainers: [");
    check(PRIVILEGED, POLICY, Some(&other), BAD, &denied);
    check(PRIVILEGED, Policy { admit_existing: false, ..POLICY }, Some(BAD), BAD, &denied);
}

#[test]
fn of_more_containers_than_anybody_reads_some_may_be_new() {
    let pod = |count: usize| {
        let container = |number| format!("{{name: c{number}, image: a, securityContext: {{privileged: true}}}}");
        let containers: Vec<String> = (0..count).map(container).collect();
        format!("spec: {{containers: [{}]}}", containers.join(", "))
    };
    let decide = |count: usize| {
        let (rules, _) = rules(PRIVILEGED);
        let kind = Kinds::builtin().get("", "Pod").unwrap();
        let pod = documents(&format!("metadata: {{name: web, namespace: shop}}\n{}", pod(count))).remove(0);
        let pod = Object::kept(pod.root(), kind);
        let event = Event::of(pod.visible(), kind, "v1", Operation::Update, None, Default::default());
        let event = Event { old_object: Some(pod.visible()), ..event };
        let (lookup, limits) = (Objects(Vec::new()), Limits::default());
        let evaluation = evaluate(&rules, &lookup, &event, &limits);
        Decision::of(&evaluation, &rules, &lookup, &event, &limits, POLICY)
    };
    assert!(decide(100).is_allowed());
    assert_eq!(decide(101).message(), "privileged: containers that are not named here: 1");
}

#[test]
fn a_rule_about_the_change_itself_is_never_excused() {
    check(
        "
name: frozen
match: {gvk: [{kind: Pod}], operations: [UPDATE]}
rule: 'true'
message: pods are not changed
",
        POLICY,
        Some(BAD),
        BAD,
        &expect![[r#"
            denied: frozen: pods are not changed
            denied-by: frozen
        "#]],
    );
}

const FAILING: &str = "
name: fails
match: {gvk: [{kind: Pod}]}
rule: int(metadata.name) > 1
";

#[test]
fn a_rule_that_cannot_be_evaluated_refuses_unless_the_instance_fails_open() {
    check(
        FAILING,
        POLICY,
        None,
        BAD,
        &expect![[r#"
            denied: fails could not be evaluated: 1:1: "web" is not an int
             | int(metadata.name) > 1
             | ^
            denied-by: fails
            failed: fails
        "#]],
    );
    check(
        FAILING,
        Policy { fail_open: true, ..POLICY },
        None,
        BAD,
        &expect![[r#"
            allowed
            warning: fails could not be evaluated: 1:1: "web" is not an int
            failed: fails
            warned-by: fails
        "#]],
    );
}

#[test]
fn words_for_people_end() {
    let rule = |number: usize| {
        let message = "long ".repeat(100);
        format!(
            "name: r{number}\nenforcementAction: warn\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: 'true'\nmessage: {message}\n"
        )
    };
    let yaml: Vec<String> = (0..40).map(rule).collect();
    let (rules, _) = rules(&yaml.join("---\n"));
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let pod = documents("metadata: {name: web, namespace: shop}").remove(0);
    let pod = Object::kept(pod.root(), kind);
    let event = Event::of(pod.visible(), kind, "v1", Operation::Create, None, Default::default());
    let (lookup, limits) = (Objects(Vec::new()), Limits::default());
    let evaluation = evaluate(&rules, &lookup, &event, &limits);
    let decision = Decision::of(&evaluation, &rules, &lookup, &event, &limits, POLICY);
    let warnings = decision.warnings();
    assert!(warnings.iter().all(|warning| warning.len() <= 256));
    assert!(warnings.iter().map(String::len).sum::<usize>() < 4096);
    assert_eq!(warnings.last().unwrap(), "and 27 more warnings of rules");
    assert_eq!(decision.response("1")["response"]["warnings"].as_array().unwrap().len(), warnings.len());
    let refused = Decision { denials: decision.warnings.clone(), ..Decision::default() };
    assert!(refused.message().len() < MAX_MESSAGE + 100 && refused.message().ends_with(" more"));
}

#[test]
fn the_api_server_gets_what_clients_show() {
    let reason = |finding, container: Option<&str>| Reason {
        rule: RuleId { namespace: None, name: "r".to_owned() },
        severity: None,
        finding,
        container: container.map(str::to_owned),
        text: "because".to_owned(),
    };
    let denials = vec![reason(Finding::Violation, Some("app")), reason(Finding::Failure, None)];
    let decision = Decision { denials, ..Decision::default() };
    expect![[r#"
        {
          "apiVersion": "admission.k8s.io/v1",
          "kind": "AdmissionReview",
          "response": {
            "allowed": false,
            "auditAnnotations": {
              "denied-by": "r",
              "failed": "r"
            },
            "status": {
              "code": 403,
              "details": {
                "causes": [
                  {
                    "field": "container app",
                    "message": "r: because",
                    "reason": "RuleViolated"
                  },
                  {
                    "message": "r could not be evaluated: because",
                    "reason": "RuleFailed"
                  }
                ]
              },
              "message": "a rule refuses this:\n- r: because\n- r could not be evaluated: because",
              "reason": "Forbidden"
            },
            "uid": "a\"b"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&decision.response("a\"b")).unwrap());
    let allowed = Decision::default().response("1").to_string();
    assert_eq!(
        allowed,
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"1"}}"#
    );
}
