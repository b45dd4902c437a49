//! An instance from its first day, and what others do to it.

use std::time::Duration;

use serde_json::{Value, json};

use super::load::Load;
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
    let wanted = entries(&installation.configuration().unwrap());

    // A condition that lets everything through, and an entry that asks somebody else. The operator may write in between.
    installation.eventually("somebody else has changed the configuration", || {
        let mut foreign = installation.configuration().unwrap();
        for entry in foreign["webhooks"].as_array_mut().unwrap() {
            entry["matchConditions"] = json!([{ "name": "never", "expression": "false" }]);
        }
        let mut other = foreign["webhooks"][0].clone();
        other["name"] = "foreign.example.org".into();
        foreign["webhooks"].as_array_mut().unwrap().push(other);
        let replaced = cluster.kubectl_with_input(&["replace", "--filename=-"], &foreign.to_string());
        replaced.inspect_err(|error| assert!(error.to_string().contains("(Conflict)"), "{error}")).is_ok()
    });
    installation.heals("the configuration is as it was", || {
        installation.configuration().is_some_and(|found| entries(&found) == wanted)
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
    installation.heals("a bad ConfigMap is refused again", || installation.create_bad().is_err());
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
        installation.create("x", json!({ "bad": "" }), namespace).unwrap();
    }
    installation.heals("a rule decides again", || {
        installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad"))
    });
    installation.ready();
}

#[test]
fn what_is_enforced_stays_so_while_rules_for_other_kinds_come_and_go() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "wider", json!({}));
    installation.ready();
    installation.refuse_bad();
    let load = Load::of_bad(cluster, installation.work());
    let is_sent = |resource: &str| {
        let configuration = installation.configuration().unwrap_or_default();
        entries(&configuration).iter().any(|entry| entry.contains(&format!("\"{resource}\"")))
    };
    let kinds = [("Service", "services"), ("Secret", "secrets"), ("PersistentVolumeClaim", "persistentvolumeclaims")];
    for (kind, resource) in kinds {
        installation.apply_object(&json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": format!("wider-{resource}"), "labels": { "served-by": "wider" } },
            "spec": { "match": { "gvk": [{ "kind": kind }] }, "rule": "'bad' in metadata.labels", "message": "it is bad" },
        }));
        installation.eventually(&format!("{resource} are sent too"), || is_sent(resource));
    }
    for (_, resource) in kinds {
        cluster.kubectl(&["delete", "portalclusterrule", &format!("wider-{resource}")]).unwrap();
        installation.eventually(&format!("{resource} are not sent any more"), || !is_sent(resource));
    }
    load.end();
}

#[test]
fn an_instance_can_be_deleted_in_any_state() {
    let (cluster, _operator) = cluster();
    let installation = Installation::without_instance(cluster, "mortal");
    let delete = |flags: &[&str]| cluster.kubectl(&[&["delete", "portal", "mortal"], flags].concat()).unwrap();

    // Its engine has never run, and it is deleted twice.
    installation.apply(json!({ "image": "lab.local/no-such-image:1" }));
    installation.says("Ready", "False PodsNotReady");
    delete(&["--wait=false"]);
    delete(&["--cascade=foreground", "--timeout=120s", "--ignore-not-found"]);
    installation.nothing_is_left();

    // Its pods are being replaced.
    installation.apply(json!({}));
    installation.ready();
    installation.refuse_bad();
    let load = Load::start(cluster, installation.work());
    installation.apply(json!({ "pods": { "annotations": { "example.org/round": "2" } } }));
    installation.eventually("pods are being replaced", || installation.pods().len() > 2);
    delete(&["--timeout=120s"]);
    load.end();
    assert!(installation.create_bad().is_ok());
    installation.nothing_is_left();

    // Its engine is dead, and nobody looks after it.
    installation.apply(json!({}));
    installation.ready();
    installation.eventually("a bad ConfigMap is refused", || installation.create_bad().is_err());
    cluster.kubectl(&["annotate", "portal", "mortal", "portal.io/paused=true"]).unwrap();
    installation.says("Paused", "True Paused");
    installation.kubectl(&["scale", "deployment", "portal-mortal", "--replicas=0"]);
    installation.eventually("no pod is left", || installation.pods().is_empty());
    assert!(installation.create("good", json!({}), &installation.work()).is_err());
    delete(&["--timeout=120s"]);
    installation.create("good", json!({}), &installation.work()).unwrap();
    installation.nothing_is_left();
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
fn two_instances_may_serve_the_same_namespaces() {
    let (cluster, _operator) = cluster();
    let stable = Installation::new(cluster, "stable", json!({}));
    let canary = Installation::without_instance(cluster, "canary");
    let served = json!({ "matchLabels": { "served-by": "stable" } });
    canary.apply(json!({ "ruleSelector": served, "namespaceSelector": served }));
    stable.ready();
    canary.ready();
    stable.refuse_bad();
    // Each refuses by itself, whatever becomes of the other.
    cluster.kubectl(&["delete", "portal", "stable", "--timeout=120s"]).unwrap();
    let refusal = stable.create_bad().unwrap_err();
    assert!(refusal.contains("webhook \"rules.canary.portal.io\" denied the request"), "{refusal}");
    canary.says("Ready", "True Ready");
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

/// What a webhook configuration sends, and by which conditions. Not whom they leave out: the engines of other tests are among those.
fn entries(configuration: &Value) -> Vec<String> {
    let entries = configuration["webhooks"].as_array().into_iter().flatten();
    let line = |entry: &Value| {
        let conditions = entry["matchConditions"].as_array().into_iter().flatten();
        let conditions: Vec<&Value> = conditions.map(|condition| &condition["name"]).collect();
        format!("{} {} {} {conditions:?}", entry["name"], entry["failurePolicy"], entry["rules"])
    };
    entries.map(line).collect()
}
