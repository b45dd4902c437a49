//! Which ports of the pods are open.

use serde_json::json;

use crate::children::child;
use crate::instance::Instance;
use crate::names::{INSTANCE_LABEL, METRICS_PORT, WEBHOOK_PORT, configuration_name};
use crate::object::{Kind, Object};

/// Closes all ports but the two that others need, if the instance says so. Who may ask there is not said: the API server has no address that
/// could be selected, and the webhook knows its clients by certificates and tokens.
pub fn network_policies(instance: &Instance) -> Vec<Object> {
    if !instance.spec.network_policy || instance.engines().is_empty() {
        return Vec::new();
    }
    let port = |name: &str| json!({ "protocol": "TCP", "port": name });
    let policy = json!({ "spec": {
        "podSelector": { "matchLabels": { INSTANCE_LABEL: instance.name } },
        "policyTypes": ["Ingress"],
        "ingress": [{ "ports": [port(WEBHOOK_PORT), port(METRICS_PORT.0)] }],
    } });
    vec![child(instance, Kind::NetworkPolicy, &configuration_name(&instance.name), policy)]
}
