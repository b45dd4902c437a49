//! Pods that go keep what they may do for as long as they run: those of a layer that is switched off, and those in whose place pods with
//! another account come. A pod that may no longer read what its rules look up refuses every request that it still gets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    scene::Scene,
    world::{Time, World},
};
use crate::{
    names::{LAYERS, engine},
    object::{Key, Kind},
    permissions::Need,
};

/// What rules need of admission, of audit, and in a namespace alone.
const RULES: [(&str, &str); 3] = [
    (
        "asks",
        "match: {gvk: [{kind: Pod}]}\n  mode: [admission]\n  rule: len(cluster.services.list(metadata.namespace)) > 9",
    ),
    ("audits", "match: {gvk: [{kind: Node}]}\n  mode: [audit]"),
    ("shop/asks", "match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.resourcequotas.list('shop')) > 9"),
];

/// How long pods take to end: longer than a right stays that nobody needs.
const SLOW: Time = 300;

/// The accounts of pods that are there.
fn accounts(world: &World) -> BTreeSet<String> {
    let account = |pod: &Value| pod["spec"]["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    world.of_kind(Kind::Pod).iter().map(|pod| account(&pod.value)).collect()
}

/// An instance is changed. The pods of these layers go, slowly, and keep all that they have until they are gone. Then nothing of it is left.
#[track_caller]
fn check(before: Value, after: Value, layers: &[&str]) {
    let mut world = World::new(0);
    for (name, says) in RULES {
        world.set_rule(name, Some(says));
    }
    let mut scene = Scene::new(world);
    scene.apply("default", before);
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    let names = layers.iter().map(|layer| {
        assert!(LAYERS.contains(layer));
        engine("default", layer)
    });
    let had: BTreeMap<String, BTreeSet<Need>> = names.map(|name| (name.clone(), scene.world().given(&name))).collect();
    assert!(had.keys().all(|account| accounts(&scene.world()).contains(account)));
    let ends = scene.world().elapsed + SLOW;
    scene.world().pods.values_mut().for_each(|pod| pod.ends = Some(ends));
    scene.apply("default", after);
    let mut alone: BTreeMap<&String, Time> = BTreeMap::new();
    for _ in 0..SLOW + 100 {
        scene.step();
        let world = scene.world();
        for account in accounts(&world).iter().filter_map(|account| had.get_key_value(account)) {
            let (account, had) = account;
            let given = world.given(account);
            if let Some(lost) = had.iter().find(|need| !given.contains(need)) {
                world.fail(&format!("{account} has lost {lost:?}, and its pods are there"));
            }
            let in_namespace = |kind| world.get(&Key::namespaced(kind, "portal-system", account)).is_some();
            if !in_namespace(Kind::ServiceAccount) {
                world.fail(&format!("{account} is gone, and its pods are there"));
            }
            if !in_namespace(Kind::Deployment) {
                *alone.entry(account).or_default() += 1;
            }
        }
        drop(world);
        scene.world().advance(1);
    }
    // Otherwise this has tried nothing.
    assert_eq!(Vec::from_iter(alone.keys().copied()), Vec::from_iter(had.keys()));
    assert!(alone.values().all(|seconds| *seconds > 150), "{alone:?}");
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    scene.world().check_rights("default");
    // Services and the webhook configuration have the name of one of them.
    let of_pods = [
        Kind::ServiceAccount,
        Kind::Deployment,
        Kind::ClusterRole,
        Kind::ClusterRoleBinding,
        Kind::Role,
        Kind::RoleBinding,
    ];
    let world = scene.world();
    let left = world.objects.keys().filter(|key| of_pods.contains(&key.kind) && had.contains_key(&key.name));
    assert_eq!(Vec::from_iter(left), [] as [&Key; 0]);
}

fn split() -> Value {
    json!({ "mode": "split", "audit": { "enabled": true } })
}

#[test]
fn pods_of_a_layer_that_is_switched_off_keep_their_rights() {
    check(split(), json!({ "mode": "split" }), &["audit"]);
    let only_audit = json!({ "mode": "split", "audit": { "enabled": true }, "admission": { "enabled": false } });
    check(split(), only_audit, &["admission"]);
}

#[test]
fn pods_whose_place_others_take_keep_their_rights() {
    let combined = json!({ "audit": { "enabled": true } });
    check(split(), combined.clone(), &["admission", "audit"]);
    check(combined, split(), &["combined"]);
    check(json!({}), json!({ "mode": "split" }), &["combined"]);
}
