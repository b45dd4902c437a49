//! What is in the cluster is judged, whenever it changes or something changes that rules look up for it.

use std::time::{Duration, Instant};

use portal_test_kit::fault_proxy::{Answer, Fault, FaultProxy, Requests, Verb};
use portal_test_kit::{Cluster, policy_reports as readers};
use serde_json::{Value, json};

use super::process::Engine;
use super::reports::define as define_reports;
use super::{apply, cluster, condition, get, wait_for};
use crate::core::eventually;

const FLAGS: &[&str] = &["--rules-from-cluster", "--audit"];

/// A rule of audit alone.
fn audited(name: &str, group: &str, kind: &str, expression: &str) -> Value {
    json!({
        "apiVersion": "portal.io/v1alpha1",
        "kind": "PortalClusterRule",
        "metadata": { "name": name },
        "spec": {
            "mode": ["audit"],
            "match": { "gvk": [{ "group": group, "kind": kind }], "namespaces": { "include": ["default"] } },
            "rule": expression,
            "message": "it violates",
        },
    })
}

fn labelled(name: &str, label: Option<&str>) -> Value {
    let labels = label.map(|label| json!({ "team": label }));
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default", "labels": labels } })
}

fn deployment(name: &str) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "nginx:1" }] } },
        },
    })
}

fn budget(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": app } } },
    })
}

/// Waits until the status of a rule says that so many objects violate it. The bound is generous: it is told within a second.
#[track_caller]
fn wait_for_count(cluster: &Cluster, rule: &str, count: i64) {
    eventually(&format!("{count} objects violate {rule}"), || get(cluster, rule)["status"]["violationCount"] == count);
}

fn delete(cluster: &Cluster, kind: &str, name: &str) {
    cluster.kubectl(&["delete", kind, name, "--namespace=default"]).unwrap();
}

/// What the log of an engine says of findings, without times.
fn found(engine: &Engine) -> Vec<String> {
    let log = engine.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    lines
        .filter(|line| line["finding"].is_string())
        .map(|line| ["finding", "rule", "kind", "name"].map(|field| text(&line, field)).join(" "))
        .collect()
}

#[tokio::test]
async fn what_violates_is_found_and_gone_with_its_fix() {
    let cluster = cluster();
    // One was there before anybody looked.
    apply(&cluster, &labelled("old", None));
    apply(
        &cluster,
        &audited("team", "", "ConfigMap", "metadata.labels.team == nil && metadata.name != 'kube-root-ca.crt'"),
    );
    let engine = Engine::ready(&cluster.kubeconfig(), FLAGS);
    let ready = wait_for(&cluster, "team", "True");
    assert_eq!(ready["status"]["mode"], "audit");
    wait_for_count(&cluster, "team", 1);
    apply(&cluster, &labelled("new", None));
    wait_for_count(&cluster, "team", 2);
    assert_eq!(engine.metric(r#"portal_audit_violations{rule="team",severity="medium"}"#), 2);
    apply(&cluster, &labelled("old", Some("a")));
    wait_for_count(&cluster, "team", 1);
    delete(&cluster, "configmap", "new");
    wait_for_count(&cluster, "team", 0);
    assert_eq!(
        found(&engine),
        [
            "appeared team ConfigMap old",
            "appeared team ConfigMap new",
            "cleared team ConfigMap old",
            "cleared team ConfigMap new",
        ]
    );
    assert_eq!(engine.metric("portal_audit_resyncs_total"), 0);
    // A rule that is switched off finds nothing, and one that is gone leaves nothing.
    apply(&cluster, &labelled("old", None));
    wait_for_count(&cluster, "team", 1);
    cluster.kubectl(&["delete", "pcr", "team"]).unwrap();
    eventually("nothing is found any more", || {
        found(&engine).last().is_some_and(|last| last == "cleared team ConfigMap old")
    });
}

#[tokio::test]
async fn reports_say_which_rules_are_met_if_they_are_told_to() {
    let cluster = cluster();
    define_reports(&cluster);
    let team = "metadata.labels.team == nil && metadata.name != 'kube-root-ca.crt'";
    let mut rule = audited("team", "", "ConfigMap", team);
    rule["spec"]["match"]["names"] = json!(["one", "two"]);
    apply(&cluster, &rule);
    apply(&cluster, &labelled("one", Some("a")));
    apply(&cluster, &labelled("two", None));
    let told = || {
        let reports = cluster.kubectl(&["get", "polr", "--namespace=default", "--output=json"]).unwrap();
        let reports: Value = serde_json::from_str(&reports).unwrap();
        let reports: Vec<Value> = reports["items"].as_array().unwrap().clone();
        let seen = readers::see(&reports).unwrap();
        assert!(seen.iter().all(|report| report.summary == report.counted()), "{seen:?}");
        // Without the UID.
        let object = |result: &readers::SeenResult| result.resource.rsplit_once(' ').unwrap().0.to_owned();
        let results = seen.iter().flat_map(|report| &report.results);
        let mut lines: Vec<String> = results.map(|result| format!("{} {}", result.result, object(result))).collect();
        lines.sort();
        lines
    };
    let engine = Engine::ready(&cluster.kubeconfig(), &[FLAGS, &["--policy-report-passes"]].concat());
    let (one, two) = ("v1 ConfigMap default/one", "v1 ConfigMap default/two");
    eventually("both are told of", || told() == [format!("fail {two}"), format!("pass {one}")]);
    assert_eq!(found(&engine), ["appeared team ConfigMap two"]);
    apply(&cluster, &labelled("one", None));
    apply(&cluster, &labelled("two", Some("a")));
    eventually("both have changed", || told() == [format!("fail {one}"), format!("pass {two}")]);
    wait_for_count(&cluster, "team", 1);
    drop(engine);
    // Whoever does not tell of them takes them away.
    let _engine = Engine::ready(&cluster.kubeconfig(), FLAGS);
    eventually("what is wrong is left", || told() == [format!("fail {one}")]);
}

#[tokio::test]
async fn what_depends_on_another_object_follows_it() {
    let cluster = cluster();
    apply(
        &cluster,
        &audited(
            "budgets",
            "apps",
            "Deployment",
            "none(cluster.poddisruptionbudgets.list(metadata.namespace), selects(.spec.selector, object.spec.template.metadata.labels))",
        ),
    );
    let engine = Engine::ready(&cluster.kubeconfig(), FLAGS);
    wait_for(&cluster, "budgets", "True");
    for name in ["web", "api"] {
        apply(&cluster, &deployment(name));
    }
    wait_for_count(&cluster, "budgets", 2);
    apply(&cluster, &budget("first", "web"));
    wait_for_count(&cluster, "budgets", 1);
    // The same budget for another one.
    apply(&cluster, &budget("first", "api"));
    eventually("the other one is found", || {
        found(&engine).ends_with(&["cleared budgets Deployment api".to_owned()])
            || found(&engine).ends_with(&["appeared budgets Deployment web".to_owned()])
    });
    wait_for_count(&cluster, "budgets", 1);
    delete(&cluster, "poddisruptionbudget", "first");
    wait_for_count(&cluster, "budgets", 2);
    assert_eq!(engine.metric("portal_audit_resyncs_total"), 0);
    // Told once a second.
    eventually("one list of each Deployment is remembered", || engine.metric("portal_lookup_dependencies") == 2);
}

#[tokio::test]
async fn a_rule_for_a_version_that_audit_does_not_see_says_so() {
    let cluster = cluster();
    let mut pinned = audited("pinned", "autoscaling", "HorizontalPodAutoscaler", "metadata.labels.team == nil");
    pinned["spec"]["match"]["gvk"][0]["version"] = json!("v1");
    apply(&cluster, &pinned);
    let _engine = Engine::ready(&cluster.kubeconfig(), FLAGS);
    eventually("it is told", || {
        let status = get(&cluster, "pinned")["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let stalled = conditions.iter().find(|found| found["type"] == "Stalled").cloned().unwrap_or_default();
        let words = "audit sees horizontalpodautoscalers.autoscaling in version v2, which the API server prefers, and the rule names v1 alone";
        stalled["reason"] == "NotAudited"
            && stalled["message"].as_str().is_some_and(|message| message.starts_with(words))
    });
}

#[tokio::test]
async fn a_watch_that_is_lost_is_made_up_for_without_a_resync() {
    let cluster = cluster();
    apply(
        &cluster,
        &audited("team", "", "ConfigMap", "metadata.labels.team == nil && metadata.name != 'kube-root-ca.crt'"),
    );
    let proxy = FaultProxy::start(&cluster, 1).await.unwrap();
    let client = proxy.client("engine", "system:serviceaccount:portal-system:engine", &["system:masters"]).unwrap();
    let engine = Engine::ready(client.kubeconfig(), FLAGS);
    wait_for(&cluster, "team", "True");
    for number in 0..20 {
        apply(&cluster, &labelled(&format!("map-{number}"), Some("a")));
    }
    wait_for_count(&cluster, "team", 0);
    let judged = engine.metric(r#"portal_audit_evaluations_total{result="passed"}"#);
    // The watch ends, and cannot go on where it was: what happened meanwhile is told by a list.
    let watches = Requests::of("configmaps").verbs(&[Verb::Watch]);
    let refused = proxy.inject(Fault::Refuse.on(watches.clone()));
    proxy.cut(&watches);
    apply(&cluster, &labelled("map-3", None));
    delete(&cluster, "configmap", "map-4");
    std::thread::sleep(Duration::from_millis(500));
    let expired = proxy.inject(Fault::Expire.on(watches).next(1));
    drop(refused);
    wait_for_count(&cluster, "team", 1);
    drop(expired);
    assert_eq!(engine.metric("portal_audit_resyncs_total"), 0);
    assert!(engine.metric("portal_audit_watch_reconnects_total") >= 1);
    let judged = engine.metric(r#"portal_audit_evaluations_total{result="passed"}"#) - judged;
    assert!(judged <= 2, "only what changed is judged again, and {judged} objects were");
}

#[tokio::test]
async fn whoever_takes_over_knows_everything_and_repeats_nothing() {
    let cluster = cluster();
    apply(&cluster, &labelled("old", None));
    apply(
        &cluster,
        &audited("team", "", "ConfigMap", "metadata.labels.team == nil && metadata.name != 'kube-root-ca.crt'"),
    );
    let first = Engine::ready(&cluster.kubeconfig(), FLAGS);
    wait_for_count(&cluster, "team", 1);
    let second = Engine::ready(&cluster.kubeconfig(), FLAGS);
    eventually("both know", || second.metric(r#"portal_audit_violations{rule="team",severity="medium"}"#) == 1);
    assert_eq!((first.metric("portal_lease_held"), found(&second)), (1, Vec::new()));
    let start = Instant::now();
    let (status, log) = first.stop();
    assert!(status.success(), "{log}");
    eventually("the other one holds", || second.metric("portal_lease_held") == 1);
    // Three seconds on a quiet machine.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    apply(&cluster, &labelled("new", None));
    wait_for_count(&cluster, "team", 2);
    assert_eq!(found(&second), ["appeared team ConfigMap new"]);
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_costs_the_rules_about_it_and_no_others() {
    let cluster = cluster();
    apply(&cluster, &labelled("old", None));
    apply(
        &cluster,
        &audited("team", "", "ConfigMap", "metadata.labels.team == nil && metadata.name != 'kube-root-ca.crt'"),
    );
    apply(&cluster, &audited("pods", "", "Pod", "metadata.labels.team == nil"));
    let proxy = FaultProxy::start(&cluster, 1).await.unwrap();
    let client = proxy.client("engine", "system:serviceaccount:portal-system:engine", &["system:masters"]).unwrap();
    let answer = Answer { status: 403, reason: "Forbidden", retry_after: None };
    let forbidden = proxy.inject(Fault::Answer(answer).on(Requests::of("pods")));
    let _engine = Engine::start(client.kubeconfig(), FLAGS);
    wait_for_count(&cluster, "team", 1);
    let told = wait_for(&cluster, "pods", "False");
    let entry = &told["status"]["instances"][0];
    assert_eq!(condition(entry, "Active"), "False");
    let active = entry["conditions"].as_array().unwrap().iter().find(|found| found["type"] == "Active").unwrap();
    assert_eq!(active["reason"], "PermissionPending");
    drop(forbidden);
    wait_for(&cluster, "pods", "True");
}
