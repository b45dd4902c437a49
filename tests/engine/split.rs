//! In split mode the pods of audit write the status of rules, those of admission among them, which they do not run themselves.

use serde_json::{Value, json};

use super::process::Engine;
use super::webhook::{ACCOUNT, Files, account, port};
use super::{apply, cluster, get, wait_for};
use crate::core::eventually;

#[test]
fn a_rule_of_admission_alone_says_why_nobody_asks_it_and_is_active_when_they_do() {
    let cluster = cluster();
    let (files, kubeconfig, port) = (Files::new(), account(&cluster), port());
    let token = ["--namespace=portal-system", "create", "token", "portal-engine", "--audience=portal-default"];
    files.write("token", &cluster.kubectl(&token).unwrap());
    let rule = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": { "name": "asks" },
        "spec": {
            "match": { "gvk": [{ "kind": "Pod" }] }, "mode": ["admission"],
            "rule": "len(cluster.services.list(metadata.namespace)) > 100",
        },
    });
    apply(&cluster, &rule);
    files.configure(&cluster, &[rule], port, None, &["--fail-open"]);
    let told = || {
        let entry = &get(&cluster, "asks")["status"]["instances"][0];
        let conditions = entry["conditions"].as_array().cloned().unwrap_or_default();
        let active = conditions.into_iter().find(|found| found["type"] == "Active").unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text(&active["reason"]), text(&active["message"]))
    };
    let is_told = |expected: &str| eventually(&format!("that {expected}"), || told().starts_with(expected));

    // Whoever audits may read everything here: what is refused is refused to the other one.
    let peers = [
        format!("--peers=127.0.0.1:{port}"),
        format!("--peer-ca={}", files.path("ca.crt")),
        format!("--peer-token={}", files.path("token")),
    ];
    let flags = ["--audit", "--rules-from-cluster", "--identity=auditor", "--other-layers=admission"];
    let flags: Vec<&str> = flags.into_iter().chain(peers.iter().map(String::as_str)).collect();
    let _auditor = Engine::ready(&cluster.kubeconfig(), &flags);
    is_told("NotEverywhere: no replica that judges requests is ready");

    let own = files.flags(port);
    let flags = ["--no-lease", "--identity=judge", "--other-layers=audit"];
    let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags).collect();
    let _judge = Engine::ready(&kubeconfig, &flags);
    is_told("PermissionPending: replica judge: the rule looks up services: ");
    assert!(told().contains("not allowed to watch services"), "{}", told());
    assert_eq!(wait_for(&cluster, "asks", "False")["status"]["conditions"][0]["reason"], "PermissionPending");

    let role = ["create", "clusterrole", "more", "--verb=get,list,watch", "--resource=services"];
    cluster.kubectl(&role).unwrap();
    let user = format!("--user={ACCOUNT}");
    cluster.kubectl(&["create", "clusterrolebinding", "more", "--clusterrole=more", &user]).unwrap();
    wait_for(&cluster, "asks", "True");
    assert!(told().starts_with("Active: "), "{}", told());
}
