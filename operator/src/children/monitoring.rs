//! What Prometheus is told: where the pods are, and when something is wrong with Portal itself.

mod alerts;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use self::alerts::alerts;
use crate::children::child;
use crate::instance::Instance;
use crate::names::{INSTANCE_LABEL, METRICS_PORT, configuration_name};
use crate::object::{Kind, Object};

/// A ServiceMonitor and a PrometheusRule, if the instance asks for them. Their kinds are not Kubernetes' own, and may not be served.
pub fn monitoring(instance: &Instance) -> Vec<Object> {
    if instance.engines().is_empty() {
        return Vec::new();
    }
    let name = configuration_name(&instance.name);
    let wanted = &instance.spec.monitoring;
    let monitor =
        wanted.service_monitor.then(|| child(instance, Kind::ServiceMonitor, &name, service_monitor(instance)));
    let rule = wanted.prometheus_rule.then(|| child(instance, Kind::PrometheusRule, &name, prometheus_rule(instance)));
    monitor.into_iter().chain(rule).collect()
}

/// Of the Services of an instance, the one over all pods alone has the port.
fn service_monitor(instance: &Instance) -> Value {
    json!({ "spec": {
        "selector": { "matchLabels": { INSTANCE_LABEL: instance.name } },
        "targetLabels": [INSTANCE_LABEL],
        // The label `namespace` of a metric means the namespace that it is about, and not that of the pod.
        "endpoints": [{ "port": METRICS_PORT.0, "honorLabels": true }],
    } })
}

fn prometheus_rule(instance: &Instance) -> Value {
    json!({ "spec": { "groups": groups(instance) } })
}

/// The alerts of an instance, as a file of rules has them.
fn groups(instance: &Instance) -> Value {
    let rules: Vec<Value> = alerts(instance).iter().map(|alert| alert.rule(instance)).collect();
    json!([{ "name": configuration_name(&instance.name), "rules": rules }])
}
