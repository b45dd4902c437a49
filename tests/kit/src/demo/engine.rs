//! The engine of the demo: two replicas behind a Service, as an operator would set them up.

use portal_test_kit::certificates::Pair;
use serde_json::{Value, json};

use super::LABEL;

/// Everything that runs, in the demo's own namespace. Its rights come from `portal generate roles`.
pub(super) fn objects(instance: &str, demo: &str, image: &str, authority: &Pair, pair: &Pair) -> Vec<Value> {
    let here = |name: &str| json!({"name": name, "namespace": demo});
    let service =
        |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": here(name), "spec": spec});
    let selector = json!({"app": "engine"});
    let port = |port: u16| json!([{"name": "webhook", "port": port, "targetPort": 8443}]);
    let replicas = format!("{demo}-replicas");
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here("engine")}),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": here("webhook-tls"),
            "stringData": {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key},
        }),
        service(demo, json!({"selector": selector, "ports": port(443)})),
        service(&replicas, json!({"clusterIP": "None", "selector": selector, "ports": port(8443)})),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": here("engine"),
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": pod(instance, demo, image, &replicas)},
            },
        }),
    ]
}

fn pod(instance: &str, demo: &str, image: &str, replicas: &str) -> Value {
    json!({
        "serviceAccountName": "engine",
        "volumes": [
            {"name": "tls", "secret": {"secretName": "webhook-tls"}},
            {"name": "token", "projected": {"sources": [
                {"serviceAccountToken": {"audience": format!("portal-{instance}"), "path": "token"}},
            ]}},
        ],
        "containers": [{
            "name": "engine", "image": image, "imagePullPolicy": "IfNotPresent",
            "args": [
                "engine", "--rules-from-cluster", format!("--instance={instance}"), format!("--namespace={demo}"),
                format!("--rule-selector={LABEL}={demo}"), format!("--namespace-selector={LABEL}={demo}"),
                "--admission", "--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key",
                format!("--peers-service={replicas}"), "--peer-ca=/tls/ca.crt", "--peer-token=/token/token",
            ],
            "env": [{"name": "PORTAL_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "volumeMounts": [
                {"name": "tls", "mountPath": "/tls", "readOnly": true},
                {"name": "token", "mountPath": "/token", "readOnly": true},
            ],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
            "securityContext": {
                "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
        }],
    })
}
