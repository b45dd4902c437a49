//! Three replicas, one Lease: what is active, and what was counted, while they are killed by turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use portal_test_kit::Cluster;
use serde_json::{Value, json};

use super::process::Engine;
use super::webhook::{ACCOUNT, Files, account, kubectl, port};
use super::{apply, cluster, condition, create, get, rule, rules_api, status_writes, wait_for};
use crate::core::eventually;

const RULE: &str = "spec.hostNetwork == true";

/// The entry of the instance in the status of the rule.
fn entry(cluster: &Cluster) -> Value {
    get(cluster, "no-host-network")["status"]["instances"][0].clone()
}

fn count(cluster: &Cluster) -> i64 {
    entry(cluster)["evalCount"].as_i64().unwrap_or_default()
}

/// Why the rule is not active.
fn reason(cluster: &Cluster) -> String {
    let entry = entry(cluster);
    let conditions = entry["conditions"].as_array().cloned().unwrap_or_default();
    let active = conditions.iter().find(|condition| condition["type"] == "Active").cloned().unwrap_or_default();
    format!("{}: {}", active["reason"].as_str().unwrap_or_default(), active["message"].as_str().unwrap_or_default())
}

/// Changes the rule, so that every replica has to take it anew.
fn change(cluster: &Cluster, number: usize) {
    apply(cluster, &rule("no-host-network", &format!("{RULE} && \"{number}\" != \"\"")));
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "acme.io/app:1"}]},
    })
}

/// Asks all replicas about a pod, so many times.
fn ask(cluster: &Cluster, times: usize) {
    for _ in 0..times {
        let output = kubectl(cluster, &["create", "--dry-run=server", "--filename", "-"], &pod().to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Looks at the count all the time. The thread returns the counts that it saw, in order.
fn watch_count(cluster: &Cluster) -> (Arc<AtomicBool>, std::thread::JoinHandle<Vec<i64>>) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let mut command = cluster.kubectl_command();
    let path = "--output=jsonpath={.status.instances[0].evalCount}";
    command.args(["get", "pcr", "no-host-network", path]);
    let thread = std::thread::spawn(move || {
        let mut counts = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            counts.extend(text.parse::<i64>());
            std::thread::sleep(Duration::from_millis(100));
        }
        counts
    });
    (stop, thread)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_active_when_every_replica_runs_it_and_counts_only_grow() {
    let cluster = cluster();
    cluster.kubectl(&["--namespace=default", "create", "serviceaccount", "default"]).unwrap();
    let (files, kubeconfig) = (Files::new(), account(&cluster));
    let token = ["--namespace=portal-system", "create", "token", "portal-engine", "--audience=portal-default"];
    files.write("token", &cluster.kubectl(&token).unwrap());
    let ports = [port(), port(), port()];
    let peers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let shared = [
        format!("--peers={}", peers.join(",")),
        format!("--peer-ca={}", files.path("ca.crt")),
        format!("--peer-token={}", files.path("token")),
        "--lease-duration=4".to_owned(),
        "--lease-renew-deadline=3".to_owned(),
        "--lease-retry=1".to_owned(),
    ];
    let start = |number: usize| {
        let identity = format!("--identity=replica-{number}");
        let own = files.flags(ports[number]);
        let all: Vec<&str> = own.iter().chain(&shared).chain([&identity]).map(String::as_str).collect();
        Engine::ready(&kubeconfig, &all)
    };
    apply(&cluster, &rule("no-host-network", RULE));
    let mut engines: Vec<Option<Engine>> = (0..3).map(|number| Some(start(number))).collect();
    eventually("it is told that nothing is sent", || {
        reason(&cluster).starts_with("NotRouted: there is no webhook configuration")
    });
    assert!(entry(&cluster)["activeOn"].is_null());

    // One configuration for each replica, so that each is asked about every pod.
    for (number, name) in [(0, None), (1, Some("portal-b")), (2, Some("portal-c"))] {
        files.configure(&cluster, &[rule("no-host-network", RULE)], ports[number], name, &["--fail-open"]);
    }
    wait_for(&cluster, "no-host-network", "True");
    assert_eq!(entry(&cluster)["activeOn"][0], "v1/Pod");
    let (stop, counting) = watch_count(&cluster);
    eventually("all are asked", || {
        ask(&cluster, 1);
        count(&cluster) >= 3
    });
    ask(&cluster, 10);
    let evaluations = |engine: &Option<Engine>| {
        let name = r#"portal_rule_evaluations_total{result="passed",rule="no-host-network"}"#;
        engine.as_ref().map_or(0, |engine| engine.metric(name))
    };
    let all: i64 = engines.iter().map(evaluations).sum();
    eventually("every evaluation is counted once", || count(&cluster) == all);

    // Killed by turns, the holder among them.
    for (number, engine) in engines.iter_mut().enumerate() {
        *engine = None;
        change(&cluster, number);
        wait_for(&cluster, "no-host-network", "True");
        let before = count(&cluster);
        ask(&cluster, 3);
        eventually("the others are counted", || count(&cluster) >= before + 6);
        *engine = Some(start(number));
    }

    // One that hangs: nobody knows whether it runs the new version, and requests go on.
    let is_holder = |engine: &Engine| engine.metric("portal_lease_held") == 1;
    eventually("somebody holds", || engines.iter().flatten().any(is_holder));
    let hanging = engines.iter().position(|engine| !is_holder(engine.as_ref().unwrap())).unwrap();
    // What was active stays active.
    engines[hanging].as_ref().unwrap().signal("-STOP");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(condition(&entry(&cluster), "Active"), "True");
    change(&cluster, 99);
    eventually("the one that does not answer is named", || {
        reason(&cluster).starts_with(&format!("NotEverywhere: replica replica-{hanging} is not known to run"))
    });
    engines[hanging].as_ref().unwrap().signal("-CONT");
    wait_for(&cluster, "no-host-network", "True");

    stop.store(true, Ordering::Relaxed);
    let counts = counting.join().unwrap();
    assert!(counts.is_sorted(), "{counts:?}");
    // Whatever replicas did, they were allowed to.
    let events = cluster.audit_events().await.unwrap();
    let refused: Vec<_> = events.iter().filter(|event| event.user() == ACCOUNT && event.code() == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    // A stranger learns nothing.
    for (token, words) in [(None, "a token is needed here"), (Some("none"), "the token is not valid")] {
        let answer = ask_state(&files, ports[0], token).await;
        assert!(answer.contains(words), "{answer}");
    }
    let strangers = ["--namespace=portal-system", "create", "token", "default", "--audience=portal-default"];
    cluster.kubectl(&["--namespace=portal-system", "create", "serviceaccount", "default"]).unwrap();
    let answer = ask_state(&files, ports[0], Some(cluster.kubectl(&strangers).unwrap().trim())).await;
    assert!(
        answer.contains("system:serviceaccount:portal-system:default is not the account of this instance"),
        "{answer}"
    );
    let for_the_api_server = ["--namespace=portal-system", "create", "token", "portal-engine"];
    let answer = ask_state(&files, ports[0], Some(cluster.kubectl(&for_the_api_server).unwrap().trim())).await;
    assert!(answer.contains("the token is not valid for the audience portal-default"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_noisy_rules_cost_a_few_writes_a_second() {
    const RULES: usize = 1000;
    const SECONDS: u64 = 10;
    let cluster = cluster();
    cluster.kubectl(&["--namespace=default", "create", "serviceaccount", "default"]).unwrap();
    let (files, port) = (Files::new(), port());
    let rules = rules_api(cluster.client().await);
    for number in 0..RULES {
        create(&rules, rule(&format!("noisy-{number}"), RULE)).await;
    }
    // Every rule is asked about every pod.
    files.configure(&cluster, &[rule("noisy-0", RULE)], port, None, &[]);
    let flags = files.flags(port);
    let engine = Engine::ready(&account(&cluster), &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let told = async || {
        let listed = rules.list(&ListParams::default()).await.unwrap();
        let told = |rule: &DynamicObject| condition(&rule.data["status"], "Ready") == "True";
        listed.items.iter().filter(|rule| told(rule)).count()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while told().await < RULES {
        assert!(Instant::now() < deadline, "all are told");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let before = status_writes(&cluster).await.len();
    let pods: Api<Pod> = Api::namespaced(cluster.client().await, "default");
    let pod: Pod = serde_json::from_value(pod()).unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(SECONDS) {
        pods.create(&dry_run, &pod).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let written = status_writes(&cluster).await.len() - before;
    // Ten at once, and two a second; one may be on its way.
    let most = 10 + 2 * start.elapsed().as_secs() as usize + 3;
    assert!((10..=most).contains(&written), "{written} writes in {:?}", start.elapsed());
    let (status, log) = engine.stop();
    assert!(status.success(), "{log}");
    // Each had its turn before one had a second.
    let written = status_writes(&cluster).await.len() - before;
    let listed = rules.list(&ListParams::default()).await.unwrap();
    let is_counted = |rule: &&DynamicObject| rule.data["status"]["instances"][0]["evalCount"].as_i64() > Some(0);
    assert_eq!(listed.items.iter().filter(is_counted).count(), written, "rules show what was counted");
}

/// What `/state` answers.
async fn ask_state(files: &Files, port: u16, token: Option<&str>) -> String {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "state",
        "clusters": [{"name": "state", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": files.path("ca.crt"),
        }}],
        "contexts": [{"name": "state", "context": {"cluster": "state", "user": "state"}}],
        "users": [{"name": "state", "user": {"token": token}}],
    });
    let kubeconfig: kube::config::Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let request = http::Request::post("/state").body(b"{}".to_vec()).unwrap();
    match client.request_text(request).await {
        Ok(text) => text,
        Err(error) => format!("{error:?}"),
    }
}
