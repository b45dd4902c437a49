//! What Alertmanager is told of a given violation.

use std::collections::BTreeMap;
use std::time::Duration;

use expect_test::expect_file;
use portal_cluster::metrics::Registry;
use portal_core::{
    decide::{Decision, Policy},
    evaluate::evaluate,
    event::{Event, Operation},
    kinds::Kinds,
    object::Object,
    rule::RuleSet,
};
use portal_crds::EnforcementAction;
use portal_document::{Document, DocumentLimits, Options};
use portal_expr::{Limits, Moment};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::cache::{answers::Answers, keeper::Caches};
use crate::metrics::{AlertLoss, EngineMetrics};
use crate::sinks::alertmanager::{
    alert::of_offender,
    book::{Book, Class, Now},
    denials::{Denials, Refused, owner},
};

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The message of a replica that has seen these offenders.
fn message(offenders: &[Offender]) -> Value {
    let mut book = Book::new("default", 1 << 20);
    let now = Now { since: Default::default(), wall: moment("2026-03-01T12:00:05Z") };
    for (id, offender) in offenders.iter().enumerate() {
        book.note(id as u64, Some(offender), now);
    }
    assert_eq!(book.firing(Class::Audit), book.audit().len());
    serde_json::from_str(&book.message(&book.audit(), now)).unwrap()
}

#[test]
fn the_alert_of_a_given_violation_is_the_committed_one() {
    let rule = alerting(
        "no-privileged",
        "severity: high
alert: insecure-workload
actions:
  - type: alertmanager
    template: ask-the-team
    labels: {team: '{{ namespace }}', severity: page, portal.io/tier: gold}
    annotations: {runbook: 'https://runbooks.example/{{ rule }}', description: '{{ container }} of {{ kind }} {{ namespace }}/{{ name }}: {{ message }}'}",
    );
    let found = Finding {
        saw: Some("container app: securityContext.privileged is true".to_owned()),
        ..finding(&rule, Some("app"), "Containers must not be privileged.", moment("2026-03-01T12:00:00Z"))
    };
    let pretty = serde_json::to_string_pretty(&message(&[pod("shop", "web", vec![found])])).unwrap();
    expect_file!["./expected_alert.json"].assert_eq(&format!("{pretty}\n"));
}

#[test]
fn rules_without_an_alert_and_rules_that_could_not_say_alert_nobody() {
    let since = moment("2026-03-01T12:00:00Z");
    let (silent, requests, loud) = (
        alerting("silent", ""),
        alerting("requests", "actions: [{type: alertmanager, 'on': [admission]}]"),
        alerting("loud", "actions: [{type: alertmanager, 'on': [audit]}]"),
    );
    let failed = Finding { is_failure: true, ..finding(&loud, None, "m", since) };
    let findings = vec![finding(&silent, None, "m", since), finding(&requests, None, "m", since), failed];
    assert_eq!(of_offender(&pod("shop", "web", findings), "default"), []);
    let alerts = of_offender(&pod("shop", "web", vec![finding(&loud, None, "m", since)]), "default");
    let labels: BTreeMap<String, String> = serde_json::from_str(&alerts[0].labels).unwrap();
    assert_eq!((labels["alertname"].as_str(), labels["mode"].as_str()), ("loud", "audit"));
    // An empty label is none to Alertmanager, so that it would be another alert there than here.
    assert!(!labels.contains_key("container"), "{labels:?}");
}

#[test]
fn an_alert_goes_on_while_nobody_can_tell_and_none_begins_so() {
    let rule = alerting("loud", "alert: Loud\nactions: [{type: alertmanager, labels: {team: '\"rule\":\"other\"'}}]");
    let other = alerting("other", "alert: Other");
    let since = moment("2026-03-01T12:00:00Z");
    let unable = |rule: &Arc<Rule>| Finding { is_failure: true, ..finding(rule, None, "no right to look", since) };
    let now = |seconds| Now { since: Duration::from_secs(seconds), wall: since };
    let mut book = Book::new("default", 1 << 20);
    let mut note = |findings: Option<Vec<Finding>>, seconds| {
        let offender = findings.map(|findings| pod("shop", "web", findings));
        let changed = book.note(1, offender.as_ref(), now(seconds)).len();
        (changed, book.firing(Class::Audit))
    };
    assert_eq!(note(Some(vec![unable(&rule)]), 0), (0, 0));
    assert_eq!(note(Some(vec![finding(&rule, None, "m", since), finding(&other, None, "m", since)]), 1), (3, 3));
    // The other one is mended.
    assert_eq!(note(Some(vec![unable(&rule)]), 2), (1, 2));
    assert_eq!(note(Some(vec![unable(&rule), unable(&other)]), 3), (0, 2));
    assert_eq!(note(Some(vec![finding(&rule, None, "m", since)]), 4), (0, 2));
    assert_eq!(note(None, 5), (2, 0));
}

#[test]
fn an_alert_does_not_change_with_what_people_are_told() {
    let rule = alerting("loud", "alert: Loud");
    let of = |message: &str, second: i64| {
        let since = Timestamp::from_second(second).unwrap();
        of_offender(&pod("shop", "web", vec![finding(&rule, None, message, since)]), "default").remove(0).labels
    };
    assert_eq!(of("3 replicas", 1), of("4 replicas", 2));
}

/// The owner that is found in an object.
#[track_caller]
fn check_owner(metadata: Value, expected: Option<&str>) {
    let json = json!({ "metadata": metadata }).to_string();
    let document =
        Document::parse(json.as_bytes(), &Options { limits: DocumentLimits::default(), ..Options::default() }).unwrap();
    assert_eq!(owner(document.root()).as_deref(), expected);
}

#[test]
fn pods_of_a_controller_have_one_owner_however_often_it_tries() {
    let of = |kind: &str, name: &str| json!([{"kind": "Node", "name": "n"}, {"kind": kind, "name": name, "controller": true}]);
    check_owner(
        json!({
            "generateName": "web-6d4b9-", "labels": {"pod-template-hash": "6d4b9"}, "ownerReferences": of("ReplicaSet", "web-6d4b9"),
        }),
        Some("web"),
    );
    check_owner(json!({"generateName": "db-", "ownerReferences": of("StatefulSet", "db")}), Some("db"));
    check_owner(json!({"generateName": "debug-"}), Some("debug-"));
    check_owner(json!({"name": "web", "generateName": "", "ownerReferences": []}), Some("web"));
    check_owner(json!({"ownerReferences": [{"name": "x"}]}), None);
}

#[test]
fn a_denial_alerts_by_the_rules_that_refused_and_by_no_other() {
    let kinds = Kinds::builtin();
    let kind = kinds.get("", "Pod").unwrap();
    let rules = RuleSet::new(vec![
        alerting("refuses", "alert: Refuses\nmessage: 'No {{ container.name }}.'"),
        alerting("warns", "alert: Warns\nenforcementAction: warn"),
        alerting("silent", ""),
        alerting("audits", "actions: [{type: alertmanager, 'on': [audit]}]"),
    ]);
    let json = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "generateName": "web-"},
        "spec": {"containers": [{"name": "app", "securityContext": {"privileged": true}}]},
    });
    let object = Object::parse(json.to_string().as_bytes(), kind, &Options::default()).unwrap();
    let event = Event::of(object.visible(), kind, "v1", Operation::Create, None, Moment::new(0, 0));
    let limits = Limits::default();
    let caches = Caches::default();
    let answers = Answers::new(&caches, None);
    let evaluation = evaluate(&rules, &answers, &event, &limits);
    let policy = Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true };
    let decision = Decision::of(&evaluation, &rules, &answers, &event, &limits, policy, &|| false);
    let metrics = EngineMetrics::register(&Registry::new());
    let (queue, mut queued) = mpsc::channel(1);
    let denials = Denials { queue, instance: "default".into(), lost: metrics.alerts_lost.clone() };
    let name = owner(object.root()).unwrap();
    let refused = Refused { namespace: Some("shop"), kind: "Pod", owner: &name };
    denials.refused(refused, &rules, &evaluation, &decision);
    let alert = queued.try_recv().unwrap();
    expect_test::expect![[
        r#"{"alertname":"Refuses","instance":"default","kind":"Pod","mode":"admission","name":"web-","namespace":"shop","rule":"refuses","severity":"medium","source":"portal"}"#
    ]]
    .assert_eq(&alert.labels);
    assert!(alert.annotations.contains("No app."), "{}", alert.annotations);
    assert!(queued.try_recv().is_err());
    // A queue that is full costs alerts, which are counted, and nobody's time.
    denials.refused(refused, &rules, &evaluation, &decision);
    denials.refused(refused, &rules, &evaluation, &decision);
    assert_eq!(metrics.alerts_lost.at(&AlertLoss::Queue).get(), 1);
}
