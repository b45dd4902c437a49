//! `portal engine` on real API servers: rules become active, mistakes are told in their status, and one replica writes.
//!
//! Rules of the cluster are for all engines of it, so each of these tests has a cluster of its own.

mod admission;
mod alerts;
mod audit;
mod authors;
mod bad_input;
mod caches;
mod check;
mod day;
mod folder;
mod histories;
mod instances;
mod kinds;
mod many;
mod outcomes;
mod process;
mod replicas;
mod reports;
mod split;
mod status;
mod webhook;

use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client, CustomResourceExt as _};
use portal_crds::PortalClusterRule;
use portal_test_kit::audit_log::AuditEvent;
use portal_test_kit::{Cluster, Size, repository};
use serde_json::{Value, json};

use crate::core::eventually;

/// A cluster with the definitions and the engine's namespace.
fn cluster() -> Cluster {
    let cluster = Cluster::start(Size::Core).unwrap();
    install(&cluster);
    cluster.kubectl(&["create", "namespace", "portal-system"]).unwrap();
    cluster
}

fn install(cluster: &Cluster) {
    let folder = repository().join("crds/yaml");
    let folder = folder.to_str().unwrap();
    cluster.kubectl(&["apply", "--server-side", "--filename", folder]).unwrap();
    eventually("the kinds are served", || cluster.kubectl(&["get", "pcr,prule"]).is_ok());
}

const GOOD: &str = "container.securityContext.privileged == true";
const BAD: &str = "container.securityContxt.privileged == true";

/// A rule for pods.
fn rule(name: &str, expression: &str) -> Value {
    json!({
        "apiVersion": "portal.io/v1alpha1",
        "kind": "PortalClusterRule",
        "metadata": { "name": name },
        "spec": { "match": { "gvk": [{ "kind": "Pod" }] }, "rule": expression },
    })
}

/// A kind of `acme.io` whose objects may be anything.
fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.acme.io") },
        "spec": {
            "group": "acme.io",
            "names": { "kind": kind, "plural": plural },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

fn apply(cluster: &Cluster, object: &Value) {
    cluster.kubectl_with_input(&["apply", "--filename", "-"], &object.to_string()).unwrap();
}

/// The rules of the cluster.
fn rules_api(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &PortalClusterRule::api_resource())
}

async fn create(api: &Api<DynamicObject>, rule: Value) {
    api.create(&PostParams::default(), &serde_json::from_value(rule).unwrap()).await.unwrap();
}

/// A rule of the cluster as it is.
fn get(cluster: &Cluster, name: &str) -> Value {
    serde_json::from_str(&cluster.kubectl(&["get", "pcr", name, "--output=json"]).unwrap()).unwrap()
}

/// The status of a condition of a status, or of an instance's entry of it.
fn condition<'v>(owner: &'v Value, kind: &str) -> &'v str {
    let conditions = owner["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default()
}

/// Whether the status is about the newest version, and says this about readiness.
fn is_ready(rule: &Value, expected: &str) -> bool {
    rule["status"]["observedGeneration"] == rule["metadata"]["generation"]
        && condition(&rule["status"], "Ready") == expected
}

/// Waits until a rule is ready or, for `False`, is told not to be.
#[track_caller]
fn wait_for(cluster: &Cluster, name: &str, ready: &str) -> Value {
    eventually(&format!("{name} is told to be ready: {ready}"), || is_ready(&get(cluster, name), ready));
    get(cluster, name)
}

/// Writes of the status of rules, those that were refused too.
async fn status_writes(cluster: &Cluster) -> Vec<AuditEvent> {
    let mut events = cluster.audit_events().await.unwrap();
    events.retain(|event| {
        event.is_write() && event.object_ref.subresource == "status" && event.object_ref.api_group == "portal.io"
    });
    events
}
