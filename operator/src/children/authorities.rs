//! The authorities of a certificate that comes without them.

use serde_json::json;

use crate::children::child;
use crate::instance::Instance;
use crate::names;
use crate::object::{Kind, Object};

/// The authorities that the instance says, for the replicas: they know each other by the certificate of the webhook, and its Secret may have
/// no `ca.crt`.
pub fn authorities(instance: &Instance) -> Vec<Object> {
    let bundle = instance.spec.certificates.ca_bundle.as_ref().filter(|_| !instance.engines().is_empty());
    let name = names::authorities(&instance.name);
    let made = bundle.map(|bundle| child(instance, Kind::ConfigMap, &name, json!({ "data": { "ca.crt": bundle } })));
    made.into_iter().collect()
}
