//! What admission lets in by a rule that audit never asks is reported once, by whichever replica it came in.

use std::path::Path;

use portal_test_kit::Cluster;
use serde_json::{Value, json};

use super::process::Engine;
use super::webhook::{ACCOUNT, Files, kubectl, port};
use super::{apply, cluster, wait_for};
use crate::core::{eventually, install};

/// A rule that only a request can answer.
fn rule() -> Value {
    json!({
        "apiVersion": "portal.io/v1alpha1",
        "kind": "PortalClusterRule",
        "metadata": { "name": "teams" },
        "spec": {
            "enforcementAction": "warn",
            "match": { "gvk": [{ "kind": "ConfigMap" }], "namespaces": { "include": ["default"] } },
            "rule": "metadata.labels.team == nil && request.userInfo.username != 'nobody'",
            "message": "no team",
        },
    })
}

/// What the reports say, a line for each result, with the time since when.
fn reported(cluster: &Cluster) -> Vec<String> {
    let text = cluster.kubectl(&["get", "polr", "--namespace=default", "--output=json"]).unwrap();
    let reports: Value = serde_json::from_str(&text).unwrap();
    let results = reports["items"].as_array().into_iter().flatten().flat_map(|report| report["results"].as_array());
    let line = |result: &Value| {
        let (policy, name) = (&result["policy"], &result["resources"][0]["name"]);
        let (mode, time) = (&result["properties"]["mode"], &result["timestamp"]);
        format!("{} {policy} {name} {mode} {time}", result["result"]).replace('"', "")
    };
    results.flatten().map(line).collect()
}

fn is_reported(cluster: &Cluster, name: &str) -> bool {
    let lines = reported(cluster);
    lines.len() == 1 && lines[0].starts_with(&format!("warn teams {name} admission "))
}

#[tokio::test]
async fn what_is_let_in_is_reported_until_it_is_mended_and_survives_every_replica() {
    let cluster = cluster();
    install::apply(&cluster, &install::generate(&["report-crds"]));
    eventually("reports are served", || cluster.kubectl(&["get", "polr"]).is_ok());
    cluster.kubectl(&["--namespace=portal-system", "create", "serviceaccount", "portal-engine"]).unwrap();
    let kubeconfig = cluster.kubeconfig_as(ACCOUNT, &["system:masters"]);
    let files = Files::new();
    let token = ["--namespace=portal-system", "create", "token", "portal-engine", "--audience=portal-default"];
    files.write("token", &cluster.kubectl(&token).unwrap());
    let ports = [port(), port(), port()];
    let peers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let start = |number: usize| {
        let mut flags = files.flags(ports[number]);
        flags.extend([
            "--audit".to_owned(),
            format!("--identity=replica-{number}"),
            format!("--peers={}", peers.join(",")),
            format!("--peer-ca={}", files.path("ca.crt")),
            format!("--peer-token={}", files.path("token")),
        ]);
        flags.extend(["--lease-duration=4", "--lease-renew-deadline=3", "--lease-retry=1"].map(str::to_owned));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Engine::ready(Path::new(&kubeconfig), &flags)
    };
    apply(&cluster, &rule());
    let first = start(0);
    eventually("the first one holds", || first.metric("portal_lease_held") == 1);
    // Requests come to the other one alone.
    let second = start(1);
    files.configure(&cluster, &[rule()], ports[1], None, &[]);
    wait_for(&cluster, "teams", "True");
    let create = |name: &str, flags: &[&str]| {
        let output = kubectl(&cluster, &[&["--namespace=default", "create", "configmap", name], flags].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).contains("no team")
    };
    eventually("people are warned", || create("tried", &["--dry-run=server"]));
    assert!(create("one", &[]));
    eventually("it is reported", || is_reported(&cluster, "one"));
    let label = |label: &str| cluster.kubectl(&["--namespace=default", "label", "configmap", "one", label]).unwrap();
    label("team=a");
    eventually("it is mended", || reported(&cluster).is_empty());
    label("team-");
    eventually("it is reported again", || is_reported(&cluster, "one"));
    let told = reported(&cluster);

    let holds = |engine: &Engine| engine.metric("portal_lease_held") == 1 && engine.metric("portal_reports") == 1;
    let stays = |engine: &Engine| {
        eventually("the next one writes", || holds(engine));
        // Several times as long as it takes to ask all replicas.
        for _ in 0..15 {
            assert_eq!(reported(&cluster), told);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    };
    assert!(first.stop().0.success());
    stays(&second);
    // The only one that knows of the request goes too.
    let third = start(2);
    drop(second);
    stays(&third);
    assert_eq!(third.metric("portal_audit_outcomes_lost_total"), 0);
    cluster.kubectl(&["--namespace=default", "delete", "configmap", "one"]).unwrap();
    eventually("it is gone", || reported(&cluster).is_empty());
}
