//! What the operator does when there is nothing to do, and what happens without it.

use std::time::Duration;

use portal_test_kit::audit_log;
use serde_json::json;

use super::{Installation, cluster_alone, install, rolled_out};

/// Longer than the operator waits between two probes.
const A_WHILE: Duration = Duration::from_secs(35);

#[test]
fn once_all_is_as_it_should_be_nothing_is_written() {
    // Alone, because the webhook configuration of one instance names the namespaces of all others.
    let (cluster, _alone) = cluster_alone();
    let installation = Installation::new(cluster, "calm", json!({}));
    installation.ready();
    installation.refuse_bad();
    installation.eventually("no other instance is there", || {
        cluster.kubectl(&["get", "portal", "--output=name"]).unwrap().lines().count() == 1
    });
    std::thread::sleep(A_WHILE / 5);
    let before = writes(&installation).len();
    std::thread::sleep(A_WHILE);
    let after = writes(&installation);
    assert_eq!(after.len(), before, "{:#?}", &after[before..]);
}

/// What the operator has written for an instance.
fn writes(installation: &Installation) -> Vec<String> {
    let events = audit_log::read(&installation.cluster.logs().join("audit.jsonl")).unwrap();
    let by_operator = events
        .iter()
        .filter(|event| event.is_write() && event.user() == "system:serviceaccount:portal-operator:portal-operator");
    let lasting = by_operator.filter(|event| !event.request_uri.contains("dryRun=All"));
    let named = lasting.filter(|event| event.request_uri.contains(installation.name));
    named.map(|event| format!("{} {}", event.verb, event.request_uri)).collect()
}

#[test]
fn without_the_operator_engines_answer_and_deleting_their_namespace_frees_the_cluster() {
    let (cluster, _alone) = cluster_alone();
    let installation = Installation::new(cluster, "orphan", json!({}));
    installation.ready();
    installation.refuse_bad();
    let scale = |replicas: &str| {
        let replicas = format!("--replicas={replicas}");
        cluster.kubectl(&["--namespace=portal-operator", "scale", "deployment", "portal-operator", &replicas]).unwrap();
    };
    scale("0");
    installation.eventually("no operator runs", || {
        let pods = cluster.kubectl(&["--namespace=portal-operator", "get", "pods", "--output=name"]).unwrap();
        pods.is_empty()
    });
    assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
    // Its pods are killed, and Kubernetes alone brings them back.
    installation.kubectl(&["delete", "pods", "--all", "--force", "--grace-period=0"]);
    installation.eventually("a rule decides again", || {
        installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad"))
    });
    cluster.kubectl(&["delete", "namespace", &installation.engine(), "--timeout=180s"]).unwrap();
    installation.eventually("the configuration is gone", || installation.configuration().is_none());
    assert!(installation.create_bad().is_ok());
    // The documented patch lets the instance go.
    cluster.kubectl(&["delete", "portal", "orphan", "--wait=false"]).unwrap();
    cluster
        .kubectl(&["patch", "portal", "orphan", "--type=merge", "--patch", r#"{"metadata": {"finalizers": null}}"#])
        .unwrap();
    assert_eq!(cluster.kubectl(&["get", "portal", "orphan", "--ignore-not-found"]).unwrap(), "");
    scale("2");
    rolled_out(cluster, "portal-operator", "portal-operator");
}

#[test]
fn deleting_what_was_installed_keeps_the_rules_and_frees_the_cluster() {
    let (cluster, _alone) = cluster_alone();
    let installation = Installation::without_instance(cluster, "uninstalled");
    // The engine runs where the manifest has made room for it.
    let mut object = installation.object(json!({}));
    object["spec"]["namespace"] = "portal-system".into();
    installation.apply_object(&object);
    installation.ready();
    installation.refuse_bad();
    let manifest = super::portal(&["generate", "install", "--image", portal_test_kit::image::PORTAL_IMAGE]);
    cluster.kubectl_with_input(&["delete", "--filename=-", "--timeout=180s", "--ignore-not-found"], &manifest).unwrap();
    installation.eventually("the configuration is gone", || installation.configuration().is_none());
    assert!(installation.create_bad().is_ok());
    cluster.kubectl(&["get", "portalclusterrule", "uninstalled"]).unwrap();
    install(cluster);
    // The namespace is made anew, and the instance with it.
    installation.ready();
    installation.eventually("a bad ConfigMap is refused again", || installation.create_bad().is_err());
}
