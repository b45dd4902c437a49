//! Each state that an instance can be in, and what is said about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    certificates::Reason,
    observed::{Failure, Memory, Probe},
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
        probe: Some(Probe { at: now, configuration: "c".to_owned(), answer: Ok(()), answered_at: Some(now) }),
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
            objects: BTreeMap::new(),
            others: Vec::new(),
            refused: None,
            served: Vec::new(),
            shown: BTreeMap::new(),
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
    let instance = Instance::read(&scene.instance).unwrap();
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
fn what_somebody_has_to_do_is_stalled() {
    let stalled = |reason| [("Ready", "False", reason), ("Stalled", "True", reason)];
    check(Scene { namespace: None, ..good() }, &stalled("NamespaceMissing"));
    let terminating = json!({ "metadata": { "name": "portal-system", "deletionTimestamp": "2027-01-01T00:00:00Z" } });
    check(Scene { namespace: Some(terminating), ..good() }, &stalled("NamespaceTerminating"));
    let mut scene = good();
    scene.observed.refused = Some("secrets is forbidden".to_owned());
    check(scene, &stalled("NamespaceNotGranted"));
    let mut scene = good();
    scene.instance["spec"]["namespace"] = "portal-operator".into();
    check(scene, &stalled("NamespaceOfOperator"));
    for layer in ["audit", "network", "actions"] {
        let mut scene = good();
        scene.instance["spec"][layer] = json!({ "enabled": true });
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
