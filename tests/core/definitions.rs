//! Definitions change from one version to the next: what was stored under another one stays valid, and leads to the same children.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt as _};
use portal_crds::{InstanceSpec, PortalInstance};
use portal_operator::{children::children, instance::Instance, object::Object, permissions::Permissions};
use portal_test_kit::{Cluster, Size, repository};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::children::operator;

/// How long the API server may take to heed a definition.
const LONG: Duration = Duration::from_secs(60);

/// What every version has.
const ALWAYS: [&str; 3] = ["namespace", "admission", "certificates"];

/// The fields of a spec, and those of its parts.
fn fields(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, part) in spec["properties"].as_object().unwrap() {
        found.push(name.clone());
        let inner = part["properties"].as_object().into_iter().flatten();
        found.extend(inner.map(|(inner, _)| format!("{name}.{inner}")));
    }
    found.retain(|field| !ALWAYS.contains(&field.as_str()));
    found
}

/// The definition as it might have been before these fields came: it has no limits either.
fn before(lacking: &BTreeSet<String>) -> Value {
    let mut definition = serde_json::to_value(PortalInstance::crd()).unwrap();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for field in lacking {
        let spec = &mut schema["properties"]["spec"];
        let (place, name) = field.rsplit_once('.').unwrap_or(("", field));
        let (schema_of, default_of) = match place {
            "" => (String::new(), "/default".to_owned()),
            part => (format!("/properties/{part}"), format!("/default/{part}")),
        };
        for place in [format!("{schema_of}/properties"), format!("{schema_of}/default"), default_of] {
            spec.pointer_mut(&place).and_then(Value::as_object_mut).map(|fields| fields.remove(name));
        }
    }
    without_rules(schema);
    definition
}

fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// Applies a definition, and waits until the API server has it: what an instance without a spec gets is what the definition says.
async fn define(cluster: &Cluster, api: &Api<DynamicObject>, definition: &Value) {
    cluster
        .kubectl_with_input(&["apply", "--server-side", "--force-conflicts", "--filename=-"], &definition.to_string())
        .unwrap();
    let wanted = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"];
    let (deadline, dry_run) = (Instant::now() + LONG, PostParams { dry_run: true, ..PostParams::default() });
    loop {
        let made = api.create(&dry_run, &instance("asked", &json!({}))).await;
        if made.as_ref().is_ok_and(|made| made.data["spec"] == *wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{made:?} does not have {wanted}");
        sleep(Duration::from_millis(200)).await;
    }
}

fn instance(name: &str, spec: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": { "name": name }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// What an operator of this version makes of an instance as it is stored.
async fn made(api: &Api<DynamicObject>, name: &str) -> Vec<Object> {
    let stored = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
    let instance = Instance::read(&stored).unwrap();
    assert_eq!(instance.unknown_fields, [] as [String; 0], "{name}");
    children(&instance, &Permissions::default(), &operator()).iter().cloned().collect()
}

/// Somebody labels it. Nothing that is stored may be in the way.
async fn touch(api: &Api<DynamicObject>, name: &str, value: &str) {
    let patch = json!({ "metadata": { "labels": { "touched": value } } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn check(cluster: &Cluster, client: Client, lacking: &BTreeSet<String>, number: usize) {
    let api: Api<DynamicObject> = Api::all_with(client, &PortalInstance::api_resource());
    let (older, newer) = (before(lacking), serde_json::to_value(PortalInstance::crd()).unwrap());
    let path = repository().join("operator/src/children/tests/every-field.json");
    let every: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (plain, whole) = (format!("plain{number}"), format!("whole{number}"));

    define(cluster, &api, &older).await;
    api.create(&PostParams::default(), &instance(&plain, &json!({}))).await.unwrap();
    let stored = api.create(&PostParams::default(), &instance(&whole, &every["spec"])).await.unwrap();
    for field in lacking {
        let place = format!("/spec/{}", field.replace('.', "/"));
        assert_eq!(stored.data.pointer(&place), None, "{field}");
    }
    let before = [made(&api, &plain).await, made(&api, &whole).await];

    // The definitions come first, then the operator.
    define(cluster, &api, &newer).await;
    assert_eq!(api.get(&plain).await.unwrap().data["spec"], json!(InstanceSpec::default()));
    for (name, before) in [&plain, &whole].into_iter().zip(before) {
        assert_eq!(made(&api, name).await, before, "{name}");
        touch(&api, name, "newer").await;
        assert_eq!(made(&api, name).await, before, "{name}");
    }

    // And back.
    define(cluster, &api, &older).await;
    for name in [&plain, &whole] {
        touch(&api, name, "older").await;
        made(&api, name).await;
    }
}

#[tokio::test]
async fn an_instance_of_an_older_definition_stays_valid_and_leads_to_the_same_children() {
    let cluster = Cluster::start(Size::Core).unwrap();
    let definition = serde_json::to_value(PortalInstance::crd()).unwrap();
    let fields = fields(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]);
    assert!(fields.len() > 50, "{fields:?}");
    for number in 0..2 {
        let lacking = fields.iter().skip(number).step_by(2).cloned().collect();
        check(&cluster, cluster.client().await, &lacking, number).await;
    }
}
