//! An instance from its first day, and what others do to it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Installation, cluster};

#[test]
fn an_instance_becomes_ready_and_refuses() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "life", json!({}));
    installation.ready();
    let shown = cluster.kubectl(&["get", "portal", "life", "--no-headers"]).unwrap();
    let columns: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(&columns[..6], ["life", "True", "combined", "2/2", "deny", "Ready"], "{shown}");
    installation.refuse_bad();
    let refusal = installation.create_bad().unwrap_err();
    assert!(refusal.contains("denied the request: life: it is bad"), "{refusal}");
    installation.says("Ready", "True Ready");
}

#[test]
fn what_others_change_is_set_right() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "drift", json!({}));
    installation.ready();
    installation.refuse_bad();
    let wanted = installation.configuration().unwrap()["webhooks"].clone();

    // A condition that lets everything through, and an entry that asks somebody else.
    let mut foreign = installation.configuration().unwrap();
    for entry in foreign["webhooks"].as_array_mut().unwrap() {
        entry["matchConditions"] = json!([{ "name": "never", "expression": "false" }]);
    }
    let mut other = foreign["webhooks"][0].clone();
    other["name"] = "foreign.example.org".into();
    foreign["webhooks"].as_array_mut().unwrap().push(other);
    installation.cluster.kubectl_with_input(&["replace", "--filename=-"], &foreign.to_string()).unwrap();
    installation.eventually("the configuration is as it was", || {
        installation.configuration().is_some_and(|found| found["webhooks"] == wanted)
    });

    let child = installation.child();
    let pods = format!("{child}-pods");
    let secret = format!("{child}-tls");
    for (kind, name) in
        [("service", &pods), ("poddisruptionbudget", &child), ("rolebinding", &child), ("secret", &secret)]
    {
        installation.kubectl(&["delete", kind, name]);
        installation.eventually(&format!("{kind} {name} is there again"), || {
            !installation.kubectl(&["get", kind, name, "--ignore-not-found", "--output=name"]).is_empty()
        });
    }
    let patch = json!([{ "op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["list"],
    } }]);
    cluster.kubectl(&["patch", "clusterrole", &child, "--type=json", "--patch", &patch.to_string()]).unwrap();
    installation.eventually("nobody may list Secrets", || {
        let role = cluster.kubectl(&["get", "clusterrole", &child, "--output=json"]).unwrap();
        !role.contains("\"secrets\"")
    });
    installation.kubectl(&["scale", "deployment", &child, "--replicas=1"]);
    installation.ready();
    assert!(installation.create_bad().is_err());

    // Deleted as a whole, it comes back, and enforces again once the probe has come through it.
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &child]).unwrap();
    installation.eventually("a bad ConfigMap is refused again", || installation.create_bad().is_err());
}

#[test]
fn a_paused_instance_is_left_alone() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "paused", json!({}));
    installation.ready();
    installation.refuse_bad();
    // With a rule that denies everything and everybody alive, two commands free the cluster.
    cluster.kubectl(&["annotate", "portal", "paused", "portal.io/paused=true"]).unwrap();
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "portal-paused"]).unwrap();
    installation.says("Paused", "True Paused");
    installation.says("Ready", "Unknown Paused");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(installation.configuration(), None);
    assert!(installation.create_bad().is_ok());
    cluster.kubectl(&["annotate", "portal", "paused", "portal.io/paused-"]).unwrap();
    installation.eventually("a bad ConfigMap is refused again", || installation.create_bad().is_err());
    installation.ready();
}

#[test]
fn engines_that_are_killed_come_back_and_lock_nobody_out() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "killed", json!({}));
    installation.ready();
    installation.refuse_bad();
    installation.kubectl(&["delete", "pods", "--all", "--force", "--grace-period=0"]);
    // What no rule of this instance is about goes on, in the engine's namespace too.
    for namespace in ["kube-system", &installation.engine(), "portal-operator"] {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": namespace, "labels": { "bad": "" } },
        });
        cluster.kubectl_with_input(&["create", "--dry-run=server", "--filename=-"], &object.to_string()).unwrap();
    }
    installation.eventually("a rule decides again", || {
        installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad"))
    });
    installation.ready();

    // By the eviction API one of two always stays.
    let evict = [
        "drain",
        "node",
        "--pod-selector=portal.io/instance=killed",
        "--force",
        "--ignore-daemonsets",
        "--timeout=60s",
    ];
    let drained = cluster.kubectl(&evict);
    cluster.kubectl(&["uncordon", "node"]).unwrap();
    // The last of them cannot go while its successor has no node.
    assert!(drained.is_err());
    assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
    installation.ready();
}

#[test]
fn what_the_instance_says_next_is_what_runs_next() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "changes", json!({}));
    installation.ready();
    installation.refuse_bad();
    installation.apply(json!({ "admission": { "maxEnforcement": "warn" } }));
    installation.eventually("a bad ConfigMap is let in", || installation.create_bad().is_ok());
    installation.apply(json!({ "mode": "split" }));
    installation.ready();
    let deployments = installation.kubectl(&["get", "deployments", "--output=name"]);
    assert_eq!(deployments, "deployment.apps/portal-changes-admission\n");
    // A pod that ends answers for some seconds more, by what it was told.
    installation.eventually("a bad ConfigMap is refused again", || installation.create_bad().is_err());
    installation.apply(json!({ "admission": { "replicas": 3 } }));
    installation.ready();
    let ready =
        installation.kubectl(&["get", "deployment", "portal-changes", "--output=jsonpath={.status.readyReplicas}"]);
    assert_eq!(ready, "3");
    let deployments: Vec<String> =
        installation.kubectl(&["get", "deployments", "--output=name"]).lines().map(str::to_owned).collect();
    assert_eq!(deployments, ["deployment.apps/portal-changes"]);
}

#[test]
fn nobody_passes_rules_by_without_the_right_to() {
    let (cluster, _operator) = cluster();
    let installation = Installation::without_instance(cluster, "guard");
    let work = installation.work();
    cluster
        .kubectl(&[
            "create",
            "clusterrole",
            "guard-test",
            "--verb=get,update,patch",
            "--resource=namespaces,namespaces/status,namespaces/finalize",
        ])
        .unwrap();
    cluster
        .kubectl(&["create", "clusterrolebinding", "guard-test", "--clusterrole=guard-test", "--user=jane"])
        .unwrap();
    let jane = cluster.kubeconfig_as("jane", &[]).display().to_string();
    let as_jane = |arguments: &[&str]| cluster.kubectl(&[&["--kubeconfig", &jane], arguments].concat());
    installation.eventually("jane may label namespaces", || {
        as_jane(&["label", "namespace", &work, "a=b", "--overwrite"]).is_ok()
    });
    let mut tries = vec![as_jane(&["annotate", "namespace", &work, "portal.io/bypass=true"])];
    let patch = json!({ "metadata": { "annotations": { "portal.io/bypass": "true" } } }).to_string();
    tries.push(as_jane(&["patch", "namespace", &work, "--subresource=status", "--type=merge", "--patch", &patch]));
    let mut whole: Value =
        serde_json::from_str(&cluster.kubectl(&["get", "namespace", &work, "--output=json"]).unwrap()).unwrap();
    whole["metadata"]["annotations"] = json!({ "portal.io/bypass": "true" });
    let arguments =
        ["--kubeconfig", &jane, "replace", "--raw", &format!("/api/v1/namespaces/{work}/finalize"), "--filename=-"];
    tries.push(cluster.kubectl_with_input(&arguments, &whole.to_string()));
    for tried in tries {
        let refusal = tried.unwrap_err().to_string();
        assert!(refusal.contains("portal-bypass"), "{refusal}");
    }
    cluster.kubectl(&["annotate", "namespace", &work, "portal.io/bypass=true"]).unwrap();
    // Taking it away makes nothing looser.
    as_jane(&["annotate", "namespace", &work, "portal.io/bypass-"]).unwrap();
}
