//! How the API server finds the webhook, and how replicas and Prometheus find the pods.

use serde_json::json;

use crate::children::child;
use crate::instance::Instance;
use crate::names::{ADMISSION_LABEL, INSTANCE_LABEL, METRICS_PORT, WEBHOOK_PORT, pods_service, service};
use crate::object::{Kind, Object};

/// The port of the Service that the API server asks.
pub(super) const PORT: u16 = 443;

/// The Service of the webhook, if there is one, and the headless one over all pods. Ports of pods are named and not numbered: while their
/// number changes, each pod is reached at its own.
pub fn services(instance: &Instance) -> Vec<Object> {
    if instance.engines().is_empty() {
        return Vec::new();
    }
    let port = |name: &str, port: u16| json!({ "name": name, "port": port, "protocol": "TCP", "targetPort": name });
    let webhook = port(WEBHOOK_PORT, PORT);
    let asked = json!({ "spec": {
        "type": "ClusterIP",
        "selector": { INSTANCE_LABEL: instance.name, ADMISSION_LABEL.0: ADMISSION_LABEL.1 },
        "ports": [webhook],
    } });
    // Pods that are not ready are left out, as by default: they are not asked which rules they run.
    let all = json!({ "spec": {
        "type": "ClusterIP",
        "clusterIP": "None",
        "selector": { INSTANCE_LABEL: instance.name },
        "ports": [webhook, port(METRICS_PORT.0, METRICS_PORT.1)],
    } });
    let asked = instance.layers().admission.then(|| child(instance, Kind::Service, &service(&instance.name), asked));
    asked.into_iter().chain([child(instance, Kind::Service, &pods_service(&instance.name), all)]).collect()
}
