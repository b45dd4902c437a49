//! Instances that ask for what is not there: each says what is in the way, and what to do.

use serde_json::json;

use super::{Installation, cluster};

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
    installation.apply(json!({ "audit": { "enabled": true } }));
    installation.says("Stalled", "True LayerNotAvailable");
    installation.apply(json!({}));
    installation.ready();
}
