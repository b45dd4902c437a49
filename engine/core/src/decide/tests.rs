use std::fmt::Write as _;

use expect_test::{Expect, expect};
use portal_document::Document;

use super::*;
use crate::{
    evaluate::{MAX_TOLD, evaluate, evaluate_until},
    event::Front,
    kinds::{Kind, Kinds},
    language::ExprEngine,
    object::Object,
    testing::{Objects, documents, rules, rules_with},
};

const POLICY: Policy = Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true };

/// Decides about a pod that is changed, or made if there was none before.
#[track_caller]
fn check(yaml: &str, policy: Policy, old: Option<&str>, new: &str, expected: &Expect) {
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    expected.assert_eq(&told(&decide(yaml, kind, policy, old, new, &|| false)));
}

/// The same for any kind, and for a time that may be over.
#[track_caller]
fn decide(
    yaml: &str,
    kind: &Kind,
    policy: Policy,
    old: Option<&str>,
    new: &str,
    is_over: &dyn Fn() -> bool,
) -> Decision {
    let kinds = Kinds::builtin().with([kind.clone()]);
    let (rules, problems) = rules_with(yaml, &kinds, &ExprEngine);
    assert_eq!(problems, Vec::<String>::new());
    let object = |spec: &str| documents(&format!("metadata: {{name: web, namespace: shop}}\n{spec}")).remove(0);
    let (old, new) = (old.map(object), object(new));
    let seen = |document: &Document| Object::kept(document.root(), kind);
    let (old, new) = (old.as_ref().map(seen), seen(&new));
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let event = Event::of(new.visible(), kind, "v1", operation, Some(Front::Admission), Default::default());
    let event = Event { old_object: old.as_ref().map(Object::visible), ..event };
    let (lookup, limits) = (Objects(Vec::new()), Limits::default());
    let evaluation = evaluate_until(&rules, &lookup, &event, &limits, is_over);
    Decision::of(&evaluation, &rules, &lookup, &event, &limits, policy, is_over)
}

fn told(decision: &Decision) -> String {
    let mut text = String::new();
    match decision.is_allowed() {
        true => text.push_str("allowed\n"),
        false => text = format!("denied: {}\n", decision.message()),
    }
    for warning in warnings(decision) {
        let _ = writeln!(text, "warning: {warning}");
    }
    for (key, rules) in decision.annotations() {
        let _ = writeln!(text, "{key}: {rules}");
    }
    text
}

/// The warnings that the API server is given.
fn warnings(decision: &Decision) -> Vec<String> {
    let warnings = decision.response("1")["response"]["warnings"].take();
    serde_json::from_value::<Option<_>>(warnings).unwrap().unwrap_or_default()
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
fn a_container_of_one_template_does_not_excuse_its_namesake_in_another() {
    let kind = Kind {
        group: "ray.io".to_owned(),
        kind: "RayJob".to_owned(),
        plural: "rayjobs".to_owned(),
        versions: vec!["v1".to_owned()],
        namespaced: true,
        subresources: Vec::new(),
    };
    let rule = "
name: privileged
match:
  gvk:
  - {group: ray.io, kind: RayJob, podTemplate: spec.head}
  - {group: ray.io, kind: RayJob, podTemplate: spec.worker}
rule: container.securityContext.privileged
";
    let job = |head: bool, worker: bool, label: &str| {
        let containers = |is_bad: bool| {
            format!("{{spec: {{containers: [{{name: app, securityContext: {{privileged: {is_bad}}}}}]}}}}")
        };
        format!("spec: {{head: {}, worker: {}, label: {label}}}", containers(head), containers(worker))
    };
    let is_allowed = |old: &str, new: &str| decide(rule, &kind, POLICY, Some(old), new, &|| false).is_allowed();
    assert!(is_allowed(&job(true, false, "a"), &job(true, false, "b")));
    assert!(is_allowed(&job(true, true, "a"), &job(true, true, "b")));
    assert!(!is_allowed(&job(true, false, "a"), &job(true, true, "b")));
    assert!(!is_allowed(&job(true, false, "a"), &job(false, true, "b")));
}

#[test]
fn of_two_containers_with_one_name_nobody_knows_which_violated() {
    let twice =
        BAD.replace("containers: [", "containers: [{name: app, image: 'a:2', securityContext: {privileged: true}}, ");
    let denied = expect![[r#"
        denied: a rule refuses this:
        - privileged: container app: securityContext.privileged is true
        - privileged: container app: securityContext.privileged is true
        denied-by: privileged
    "#]];
    check(PRIVILEGED, POLICY, Some(BAD), &twice, &denied);
}

/// A pod of so many containers that violate, of which each is told in many words.
fn crowd(containers: usize) -> (&'static str, String) {
    let rule = "
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
message: '{{ container.name }} {{ container.image }} {{ container.image }} {{ container.image }} {{ container.image }}'
";
    let image = "a".repeat(200);
    let container = |number| format!("{{name: c{number}, image: {image}, securityContext: {{privileged: true}}}}");
    let containers: Vec<String> = (0..containers).map(container).collect();
    (rule, format!("spec: {{containers: [{}]}}", containers.join(", ")))
}

#[test]
fn thousands_of_violations_take_no_more_words_than_some() {
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let (rule, pod) = crowd(5_000);
    let decision = decide(rule, kind, POLICY, None, &pod, &|| false);
    assert_eq!(decision.denials.len(), MAX_TOLD + 1);
    assert_eq!(decision.denials.last().unwrap().text, "4900 more containers violate it");
    let response = decision.response("1").to_string();
    assert!(response.len() < 64 << 10, "{}", response.len());
    // Of the others nobody knows whether they violated before.
    let labelled = |pod: &str| format!("{pod}\nstatus: {{}}");
    let update = |old: &str, new: &str| decide(rule, kind, POLICY, Some(old), new, &|| false);
    assert_eq!(update(&pod, &labelled(&pod)).denials.len(), MAX_TOLD + 1);
    let (_, some) = crowd(MAX_TOLD + 10);
    assert_eq!(update(&some, &labelled(&some)).denials.len(), 1);
    // As many as are told violated before, and one more does not hide among them.
    let (_, pod) = crowd(MAX_TOLD);
    assert!(update(&pod, &labelled(&pod)).is_allowed());
    let (_, pod) = crowd(MAX_TOLD - 1);
    let more = "{name: more, image: a, securityContext: {privileged: true}}";
    for more in
        [pod.replace("containers: [", &format!("containers: [{more}, ")), pod.replace("}]}", &format!("}}, {more}]}}"))]
    {
        assert_eq!(update(&pod, &more).denials.len(), 1);
    }
}

#[test]
fn in_a_pod_of_more_than_a_thousand_containers_none_is_excused() {
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    // One that violates, and good ones in two lists.
    let pod = |containers: usize| {
        let good = |from: usize, to: usize| {
            let container = |number| format!("{{name: c{number}, image: 'a:1'}}");
            (from..to).map(container).collect::<Vec<_>>().join(", ")
        };
        let bad = "{name: bad, image: 'a:1', securityContext: {privileged: true}}";
        format!("spec: {{initContainers: [{}], containers: [{}, {bad}]}}", good(1, 500), good(500, containers))
    };
    let is_allowed =
        |old: usize, new: usize| decide(PRIVILEGED, kind, POLICY, Some(&pod(old)), &pod(new), &|| false).is_allowed();
    assert!(is_allowed(1000, 1000) && is_allowed(999, 1000) && is_allowed(1000, 999));
    assert!(!is_allowed(1001, 1001) && !is_allowed(1000, 1001) && !is_allowed(1001, 1000));
}

#[test]
fn a_rule_that_fails_for_thousands_of_containers_has_failed_once_and_for_all() {
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let (_, pod) = crowd(5_000);
    let rule = format!(
        "{} || container.name == '{}'",
        FAILING.trim_end().replace("metadata", "container"),
        "x".repeat(50_000)
    );
    let decision = decide(&rule, kind, POLICY, None, &pod, &|| false);
    assert_eq!(decision.denials.len(), MAX_TOLD);
    let bytes: usize = decision.denials.iter().map(|reason| reason.text.len()).sum();
    assert!(bytes < MAX_TOLD * 1000, "{bytes}");
}

#[test]
fn when_the_time_is_over_rules_that_are_not_for_it_fail_nobody() {
    let rules = "
name: deleted
match: {gvk: [{kind: Pod}], operations: [DELETE]}
rule: spec.hostNetwork
---
name: elsewhere
match: {gvk: [{kind: Pod}], namespaces: {include: [other]}}
rule: spec.hostNetwork
---
name: asked
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
";
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let decision = decide(rules, kind, POLICY, None, BAD, &|| true);
    let denied: Vec<&str> = decision.denials.iter().map(|reason| &*reason.rule.name).collect();
    assert_eq!(denied, ["asked"]);
}

#[test]
fn thousands_of_rules_that_refuse_take_no_more_words_than_some() {
    let rule = |number: usize| {
        format!("name: a-rule-with-a-long-name-{number}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostNetwork\n")
    };
    let yaml: Vec<String> = (0..2_000).map(rule).collect();
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let decision = decide(&yaml.join("---\n"), kind, POLICY, None, BAD, &|| false);
    assert_eq!(decision.denials.len(), 2_000);
    let response = decision.response("1").to_string();
    assert!(response.len() < 64 << 10, "{}", response.len());
    let names = &decision.annotations()["denied-by"];
    assert!(names.starts_with("a-rule-with-a-long-name-0,") && names.ends_with(" more"), "{names}");
}

#[test]
fn when_the_time_is_over_a_rule_fails_between_containers_and_nothing_is_excused() {
    let kind = Kinds::builtin().get("", "Pod").unwrap();
    let (rule, pod) = crowd(1_000);
    let looks = std::cell::Cell::new(0);
    let after = |count: u32| {
        looks.set(0);
        let looks = &looks;
        move || looks.replace(looks.get() + 1) >= count
    };
    let decision = decide(rule, kind, POLICY, None, &pod, &after(3));
    let late = decision.denials.iter().filter(|reason| reason.finding == Finding::Failure).count();
    assert!(late == 1 && decision.denials.len() < 50, "{}", decision.denials.len());
    // Once for the rule, for each eighth of a thousand containers and for each that is told: the rest is for what was before.
    let decision =
        decide(rule, kind, POLICY, Some(&pod), &format!("{pod}\nstatus: {{}}"), &after(126 + MAX_TOLD as u32 + 4));
    let excused = decision.warnings.len();
    assert!(!decision.is_allowed() && (1..50).contains(&excused), "{excused}");
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
    let decision = Decision::of(&evaluation, &rules, &lookup, &event, &limits, POLICY, &|| false);
    let warnings = warnings(&decision);
    assert!(warnings.iter().all(|warning| warning.len() <= 256));
    assert!(warnings.iter().map(String::len).sum::<usize>() < 4096);
    assert_eq!(warnings.last().unwrap(), "and 27 more warnings of rules");
    let refused = Decision { denials: decision.warnings.clone(), ..Decision::default() };
    assert!(refused.message().len() < MAX_MESSAGE + 100 && refused.message().ends_with(" more"));
}

#[test]
fn words_are_cut_between_characters_and_once() {
    let reason = |text: String| Reason {
        rule: RuleId { namespace: None, name: "r".to_owned() },
        severity: None,
        finding: Finding::Violation,
        container: None,
        text,
    };
    // Characters of one to four bytes, so that a bound falls into each place of one.
    for character in ["x", "ä", "…", "😀"] {
        for shift in 0..4 {
            let reason = reason(format!("{}{}", "x".repeat(shift), character.repeat(10_000)));
            let whole = reason.to_string();
            let refused = Decision { denials: vec![reason.clone()], ..Decision::default() };
            let warned = Decision { warnings: vec![reason], ..Decision::default() };
            let [warning] = &warnings(&warned)[..] else { panic!("one warning") };
            for (cut, bound) in [(&refused.message(), MAX_MESSAGE), (warning, 256)] {
                let kept = cut.strip_suffix('…').unwrap();
                assert!(whole.starts_with(kept));
                assert!((bound - 3..=bound).contains(&cut.len()), "{} of {bound}", cut.len());
            }
        }
    }
    // What fits is whole.
    let fits = reason("😀".repeat(63));
    let warned = Decision { warnings: vec![fits.clone()], ..Decision::default() };
    assert_eq!(warnings(&warned), [fits.to_string()]);
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
