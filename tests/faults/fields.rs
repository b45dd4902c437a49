//! Each field of an instance is set, another one takes its place, and that is unset again, on a real API server: the children follow, and
//! nothing stays of either.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use kube::CustomResourceExt as _;
use kube::api::DynamicObject;
use portal_crds::{InstanceSpec, PortalInstance};
use portal_operator::children::children;
use portal_operator::instance::Instance;
use portal_operator::object::Object;
use portal_operator::permissions::Permissions;
use portal_test_kit::{repository, share};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::{LONG, Operator, Stage, ageless};
use crate::core::children::{lost, operator};

/// Fields that cannot be set, or not alone: what refuses them is tried in `core::instances`.
const NOT_ALONE: [&str; 8] = [
    "namespace",
    "engine",
    // They keep instances of this test apart.
    "ruleSelector",
    "namespaceSelector",
    "certificates.source",
    "certificates.secretName",
    "certificates.issuerRef",
    "certificates.caBundle",
];

/// How many instances there are at a time.
const AT_ONCE: usize = 10;

/// What an instance is before and after.
fn usual() -> Value {
    json!({ "admission": { "replicas": 1, "failClosed": false, "timeoutSeconds": 30 } })
}

/// Every field that can be set alone, with a value that is not its default.
fn fields() -> Vec<(String, Value)> {
    let path = repository().join("operator/src/children/tests/every-field.json");
    let every: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let definition = serde_json::to_value(PortalInstance::crd()).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = BTreeSet::new();
    let defaults = serde_json::to_value(InstanceSpec::default()).unwrap();
    collect(schema, Some(&defaults), "", &mut found);
    let fields = found.into_iter().filter(|field| !NOT_ALONE.contains(&field.as_str()));
    fields
        .map(|field| {
            let value = every["spec"].pointer(&format!("/{}", field.replace('.', "/")));
            let value = value.unwrap_or_else(|| panic!("every-field.json says nothing of {field}")).clone();
            (field, value)
        })
        .collect()
}

/// The fields of parts that have defaults, and whole parts that have none.
fn collect(schema: &Value, defaults: Option<&Value>, path: &str, found: &mut BTreeSet<String>) {
    match (schema["properties"].as_object(), defaults) {
        (Some(properties), Some(defaults)) => {
            for (name, schema) in properties {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(schema, defaults.get(name), &path, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// The usual spec with a field set.
fn with(field: &str, value: &Value) -> Value {
    let mut spec = usual();
    let mut place = &mut spec;
    for name in field.split('.') {
        place = &mut place[name];
    }
    *place = value.clone();
    match field {
        // An instance without any layer is refused.
        "admission.enabled" => spec["admission"]["enabled"] = false.into(),
        // And so is one that fails closed with a single pod.
        "admission.failClosed" => spec["admission"] = json!({ "failClosed": true, "replicas": 2 }),
        "admission.timeoutSeconds" => spec["admission"]["timeoutSeconds"] = 29.into(),
        _ => {}
    }
    if field == "admission.enabled" {
        spec["audit"]["enabled"] = true.into();
    }
    spec
}

/// Waits until the children of an instance are what the spec that is stored says.
async fn follow(stage: &Stage, name: &str, field: &str, running: &Operator) {
    let deadline = Instant::now() + LONG;
    loop {
        let instance = stage.instance(name).await.unwrap();
        let mut problems = Vec::new();
        let read = Instance::read(&instance).unwrap();
        for child in children(&read, &Permissions::default(), &operator()).iter().filter(is_served) {
            let found = api(stage, child).get_opt(&child.key.name).await.unwrap();
            let stored = found.map(|found| serde_json::to_value(found).unwrap()).unwrap_or_default();
            let mut wanted = child.value.clone();
            // The namespace is an owner too, which is none of the children's business.
            wanted["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            lost(&child.key.to_string(), &wanted, &stored, &mut problems);
        }
        if problems.is_empty() && instance["status"]["observedGeneration"] == instance["metadata"]["generation"] {
            return;
        }
        if Instant::now() > deadline {
            panic!("{field}: {problems:#?}\n{:#}\n{}", instance["status"], running.log(50));
        }
        sleep(Duration::from_millis(300)).await;
    }
}

fn is_served(object: &&Object) -> bool {
    !["monitoring.coreos.com", "cert-manager.io"].contains(&object.key.kind.group())
}

fn api(stage: &Stage, object: &Object) -> kube::Api<DynamicObject> {
    let resource = object.key.kind.resource();
    match &object.key.namespace {
        Some(namespace) => kube::Api::namespaced_with(stage.client.clone(), namespace, &resource),
        None => kube::Api::all_with(stage.client.clone(), &resource),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_set_changed_and_unset_is_followed_and_leaves_nothing() {
    let mut fields = fields();
    let seeds = share::seeds(6, fields.len() as u64);
    Rng::with_seed(seeds.start).shuffle(&mut fields);
    fields.truncate((seeds.end - seeds.start) as usize);
    let others: Vec<_> = fields.iter().cycle().skip(1).take(fields.len()).cloned().collect();
    let fields: Vec<_> = fields.into_iter().zip(others).collect();
    let stage = Stage::new(seeds.start).await;
    let running = Operator::start(&stage.operator_client("operator"), "operator");
    for (batch, fields) in fields.chunks(AT_ONCE).enumerate() {
        let names: Vec<String> = (0..fields.len()).map(|place| format!("s{batch:02}{place:02}")).collect();
        stage.prepare(&names);
        let checked = names.iter().zip(fields).map(|(name, (set, next))| check(&stage, &running, name, [set, next]));
        join_all(checked).await;
        for name in &names {
            stage.delete_instance(name, false).await;
        }
        for name in &names {
            stage.expect(name, "gone", &[&running]).await;
        }
    }
}

async fn check(stage: &Stage, running: &Operator, name: &str, fields: [&(String, Value); 2]) {
    stage.apply_instance(name, &usual()).await;
    stage.expect(name, "True Ready", &[running]).await;
    let [(first, _), (last, _)] = fields;
    follow(stage, name, first, running).await;
    let before = ageless(stage.state(name).await);
    for (field, value) in fields {
        stage.apply_instance(name, &with(field, value)).await;
        follow(stage, name, field, running).await;
        println!("{field} is followed");
    }
    stage.apply_instance(name, &usual()).await;
    stage.expect(name, "True Ready", &[running]).await;
    let deadline = Instant::now() + LONG;
    // What ran for the other spec goes a moment after its successor runs.
    let mut after = ageless(stage.state(name).await);
    while after != before && Instant::now() < deadline {
        sleep(Duration::from_millis(300)).await;
        after = ageless(stage.state(name).await);
    }
    for key in before.keys().chain(after.keys()) {
        assert_eq!(after.get(key), before.get(key), "{key} after {first} and {last} were set and unset");
    }
}
