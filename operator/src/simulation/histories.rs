//! Histories: whatever users, other programs and the network do, in any order, and operators whose views are late, old or twofold. At the end
//! all is as it should be, nothing further is written, and on the way nobody was locked out.

pub(super) mod events;

use portal_test_kit::share::seeds;
use serde_json::{Value, json};

use super::{
    scene::Scene,
    world::{Time, World},
};
use crate::{
    instance::Instance,
    names::PAUSED,
    object::{Key, Kind},
    store::Source,
};

/// How a history goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Weather {
    /// Users change what they want, operators come and go, views are late. No request may fail.
    Fair,
    /// Others also break what they can.
    Foul,
}

/// How long nothing must be written at the end: certificates settle for five minutes, and a fight is left for as long.
const QUIET: Time = 400;

/// No watch is silent for longer: it ends by itself, and whoever asks again hears everything.
const SILENT: Time = 240;

#[test]
fn a_history_in_fair_weather_ends_well_and_no_request_fails() {
    check(seeds(50, 500), Weather::Fair);
}

#[test]
fn a_history_in_foul_weather_ends_well() {
    check(seeds(50, 500), Weather::Foul);
}

fn check(seeds: std::ops::Range<u64>, weather: Weather) {
    for seed in seeds {
        let told = std::panic::catch_unwind(|| history(seed, weather));
        if let Err(panic) = told {
            eprintln!("PORTAL_SEED={seed} PORTAL_SEEDS=1, in {weather:?} weather");
            std::panic::resume_unwind(panic);
        }
    }
}

fn history(seed: u64, weather: Weather) {
    let mut world = World::new(seed);
    world.is_steady = false;
    let mut scene = Scene::new(world);
    if scene.world().random.bool() {
        scene.add_process();
    }
    let one_in = scene.world().random.u32(6..60);
    scene.fails_one_in = Some(one_in);
    let count = scene.world().random.u32(6..22);
    for _ in 0..count {
        events::event(&mut scene, weather);
        let seconds = [0, 2, 10, 40, 120][scene.world().random.usize(..5)];
        scene.run_badly(seconds);
        if scene.world().random.u32(..6) == 0 {
            scene.calm();
        }
    }
    scene.calm();
    finish(&mut scene);
}

/// What must be true in the end.
fn finish(scene: &mut Scene) {
    let writes = scene.world().writes;
    for _ in 0..10 {
        scene.world().advance(20);
        scene.step();
    }
    if scene.world().writes > writes {
        scene.world().fail("more is written although all is done");
    }
    for name in events::INSTANCES {
        let expected = expected(&scene.world(), name);
        let ready = scene.ready(name);
        if !expected.iter().any(|(status, reason)| ready == ((*status).to_owned(), (*reason).to_owned())) {
            let instance = scene.world().get(&Key::cluster(Kind::PortalInstance, name));
            let status = instance.map(|found| found.value["status"].to_string()).unwrap_or_default();
            scene.world().fail(&format!("{name} should be {expected:?}, and is {ready:?}: {status}"));
        }
        if ready.0 == "True" {
            scene.world().check_rights(name);
        }
        if ready.0 == "gone" {
            let namespace = events::namespace_of(name);
            let left: Vec<String> = scene.children(name).into_keys().collect();
            let is_granted = scene.world().grants.contains(namespace) && !scene.world().abandoned.contains(name);
            // Without rights there, what is in the namespace goes with it.
            let place = format!(" {namespace}/");
            if let Some(left) = left.iter().find(|left| is_granted || !left.contains(&place)) {
                scene.world().fail(&format!("{left} is left of {name}"));
            }
        }
    }
    differ(scene);
}

/// The same instances in a fresh cluster have the same children.
fn differ(scene: &Scene) {
    let mut fresh = World::new(0);
    {
        let world = scene.world();
        fresh.grants = world.grants.clone();
        fresh.ceiling = world.ceiling.clone();
        fresh.served = world.served.clone();
        fresh.written = world.written.clone();
        fresh.write_rules();
        for object in world.objects.values() {
            let is_of_user = object.key.name == "user-tls" || object.key.kind == Kind::Namespace;
            if is_of_user && !object.is_terminating() {
                let mut value = object.value.clone();
                value["metadata"] = json!({ "name": object.key.name, "namespace": object.key.namespace });
                fresh.make(object.key.kind, value);
            }
        }
        fresh.clocks_are_off = world.clocks_are_off + world.elapsed;
        for instance in world.of_kind(Kind::PortalInstance) {
            fresh.apply_instance(&instance.key.name, instance.value["spec"].clone());
        }
    }
    let mut fresh = Scene::new(fresh);
    fresh.settle();
    for name in events::INSTANCES {
        if scene.ready(name).0 != "True" {
            continue;
        }
        let (one, other) = (scene.children(name), fresh.children(name));
        for key in one.keys().chain(other.keys()) {
            if one.get(key) != other.get(key) {
                let text =
                    format!("{key} of {name} is\n{:?}\nand in a fresh cluster\n{:?}", one.get(key), other.get(key));
                scene.world().fail(&text);
            }
        }
    }
}

/// What the condition `Ready` of an instance may be in the end, by what is there.
pub(super) fn expected(world: &World, name: &str) -> Vec<(&'static str, &'static str)> {
    let Some(object) = world.get(&Key::cluster(Kind::PortalInstance, name)) else { return vec![("gone", "")] };
    let instance = Instance::try_from(&*object).unwrap();
    let spec = &instance.spec;
    let namespace = instance.namespace();
    if object.annotation(PAUSED) == Some("true") {
        return vec![("Unknown", "Paused")];
    }
    if instance.problem.is_some() {
        return vec![("False", "SpecNotUnderstood")];
    }
    if world.get(&Key::cluster(Kind::Namespace, namespace)).is_none() {
        return vec![("False", "NamespaceMissing")];
    }
    if !world.grants.contains(namespace) {
        return vec![("False", "NamespaceNotGranted")];
    }
    if spec.network.enabled {
        return vec![("False", "LayerNotAvailable")];
    }
    if !instance.unknown_fields.is_empty() {
        return vec![("False", "FieldsNotKnown")];
    }
    let secret = Key::namespaced(Kind::Secret, namespace, &instance.certificate_secret());
    if spec.certificates.source == portal_crds::CertificateSource::CertManager
        && !world.served.contains(&Kind::Certificate)
    {
        return vec![("False", "CertManagerMissing")];
    }
    if spec.certificates.source == portal_crds::CertificateSource::Secret && world.get(&secret).is_none() {
        return vec![("False", "SecretMissing")];
    }
    if spec.image.as_ref().is_some_and(|image| image.contains("missing")) {
        return vec![("False", "PodsNotReady")];
    }
    if spec.monitoring.service_monitor && !world.served.contains(&Kind::ServiceMonitor) {
        return vec![("False", "DefinitionsMissing")];
    }
    vec![("True", "Ready")]
}

impl Scene {
    /// Time goes by while views are late, old or twofold.
    pub(super) fn run_badly(&mut self, seconds: Time) {
        let end = self.world().elapsed + seconds;
        loop {
            for number in 0..self.processes.len() {
                self.hear_badly(number);
            }
            let pause = self.turn();
            let left = end - self.world().elapsed;
            if left <= 0 {
                break;
            }
            self.wait(pause.min(left).min(4));
        }
    }

    fn hear_badly(&mut self, number: usize) {
        let random = self.world().random.fork();
        let mut random = random;
        let elapsed = self.world().elapsed;
        let process = &mut self.processes[number];
        process.silent.retain(|_, since| elapsed - *since < SILENT);
        for source in process.sources() {
            let log = process.desk.world.borrow().log.len();
            match random.u32(..40) {
                0 => drop(process.silent.entry(source).or_insert(elapsed)),
                1 => drop(process.silent.remove(&source)),
                // A list, which is always of what is stored: no API server may tell an older one.
                2 => process.list(&source, log),
                // A watch that begins again where it was before.
                3 => rewind(&mut process.told, &source, random.usize(0..8)),
                4..10 => process.hear(&source, random.usize(0..3)),
                _ => process.hear(&source, usize::MAX),
            }
        }
        if random.u32(..3) > 0 {
            let rules = std::rc::Rc::clone(&process.desk.world.borrow().rules);
            process.rules = Some(rules);
        }
    }

    /// Everything comes to rest: the network is good, and everybody hears of everything.
    pub(super) fn calm(&mut self) {
        let fails_one_in = self.fails_one_in.take();
        self.cut_off.clear();
        for process in &mut self.processes {
            process.desk.way.borrow_mut().fails_one_in = None;
            process.silent.clear();
            for source in process.sources() {
                let end = process.desk.world.borrow().log.len();
                process.list(&source, end);
            }
        }
        self.world().tell("calm");
        self.settle_for(QUIET);
        self.fails_one_in = fails_one_in;
    }
}

fn rewind(told: &mut std::collections::BTreeMap<Source, usize>, source: &Source, by: usize) {
    if let Some(told) = told.get_mut(source) {
        *told = told.saturating_sub(by);
    }
}

/// What instances may say.
fn specs() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "mode": "split" }),
        json!({ "admission": { "replicas": 3 } }),
        json!({ "admission": { "replicas": 1, "failClosed": false } }),
        json!({ "image": "registry.example/portal:v2" }),
        json!({ "image": "registry.example/missing:v3" }),
        json!({ "admission": { "enabled": false }, "audit": { "enabled": true } }),
        json!({ "audit": { "enabled": true } }),
        json!({ "namespaceSelector": { "matchLabels": { "portal": "on" } } }),
        json!({ "certificates": { "source": "Secret", "secretName": "user-tls" } }),
        json!({ "certificates": { "source": "CertManager", "issuerRef": { "name": "ca" } } }),
        json!({ "certificates": { "source": "CertManager", "issuerRef": { "name": "ca" }, "secretName": "user-issued" } }),
        json!({ "certificates": { "authorityDays": 20, "leafDays": 5 } }),
        json!({ "networkPolicy": true, "monitoring": { "serviceMonitor": true } }),
        json!({ "scheduling": { "spread": "Required", "nodeSelector": { "disk": "fast" } } }),
        json!({ "admission": { "port": 9443, "excludeNamespaces": ["sandbox"] } }),
        json!({ "rbac": { "authorCheck": "Enforce" } }),
        // Only a newer version knows these.
        json!({ "mode": "sharded" }),
        json!({ "admission": { "patience": 3 } }),
    ]
}
