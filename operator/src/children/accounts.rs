//! Who engines are to the API server.

use serde_json::json;

use crate::children::child;
use crate::instance::Instance;
use crate::object::{Kind, Object};

/// An account for each set of pods. Whoever runs as one says so in the pod, and gets no token otherwise.
pub fn accounts(instance: &Instance) -> Vec<Object> {
    let engines = instance.engines();
    let value = json!({ "automountServiceAccountToken": false });
    engines.iter().map(|engine| child(instance, Kind::ServiceAccount, &engine.name, value.clone())).collect()
}
