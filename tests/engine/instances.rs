//! Two instances with the same rules: each tells what has become of a rule with it, and one of them sums up.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use portal_test_kit::Cluster;
use portal_test_kit::audit_log::AuditEvent;
use serde_json::Value;

use super::process::Engine;
use super::{BAD, GOOD, apply, cluster, condition, get, is_ready, rule, rules_api, status_writes, wait_for};
use crate::core::eventually;

/// A replica of an instance, which the audit log names by its instance.
fn start(cluster: &Cluster, instance: &str) -> Engine {
    let kubeconfig = cluster.kubeconfig_as(instance, &["system:masters"]);
    Engine::ready(&kubeconfig, &["--rules-from-cluster", "--instance", instance])
}

fn wait_until_it_holds(engine: &Engine) {
    eventually("it holds the Lease", || engine.metric("portal_lease_held") == 1);
}

fn entries(rule: &Value) -> &[Value] {
    rule["status"]["instances"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The instances that tell of the newest version of a rule, in the order of their names.
fn tellers(rule: &Value) -> Vec<&str> {
    let generation = &rule["metadata"]["generation"];
    let is_new = |entry: &&Value| {
        entry["conditions"].as_array().is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition["type"] == "Active" && condition["observedGeneration"] == *generation)
        })
    };
    let names = entries(rule).iter().filter(is_new).filter_map(|entry| entry["instance"].as_str());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether both instances tell of the newest version, and the summary says what they do.
fn is_settled(rule: &Value, text: &str) -> bool {
    let is_bad = text.contains("Contxt");
    let is_told = |entry: &Value| {
        condition(entry, "Active") == if is_bad { "False" } else { "True" } && entry["parseError"].is_null() != is_bad
    };
    tellers(rule).len() == 2
        && entries(rule).iter().all(is_told)
        && is_ready(rule, if is_bad { "False" } else { "True" })
        && condition(&rule["status"], "Stalled") == if is_bad { "True" } else { "" }
        && condition(&rule["status"], "Reconciling").is_empty()
}

/// Who sent a summary, whatever came of it.
fn summarisers(writes: &[AuditEvent]) -> Vec<&str> {
    let is_summary =
        |event: &&AuditEvent| event.request_object.as_ref().is_some_and(|sent| !sent["status"]["conditions"].is_null());
    let mut users: Vec<_> = writes.iter().filter(is_summary).map(AuditEvent::user).collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// All versions of a rule from one that was seen until one that fits.
async fn versions(cluster: &Cluster, from: &Value, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let api = rules_api(cluster.client().await);
    let version = from["metadata"]["resourceVersion"].as_str().unwrap();
    let name = from["metadata"]["name"].as_str().unwrap();
    let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
    let stream = api.watch(&parameters, version).await.unwrap();
    let mut stream = std::pin::pin!(stream);
    let mut versions: Vec<Value> = Vec::new();
    while !versions.last().is_some_and(&is_last) {
        let next = tokio::time::timeout(Duration::from_secs(30), stream.try_next()).await;
        let next = next.unwrap_or_else(|_| panic!("it is not told: {versions:#?}"));
        if let Some(WatchEvent::Modified(object)) = next.unwrap() {
            versions.push(serde_json::to_value::<DynamicObject>(object).unwrap());
        }
    }
    versions
}

#[tokio::test]
async fn two_instances_tell_of_a_rule_and_one_of_them_sums_up() {
    let cluster = cluster();
    let canary = start(&cluster, "canary");
    let stable = start(&cluster, "stable");
    wait_until_it_holds(&canary);
    wait_until_it_holds(&stable);
    apply(&cluster, &rule("shared", GOOD));
    eventually("both tell of it", || is_settled(&get(&cluster, "shared"), GOOD));
    // Whoever came first was the only one, and summed up. From here on it is known who serves the rule.
    let first = status_writes(&cluster).await.len();

    let mut before = first;
    for number in 0..10 {
        let text = format!("{} && \"{number}\" != \"\"", if number % 2 == 0 { BAD } else { GOOD });
        let from = get(&cluster, "shared");
        apply(&cluster, &rule("shared", &text));
        for version in versions(&cluster, &from, |version| is_settled(version, &text)).await {
            let is_summed_up = is_ready(&version, "True");
            assert!(!is_summed_up || tellers(&version) == ["canary", "stable"], "ready with both alone: {version:#}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let writes = status_writes(&cluster).await.split_off(before);
        let done = writes.iter().filter(|event| event.code() == 200).count();
        // Each writes its entry, and the first one sums up as it does so. If the other one comes later it sums up again.
        assert!((2..=3).contains(&done), "{done} writes for a change: {writes:#?}");
        // A write is lost when the other one was faster; on a slow machine it may be tried again before that is known.
        assert!(writes.len() <= done + 4, "{} tries for a change", writes.len());
        before += writes.len();
    }
    assert_eq!(summarisers(&status_writes(&cluster).await[first..]), ["canary"]);

    // Longer than between two looks at each other's Lease.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(status_writes(&cluster).await.len(), before, "nothing changed, so nothing is written");

    stable.stop();
    cluster.kubectl(&["--namespace", "portal-system", "delete", "lease", "portal-engine-stable"]).unwrap();
    apply(&cluster, &rule("shared", GOOD));
    let waiting = wait_for(&cluster, "shared", "False");
    assert_eq!(tellers(&waiting), ["canary"], "{waiting:#}");
    assert_eq!(
        waiting["status"]["conditions"][0]["message"],
        "instance stable has not taken this version of the rule yet"
    );
    assert_eq!(condition(&waiting["status"], "Reconciling"), "True");
    // It might come back: only after a while is it taken for gone.
    let deadline = Instant::now() + Duration::from_secs(150);
    while entries(&get(&cluster, "shared")).len() > 1 {
        assert!(Instant::now() < deadline, "{:#}", get(&cluster, "shared"));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let alone = get(&cluster, "shared");
    assert_eq!(tellers(&alone), ["canary"]);
    assert!(is_ready(&alone, "True"), "{alone:#}");
    assert_eq!(
        status_writes(&cluster).await.len(),
        before + 2,
        "one for the change, one for the instance that is gone"
    );
}

#[tokio::test]
async fn a_replica_that_waited_for_long_takes_over_without_a_write() {
    let cluster = cluster();
    let first = start(&cluster, "canary");
    let stable = start(&cluster, "stable");
    wait_until_it_holds(&first);
    wait_until_it_holds(&stable);
    apply(&cluster, &rule("shared", GOOD));
    eventually("both tell of it", || is_settled(&get(&cluster, "shared"), GOOD));
    let second = start(&cluster, "canary");
    // For longer than an instance may be silent before it counts as gone. The second replica does not look who lives.
    tokio::time::sleep(Duration::from_secs(75)).await;
    let before = status_writes(&cluster).await.len();
    first.stop();
    wait_until_it_holds(&second);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(status_writes(&cluster).await.len(), before, "all is as it should be");
    assert!(is_settled(&get(&cluster, "shared"), GOOD));
}
