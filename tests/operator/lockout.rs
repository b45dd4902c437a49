//! Whatever breaks, nobody is locked out: Portal heals itself, or the documented command frees the cluster.

use portal_test_kit::cache::Cache;
use portal_test_kit::image::{self, RESPONDER_IMAGE};
use serde_json::{Value, json};

use super::load::Load;
use super::{Installation, cluster, portal};

#[test]
fn without_any_engine_what_rules_judge_is_refused_and_everything_else_goes_on() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "empty", json!({}));
    installation.ready();
    installation.refuse_bad();
    // While it is paused, nobody brings the engine back.
    cluster.kubectl(&["annotate", "portal", "empty", "portal.io/paused=true"]).unwrap();
    installation.says("Paused", "True Paused");
    installation.kubectl(&["scale", "deployment", &installation.child(), "--replicas=0"]);
    installation.eventually("no pod is left", || installation.kubectl(&["get", "pods", "--output=name"]).is_empty());
    let refusal = installation.create("good", json!({}), &installation.work()).unwrap_err();
    assert!(refusal.contains("failed calling webhook \"rules.empty.portal.io\""), "{refusal}");
    for namespace in ["kube-system", &installation.engine(), "portal-operator", "default"] {
        installation.create("good", json!({ "bad": "" }), namespace).unwrap();
    }
    cluster.kubectl(&["annotate", "portal", "empty", "portal.io/paused-"]).unwrap();
    installation.ready();
    installation.create("good", json!({}), &installation.work()).unwrap();
    assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
}

#[test]
fn engines_that_crash_again_and_again_can_be_evicted() {
    let (cluster, _operator) = cluster();
    // A program that knows nothing of an engine's flags.
    cluster.import_image(&image::find(&Cache::open().unwrap(), "responder").unwrap()).unwrap();
    let installation = Installation::new(cluster, "crash", json!({ "image": RESPONDER_IMAGE }));
    installation.says("Ready", "False PodsNotReady");
    installation.eventually("the way out is told", || installation.message("Ready").contains("see its log"));
    assert_eq!(installation.configuration(), None);
    let pods = installation.pods();
    assert_eq!(pods.len(), 2, "{pods:?}");
    for pod in pods {
        installation.evict(&pod).unwrap();
    }
}

#[test]
fn every_engine_pod_can_be_evicted_and_no_request_fails() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "evicted", json!({}));
    installation.ready();
    installation.refuse_bad();
    let load = Load::start(cluster, installation.work());
    let before = installation.pods();
    installation.evict(&before[0]).unwrap();
    // The other one cannot go while it is the only one that is ready, and can as soon as it is not.
    let refusal = installation.evict(&before[1]).unwrap_err();
    assert!(refusal.contains("disruption budget"), "{refusal}");
    installation.heals("the last of the pods can be evicted", || installation.evict(&before[1]).is_ok());
    installation.eventually("every pod is another one", || {
        let after = installation.pods();
        after.len() == 2 && after.iter().all(|pod| !before.contains(pod))
    });
    installation.ready();
    load.end();
    assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
}

#[test]
fn certificates_that_are_deleted_come_back_and_no_request_fails() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "keys", json!({}));
    installation.ready();
    installation.refuse_bad();
    let (leaf, authority) = (format!("{}-tls", installation.child()), format!("{}-ca", installation.child()));
    let of_secret = |namespace: &str, name: &str, entry: &str| {
        let path = format!("--output=jsonpath={{.data.{entry}}}");
        let arguments = ["--namespace", namespace, "get", "secret", name, "--ignore-not-found", &path];
        cluster.kubectl(&arguments).unwrap()
    };
    let engine = installation.engine();
    let before = (of_secret(&engine, &leaf, r"tls\.crt"), of_secret("portal-operator", &authority, r"ca\.crt"));
    let load = Load::start(cluster, installation.work());
    cluster.kubectl(&["--namespace=portal-operator", "delete", "secret", &authority]).unwrap();
    installation.heals("there is another authority", || {
        let found = of_secret("portal-operator", &authority, r"ca\.crt");
        !found.is_empty() && found != before.1
    });
    // API servers have to trust the other authority before any pod shows what it has signed.
    installation.eventually("it has signed another certificate", || {
        let found = of_secret(&engine, &leaf, r"tls\.crt");
        !found.is_empty() && found != before.0
    });
    installation.kubectl(&["delete", "secret", &leaf]);
    installation.heals("the certificate is there again", || !of_secret(&engine, &leaf, r"tls\.crt").is_empty());
    installation.ready();
    load.end();
}

#[test]
fn an_engine_whose_namespace_is_deleted_refuses_nothing_any_more() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "homeless", json!({}));
    installation.ready();
    installation.refuse_bad();
    cluster.kubectl(&["delete", "namespace", &installation.engine(), "--wait=false"]).unwrap();
    installation.heals("nothing is refused", || installation.create_bad().is_ok());
    assert_eq!(installation.configuration(), None);
    installation.says("Stalled", "True NamespaceMissing");
    cluster.kubectl(&["create", "namespace", &installation.engine()]).unwrap();
    let grant = portal(&["generate", "namespace-grant", &installation.engine()]);
    cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &grant).unwrap();
    installation.ready();
    installation.eventually("a bad ConfigMap is refused again", || installation.create_bad().is_err());
}

#[test]
fn a_rule_that_refuses_everything_cannot_keep_itself() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "harsh", json!({}));
    installation.ready();
    let kinds = ["Pod", "ConfigMap", "Secret", "Service", "ServiceAccount"];
    let kinds: Vec<Value> = kinds.into_iter().map(|kind| json!({ "kind": kind })).collect();
    let operations = ["CREATE", "UPDATE", "DELETE"];
    installation.apply_object(&json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
        "metadata": { "name": "harsh", "labels": { "served-by": "harsh" } },
        "spec": { "match": { "gvk": kinds, "operations": operations }, "rule": "true", "message": "nothing is allowed" },
    }));
    installation.eventually("everything is refused", || {
        installation.create("x", json!({}), &installation.work()).is_err_and(|told| told.contains("nothing is allowed"))
    });
    // The engine is replaced all the same, the rule can be changed, and the instance deleted.
    installation.kubectl(&["delete", "pods", "--all", "--wait=false"]);
    installation.ready();
    cluster.kubectl(&["patch", "pcr", "harsh", "--type=merge", "--patch", r#"{"spec": {"enabled": false}}"#]).unwrap();
    installation
        .eventually("everything is let in", || installation.create("x", json!({}), &installation.work()).is_ok());
    cluster.kubectl(&["patch", "pcr", "harsh", "--type=merge", "--patch", r#"{"spec": {"enabled": true}}"#]).unwrap();
    cluster.kubectl(&["delete", "portal", "harsh", "--timeout=120s"]).unwrap();
    installation.create("x", json!({}), &installation.work()).unwrap();
    cluster.kubectl(&["delete", "pcr", "harsh"]).unwrap();
}
