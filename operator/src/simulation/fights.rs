//! Somebody who undoes what the operator does, again and again: nobody wins by being faster, and everybody can see it.

use serde_json::{Value, json};

use super::{fault_points::running, scene::Scene};
use crate::object::{Key, Kind};

/// How long the other one goes on.
const SECONDS: usize = 600;

/// In that time an object is set right at most so often: six times at once, and then after pauses of 20, 40, 80 and 160 s.
const REPAIRS: usize = 11;

/// Somebody changes a child every second for ten minutes.
#[track_caller]
fn check(key: &Key, change: fn(&mut Value)) {
    let mut scene = Scene::new(running(json!({})));
    scene.world().is_harmed = true;
    let mut repairs = 0;
    for _ in 0..SECONDS {
        scene.world().edit(key, change);
        let theirs = scene.world().get(key).map(|found| found.resource_version().to_owned());
        scene.step();
        repairs += usize::from(scene.world().get(key).map(|found| found.resource_version().to_owned()) != theirs);
        scene.world().advance(1);
    }
    assert!((5..=REPAIRS).contains(&repairs), "{key} was set right {repairs} times");
    let conditions = scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap();
    let told = conditions.value["status"]["conditions"].to_string();
    assert!(told.contains("again and again") && told.contains(&key.name), "{told}");
    // They stop, and after the last pause all is as it should be.
    scene.settle_for(700);
    scene.assert_ready("default", "True", "Ready");
    let mut fresh = Scene::new(running(json!({})));
    fresh.settle();
    assert_eq!(scene.children("default"), fresh.children("default"));
}

#[test]
fn a_fight_over_the_webhook_configuration_is_backed_off_and_told() {
    let key = Key::cluster(Kind::ValidatingWebhookConfiguration, "portal-default");
    check(&key, |value| {
        let entries = value["webhooks"].as_array_mut().into_iter().flatten();
        entries.for_each(|entry| entry["matchConditions"] = json!([{ "name": "never", "expression": "false" }]));
    });
}

#[test]
fn a_fight_over_a_deployment_is_backed_off_and_told() {
    let key = Key::namespaced(Kind::Deployment, "portal-system", "portal-default");
    check(&key, |value| value["spec"]["replicas"] = json!(1));
}

#[test]
fn a_fight_over_a_role_is_backed_off_and_told() {
    let key = Key::cluster(Kind::ClusterRole, "portal-default");
    check(&key, |value| value["rules"] = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]));
}

#[test]
fn a_child_that_has_lost_its_label_is_found_and_set_right() {
    for (kind, name) in [(Kind::ClusterRole, "portal-default"), (Kind::ClusterRoleBinding, "portal-default")] {
        let mut scene = Scene::new(running(json!({})));
        let before = scene.children("default");
        scene.world().is_harmed = true;
        scene.world().edit(&Key::cluster(kind, name), |value| value["metadata"]["labels"] = json!({}));
        scene.settle();
        scene.assert_ready("default", "True", "Ready");
        assert_eq!(scene.children("default"), before);
    }
}

#[test]
fn a_child_that_has_lost_its_labels_goes_with_its_instance() {
    let lost = [
        Key::namespaced(Kind::PodDisruptionBudget, "portal-system", "portal-default"),
        Key::namespaced(Kind::Service, "portal-system", "portal-default"),
        Key::namespaced(Kind::Secret, "portal-operator", "portal-default-ca"),
        Key::cluster(Kind::ClusterRole, "portal-default"),
    ];
    let mut scene = Scene::new(running(json!({})));
    scene.world().is_harmed = true;
    for key in &lost {
        assert!(scene.world().get(key).is_some(), "{key} is not there");
        scene.world().edit(key, |value| value["metadata"]["labels"] = json!({}));
    }
    scene.world().delete(&Key::cluster(Kind::PortalInstance, "default"), false);
    scene.settle();
    for key in &lost {
        assert!(scene.world().get(key).is_none(), "{key} is left");
    }
}
