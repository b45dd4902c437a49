//! The pods of an instance, and how they are replaced.

use serde_json::json;

use crate::children::{
    child,
    pods::{are_apart, selector, template},
};
use crate::instance::{Engine, Instance, OperatorSettings};
use crate::object::{Kind, Object};

/// A Deployment for each set of pods.
pub fn deployments(instance: &Instance, operator: &OperatorSettings) -> Vec<Object> {
    instance.engines().iter().map(|engine| deployment(instance, engine, operator)).collect()
}

pub(super) fn deployment(instance: &Instance, engine: &Engine, operator: &OperatorSettings) -> Object {
    // None goes before its successor is ready, unless no node has room for both.
    let (surge, unavailable) = if are_apart(instance, engine) { (0, 1) } else { (1, 0) };
    let spec = json!({
        "replicas": engine.replicas,
        "selector": { "matchLabels": selector(instance, engine) },
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
        },
        "template": template(instance, engine, operator),
    });
    child(instance, Kind::Deployment, &engine.name, json!({ "spec": spec }))
}
