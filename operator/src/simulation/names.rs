//! Two instances that want the same names: one of them waits, nothing is fought over, and it goes on when the name is free.

use serde_json::{Value, json};

use super::{fault_points::running, scene::Scene};
use crate::{
    names::POD_SECURITY,
    object::{Key, Kind},
};

/// Time goes by until all is quiet. Then one instance runs, and the other one waits for it, or runs too.
#[track_caller]
fn check(scene: &mut Scene, runs: &str, other: &str, reason: &str) {
    scene.settle();
    scene.assert_ready(runs, "True", "Ready");
    scene.assert_ready(other, if reason == "Ready" { "True" } else { "False" }, reason);
    let children = scene.children(runs);
    let writes = scene.world().writes;
    scene.run(3600);
    assert_eq!(scene.world().writes, writes, "nobody has anything to do");
    assert_eq!(scene.children(runs), children);
}

fn split() -> Value {
    json!({ "mode": "split" })
}

#[test]
fn the_younger_of_two_that_need_a_name_waits_until_it_is_free() {
    let mut scene = Scene::new(running(split()));
    scene.settle();
    scene.world().advance(10);
    scene.apply("default-admission", json!({}));
    check(&mut scene, "default", "default-admission", "NameTaken");
    assert_eq!(scene.children("default-admission").len(), 0);
    scene.apply("default", json!({}));
    check(&mut scene, "default", "default-admission", "Ready");
}

#[test]
fn an_instance_that_runs_loses_nothing_to_an_older_one_that_is_changed() {
    let mut scene = Scene::new(running(json!({})));
    scene.settle();
    scene.world().advance(10);
    scene.apply("default-admission", json!({}));
    check(&mut scene, "default", "default-admission", "Ready");
    let before = scene.children("default");
    scene.apply("default", split());
    check(&mut scene, "default-admission", "default", "NameTaken");
    assert_eq!(scene.children("default"), before, "what ran before goes on");
    let key = Key::cluster(Kind::PortalInstance, "default-admission");
    scene.world().delete(&key, false);
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    assert!(scene.children("default") != before);
}

#[test]
fn pods_stay_as_they_are_while_their_namespace_forbids_the_network_of_the_node() {
    let mut scene = Scene::new(running(json!({})));
    scene.settle();
    let before = scene.children("default");
    let namespace = Key::cluster(Kind::Namespace, "portal-system");
    let label =
        |level: &'static str| move |value: &mut Value| value["metadata"]["labels"] = json!({ POD_SECURITY: level });
    scene.world().edit(&namespace, label("restricted"));
    scene.apply("default", json!({ "admission": { "hostNetwork": true } }));
    scene.settle();
    scene.assert_ready("default", "False", "HostNetworkForbidden");
    assert_eq!(scene.children("default"), before);
    scene.world().edit(&namespace, label("privileged"));
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    assert!(scene.children("default") != before);
}
