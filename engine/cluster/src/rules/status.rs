//! The status of a rule as JSON. Whoever writes it touches its own fields alone: what another instance or a newer version wrote stays.

use portal_crds::{ConditionType, RuleStatus};
use serde_json::{Map, Value, json};

/// The conditions of a rule as a whole.
const SUMMARY: [ConditionType; 3] = [ConditionType::Ready, ConditionType::Reconciling, ConditionType::Stalled];

/// The entries of the instances that serve the rule.
pub fn entries(status: &Value) -> impl Iterator<Item = &Value> {
    status["instances"].as_array().into_iter().flatten()
}

/// The fields of a status, and the entries of its instances.
pub fn parts(status: &Value) -> (Map<String, Value>, Vec<Value>) {
    let mut status = status.as_object().cloned().unwrap_or_default();
    let instances = match status.remove("instances") {
        Some(Value::Array(instances)) => instances,
        _ => Vec::new(),
    };
    (status, instances)
}

/// The status of a rule that an instance does not serve, or not any more. The first instance that serves it sums up; if there is none, the
/// status is what a new rule has.
pub fn without(current: &Value, instance: &str) -> Value {
    let (mut status, mut instances) = parts(current);
    instances.retain(|entry| entry["instance"] != instance);
    if instances.is_empty() {
        status.insert("observedGeneration".to_owned(), json!(RuleStatus::default().observed_generation));
        status.remove("mode");
        status.remove("violationCount");
        if let Some(Value::Array(mut conditions)) = status.remove("conditions") {
            conditions.retain(|condition| !SUMMARY.iter().any(|kind| condition["type"] == kind.to_string()));
            if !conditions.is_empty() {
                status.insert("conditions".to_owned(), Value::Array(conditions));
            }
        }
    } else {
        status.insert("instances".to_owned(), Value::Array(instances));
    }
    Value::Object(status)
}

/// The change that makes one status of another, as a merge patch: what is not there any more has to be named. Nothing if they are
/// the same.
pub fn patch(current: &Value, desired: &Value) -> Option<Value> {
    let mut patch = Map::new();
    let empty = Map::new();
    let (before, after) = (current.as_object().unwrap_or(&empty), desired.as_object().unwrap_or(&empty));
    for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(value)) {
        patch.insert(key.clone(), value.clone());
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A condition of a list of them.
pub fn condition(conditions: &[Value], kind: ConditionType) -> Option<&Value> {
    conditions.iter().find(|condition| condition["type"] == kind.to_string())
}
