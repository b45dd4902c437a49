//! Every field of an instance is set, takes the place of another one, and is unset again: the children are always those that a fresh cluster
//! has for the same spec.

use serde_json::{Value, json};

use super::{
    fault_points::{running, supply},
    invariants::OTHER_VERSION,
    scene::{Children, Scene},
    world::{Time, World},
};
use crate::{
    children::tests::fields::each_field_alone,
    object::{Key, Kind},
};

/// How long nothing must be written: an authority that was replaced is kept for five minutes.
const QUIET: Time = 400;

/// Specs of one field each, with what the definition asks for beside it. The namespace cannot be changed.
fn specs() -> Vec<(String, Value)> {
    let with = |path: &str| match path {
        "certificates.source" | "certificates.issuerRef" => {
            Some(json!({ "certificates": { "source": "CertManager", "issuerRef": { "name": "ca" } } }))
        }
        "certificates.secretName" => Some(json!({ "certificates": { "source": "Secret", "secretName": "user-tls" } })),
        "admission.enabled" => Some(json!({ "admission": { "enabled": false }, "audit": { "enabled": true } })),
        "admission.replicas" => Some(json!({ "admission": { "replicas": 1, "failClosed": false } })),
        _ => None,
    };
    let alone = each_field_alone().into_iter().filter(|(path, _)| path != "namespace");
    alone.map(|(path, spec)| (path.clone(), with(&path).unwrap_or(spec))).collect()
}

/// What a fresh cluster has for a spec.
fn fresh(spec: &Value) -> Scene {
    let mut world = World::new(0);
    supply(&mut world, "user-tls");
    world.set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
    let mut scene = Scene::new(world);
    scene.apply("default", spec.clone());
    scene.settle();
    scene
}

#[track_caller]
fn compare(scene: &Scene, path: &str, spec: &Value) {
    let fresh = fresh(spec);
    assert_eq!(scene.ready("default"), fresh.ready("default"), "{path}");
    // What cannot be ready waits with what was there before.
    if fresh.ready("default").0 != "True" {
        return;
    }
    let (one, other) = (scene.children("default"), fresh.children("default"));
    for key in one.keys().chain(other.keys()) {
        let text = |children: &Children| children.get(key).map(|child| format!("{child:#}")).unwrap_or_default();
        let (one, other) = (text(&one), text(&other));
        let differs: Vec<_> = one.lines().zip(other.lines()).filter(|(one, other)| one != other).take(5).collect();
        assert!(one == other, "{key}, with {path}, is not what a fresh cluster has: {differs:#?}");
    }
}

#[test]
fn every_field_can_be_set_changed_and_unset() {
    let mut scene = Scene::new(running(json!({})));
    supply(&mut scene.world(), "user-tls");
    let specs = specs();
    assert!(specs.len() > 50, "{}", specs.len());
    for (path, spec) in &specs {
        scene.apply("default", spec.clone());
        scene.settle_for(QUIET);
        compare(&scene, path, spec);
    }
    scene.apply("default", json!({}));
    scene.settle_for(QUIET);
    compare(&scene, "nothing", &json!({}));
}

#[test]
fn an_engine_of_another_version_than_its_operator_is_shown() {
    let mut scene = Scene::new(running(json!({})));
    let shown = |scene: &Scene| {
        let instance = scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap();
        let status = &instance.value["status"];
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|found| found["type"] == "AdmissionAvailable").unwrap();
        [&status["operatorVersion"], &status["engines"][0]["version"], &found["reason"]]
            .map(|value| value.as_str().unwrap().to_owned())
    };
    let own = scene.world().operator.version.clone();
    for (spec, version, reason) in [
        (json!({}), own.as_str(), "Answered"),
        (json!({ "image": "registry.example/portal:v2" }), OTHER_VERSION, "OtherVersion"),
        (json!({}), own.as_str(), "Answered"),
    ] {
        scene.apply("default", spec);
        scene.settle();
        scene.assert_ready("default", "True", "Ready");
        assert_eq!(shown(&scene), [own.as_str(), version, reason]);
    }
}
