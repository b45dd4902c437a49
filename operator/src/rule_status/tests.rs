//! What is applied to the status of rules.

use serde_json::json;

use super::*;
use crate::children::tests::instance;
use crate::permissions::tests::{RULES, needs};
use crate::permissions::{Held, Permissions, Verdicts};

fn granted(is_denied: bool) -> Verdicts {
    let allowed = json!({ "rbac": { "allowedResources": [{ "group": "", "resource": "secrets" }] } });
    let instance = instance(allowed);
    let needs = needs(&instance, RULES);
    let held: Held = needs.grants.keys().map(|need| (need.clone(), !is_denied)).collect();
    Verdicts::new(&instance, &needs, &Permissions::decide(&instance, &needs, &held, &BTreeMap::new()))
}

fn id(name: &str) -> RuleId {
    RuleId { namespace: None, name: name.to_owned() }
}

fn seen(name: &str, status: Value) -> SeenRule {
    SeenRule {
        uid: format!("uid-{name}"),
        generation: 1,
        resource_version: "1".to_owned(),
        status,
        is_served: true,
        is_listed: false,
    }
}

/// What an engine says before the operator does.
fn entry(instance: &str) -> Value {
    json!({ "instance": instance, "namespace": "portal-system", "conditions": [
        { "type": "PermissionGranted", "status": "Unknown", "reason": "NotDecided", "message": "" },
    ] })
}

fn now(second: u8) -> Timestamp {
    format!("2027-01-01T00:00:{second:02}Z").parse().unwrap()
}

fn instances(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Names and conditions of what is applied.
fn told(applied: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = applied["status"]["instances"].as_array().unwrap();
    let line = |entry: &Value| {
        let found = &entry["conditions"][0];
        let words = ["type", "status", "reason", "lastTransitionTime"].map(|name| text(&found[name]));
        format!("{} {}", text(&entry["instance"]), words.join(" "))
    };
    entries.iter().map(line).collect()
}

#[test]
fn what_an_engine_has_taken_is_decided_and_what_is_decided_is_written_once() {
    let statuses = RuleStatuses::default();
    statuses.set("default", Some(granted(false)));
    // An engine that has said nothing yet says it soon: two writers at once would get into each other's way.
    statuses.saw(id("services"), Some(&seen("services", json!({}))));
    assert_eq!(statuses.due(&instances(&["default"]), now(1)), []);

    statuses.saw(id("services"), Some(&seen("services", json!({ "instances": [entry("default")] }))));
    let due = statuses.due(&instances(&["default"]), now(1));
    assert_eq!(told(&due[0].1), ["default PermissionGranted True Granted 2027-01-01T00:00:01Z"]);
    assert_eq!(due[0].1["metadata"], json!({ "name": "services", "uid": "uid-services" }));

    let written = due[0].1["status"].clone();
    statuses.saw(id("services"), Some(&seen("services", written)));
    assert_eq!(statuses.due(&instances(&["default"]), now(2)), []);
}

#[test]
fn a_rule_that_lacks_something_says_so_even_before_its_engine_does() {
    let statuses = RuleStatuses::default();
    statuses.set("default", Some(granted(true)));
    statuses.saw(id("secrets"), Some(&seen("secrets", json!({}))));
    let due = statuses.due(&instances(&["default"]), now(1));
    assert_eq!(told(&due[0].1), ["default PermissionGranted False NotGranted 2027-01-01T00:00:01Z"]);
    let message = &due[0].1["status"]["instances"][0]["conditions"][0]["message"];
    assert!(message.as_str().unwrap().contains("kind: ClusterRole\n"), "{message}");

    // It is granted.
    statuses.saw(id("secrets"), Some(&seen("secrets", due[0].1["status"].clone())));
    statuses.set("default", Some(granted(false)));
    let due = statuses.due(&instances(&["default"]), now(9));
    assert_eq!(told(&due[0].1), ["default PermissionGranted True Granted 2027-01-01T00:00:09Z"]);
}

#[test]
fn what_was_granted_and_is_in_no_role_is_told_and_what_is_on_its_way_is_not() {
    let statuses = RuleStatuses::default();
    let pending = |names: &[&str]| {
        let pending = names.iter().map(|name| Arc::new(id(name))).collect();
        Some(Verdicts { pending, ..granted(false) })
    };
    statuses.set("default", pending(&["services"]));
    statuses.saw(id("services"), Some(&seen("services", json!({ "instances": [entry("default")] }))));
    assert_eq!(statuses.due(&instances(&["default"]), now(1)), []);
    statuses.set("default", pending(&[]));
    let due = statuses.due(&instances(&["default"]), now(2));
    assert_eq!(told(&due[0].1), ["default PermissionGranted True Granted 2027-01-01T00:00:02Z"]);

    // Somebody has deleted the role. It is told once.
    for (names, expected) in [
        (&["services"][..], &["default PermissionGranted Unknown Granting 2027-01-01T00:00:03Z"][..]),
        (&["services"], &[]),
        (&[], &["default PermissionGranted True Granted 2027-01-01T00:00:03Z"]),
    ] {
        let before = statuses.due(&instances(&["default"]), now(3));
        let written = before.first().map(|(_, applied)| applied["status"].clone());
        written.into_iter().for_each(|status| statuses.saw(id("services"), Some(&seen("services", status))));
        statuses.set("default", pending(names));
        let due = statuses.due(&instances(&["default"]), now(3));
        let said: Vec<String> = due.iter().flat_map(|(_, applied)| told(applied)).collect();
        assert_eq!(said, expected, "{names:?}");
    }
}

#[test]
fn what_is_not_decided_again_stays_and_what_is_of_nobody_goes() {
    let statuses = RuleStatuses::default();
    statuses.set("canary", Some(granted(false)));
    let status = json!({ "instances": [entry("canary"), {
        "instance": "default", "namespace": "portal-system", "conditions": [{
            "type": "PermissionGranted", "status": "False", "reason": "NotGranted", "message": "x",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }] });
    statuses.saw(id("services"), Some(&seen("services", status)));
    // The caretaker of the other instance has not looked yet, or there is no such instance.
    let both = statuses.due(&instances(&["canary", "default"]), now(1));
    let one = statuses.due(&instances(&["canary"]), now(1));
    let canary = "canary PermissionGranted True Granted 2027-01-01T00:00:01Z";
    assert_eq!(told(&both[0].1), [canary, "default PermissionGranted False NotGranted 2026-01-01T00:00:00Z"]);
    assert_eq!(told(&one[0].1), [canary]);
    let left = statuses.left_behind(&instances(&["canary"]));
    assert_eq!(left, BTreeMap::from([(("default".to_owned(), "portal-system".to_owned()), vec![id("services")])]));
}

#[test]
fn nothing_is_said_of_a_version_that_nobody_has_looked_at() {
    let statuses = RuleStatuses::default();
    statuses.set("default", Some(granted(true)));
    let newer = SeenRule { generation: 2, ..seen("secrets", json!({ "instances": [entry("default")] })) };
    statuses.saw(id("secrets"), Some(&newer));
    assert_eq!(statuses.due(&instances(&["default"]), now(1)), []);
    statuses.retain(|_| false);
    assert_eq!(statuses.left_behind(&BTreeSet::new()).len(), 0);
}
