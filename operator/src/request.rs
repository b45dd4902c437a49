//! A step as it is sent to the API server.

use serde_json::{Value, json};

use crate::{
    instance::Instance,
    names::FINALIZER,
    object::{Key, Object},
    plan::Step,
};

/// One request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Reads an object.
    Get(Key),
    /// Merges this into an object by its subresource for the status.
    Status(Key, Value),
    /// Merges this, which has all finalizers, into an object. Whether ours is to be there.
    Finalizers(Key, Value, bool),
    /// Applies an object, with force.
    Apply(Object),
    /// Makes an object that is not there.
    Create(Object),
    /// Puts an object in the place of the version that it names.
    Replace(Object),
    /// Deletes the object of this UID, and in the background what it owns.
    Delete(Key, String),
}

impl Request {
    /// What a step comes to. `known` is the instance as it was last seen. Nothing if there is nothing to send.
    pub fn of(step: &Step, instance: Option<&Instance>, known: Option<&Object>) -> Option<Request> {
        Some(match step {
            Step::Status(status) => {
                let instance = instance?;
                let wanted = serde_json::to_value(status).unwrap_or_default();
                let patch = json!({
                    "metadata": { "resourceVersion": instance.resource_version },
                    "status": merge_patch(&instance.status, &wanted),
                });
                Request::Status(instance.key(), patch)
            }
            Step::Keep(keep) => {
                let known = known?;
                Request::Finalizers(known.key.clone(), finalizer_patch(&known.value, *keep), *keep)
            }
            Step::Apply(object) => Request::Apply(object.clone()),
            Step::Create(object) => Request::Create(object.clone()),
            Step::Replace(object) => Request::Replace(object.clone()),
            Step::Delete(key, uid) => Request::Delete(key.clone(), uid.clone()),
            Step::Certificate(_) | Step::Probe => return None,
        })
    }

    /// Which object it is about.
    pub fn key(&self) -> &Key {
        match self {
            Request::Get(key) | Request::Status(key, _) | Request::Finalizers(key, ..) | Request::Delete(key, _) => key,
            Request::Apply(object) | Request::Create(object) | Request::Replace(object) => &object.key,
        }
    }
}

/// The patch by which the finalizer comes or goes, of the version of the instance that was seen.
fn finalizer_patch(object: &Value, keep: bool) -> Value {
    let known = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let mut finalizers: Vec<Value> = known.into_iter().filter(|name| name != FINALIZER).collect();
    if keep {
        finalizers.push(FINALIZER.into());
    }
    let version = &object["metadata"]["resourceVersion"];
    json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } })
}

/// The patch that makes one value of another.
fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return after.clone() };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let there = after.iter().map(|(key, value)| {
        let value = before.get(key).map_or_else(|| value.clone(), |before| merge_patch(before, value));
        (key.clone(), value)
    });
    there.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_what_is_gone() {
        let (before, after) = (json!({"a": {"x": 1, "y": 2}, "b": [1]}), json!({"a": {"x": 1}, "c": 3}));
        assert_eq!(merge_patch(&before, &after), json!({"a": {"x": 1, "y": null}, "b": null, "c": 3}));
    }
}
