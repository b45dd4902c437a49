//! How many pods stay while nodes are emptied.

use serde_json::json;

use crate::children::{child, pods::selector};
use crate::instance::Instance;
use crate::object::{Kind, Object};

/// A budget for each set of pods of which one can go while another stays. A pod alone has none: it could never be evicted, and whoever
/// empties its node would wait for ever. Pods that are not ready serve nobody and may go at any time, or a crash loop would keep the node.
pub fn budgets(instance: &Instance) -> Vec<Object> {
    let engines = instance.engines().into_iter().filter(|engine| engine.replicas >= 2);
    let budget = |engine: &crate::instance::Engine| {
        json!({ "spec": {
            "minAvailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": { "matchLabels": selector(instance, engine) },
        } })
    };
    engines.map(|engine| child(instance, Kind::PodDisruptionBudget, &engine.name, budget(&engine))).collect()
}
