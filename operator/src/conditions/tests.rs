//! Each state that an instance can be in, and what is said about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portal_core::{requirements::Permission, rule::source::RuleId};
use serde_json::{Value, json};

use super::*;
use crate::{
    certificates::Reason,
    object::Object,
    observed::{Failure, Memory, Probe},
    permissions::Refusal,
};

struct Scene {
    instance: Value,
    namespace: Option<Value>,
    observed: Observed,
    /// What is changed of what was found.
    change: fn(&mut Findings),
    is_pending: bool,
}

fn operator() -> OperatorSettings {
    OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "portal:1".to_owned(),
        version: "1".to_owned(),
    }
}

/// An instance that is ready.
fn good() -> Scene {
    let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let memory = Memory {
        probe: Some(Probe {
            at: now,
            configuration: "c".to_owned(),
            answer: Ok("1".to_owned()),
            answered_at: Some(now),
        }),
        ..Memory::default()
    };
    Scene {
        instance: json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance",
            "metadata": { "name": "default", "uid": "1", "generation": 3 }, "spec": {},
        }),
        namespace: Some(json!({ "metadata": { "name": "portal-system", "uid": "n" } })),
        observed: Observed {
            now,
            uptime: Duration::ZERO,
            objects: BTreeMap::new(),
            others: Vec::new(),
            refused: None,
            served: Vec::new(),
            shown: BTreeMap::new(),
            held: BTreeMap::new(),
            is_ceiling_unbounded: false,
            memory,
        },
        change: |_| {},
        is_pending: false,
    }
}

fn rolled_out(findings: &mut Findings) {
    for state in &mut findings.engines {
        (state.ready, state.updated, state.pods, state.is_current) = (2, 2, 2, true);
    }
    findings.permissions = Some(Permissions::default());
    findings.certificates = Some(State {
        is_ready: true,
        reason: Reason::Valid,
        message: "the certificate is valid".to_owned(),
        expires: None,
        authority_expires: None,
    });
    findings.phase = Phase::Enforcing;
}

#[track_caller]
fn check(mut scene: Scene, expected: &[(&str, &str, &str)]) {
    let instance = Instance::try_from(&Object::from_value(Kind::PortalInstance, scene.instance)).unwrap();
    if let Some(namespace) = scene.namespace {
        let namespace = Object::from_value(Kind::Namespace, namespace);
        scene.observed.objects.insert(namespace.key.clone(), Arc::new(namespace));
    }
    let mut findings = Findings::new(&instance, None, &scene.observed, &operator());
    rolled_out(&mut findings);
    findings.failure = scene.observed.memory.failure.clone();
    (scene.change)(&mut findings);
    let status = status(&instance, &scene.observed, &findings, scene.is_pending);
    assert_eq!(status.observed_generation, 3);
    let found: Vec<(&str, &str, &str)> =
        status.conditions.iter().map(|found| (&*found.type_, &*found.status, &*found.reason)).collect();
    let named: Vec<_> =
        found.iter().filter(|(name, ..)| expected.iter().any(|(wanted, ..)| wanted == name)).copied().collect();
    assert_eq!(named, expected, "{found:?}");
    let page = include_str!("../../../docs/operator/troubleshooting.md");
    let certificates = include_str!("../../../docs/operator/certificate-management.md");
    let ready = status.conditions.iter().find(|found| found.type_ == "Ready").expect("it is always told");
    let reason = format!("`{}`", ready.reason);
    assert!(page.contains(&reason) || certificates.contains(&reason), "no page tells of {reason}");
    // Either all is well, or it is said what is in the way.
    let word = |name: &str| found.iter().find(|(found, ..)| *found == name).map(|(_, status, _)| *status);
    let abnormal = ["Reconciling", "Stalled"].into_iter().filter(|name| word(name) == Some("True")).count();
    let is_paused = word("Paused") == Some("True");
    assert_eq!(abnormal, usize::from(word("Ready") != Some("True") && !is_paused), "{found:?}");
    for condition in &status.conditions {
        assert!(!condition.message.is_empty() && condition.message.len() < 32768, "{condition:?}");
        assert!(!condition.message.ends_with('.') && condition.observed_generation == Some(3), "{condition:?}");
    }
}

fn failure(subject: &str, reason: &'static str, times: u32) -> Option<Failure> {
    let until = "2027-01-01T00:01:00Z".parse().unwrap();
    Some(Failure { subject: subject.to_owned(), reason, message: "it was refused".to_owned(), times, until })
}

#[test]
fn an_instance_that_runs_is_ready() {
    check(
        good(),
        &[
            ("Ready", "True", "Ready"),
            ("CertificatesReady", "True", "Valid"),
            ("RBACReady", "True", "InSync"),
            ("WebhookConfigured", "True", "Configured"),
            ("AdmissionAvailable", "True", "Answered"),
            ("ReportsAvailable", "False", "AuditDisabled"),
        ],
    );
}

#[test]
fn a_rule_that_lacks_a_right_makes_nothing_else_unready() {
    let refused = |findings: &mut Findings| {
        let permission = Permission { group: String::new(), resource: "secrets".to_owned(), verb: "list" };
        let rule = Arc::new(RuleId { namespace: None, name: "a".to_owned() });
        let refused = ((permission, None), (Refusal::ByDefault, Arc::new(BTreeSet::from([rule]))));
        findings.permissions.get_or_insert_default().refused.extend([refused]);
    };
    check(
        Scene { change: refused, ..good() },
        &[("Ready", "True", "Ready"), ("RBACReady", "False", "PermissionRefused")],
    );
    let asking = |findings: &mut Findings| findings.permissions.get_or_insert_default().is_incomplete = true;
    check(Scene { change: asking, ..good() }, &[("Ready", "True", "Ready"), ("RBACReady", "Unknown", "Asking")]);
    let mut scene = good();
    scene.observed.is_ceiling_unbounded = true;
    check(scene, &[("Ready", "True", "Ready"), ("RBACReady", "True", "CeilingUnbounded")]);
}

#[test]
fn what_is_under_way_is_reconciling() {
    check(
        Scene { is_pending: true, ..good() },
        &[("Ready", "False", "Progressing"), ("Reconciling", "True", "Progressing")],
    );
    let change = |findings: &mut Findings| findings.engines[0].ready = 1;
    check(Scene { change, ..good() }, &[("Ready", "False", "Progressing"), ("Reconciling", "True", "Progressing")]);
    let change = |findings: &mut Findings| {
        findings.engines[0].ready = 1;
        findings.engines[0].problem = Some("pod a: Unschedulable".to_owned());
    };
    check(Scene { change, ..good() }, &[("Ready", "False", "PodsNotReady"), ("Reconciling", "True", "PodsNotReady")]);
    let change = |findings: &mut Findings| findings.phase = Phase::WaitingForProbe;
    check(
        Scene { change, ..good() },
        &[("Ready", "False", "WaitingForProbe"), ("WebhookConfigured", "False", "WaitingForProbe")],
    );
    let change = |findings: &mut Findings| findings.phase = Phase::WaitingForRules;
    check(
        Scene { change, ..good() },
        &[("Ready", "Unknown", "WaitingForRules"), ("WebhookConfigured", "Unknown", "WaitingForRules")],
    );
}

#[test]
fn an_engine_that_does_not_answer_is_not_available() {
    let mut scene = good();
    let probe = scene.observed.memory.probe.as_mut().unwrap();
    probe.answer = Err("connection refused".to_owned());
    check(scene, &[("Ready", "False", "NoAnswer"), ("AdmissionAvailable", "False", "NoAnswer")]);
    // An operator that has just started believes what was known.
    let mut scene = good();
    scene.observed.memory.probe = None;
    scene.instance["status"] = json!({ "observedGeneration": 3, "conditions": [{
        "type": "AdmissionAvailable", "status": "True", "reason": "Answered", "message": "it does",
        "lastTransitionTime": "2026-12-31T00:00:00Z",
    }] });
    check(scene, &[("Ready", "True", "Ready"), ("AdmissionAvailable", "True", "Answered")]);
    let mut scene = good();
    scene.observed.memory.probe = None;
    check(scene, &[("Ready", "Unknown", "NotAsked"), ("AdmissionAvailable", "Unknown", "NotAsked")]);
}

#[test]
fn an_engine_of_another_version_is_shown() {
    let mut scene = good();
    scene.observed.memory.probe.as_mut().unwrap().answer = Ok("2".to_owned());
    check(scene, &[("Ready", "True", "Ready"), ("AdmissionAvailable", "True", "OtherVersion")]);
}

#[test]
fn what_somebody_has_to_do_is_stalled() {
    let stalled = |reason| [("Ready", "False", reason), ("Stalled", "True", reason)];
    check(Scene { namespace: None, ..good() }, &stalled("NamespaceMissing"));
    let terminating = json!({ "metadata": { "name": "portal-system", "deletionTimestamp": "2027-01-01T00:00:00Z" } });
    check(Scene { namespace: Some(terminating), ..good() }, &stalled("NamespaceTerminating"));
    let mut scene = good();
    scene.observed.refused = Some("secrets is forbidden".to_owned());
    check(scene, &stalled("NamespaceNotGranted"));
    let mut scene = good();
    scene.instance["spec"]["later"] = json!({});
    check(scene, &stalled("FieldsNotKnown"));
    let mut scene = good();
    scene.instance["spec"]["namespace"] = "portal-operator".into();
    check(scene, &stalled("NamespaceOfOperator"));
    let mut scene = good();
    scene.instance["metadata"]["name"] = "default-pods".into();
    let other = json!({ "metadata": { "name": "default", "uid": "2" }, "spec": {} });
    scene.observed.others = vec![Instance::read(&other).unwrap()];
    check(scene, &stalled("NameTaken"));
    for level in ["baseline", "restricted"] {
        let mut scene = good();
        let metadata = json!({ "name": "portal-system", "labels": { POD_SECURITY: level } });
        scene.namespace = Some(json!({ "metadata": metadata }));
        scene.instance["spec"]["admission"] = json!({ "hostNetwork": true });
        check(scene, &stalled("HostNetworkForbidden"));
    }
    for (layer, spec) in [
        ("network", json!({ "enabled": true })),
        ("actions", json!({ "enabled": true, "allowed": ["evict"] })),
        ("actions", json!({ "enabled": true, "allowed": ["evict"], "namespaced": true })),
    ] {
        let mut scene = good();
        scene.instance["spec"][layer] = spec;
        check(scene, &stalled("LayerNotAvailable"));
    }
    let change = |findings: &mut Findings| findings.lacks_cert_manager = true;
    check(Scene { change, ..good() }, &stalled("CertManagerMissing"));
    let change = |findings: &mut Findings| findings.rule_problems = vec!["rules/a.yaml:1: no rule".to_owned()];
    check(Scene { change, ..good() }, &stalled("BootstrapRulesInvalid"));
    let change = |findings: &mut Findings| findings.monitoring = Monitoring::Lacks(vec![Kind::ServiceMonitor]);
    check(Scene { change, ..good() }, &stalled("DefinitionsMissing"));
}

#[test]
fn audit_and_its_reports_are_told() {
    let with_audit = |sinks: Value| {
        let mut scene = good();
        scene.instance["spec"] = json!({ "audit": { "enabled": true }, "sinks": sinks });
        scene
    };
    let told = |reports| [("AuditAvailable", "True", "Running"), reports];
    let served = |kind| {
        let mut scene = with_audit(
            json!({ "policyReport": { "api": if kind == Kind::Report { "openreports.io" } else { "wgpolicyk8s.io" } } }),
        );
        scene.observed.served = vec![kind];
        scene
    };
    check(served(Kind::PolicyReport), &told(("ReportsAvailable", "True", "Available")));
    check(served(Kind::Report), &told(("ReportsAvailable", "True", "Available")));
    check(
        with_audit(json!({ "policyReport": { "api": "None" } })),
        &told(("ReportsAvailable", "False", "ReportsDisabled")),
    );
    // Nobody knows yet which kinds are served.
    check(with_audit(json!({})), &told(("ReportsAvailable", "Unknown", "NotAsked")));
    let mut scene = with_audit(json!({}));
    scene.change = |findings: &mut Findings| findings.rules = Some(Default::default());
    check(scene, &told(("ReportsAvailable", "False", "DefinitionsMissing")));
    check(good(), &[("ReportsAvailable", "False", "AuditDisabled")]);
}

#[test]
fn of_two_instances_that_act_on_the_same_the_younger_is_stalled() {
    let instance = |name: &str, created: &str, spec: Value| {
        let metadata = json!({ "name": name, "uid": name, "generation": 3, "creationTimestamp": created });
        json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": spec })
    };
    let with = |more: Value| {
        let mut spec = json!({ "actions": { "enabled": true } });
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        spec
    };
    let (old, young) = ("2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z");
    let team = |key: &str, name: &str| with(json!({ key: { "matchLabels": { "team": name } } }));
    let but = |name: &str| {
        let expression = json!({ "key": "team", "operator": "NotIn", "values": [name] });
        with(json!({ "ruleSelector": { "matchExpressions": [expression] } }))
    };
    let waits = [("Ready", "False", "ActionsElsewhere"), ("Stalled", "True", "ActionsElsewhere")];
    // The layer does not exist yet.
    let acts = [("Ready", "False", "LayerNotAvailable"), ("Stalled", "True", "LayerNotAvailable")];
    for (own, own_age, other, other_age, expected) in [
        (with(json!({})), young, with(json!({})), old, waits),
        (with(json!({})), old, with(json!({})), young, acts),
        // Of two that were made at once the first one by name acts, and this one is `default`.
        (with(json!({})), old, with(json!({})), old, waits),
        (with(json!({})), young, json!({}), old, acts),
        (team("ruleSelector", "a"), young, team("ruleSelector", "b"), old, acts),
        (team("ruleSelector", "a"), young, team("ruleSelector", "a"), old, waits),
        (team("ruleSelector", "a"), young, with(json!({})), old, waits),
        (team("ruleSelector", "a"), young, but("a"), old, acts),
        (team("ruleSelector", "a"), young, but("b"), old, waits),
        (team("namespaceSelector", "a"), young, team("namespaceSelector", "b"), old, acts),
        (team("namespaceSelector", "a"), young, team("ruleSelector", "b"), old, waits),
    ] {
        let mut scene = good();
        scene.instance = instance("default", own_age, own);
        scene.observed.others = vec![Instance::read(&instance("another", other_age, other)).unwrap()];
        check(scene, &expected);
    }
}

#[test]
fn what_another_version_asks_for_is_told_and_all_is_left_as_it_is() {
    let mut scene = good();
    scene.instance["spec"]["mode"] = "sharded".into();
    let engine = json!({ "name": "portal-default", "layers": "admission", "image": "portal:2", "replicas": 4, "readyReplicas": 4, "updatedReplicas": 4 });
    scene.instance["status"] = json!({ "observedGeneration": 2, "replicas": "4/4", "engines": [engine], "conditions": [{
        "type": "WebhookConfigured", "status": "True", "reason": "Configured", "message": "it is",
        "lastTransitionTime": "2026-12-31T00:00:00Z",
    }] });
    let instance = Instance::try_from(&Object::from_value(Kind::PortalInstance, scene.instance.clone())).unwrap();
    let status =
        status(&instance, &scene.observed, &Findings::new(&instance, None, &scene.observed, &operator()), false);
    assert_eq!((status.replicas.as_deref(), status.engines.len()), (Some("4/4"), 1));
    check(
        scene,
        &[
            ("Ready", "False", "SpecNotUnderstood"),
            ("Stalled", "True", "SpecNotUnderstood"),
            ("WebhookConfigured", "True", "Configured"),
        ],
    );
}

#[test]
fn a_certificate_that_somebody_else_brings_waits_for_them_and_ours_does_not() {
    let change = |findings: &mut Findings| {
        if let Some(state) = &mut findings.certificates {
            (state.is_ready, state.reason) = (false, Reason::SecretMissing);
        }
    };
    let mut scene = Scene { change, ..good() };
    scene.instance["spec"]["certificates"] = json!({ "source": "Secret", "secretName": "own" });
    check(scene, &[("Ready", "False", "SecretMissing"), ("Stalled", "True", "SecretMissing")]);
    check(Scene { change, ..good() }, &[("Ready", "False", "SecretMissing"), ("Reconciling", "True", "SecretMissing")]);
}

#[test]
fn a_step_that_fails_is_told() {
    let mut scene = good();
    scene.observed.memory.failure = failure("Deployment portal-system/portal-default", "ApiServerUnavailable", 9);
    check(scene, &[("Ready", "False", "ApiServerUnavailable"), ("Reconciling", "True", "ApiServerUnavailable")]);
    let mut scene = good();
    scene.observed.memory.failure = failure("ClusterRole portal-default", "NotAllowed", 2);
    check(
        scene,
        &[("Ready", "False", "NotAllowed"), ("Stalled", "True", "NotAllowed"), ("RBACReady", "False", "NotAllowed")],
    );
}

#[test]
fn an_instance_that_is_paused_says_so_and_keeps_what_it_said() {
    let mut scene = good();
    scene.instance["metadata"]["annotations"] = json!({ PAUSED: "true" });
    scene.instance["status"] = json!({ "observedGeneration": 2, "conditions": [{
        "type": "WebhookConfigured", "status": "True", "reason": "Configured", "message": "it is",
        "lastTransitionTime": "2026-12-31T00:00:00Z",
    }] });
    check(
        scene,
        &[("Ready", "Unknown", "Paused"), ("Paused", "True", "Paused"), ("WebhookConfigured", "True", "Configured")],
    );
}

#[test]
fn a_condition_that_stays_keeps_its_time() {
    let mut scene = good();
    let then = "2026-12-31T00:00:00Z";
    scene.instance["status"] = json!({ "observedGeneration": 2, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Other", "message": "it was", "lastTransitionTime": then,
    }] });
    let instance = Instance::read(&scene.instance).unwrap();
    let namespace = Object::from_value(Kind::Namespace, scene.namespace.unwrap());
    scene.observed.objects.insert(namespace.key.clone(), Arc::new(namespace));
    let mut findings = Findings::new(&instance, None, &scene.observed, &operator());
    rolled_out(&mut findings);
    let status = status(&instance, &scene.observed, &findings, false);
    let time = |name: &str| {
        let found = status.conditions.iter().find(|found| found.type_ == name).unwrap();
        found.last_transition_time.0.to_string()
    };
    assert_eq!(time("Ready"), then);
    assert_eq!(time("RBACReady"), "2027-01-01T00:00:00Z");
}
