//! Rules that are swapped while requests are judged: each request is judged by one set, and by none that is older than another
//! request has seen before it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use futures_util::future::join_all;
use portal_cluster::health::Health;
use portal_expr::Moment;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::admission::namespaces::tests::knowing;
use crate::testing::{
    api::ApiServer,
    rules::{self, Rules, judge, settings},
};

/// How many rules a set has. Each tells its version.
const RULES: usize = 5;

/// How many swaps there are, a hundred a second.
const SWAPS: u64 = 200;

fn rules_of(version: u64) -> String {
    let rule = |number: usize| {
        let action = if version.is_multiple_of(2) { "deny" } else { "warn" };
        format!(
            "name: r{number}\nenforcementAction: {action}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: metadata.name != ''\n\
             message: version {version} met {{{{ metadata.name }}}}\n"
        )
    };
    (0..RULES).map(rule).collect::<Vec<_>>().join("---\n")
}

fn review(number: u64) -> String {
    let name = format!("pod-{number}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": {}});
    rules::review(&json!({"uid": name, "name": name, "object": pod}))
}

/// What the rules of a version answer.
fn expected(version: u64, number: u64) -> Value {
    let line = |rule: usize| {
        let name = format!("metadata.name is \"pod-{number}\"");
        format!("r{rule}: version {version} met pod-{number} ({name})")
    };
    let lines: Vec<String> = (0..RULES).map(line).collect();
    let names: Vec<String> = (0..RULES).map(|rule| format!("r{rule}")).collect();
    let names = names.join(",");
    let uid = format!("pod-{number}");
    let response = if version.is_multiple_of(2) {
        let causes: Vec<Value> = lines.iter().map(|line| json!({"reason": "RuleViolated", "message": line})).collect();
        let message = format!("{RULES} rules refuse this:\n- {}", lines.join("\n- "));
        let status = json!({"code": 403, "reason": "Forbidden", "message": message, "details": {"causes": causes}});
        json!({"uid": uid, "allowed": false, "status": status, "auditAnnotations": {"denied-by": names}})
    } else {
        json!({"uid": uid, "allowed": true, "warnings": lines, "auditAnnotations": {"warned-by": names}})
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// The version that an answer begins with.
fn version_of(answer: &Value) -> u64 {
    let text = answer["response"].to_string();
    let (_, rest) = text.split_once("version ").unwrap_or_else(|| panic!("no version in {text}"));
    rest.split(' ').next().and_then(|version| version.parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_rules_are_swapped_a_hundred_times_a_second_each_request_is_judged_by_one_set() {
    let rules = Rules::of(&rules_of(0)).await;
    let began = Instant::now();
    let api = ApiServer::saying(200, r#"{"metadata":{"name":"shop"}}"#);
    let judge = judge(&rules, knowing(&[], &Health::default(), &api), &api, settings());
    let (begun, seen, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let swap = async {
        let mut ticks = interval(Duration::from_millis(10));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for version in 1..=SWAPS {
            ticks.tick().await;
            begun.store(version, SeqCst);
            rules.swap(&rules_of(version)).await;
        }
    };
    let ask = async || {
        while seen.load(SeqCst) < SWAPS {
            assert!(began.elapsed() < Duration::from_secs(120), "the last rules come into force");
            let number = next.fetch_add(1, SeqCst);
            let oldest = seen.load(SeqCst);
            let judged = judge.judge(None, review(number).as_bytes(), Moment::default()).await.unwrap();
            let newest = begun.load(SeqCst);
            let version = version_of(&judged.answer);
            assert!((oldest..=newest).contains(&version), "{version} is not within {oldest} and {newest}");
            assert_eq!(judged.answer, expected(version, number));
            seen.fetch_max(version, SeqCst);
            // Judging itself waits for nobody.
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(swap, join_all((0..4).map(|_| ask())));
    let (requests, sets) = (next.load(SeqCst), rules.in_force.now().number);
    println!("{requests} requests, {sets} sets of rules");
    assert!(requests > SWAPS && sets > SWAPS / 4, "{requests} requests, {sets} sets of rules");
}
