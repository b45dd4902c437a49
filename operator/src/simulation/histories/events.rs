//! What happens in a history.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Weather, specs};
use crate::{
    names::{INSTANCE_LABEL, MANAGED_BY, PAUSED, dns_names},
    object::{Key, Kind},
    simulation::{certificates::supplied, rules::RULES, scene::Scene, world::World},
};

/// The instances that may be there.
pub(in super::super) const INSTANCES: [&str; 2] = ["default", "second"];

/// The namespace of an instance.
pub(in super::super) fn namespace_of(instance: &str) -> &'static str {
    if instance == "default" { "portal-system" } else { "portal-second" }
}

/// Something happens.
pub(super) fn event(scene: &mut Scene, weather: Weather) {
    let number = scene.world().random.u32(..if weather == Weather::Fair { 20 } else { 40 });
    match number {
        12 => return kill_operator(scene),
        13 => return cut_off(scene),
        _ => {}
    }
    let world = &mut *scene.world();
    let name = INSTANCES[usize::from(world.random.u32(..4) == 0)];
    let key = Key::cluster(Kind::PortalInstance, name);
    let namespace = Key::cluster(Kind::Namespace, namespace_of(name));
    match number {
        0..8 => apply(world, name),
        8..11 => rule(world),
        11 => delete(world, &key),
        14 | 15 => {
            let is_paused = world.random.bool();
            world.tell(format!("user: {name} is paused: {is_paused}"));
            world.edit(&key, |value| value["metadata"]["annotations"][PAUSED] = is_paused.to_string().into());
        }
        16 => {
            world.tell("user: what others serve changes");
            let kinds = [Kind::ServiceMonitor, Kind::PrometheusRule, Kind::Certificate];
            // What is stored of a kind goes with it.
            world.served = kinds.into_iter().filter(|_| world.random.u32(..4) > 0).collect();
            for kind in kinds.into_iter().filter(|kind| !world.served.contains(kind)).collect::<Vec<_>>() {
                for object in world.of_kind(kind) {
                    world.delete(&object.key, false);
                }
            }
        }
        17 | 18 => rule(world),
        19 => change_ceiling(world),
        20..26 => drift(world),
        26..29 => delete_child(world),
        29 | 30 => kill_pods(world),
        31 => {
            world.tell(format!("user: deletes {namespace}"));
            world.is_harmed = true;
            world.delete(&namespace, false);
        }
        32 => make_namespace(world, &namespace.name),
        33 | 34 => {
            let is_granted = world.random.bool();
            world.tell(format!("user: {} is granted: {is_granted}", namespace.name));
            world.is_harmed = true;
            match is_granted {
                true => drop(world.grants.insert(namespace.name)),
                false => drop(world.grants.remove(&namespace.name)),
            }
        }
        35 | 36 => {
            let hours = [-30, -2, 20, 24 * 6, 24 * 25, 24 * 260, 24 * 500][world.random.usize(..7)];
            world.tell(format!("user: sets all clocks by {hours} hours"));
            world.is_harmed = true;
            world.set_clocks(SignedDuration::from_hours(hours));
        }
        37 => {
            let secrets = world.of_kind(Kind::Secret).into_iter().filter(|found| found.key.name == "user-tls");
            if let Some(secret) = secrets.collect::<Vec<_>>().pop() {
                world.tell(format!("user: deletes {}", secret.key));
                world.is_harmed = true;
                world.delete(&secret.key, false);
            }
        }
        _ => kill_pods(world),
    }
}

pub(in super::super) fn kill_operator(scene: &mut Scene) {
    let number = scene.world().random.usize(..scene.processes.len());
    scene.world().tell(format!("operator {number} dies"));
    scene.processes[number].desk.way.borrow_mut().is_dead = true;
}

/// An operator hears nothing any more and cannot renew the Lease. What it sends arrives all the same.
pub(in super::super) fn cut_off(scene: &mut Scene) {
    let number = scene.world().random.usize(..scene.processes.len());
    scene.world().tell(format!("operator {number} is cut off"));
    if scene.processes.len() > 1 {
        scene.cut_off = vec![number];
    }
    let elapsed = scene.world().elapsed;
    let process = &mut scene.processes[number];
    process.silent = process.sources().into_iter().map(|source| (source, elapsed)).collect();
}

fn make_namespace(world: &mut World, name: &str) {
    if world.get(&Key::cluster(Kind::Namespace, name)).is_none() {
        world.tell(format!("user: makes the namespace {name}"));
        world.make(Kind::Namespace, json!({ "metadata": { "name": name } }));
    }
    world.grants.insert(name.to_owned());
}

fn apply(world: &mut World, name: &str) {
    let key = Key::cluster(Kind::PortalInstance, name);
    if world.get(&key).is_some_and(|found| found.is_terminating()) {
        return;
    }
    if world.get(&Key::cluster(Kind::Namespace, namespace_of(name))).is_none() && world.random.u32(..4) > 0 {
        make_namespace(world, namespace_of(name));
    }
    let specs = specs();
    let mut spec = specs[world.random.usize(..specs.len())].clone();
    spec["namespace"] = namespace_of(name).into();
    let secret = spec["certificates"]["secretName"].as_str().filter(|_| spec["certificates"]["source"] == "Secret");
    let is_place_there =
        world.get(&Key::cluster(Kind::Namespace, namespace_of(name))).is_some_and(|found| !found.is_terminating());
    if let Some(secret) = secret.filter(|_| is_place_there && world.random.u32(..4) > 0) {
        let key = Key::namespaced(Kind::Secret, namespace_of(name), secret);
        if world.get(&key).is_none() {
            let data = supplied(&dns_names(name, namespace_of(name)), world.now());
            let metadata = json!({ "name": secret, "namespace": namespace_of(name) });
            world.make(Kind::Secret, json!({ "metadata": metadata, "type": "kubernetes.io/tls", "data": data }));
        }
    }
    if spec["certificates"].is_null() {
        spec.as_object_mut().expect("an object").remove("certificates");
    }
    world.apply_instance(name, spec);
}

fn delete(world: &mut World, key: &Key) {
    let is_foreground = world.random.bool();
    world.tell(format!("user: deletes {key}, in the foreground: {is_foreground}"));
    world.delete(key, is_foreground);
    if world.random.bool() {
        world.delete(key, !is_foreground);
    }
}

fn rule(world: &mut World) {
    let (name, texts) = RULES[world.random.usize(..RULES.len())];
    let number = world.random.usize(..=texts.len());
    world.tell(format!("user: rule {name} is {:?}", texts.get(number)));
    world.set_rule(name, texts.get(number).copied());
}

/// A child of an instance.
fn any_child(world: &mut World) -> Option<Key> {
    let children =
        world.objects.values().filter(|object| object.label(MANAGED_BY.0).is_some() && object.key.kind != Kind::Pod);
    let keys: Vec<Key> = children.map(|object| object.key.clone()).collect();
    (!keys.is_empty()).then(|| keys[world.random.usize(..keys.len())].clone())
}

fn delete_child(world: &mut World) {
    let Some(key) = any_child(world) else { return };
    world.tell(format!("user: deletes {key}"));
    world.is_harmed = true;
    world.delete(&key, false);
}

fn kill_pods(world: &mut World) {
    world.tell("user: kills pods");
    world.is_harmed = true;
    for pod in world.of_kind(Kind::Pod) {
        match world.random.u32(..3) {
            0 => world.delete(&pod.key, false),
            1 => {
                let until = world.elapsed + world.random.i64(3..90);
                world.pods.get_mut(pod.uid()).expect("a pod is one").dead_until = until;
            }
            _ => {}
        }
    }
}

/// Somebody edits a child.
fn drift(world: &mut World) {
    let Some(key) = any_child(world) else { return };
    let number = world.random.u32(..8);
    world.tell(format!("user: edits {key} ({number})"));
    world.is_harmed = true;
    world.edit(&key, |value| match number {
        0 => value["metadata"]["labels"]["foreign.example/label"] = "x".into(),
        1 => {
            // Who takes this one away hides the object from watches.
            if let Some(labels) = value["metadata"]["labels"].as_object_mut() {
                labels.remove(MANAGED_BY.0);
            }
        }
        2 => {
            if let Some(labels) = value["metadata"]["labels"].as_object_mut() {
                labels.remove(INSTANCE_LABEL);
            }
        }
        3 => value["metadata"]["ownerReferences"] = json!([]),
        _ => edit(key.kind, value, number),
    });
}

fn edit(kind: Kind, value: &mut Value, number: u32) {
    match kind {
        Kind::Deployment => match number {
            4 => value["spec"]["replicas"] = json!(1),
            5 => value["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/missing:v0".into(),
            6 => value["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--fail-open"]),
            _ => value["spec"]["template"]["metadata"]["labels"] = json!({ "portal.io/instance": "x" }),
        },
        Kind::Service => value["spec"]["selector"] = json!({ "portal.io/instance": "nobody" }),
        Kind::Secret => match number {
            4 | 5 => value["data"] = json!({}),
            6 => value["data"]["tls.crt"] = "AAAA".into(),
            _ => value["data"]["ca.key"] = "AAAA".into(),
        },
        Kind::ClusterRole | Kind::Role => {
            value["rules"] = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }])
        }
        Kind::ClusterRoleBinding | Kind::RoleBinding => value["subjects"] = json!([]),
        Kind::PodDisruptionBudget => value["spec"]["minAvailable"] = json!(7),
        Kind::ServiceAccount => value["automountServiceAccountToken"] = true.into(),
        Kind::NetworkPolicy => value["spec"]["ingress"] = json!([]),
        Kind::ValidatingWebhookConfiguration => {
            let mut entries = value["webhooks"].as_array().cloned().unwrap_or_default();
            match number {
                4 => entries.iter_mut().for_each(|entry| {
                    entry["matchConditions"] = json!([{ "name": "never", "expression": "false" }]);
                }),
                5 => {
                    let mut foreign = entries[0].clone();
                    foreign["name"] = "foreign.example.com".into();
                    entries.push(foreign);
                }
                6 => entries[0]["clientConfig"]["caBundle"] = "AAAA".into(),
                _ => entries.truncate(1),
            }
            value["webhooks"] = entries.into();
        }
        _ => {}
    }
}

/// What the operator may hand on becomes more or less.
fn change_ceiling(world: &mut World) {
    let right = [("", "services"), ("policy", "poddisruptionbudgets"), ("", "resourcequotas"), ("", "secrets")];
    let right = right[world.random.usize(..4)];
    let is_held = world.random.bool();
    world.tell(format!("user: the operator may read {right:?}: {is_held}"));
    match is_held {
        true => drop(world.ceiling.insert(right)),
        false => drop(world.ceiling.remove(&right)),
    }
}
