//! What has become of a rule is told in its status, soon, and with as few writes as that takes.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use portal_test_kit::Cluster;
use serde_json::json;

use super::process::Engine;
use super::{BAD, GOOD, apply, cluster, condition, create, definition, get, rule, rules_api, status_writes, wait_for};
use crate::core::eventually;

const CLUSTER: &[&str] = &["--rules-from-cluster"];

/// How many writes of the status of rules were done.
async fn count_writes(cluster: &Cluster) -> usize {
    status_writes(cluster).await.iter().filter(|event| event.code() == 200).count()
}

#[tokio::test]
async fn a_mistake_is_told_with_its_caret_and_clears_with_the_fix() {
    let cluster = cluster();
    let engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    apply(&cluster, &rule("privileged", BAD));
    let refused = wait_for(&cluster, "privileged", "False");
    let entry = &refused["status"]["instances"][0];
    assert_eq!(entry["instance"], "default");
    assert_eq!(
        entry["parseError"],
        json!({
            "line": 1,
            "column": 11,
            "message": "Container has no field `securityContxt`, did you mean `securityContext`?",
            "caret": " | container.securityContxt.privileged == true\n |           ^",
        })
    );
    assert_eq!(condition(entry, "Accepted"), "False");
    assert_eq!(condition(entry, "PermissionGranted"), "Unknown");
    assert_eq!(condition(&refused["status"], "Stalled"), "True");

    apply(&cluster, &rule("privileged", GOOD));
    let ready = wait_for(&cluster, "privileged", "True");
    let entry = &ready["status"]["instances"][0];
    assert_eq!(entry.get("parseError"), None);
    assert_eq!(condition(entry, "Active"), "True");
    assert_eq!(ready["status"]["mode"], "admission,audit");
    assert_eq!((entry.get("violationCount"), ready["status"].get("violationCount")), (None, None), "nobody counts");
    assert!(entry["activeOn"].as_array().unwrap().contains(&json!("apps/v1/Deployment")));
    assert_eq!(condition(&ready["status"], "Stalled"), "");
    assert_eq!(count_writes(&cluster).await, 2, "a write for each change");
    assert_eq!(engine.metric(r#"portal_rules{state="active"}"#), 1);

    let (status, log) = engine.stop();
    assert!(status.success(), "{log}");
    // A fresh start finds everything as it should be.
    let engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    eventually("the next one holds", || engine.metric("portal_lease_held") == 1);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(count_writes(&cluster).await, 2, "nothing changed, so nothing is written");
}

#[tokio::test]
async fn a_rule_wakes_with_its_kind_and_sleeps_without_it() {
    let cluster = cluster();
    let _engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    let mut widgets = rule("widgets", "object.spec.size > 3");
    widgets["spec"]["match"]["gvk"] = json!([{ "group": "acme.io", "kind": "Widget" }]);
    apply(&cluster, &widgets);
    let waiting = wait_for(&cluster, "widgets", "False");
    assert_eq!(waiting["status"]["conditions"][0]["reason"], "KindNotServed");
    assert_eq!(condition(&waiting["status"], "Reconciling"), "True");

    apply(&cluster, &definition("widgets", "Widget"));
    let awake = wait_for(&cluster, "widgets", "True");
    assert_eq!(awake["status"]["instances"][0]["activeOn"], json!(["acme.io/v1/Widget"]));
    cluster.kubectl(&["delete", "crd", "widgets.acme.io"]).unwrap();
    wait_for(&cluster, "widgets", "False");
}

#[tokio::test]
async fn a_namespaced_rule_has_a_status_too() {
    let cluster = cluster();
    let _engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    let mut rule = rule("own", GOOD);
    rule["kind"] = json!("PortalRule");
    rule["metadata"]["namespace"] = json!("default");
    apply(&cluster, &rule);
    eventually("the rule is ready", || {
        let text = cluster.kubectl(&["get", "prule", "own", "--output=json"]).unwrap();
        super::is_ready(&serde_json::from_str(&text).unwrap(), "True")
    });
}

#[tokio::test]
async fn a_file_shadows_a_rule_of_its_name() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, format!("name: both\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: {GOOD}\n")).unwrap();
    let engine = Engine::ready(
        &cluster.kubeconfig(),
        &["--rules-from-cluster", "--rules-folder", folder.path().to_str().unwrap()],
    );
    apply(&cluster, &rule("both", GOOD));
    let shadowed = wait_for(&cluster, "both", "False");
    let message = shadowed["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("rules.yaml, and files come first: rename one"), "{message}");
    assert_eq!(engine.metric(r#"portal_rules{state="shadowed"}"#), 1);
    std::fs::remove_file(&file).unwrap();
    wait_for(&cluster, "both", "True");
}

#[tokio::test]
async fn what_others_write_stays() {
    let cluster = cluster();
    let _engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    apply(&cluster, &rule("shared", GOOD));
    wait_for(&cluster, "shared", "True");
    // As an operator would: another field manager decides the one condition that is its own.
    let api = rules_api(cluster.client().await);
    let granted = json!({
        "apiVersion": "portal.io/v1alpha1",
        "kind": "PortalClusterRule",
        "metadata": { "name": "shared" },
        "status": { "instances": [{ "instance": "default", "conditions": [{
            "type": "PermissionGranted", "status": "True", "reason": "Granted", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] }] },
    });
    let operator = PatchParams::apply("portal-operator").force();
    api.patch_status("shared", &operator, &Patch::Apply(&granted)).await.unwrap();
    apply(&cluster, &rule("shared", "spec.hostNetwork == true"));
    let status = wait_for(&cluster, "shared", "True")["status"].clone();
    assert_eq!(condition(&status["instances"][0], "PermissionGranted"), "True");
}

#[tokio::test]
async fn an_instance_that_is_renamed_leaves_nothing_behind() {
    let cluster = cluster();
    let instance = |name: &str| Engine::ready(&cluster.kubeconfig(), &["--rules-from-cluster", "--instance", name]);
    let before = instance("a");
    apply(&cluster, &rule("renamed", GOOD));
    wait_for(&cluster, "renamed", "True");
    before.stop();
    let _after = instance("b");
    let instances = || {
        let status = get(&cluster, "renamed")["status"].clone();
        let names =
            status["instances"].as_array().unwrap().iter().map(|entry| entry["instance"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    eventually("the second one has an entry", || instances() == ["a", "b"]);
    // It might come back: only after a while is it taken for gone.
    let deadline = Instant::now() + Duration::from_secs(120);
    while instances() != ["b"] {
        assert!(Instant::now() < deadline, "{:?}", instances());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // The second one is the first now, and sums up.
    apply(&cluster, &rule("renamed", BAD));
    wait_for(&cluster, "renamed", "False");
}

#[tokio::test]
async fn a_rule_that_an_instance_does_not_serve_any_more_is_left_without_a_trace() {
    let cluster = cluster();
    let instance = |name: &str, selector: &str| {
        let flags = ["--rules-from-cluster", "--instance", name, "--rule-selector", selector];
        Engine::ready(&cluster.kubeconfig(), &flags)
    };
    let label =
        |team: &str| cluster.kubectl(&["label", "--overwrite", "pcr", "moving", &format!("team={team}")]).unwrap();
    let payments = instance("payments", "team in (payments)");
    apply(&cluster, &rule("moving", GOOD));
    label("payments");
    wait_for(&cluster, "moving", "True");
    label("search");
    let nothing = json!({ "observedGeneration": -1 });
    eventually("nobody serves it", || get(&cluster, "moving")["status"] == nothing);
    assert_eq!(payments.metric(r#"portal_rules{state="active"}"#), 0);
    // Its entry is the first one, and would be the one that sums up.
    label("payments");
    wait_for(&cluster, "moving", "True");
    let _search = instance("search", "team=search");
    label("search");
    let status = wait_for(&cluster, "moving", "True")["status"].clone();
    assert_eq!(status["instances"].as_array().unwrap().len(), 1);
    assert_eq!(status["instances"][0]["instance"], "search");
    // Restarted with another selector.
    label("payments");
    wait_for(&cluster, "moving", "True");
    payments.stop();
    let _payments = instance("payments", "team=books");
    eventually("nobody serves it", || get(&cluster, "moving")["status"] == nothing);
}

#[tokio::test]
async fn of_a_thousand_rules_the_broken_ones_say_so_and_the_others_run() {
    let cluster = cluster();
    let engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    let api = rules_api(cluster.client().await);
    for number in 0..1000 {
        create(&api, rule(&format!("rule-{number}"), if number % 20 == 0 { BAD } else { GOOD })).await;
    }
    eventually("950 are in the set", || engine.metric(r#"portal_rules{state="active"}"#) == 950);
    eventually("all are told", || engine.metric(r#"portal_status_writes_total{result="written"}"#) >= 1000);
    let mut wrong = Vec::new();
    for found in api.list(&Default::default()).await.unwrap() {
        let is_bad = found.data["spec"]["rule"] == BAD;
        let entry = &found.data["status"]["instances"][0];
        if entry["parseError"].is_null() == is_bad
            || condition(entry, "Active") != if is_bad { "False" } else { "True" }
        {
            wrong.push(found.metadata.name.unwrap());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(count_writes(&cluster).await, 1000);
}

#[tokio::test]
async fn in_a_storm_of_changes_the_last_state_wins_and_nothing_piles_up() {
    const RULES: u64 = 100;
    const SECONDS: u64 = 60;
    let cluster = cluster();
    let engine = Engine::ready(&cluster.kubeconfig(), CLUSTER);
    eventually("it holds", || engine.metric("portal_lease_held") == 1);
    let api = rules_api(cluster.client().await);
    for number in 0..RULES {
        create(&api, rule(&format!("rule-{number}"), GOOD)).await;
    }
    eventually("all are told", || engine.metric(r#"portal_status_writes_total{result="written"}"#) >= RULES as i64);
    let before = engine.usage();

    let start = Instant::now();
    let mut changes = 0;
    while start.elapsed() < Duration::from_secs(SECONDS) {
        let name = format!("rule-{}", changes % RULES);
        let text = format!(
            "{} && spec.hostNetwork == true && \"{changes}\" != \"\"",
            if changes % 7 == 3 { BAD } else { GOOD }
        );
        let patch = json!({ "spec": { "rule": text } });
        if changes % 50 == 49 {
            api.delete(&name, &DeleteParams::default()).await.unwrap();
            create(&api, rule(&name, &text)).await;
        } else {
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        }
        changes += 1;
        // A hundred a second.
        tokio::time::sleep(Duration::from_millis(changes * 10).saturating_sub(start.elapsed())).await;
    }
    let is_told = |found: &DynamicObject| {
        let is_bad = found.data["spec"]["rule"].as_str().unwrap().contains("Contxt");
        let rule = json!({ "metadata": found.metadata, "status": found.data["status"] });
        super::is_ready(&rule, if is_bad { "False" } else { "True" })
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = api.list(&Default::default()).await.unwrap();
        if found.items.iter().all(is_told) {
            break;
        }
        assert!(Instant::now() < deadline, "the last state is told of every rule");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let bad = api
        .list(&Default::default())
        .await
        .unwrap()
        .items
        .iter()
        .filter(|found| condition(&found.data["status"], "Ready") == "False")
        .count();
    assert_eq!(engine.metric(r#"portal_rules{state="active"}"#), RULES as i64 - bad as i64);
    let writes = count_writes(&cluster).await as u64;
    assert!(writes <= changes + RULES + 10, "{writes} writes for {changes} changes");
    engine.usage().assert_not_grown(&before, 40 << 20);
    assert_eq!(get(&cluster, "rule-0")["status"]["instances"].as_array().unwrap().len(), 1);
}
