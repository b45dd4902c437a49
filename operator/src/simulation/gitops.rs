//! What GitOps tools are told in the phases of an instance: the real kstatus, and the scripts for Argo CD that the documentation has, are
//! asked about every version of it.

use std::collections::{BTreeMap, BTreeSet};

use portal_test_kit::gitops::{Seen, see};
use serde_json::{Value, json};

use super::{fault_points::running, scene::Scene, world::World};
use crate::{
    desired::is_enforcing,
    names::PAUSED,
    object::{Key, Kind, Object},
};

/// A version of an instance, and whether all runs that it asks for.
struct Version {
    object: Value,
    runs: bool,
}

/// Every version of the instance that there was, and whether what it asks for ran at that time.
fn versions(world: &World) -> Vec<Version> {
    let mut objects: BTreeMap<Key, std::sync::Arc<Object>> = BTreeMap::new();
    let mut versions = Vec::new();
    for change in &world.log {
        match &change.after {
            Some(after) => drop(objects.insert(change.key.clone(), after.clone())),
            None => drop(objects.remove(&change.key)),
        }
        let Some(after) = change.after.as_ref().filter(|_| change.key.kind == Kind::PortalInstance) else { continue };
        let mut object = after.value.clone();
        object["apiVersion"] = "portal.io/v1alpha1".into();
        object["kind"] = "PortalInstance".into();
        versions.push(Version { runs: runs(&objects, &object), object });
    }
    versions
}

/// Whether the pods are as the instance says, and what rules refuse is refused. Knows nothing of conditions.
fn runs(objects: &BTreeMap<Key, std::sync::Arc<Object>>, instance: &Value) -> bool {
    let of_kind = |kind: Kind| objects.iter().filter(move |(key, _)| key.kind == kind).map(|(_, object)| &object.value);
    let image = instance["spec"]["image"].as_str();
    let mut deployments = of_kind(Kind::Deployment).peekable();
    let is_there = deployments.peek().is_some();
    let are_as_said = deployments.all(|deployment| {
        let template = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        let replicas = instance["spec"]["admission"]["replicas"].as_i64().unwrap_or(2);
        image.is_none_or(|image| template == image)
            && deployment["spec"]["replicas"] == replicas
            && deployment["status"]["readyReplicas"] == replicas
            && deployment["status"]["updatedReplicas"] == replicas
    });
    let enforces = objects
        .values()
        .any(|object| object.key.kind == Kind::ValidatingWebhookConfiguration && is_enforcing(object, "default"));
    is_there && are_as_said && enforces
}

/// What tools should say, by the fields that conventions name. Knows nothing of how they work.
fn expected(object: &Value) -> (&'static str, &'static str) {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let says = |name: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|found| found["type"] == name && found["status"] == "True")
    };
    if !metadata["deletionTimestamp"].is_null() {
        ("Terminating", "Progressing")
    } else if status["observedGeneration"] != metadata["generation"] {
        ("InProgress", "Progressing")
    } else if says("Paused") {
        ("InProgress", "Suspended")
    } else if says("Stalled") {
        ("Failed", "Degraded")
    } else if says("Ready") {
        ("Current", "Healthy")
    } else {
        ("InProgress", "Progressing")
    }
}

#[test]
fn gitops_tools_are_told_the_truth_in_every_phase_of_an_instance() {
    let mut world = World::new(0);
    world.set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
    let mut scene = Scene::new(world);
    let key = Key::cluster(Kind::PortalInstance, "default");
    let pause = |scene: &Scene, is_paused: bool| {
        scene.world().edit(&key, |value| value["metadata"]["annotations"][PAUSED] = is_paused.to_string().into());
    };
    for spec in [
        json!({}),
        json!({ "image": "registry.example/portal:v2" }),
        json!({ "image": "registry.example/missing:v3" }),
        json!({ "admission": { "replicas": 3 } }),
        json!({ "certificates": { "source": "Secret", "secretName": "nobody-has-it" } }),
        json!({ "audit": { "enabled": true } }),
        json!({}),
    ] {
        scene.apply("default", spec);
        scene.settle();
    }
    pause(&scene, true);
    scene.settle();
    pause(&scene, false);
    scene.settle();
    scene.world().is_harmed = true;
    scene.world().grants.remove("portal-system");
    scene.settle();
    scene.world().grants.insert("portal-system".to_owned());
    scene.settle();
    scene.world().delete(&key, false);
    scene.settle();

    let versions = versions(&scene.world());
    let objects: Vec<Value> = versions.iter().map(|version| version.object.clone()).collect();
    let mut phases = BTreeSet::new();
    for (Version { object, runs }, Seen { kstatus, argocd }) in versions.iter().zip(see(&objects).unwrap()) {
        let argocd = argocd.unwrap();
        assert_eq!((&*kstatus, &*argocd), expected(object), "{:#}", object["status"]);
        assert!(kstatus != "Current" || *runs, "it is said to run, and does not: {object:#}");
        phases.insert(format!("{kstatus} {argocd}"));
    }
    let all = [
        "Current Healthy",
        "Failed Degraded",
        "InProgress Progressing",
        "InProgress Suspended",
        "Terminating Progressing",
    ];
    assert_eq!(Vec::from_iter(phases), all);
}

#[test]
fn an_exception_that_ends_is_told_at_that_moment() {
    let mut scene = Scene::new(running(json!({})));
    let end = scene.world().now() + jiff::SignedDuration::from_secs(1000);
    let until: &'static str = Box::leak(end.to_string().into_boxed_str());
    let says = format!(
        "match: {{gvk: [{{kind: Pod}}]}}\n  exceptions: [{{names: [a], until: '{until}', reason: x}}, {{names: [b], reason: why}}]"
    );
    scene.world().set_rule("looks-up", Some(Box::leak(says.into_boxed_str())));
    let counted = |scene: &Scene| {
        let instance = scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap();
        let said = &instance.value["status"]["exceptions"];
        [&said["open"], &said["withoutEnd"], &said["ended"]].map(|count| count.as_i64())
    };
    scene.run(990);
    assert_eq!(counted(&scene), [Some(2), Some(1), Some(0)]);
    let instance = scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap();
    let said = &instance.value["status"]["exceptions"];
    assert_eq!((said["nextEnd"].as_str(), said["nextRule"].as_str()), (Some(until), Some("looks-up")));
    // No watch tells of it, and the next look would be minutes away.
    scene.run(12);
    assert_eq!(counted(&scene), [Some(1), Some(1), Some(1)]);
    scene.world().set_rule("looks-up", None);
    scene.settle();
    assert_eq!(counted(&scene), [None, None, None]);
}
