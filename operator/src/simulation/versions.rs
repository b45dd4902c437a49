//! What another version of the operator has left behind: this one goes on from there, as it does after every other start.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{fault_points::running, scene::Scene, world::World};
use crate::{
    names::{INSTANCE_LABEL, MANAGED_BY},
    object::{Key, Kind, Object},
    request::Request,
};

/// An annotation that this version does not know.
const MARK: &str = "portal.io/later";

/// A newer version has looked after the instance: everything that it made says something that this one does not know.
fn newer_version(world: &mut World) {
    let is_child =
        |object: &Arc<Object>| object.label(INSTANCE_LABEL) == Some("default") && object.key.kind != Kind::Pod;
    let children: Vec<Arc<Object>> = world.objects.values().filter(|object| is_child(object)).cloned().collect();
    let mut changed = 0;
    for child in children {
        let key = &child.key;
        match key.kind {
            // Made by server-side apply, under the name that every version has.
            Kind::ServiceAccount | Kind::Service | Kind::PodDisruptionBudget | Kind::Deployment | Kind::ConfigMap => {
                world.request(&Request::Apply(with_more(&child))).unwrap();
            }
            Kind::ClusterRole | Kind::Role => {
                let more = json!({ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] });
                world.edit(key, |value| value["rules"].as_array_mut().unwrap().push(more));
            }
            Kind::ValidatingWebhookConfiguration => {
                world.edit(key, |value| {
                    let entries = value["webhooks"].as_array_mut().unwrap();
                    let mut more = entries[0].clone();
                    more["name"] = "later.default.portal.io".into();
                    entries.push(more);
                });
            }
            // What lies beside the keys that this version reads.
            Kind::Secret => drop(world.edit(key, |value| value["data"]["later"] = "bGF0ZXI=".into())),
            _ => continue,
        }
        changed += 1;
    }
    assert!(changed >= 8, "{changed}");
    let metadata = json!({
        "name": "portal-default-later", "namespace": "portal-system",
        "labels": { MANAGED_BY.0: MANAGED_BY.1, INSTANCE_LABEL: "default" },
    });
    world.make(Kind::ConfigMap, json!({ "metadata": metadata, "data": { "a": "b" } }));
    world.edit(&Key::cluster(Kind::PortalInstance, "default"), |value| {
        value["metadata"]["annotations"][MARK] = "x".into();
        value["spec"]["later"] = json!({ "depth": 1 });
        value["spec"]["admission"]["patience"] = 3.into();
        let status = &mut value["status"];
        status["operatorVersion"] = "99.0.0".into();
        status["later"] = json!({ "depth": 1 });
        status["engines"][0]["later"] = 1.into();
        let time = status["conditions"][0]["lastTransitionTime"].clone();
        status["conditions"].as_array_mut().unwrap().push(json!({
            "type": "LaterAvailable", "status": "True", "reason": "Later", "message": "it is", "lastTransitionTime": time,
        }));
    });
}

/// A child as a newer version applies it.
fn with_more(child: &Object) -> Object {
    let mut value = child.value.clone();
    for field in ["uid", "resourceVersion", "managedFields", "generation", "creationTimestamp"] {
        value["metadata"].as_object_mut().unwrap().remove(field);
    }
    value.as_object_mut().unwrap().remove("status");
    value["metadata"]["annotations"][MARK] = "x".into();
    value["metadata"]["labels"][MARK] = "x".into();
    match child.key.kind {
        Kind::Deployment => {
            let pod = &mut value["spec"]["template"]["spec"];
            let container = &mut pod["containers"][0];
            container["args"].as_array_mut().unwrap().push("--later".into());
            container["env"].as_array_mut().unwrap().push(json!({ "name": "PORTAL_LATER", "value": "x" }));
            container["volumeMounts"].as_array_mut().unwrap().push(json!({ "name": "later", "mountPath": "/later" }));
            pod["volumes"].as_array_mut().unwrap().push(json!({ "name": "later", "emptyDir": {} }));
            pod["shareProcessNamespace"] = true.into();
        }
        Kind::Service => {
            // The API server has chosen it.
            value["spec"].as_object_mut().unwrap().retain(|name, field| name != "clusterIP" || field == "None");
            let port = json!({ "name": "later", "port": 9999, "protocol": "TCP", "targetPort": "later" });
            value["spec"]["ports"].as_array_mut().unwrap().push(port);
        }
        Kind::ServiceAccount => value["imagePullSecrets"] = json!([{ "name": "later" }]),
        _ => {}
    }
    Object::from_value(child.key.kind, value)
}

fn status(scene: &Scene) -> Value {
    scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap().value["status"].clone()
}

#[test]
fn an_older_operator_takes_over_what_a_newer_one_has_made() {
    for spec in [json!({}), json!({ "mode": "split", "audit": { "enabled": true } })] {
        let mut before = Scene::new(running(spec.clone()));
        before.settle();
        let mut world = running(spec.clone());
        newer_version(&mut world);
        // The pods that the older one does not know are replaced, and what they are asked for is not its fault.
        world.is_harmed = true;
        let mut scene = Scene::new(world);
        scene.settle_for(700);
        scene.assert_ready("default", "False", "FieldsNotKnown");
        assert_eq!(scene.children("default"), before.children("default"), "every child is as this version makes it");
        let told = status(&scene);
        assert_eq!(told["operatorVersion"], scene.world().operator.version.as_str());
        assert!(!told["conditions"].to_string().contains("LaterAvailable"), "{told:#}");
        let writes = scene.world().writes;
        scene.run(3600);
        assert_eq!(scene.world().writes, writes, "nobody has anything to do");
        scene.apply("default", spec);
        scene.settle();
        scene.assert_ready("default", "True", "Ready");
    }
}

#[test]
fn an_older_operator_leaves_what_it_cannot_read_and_lets_it_go() {
    let mut world = running(json!({}));
    let before = Scene::new(world.again()).children("default");
    world.edit(&Key::cluster(Kind::PortalInstance, "default"), |value| value["spec"]["mode"] = "sharded".into());
    let mut scene = Scene::new(world);
    scene.settle();
    scene.assert_ready("default", "False", "SpecNotUnderstood");
    assert_eq!(scene.children("default"), before);
    scene.world().delete(&Key::cluster(Kind::PortalInstance, "default"), false);
    scene.settle();
    assert_eq!((scene.ready("default").0.as_str(), scene.children("default").len()), ("gone", 0));
}
