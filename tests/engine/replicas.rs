//! Of several replicas one writes, and another one takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use portal_test_kit::Cluster;
use portal_test_kit::fault_proxy::{Fault, FaultProxy, ProxyClient, Requests};
use serde_json::json;

use super::process::Engine;
use super::{GOOD, apply, cluster, rule, rules_api, status_writes};
use crate::core::eventually;

const FLAGS: &[&str] = &["--rules-from-cluster"];
const LEASE: &str = "portal-engine-default";

/// How long a takeover may take.
const TAKEOVER: Duration = Duration::from_secs(20);

fn is_holder(engine: &Engine) -> bool {
    engine.metric("portal_lease_held") == 1
}

/// Waits until a replica holds, and says how long that took.
#[track_caller]
fn wait_until_it_holds(engine: &Engine, within: Duration) {
    let start = Instant::now();
    eventually("it holds the Lease", || is_holder(engine));
    assert!(start.elapsed() <= within, "it took {:?}", start.elapsed());
}

/// The hour that a replica believes it is.
fn hour(engine: &Engine) -> String {
    let log = engine.log();
    let time = log.lines().next().unwrap_or_default().split('T').nth(1).unwrap_or_default();
    time.split(':').next().unwrap_or_default().to_owned()
}

/// Waits until a replica is ready and has seen who holds.
fn wait_until_ready(engine: &Engine) {
    eventually("it is ready", || engine.get("/readyz").is_some_and(|(code, _)| code == 200));
    std::thread::sleep(Duration::from_secs(3));
}

/// Who wrote status, in order, each with when the request came and when it was answered.
async fn writers(cluster: &Cluster) -> Vec<(String, String, String)> {
    let writes = status_writes(cluster).await.into_iter();
    let mut writers: Vec<_> = writes
        .filter_map(|event| {
            let client = event.client()?.to_owned();
            Some((event.request_received_timestamp, event.stage_timestamp, client))
        })
        .collect();
    writers.sort();
    writers
}

/// Changes a rule all the time, so that whoever believes to hold writes.
fn keep_changing(cluster: &Cluster) -> (Arc<AtomicBool>, std::thread::JoinHandle<()>) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let kubeconfig = cluster.kubeconfig();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
            let client = kube::Client::try_from(config).unwrap();
            let api = rules_api(client);
            let mut number = 0;
            while !stopped.load(Ordering::Relaxed) {
                let patch = json!({ "spec": { "rule": format!("{GOOD} && \"{number}\" != \"\"") } });
                api.patch("busy", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
                number += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    });
    (stop, thread)
}

#[tokio::test(flavor = "multi_thread")]
async fn never_do_two_replicas_write_at_a_time() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 1).await.unwrap();
    let masters = &["system:masters"];
    let a: ProxyClient = proxy.client("a", "engine", masters).unwrap();
    let b: ProxyClient = proxy.client("b", "engine", masters).unwrap();
    apply(&cluster, &rule("busy", GOOD));
    let (stop, changing) = keep_changing(&cluster);

    let first = Engine::start(a.kubeconfig(), FLAGS);
    wait_until_it_holds(&first, TAKEOVER);
    let path = r"--output=jsonpath={.metadata.annotations.portal\.io/holder-address}";
    let address = cluster.kubectl(&["--namespace=portal-system", "get", "lease", LEASE, path]).unwrap();
    assert_eq!(address, first.address().to_string());
    // Its clock is an hour ahead, all the time.
    let second = Engine::start_an_hour_ahead(b.kubeconfig(), FLAGS);
    wait_until_ready(&second);
    assert!(!is_holder(&second));
    assert_ne!(hour(&first), hour(&second), "the clock of the second one is wrong");

    // Told to end: at once.
    let (status, log) = first.stop();
    assert!(status.success(), "{log}");
    wait_until_it_holds(&second, Duration::from_secs(5));
    // Killed.
    let first = Engine::start(a.kubeconfig(), FLAGS);
    wait_until_ready(&first);
    drop(second);
    wait_until_it_holds(&first, TAKEOVER);
    // Cut off from the API server.
    let second = Engine::start_an_hour_ahead(b.kubeconfig(), FLAGS);
    wait_until_ready(&second);
    let partition = proxy.inject(Fault::Refuse.on(Requests::all().from("a")));
    wait_until_it_holds(&second, TAKEOVER);
    eventually("who is cut off knows that it does not hold", || !is_holder(&first));
    drop(partition);
    // The Lease is deleted under the holder.
    let lease = ["--namespace", "portal-system", "delete", "lease", LEASE];
    cluster.kubectl(&lease).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    eventually("somebody holds", || is_holder(&first) || is_holder(&second));
    // Somebody writes another name into it.
    let patch = r#"{"spec":{"holderIdentity":"somebody"}}"#;
    let edit = ["--namespace", "portal-system", "patch", "lease", LEASE, "--type=merge", "--patch", patch];
    cluster.kubectl(&edit).unwrap();
    eventually("the holder sees it", || !is_holder(&first) && !is_holder(&second));
    eventually("somebody holds again", || is_holder(&first) || is_holder(&second));

    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    let writers = writers(&cluster).await;
    assert!(writers.iter().any(|(.., client)| client == "a") && writers.iter().any(|(.., client)| client == "b"));
    let mut terms = vec![&writers[0].2];
    let mut answered = &writers[0].1;
    for (came, done, client) in &writers {
        if *client != **terms.last().unwrap() {
            assert!(answered < came, "{client} wrote at {came}, before the other's write was answered at {answered}");
            terms.push(client);
        }
        answered = answered.max(done);
    }
    // Each replica's writes are in a row: after the four changes of hands that were forced, there is at most one more.
    assert!((4..=6).contains(&terms.len()), "{terms:?}");
}
