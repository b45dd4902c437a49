//! The children of instances as people read them, and what each field of an instance does to them.

pub(crate) mod fields;

use expect_test::expect_file;
use portal_core::layers::Layers;
use serde_json::{Value, json};

use super::*;
use crate::children::{deployments::deployment, flags::FLAGS};
use crate::instance::Engine;
use crate::names::{self, COMBINED, LAYER_LABEL};

/// An instance whose spec says this, and has defaults for the rest.
pub(crate) fn instance(spec: Value) -> Instance {
    let metadata =
        json!({ "name": "default", "uid": "instance-uid", "generation": 1, "labels": { "app": "no child has it" } });
    read(&json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": spec }))
}

/// The instance that says something in every field.
pub(crate) fn every_field() -> Value {
    serde_json::from_str(include_str!("tests/every-field.json")).unwrap()
}

fn read(object: &Value) -> Instance {
    Instance::read(object).unwrap()
}

pub(crate) fn operator() -> OperatorSettings {
    OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "registry.example/portal:v1".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

fn yaml<'a>(objects: impl IntoIterator<Item = &'a Object>) -> String {
    let documents: Vec<String> =
        objects.into_iter().map(|object| serde_saphyr::to_string(&object.value).unwrap()).collect();
    documents.join("---\n")
}

/// A set of pods with layers that no instance can have yet.
fn engine(layer: &'static str, layers: Layers) -> Engine {
    Engine { layer, name: names::engine("default", layer), layers, replicas: 2 }
}

fn arguments(deployment: &Object) -> Vec<&str> {
    let arguments = &deployment.value["spec"]["template"]["spec"]["containers"][0]["args"];
    arguments.as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect()
}

#[test]
fn the_children_of_an_instance_with_all_defaults() {
    expect_file!["tests/default.yaml"]
        .assert_eq(&yaml(children(&instance(json!({})), &Permissions::default(), &operator()).iter()));
}

#[test]
fn the_children_of_an_instance_that_says_everything() {
    expect_file!["tests/every-field.yaml"]
        .assert_eq(&yaml(children(&read(&every_field()), &Permissions::default(), &operator()).iter()));
}

#[test]
fn the_guard_of_the_bypass() {
    expect_file!["tests/guard.yaml"].assert_eq(&yaml(&guard()));
}

#[test]
fn every_child_is_labelled_and_owned_and_has_nothing_of_its_owner() {
    for instance in [instance(json!({})), read(&every_field())] {
        let children = children(&instance, &Permissions::default(), &operator());
        for object in children.iter() {
            let metadata = &object.value["metadata"];
            assert_eq!(metadata["labels"], json!(labels(&instance.name)), "{}", object.key);
            assert_eq!(metadata["ownerReferences"], json!([instance.owner()]), "{}", object.key);
            let annotations = metadata["annotations"].as_object().into_iter().flatten();
            assert!(annotations.into_iter().all(|(name, _)| name == names::BECAUSE), "{}", object.key);
            assert_eq!(object.key.namespace.is_some(), object.key.kind.is_namespaced(), "{}", object.key);
        }
        let mut keys: Vec<_> = children.iter().map(|object| &object.key).collect();
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
    }
}

#[test]
fn an_instance_without_layers_has_no_children() {
    let children =
        children(&instance(json!({ "admission": { "enabled": false } })), &Permissions::default(), &operator());
    assert_eq!(children.iter().count(), 0);
}

#[test]
fn a_pod_alone_can_be_evicted() {
    let alone = json!({ "admission": { "replicas": 1, "failClosed": false } });
    assert_eq!(budgets(&instance(alone)).len(), 0);
    assert_eq!(budgets(&instance(json!({}))).len(), 1);
}

#[test]
fn pods_that_may_not_share_a_node_make_room_for_their_successors() {
    let check = |spec: Value, surge: u32, unavailable: u32| {
        let deployments = deployments(&instance(spec), &operator());
        let spec = &deployments[0].value["spec"];
        let expected = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        assert_eq!(spec["strategy"]["rollingUpdate"], expected);
        let pod = &spec["template"]["spec"];
        let required = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(required.is_array(), surge == 0);
        assert_eq!(pod["topologySpreadConstraints"].is_array(), surge == 1);
    };
    check(json!({}), 1, 0);
    check(json!({ "scheduling": { "spread": "Required" } }), 0, 1);
    check(json!({ "admission": { "hostNetwork": true } }), 0, 1);
}

#[test]
fn a_pod_has_time_to_answer_before_it_is_killed() {
    for drain in [0, 5, 120] {
        let deployments = deployments(&instance(json!({ "admission": { "drainSeconds": drain } })), &operator());
        let grace = &deployments[0].value["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
        // The requests under way have five seconds more.
        assert!(grace.as_u64().unwrap() > drain + 5, "{drain}: {grace}");
    }
}

#[test]
fn the_engine_ends_its_work_before_the_api_server_goes() {
    for timeout in 2..=30 {
        let deployments = deployments(&instance(json!({ "admission": { "timeoutSeconds": timeout } })), &operator());
        let given =
            arguments(&deployments[0]).iter().find_map(|argument| argument.strip_prefix("--admission-deadline="));
        let deadline: u64 = given.unwrap_or("3000").parse().unwrap();
        assert!(deadline * 10 <= timeout * 1000 * 6 && deadline > 1000, "{timeout}: {deadline}");
    }
}

/// What pods of layers are told that no instance can have yet.
#[test]
fn each_layer_is_told_of_itself_alone() {
    let none = Layers::default();
    let check = |layer, layers: Layers, told: &[&str]| {
        let spec = json!({ "mode": "split", "admission": { "hostNetwork": true } });
        let deployment = deployment(&instance(spec), &engine(layer, layers), &operator());
        let layers = ["--admission", "--audit", "--network", "--actions"];
        let arguments = arguments(&deployment);
        let found: Vec<&str> = arguments.iter().filter(|argument| layers.contains(argument)).copied().collect();
        assert_eq!(found, told);
        let is_asked = told.contains(&"--admission");
        let admission =
            arguments.iter().filter(|argument| argument.starts_with("--tls-") || argument.starts_with("--admission-"));
        assert_eq!(admission.count() > 0, is_asked);
        let template = &deployment.value["spec"]["template"];
        assert_eq!(template["metadata"]["labels"][LAYER_LABEL], layer);
        assert_eq!(template["metadata"]["labels"]["portal.io/admission"] == "true", is_asked);
        let pod = &template["spec"];
        assert_eq!(pod["hostNetwork"] == true, is_asked, "only the API server has to reach it");
        assert_eq!(pod["serviceAccountName"], deployment.key.name);
        // Who shows no certificate does not see its key.
        assert_eq!(pod["volumes"][0]["secret"]["items"].is_null(), is_asked);
        let ports = pod["containers"][0]["ports"].as_array().unwrap();
        assert_eq!(ports.iter().any(|port| port["name"] == "webhook"), is_asked);
    };
    check(COMBINED, Layers::ALL, &["--admission", "--audit", "--network", "--actions"]);
    check("admission", Layers { admission: true, ..none }, &["--admission"]);
    check("audit", Layers { audit: true, actions: true, ..none }, &["--audit", "--actions"]);
    check("network", Layers { network: true, ..none }, &["--network"]);
}

#[test]
fn layers_have_resources_of_their_own_in_split_mode() {
    let instance = read(&every_field());
    let memory = |layer, layers| {
        let deployment = deployment(&instance, &engine(layer, layers), &operator());
        let container = &deployment.value["spec"]["template"]["spec"]["containers"][0];
        container["resources"]["limits"]["memory"].clone()
    };
    assert_eq!(memory("admission", Layers { admission: true, ..Layers::default() }), "1536Mi");
    assert_eq!(memory("audit", Layers { audit: true, ..Layers::default() }), "2Gi");
    assert_eq!(memory("network", Layers { network: true, ..Layers::default() }), "512Mi");
}

#[test]
fn flags_are_there_once() {
    let mut names: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
