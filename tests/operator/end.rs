//! What the operator does when there is nothing to do, and what happens without it.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{Installation, cluster_alone, install, requests, rolled_out};

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
    let is_lasting = |request: &String| !request.starts_with("read ") && !request.contains("dryRun=All");
    requests(installation).into_iter().filter(is_lasting).collect()
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
    installation.heals("a rule decides again without an operator", || {
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
fn an_operator_that_is_killed_is_followed_by_the_other_one() {
    let (cluster, _alone) = cluster_alone();
    let installation = Installation::new(cluster, "followed", json!({}));
    installation.ready();
    installation.refuse_bad();
    let operator =
        |arguments: &[&str]| cluster.kubectl(&[&["--namespace=portal-operator"], arguments].concat()).unwrap();
    let holder = || operator(&["get", "lease", "portal-operator", "--output=jsonpath={.spec.holderIdentity}"]);
    let first = holder();
    // Behind the name of the pod it says which of its lives it is.
    let pod = first.split('_').next().unwrap();
    kill(&operator(&["get", "pod", pod, "--output=jsonpath={.metadata.uid}"]));
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &installation.child()]).unwrap();
    installation.heals("another operator has taken over", || ![first.as_str(), ""].contains(&holder().as_str()));
    installation.heals("it enforces what somebody has deleted", || installation.create_bad().is_err());
    installation.ready();
}

/// Kills the program of a pod. Its process is found by the control group that has the name of the pod.
fn kill(uid: &str) {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        (read("cgroup").contains(uid) && read("cmdline").split('\0').any(|word| word == "operator")).then_some(process)
    });
    let process = processes.into_iter().next().expect("the pod runs").to_string();
    assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
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
