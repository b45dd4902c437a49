//! Instances that ask for what is not there: each says what is in the way, and what to do.

use std::time::Duration;

use portal_test_kit::certificates::Authority;
use serde_json::json;

use super::{Installation, cluster, requests};

/// How many requests an instance that waits for somebody is worth in 20 seconds: eight watches that are refused are each tried after pauses
/// that grow to five seconds, and a watch is told of twice. Whoever does not pause comes to thousands.
const MOST: usize = 120;

#[test]
fn an_instance_that_cannot_be_says_why_and_the_way_out_works() {
    let (cluster, _operator) = cluster();
    let installation = Installation { cluster, name: "nowhere" };
    installation.apply(json!({}));
    installation.says("Stalled", "True NamespaceMissing");
    cluster.kubectl(&["create", "namespace", &installation.engine()]).unwrap();
    installation.says("Stalled", "True NamespaceNotGranted");
    let message = installation.message("Stalled");
    assert!(message.contains("portal generate namespace-grant engine-nowhere | kubectl apply"), "{message}");
    drop(installation);
    let installation = Installation::without_instance(cluster, "nowhere");
    installation.apply(json!({}));
    installation.ready();
}

#[test]
fn what_an_instance_names_and_nobody_has_is_told() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(
        cluster,
        "missing",
        json!({
            "certificates": { "source": "Secret", "secretName": "own" },
        }),
    );
    installation.says("CertificatesReady", "False SecretMissing");
    installation.says("Stalled", "True SecretMissing");
    installation.apply(json!({ "image": "lab.local/no-such-image:1" }));
    installation.says("Ready", "False PodsNotReady");
    assert!(
        installation.message("Ready").contains("ImagePullBackOff: image lab.local/no-such-image:1 cannot be pulled")
    );
    installation.apply(json!({ "bootstrapRules": { "configMaps": ["rules"] } }));
    installation.says("Stalled", "True BootstrapRulesInvalid");
    installation.kubectl(&[
        "create",
        "configmap",
        "rules",
        "--from-literal=a.yaml=name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: contaner.image",
    ]);
    installation.eventually("the typo is told", || installation.message("Stalled").contains("`container`"));
    installation.kubectl(&["delete", "configmap", "rules"]);
    installation.apply(json!({ "network": { "enabled": true } }));
    installation.says("Stalled", "True LayerNotAvailable");
    installation.apply(json!({}));
    installation.ready();
}

#[test]
fn what_cannot_be_is_told_and_nobody_tries_in_haste() {
    let (cluster, _operator) = cluster();
    let restarts = || {
        let counts = "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}";
        cluster.kubectl(&["--namespace=portal-operator", "get", "pods", counts]).unwrap()
    };
    let restarted = restarts();
    let not_granted = Installation { cluster, name: "strange" };
    cluster.kubectl(&["create", "namespace", &not_granted.engine()]).unwrap();
    not_granted.apply(json!({}));

    // Something keeps the namespace from ending.
    let ending = Installation::without_instance(cluster, "ending");
    ending.apply_object(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "stays", "namespace": ending.engine(), "finalizers": ["example.org/stays"] },
    }));
    cluster.kubectl(&["delete", "namespace", &ending.engine(), "--wait=false"]).unwrap();
    ending.apply(json!({}));

    // The namespace forbids what the instance asks for.
    let restricted = Installation::without_instance(cluster, "restricted");
    let level = "pod-security.kubernetes.io/enforce=restricted";
    cluster.kubectl(&["label", "namespace", &restricted.engine(), level]).unwrap();
    restricted.apply(json!({ "admission": { "hostNetwork": true } }));

    let keyless =
        Installation::new(cluster, "keyless", json!({ "certificates": { "source": "Secret", "secretName": "own" } }));
    let imageless = Installation::new(cluster, "imageless", json!({ "image": "lab.local/no-such-image:1" }));
    let ruleless = Installation::without_instance(cluster, "ruleless");
    ruleless.kubectl(&[
        "create",
        "configmap",
        "rules",
        "--from-literal=a.yaml=name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: x",
    ]);
    ruleless.apply(json!({ "bootstrapRules": { "configMaps": ["rules"] } }));

    not_granted.says("Stalled", "True NamespaceNotGranted");
    ending.says("Stalled", "True NamespaceTerminating");
    restricted.says("Stalled", "True HostNetworkForbidden");
    keyless.says("Stalled", "True SecretMissing");
    imageless.says("Ready", "False PodsNotReady");
    ruleless.says("Stalled", "True BootstrapRulesInvalid");

    // What waits for somebody asks for little, and takes no process with it.
    std::thread::sleep(Duration::from_secs(10));
    let all = [&not_granted, &ending, &restricted, &keyless, &imageless, &ruleless];
    let before = all.map(|installation| requests(installation).len());
    std::thread::sleep(Duration::from_secs(20));
    for (installation, before) in all.into_iter().zip(before) {
        let after = requests(installation);
        println!("{}: {} requests in 20 s", installation.name, after.len() - before);
        assert!(after.len() < before + MOST, "{} in 20 s: {:#?}", installation.name, &after[before..]);
    }
    assert_eq!(restarts(), restarted);

    restricted.apply(json!({}));
    restricted.ready();
    ending.kubectl(&[
        "patch",
        "configmap",
        "stays",
        "--type=merge",
        "--patch",
        r#"{"metadata": {"finalizers": null}}"#,
    ]);
    ending.says("Stalled", "True NamespaceMissing");
}

#[test]
fn a_certificate_that_does_not_fit_its_key_is_told() {
    let (cluster, _operator) = cluster();
    let spec = json!({ "certificates": { "source": "Secret", "secretName": "own" } });
    let installation = Installation::without_instance(cluster, "misfit");
    let authority = Authority::new("test").unwrap();
    let name = format!("{}.{}.svc", installation.child(), installation.engine());
    let (one, other) = (authority.server(&name, &[&name]).unwrap(), authority.server(&name, &[&name]).unwrap());
    let supply = |certificate: &str, key: &str| {
        let data = json!({ "tls.crt": certificate, "tls.key": key, "ca.crt": authority.pair().certificate });
        installation.apply_object(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "own", "namespace": installation.engine() },
            "stringData": data,
        }));
    };
    supply(&one.certificate, &other.key);
    installation.apply(spec);
    installation.says("CertificatesReady", "False KeyMismatch");
    installation.says("Stalled", "True KeyMismatch");
    supply(&one.certificate, &one.key);
    installation.ready();
}
