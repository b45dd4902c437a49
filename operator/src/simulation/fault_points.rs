//! Every reconcile is cut after each of its writes: the process dies, or the answer is lost. The end is the same.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    certificates::supplied,
    scene::{CUTS, Scene},
    world::World,
};
use crate::{
    names::dns_names,
    object::{Key, Kind},
    store::Source,
};

/// A cluster with an instance that works, and rules.
pub(super) fn running(spec: Value) -> World {
    let mut scene = Scene::new(World::new(0));
    scene.world().set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
    scene.apply("default", spec);
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    scene.world().again()
}

/// A Secret of a user with a certificate for the webhook.
pub(super) fn supply(world: &mut World, name: &str) {
    let data = supplied(&dns_names("default", "portal-system"), world.now());
    let metadata = json!({ "name": name, "namespace": "portal-system" });
    world.make(Kind::Secret, json!({ "metadata": metadata, "type": "kubernetes.io/tls", "data": data }));
}

/// Cuts what comes of a change after each of its writes. Returns how many there are.
#[track_caller]
fn check(world: &World, change: impl Fn(&mut World)) -> usize {
    let begin = || {
        let scene = Scene::new(world.again());
        change(&mut scene.world());
        scene
    };
    let mut uncut = begin();
    uncut.settle();
    let (children, ready) = (uncut.children("default"), uncut.ready("default"));
    let writes = uncut.world().writes;
    for cut in CUTS {
        for number in 1..=writes {
            let mut scene = begin();
            scene.processes[0].desk.way.borrow_mut().cut = Some((number, cut));
            scene.settle();
            let same = (scene.children("default"), scene.ready("default")) == (children.clone(), ready.clone());
            if !same {
                let differs =
                    scene.children("default").into_iter().filter(|(key, value)| children.get(key) != Some(value));
                let differs: Vec<_> = differs.map(|(key, value)| format!("{key}: {value}")).collect();
                let text = format!("cut after {number} ({cut:?}) it is {:?}: {differs:?}", scene.ready("default"));
                scene.world().fail(&text);
            }
        }
    }
    writes
}

fn change_spec(spec: Value) -> impl Fn(&mut World) {
    move |world| world.apply_instance("default", spec.clone())
}

#[test]
fn an_instance_that_is_made_is_the_same_wherever_its_making_is_cut() {
    let mut world = World::new(0);
    world.set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
    let writes = check(&world, change_spec(json!({})));
    assert!((10..60).contains(&writes), "{writes}");
}

#[test]
fn a_spec_that_is_changed_leads_to_the_same_children_wherever_the_change_is_cut() {
    let world = running(json!({}));
    for spec in [
        json!({ "mode": "split" }),
        json!({ "admission": { "replicas": 3 } }),
        json!({ "image": "registry.example/portal:v2" }),
        json!({ "admission": { "failClosed": false, "replicas": 1 } }),
        json!({ "namespaceSelector": { "matchLabels": { "portal": "on" } } }),
        json!({ "networkPolicy": true, "monitoring": { "serviceMonitor": true, "prometheusRule": true } }),
        json!({ "admission": { "port": 9443, "hostNetwork": true } }),
        json!({ "scheduling": { "nodeSelector": { "a": "b" }, "spread": "Required" } }),
    ] {
        check(&world, change_spec(spec));
    }
}

#[test]
fn a_spec_that_is_taken_back_leads_to_the_same_children_wherever_that_is_cut() {
    for spec in [
        json!({ "mode": "split" }),
        json!({ "admission": { "replicas": 3 } }),
        json!({ "scheduling": { "nodeSelector": { "a": "b" } }, "networkPolicy": true }),
    ] {
        check(&running(spec), change_spec(json!({})));
    }
}

#[test]
fn certificates_of_another_source_come_without_a_gap_wherever_that_is_cut() {
    let mut world = running(json!({}));
    supply(&mut world, "user-tls");
    check(&world, change_spec(json!({ "certificates": { "source": "Secret", "secretName": "user-tls" } })));
    let of_cert_manager = json!({ "certificates": { "source": "CertManager", "issuerRef": { "name": "ca" } } });
    check(&world, change_spec(of_cert_manager.clone()));
    check(&running(of_cert_manager), change_spec(json!({})));
    let mut scene = Scene::new(World::new(0));
    supply(&mut scene.world(), "user-tls");
    scene.world().set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
    scene.apply("default", json!({ "certificates": { "source": "Secret", "secretName": "user-tls" } }));
    scene.settle();
    scene.assert_ready("default", "True", "Ready");
    let world = scene.world().again();
    check(&world, change_spec(json!({})));
}

#[test]
fn admission_goes_off_and_comes_back_wherever_that_is_cut() {
    // The definition refuses an instance without any layer: audit stands for the one that stays.
    let off = json!({ "admission": { "enabled": false }, "audit": { "enabled": true } });
    check(&running(json!({})), change_spec(off.clone()));
    let mut scene = Scene::new(running(json!({})));
    scene.apply("default", off);
    scene.settle();
    let world = scene.world().again();
    check(&world, change_spec(json!({})));
}

#[test]
fn rules_come_and_go_wherever_that_is_cut() {
    let world = running(json!({}));
    check(&world, |world| world.set_rule("namespaces", Some("match: {gvk: [{kind: Namespace}]}")));
    check(&world, |world| world.set_rule("shop/own", Some("match: {gvk: [{kind: ConfigMap}]}")));
    check(&world, |world| world.set_rule("pods", None));
}

#[test]
fn certificates_are_renewed_wherever_that_is_cut() {
    let world = running(json!({}));
    for days in [21, 250] {
        // The leaf, and the authority with it.
        check(&world, |world| {
            world.is_harmed = days > 30;
            world.elapsed += SignedDuration::from_hours(24 * days).as_secs();
        });
    }
}

#[test]
fn an_authority_is_replaced_in_its_time_wherever_that_is_cut() {
    // A leaf that lives as long as its authority is replaced with it, and nothing has expired by then.
    let world = running(json!({ "certificates": { "authorityDays": 300, "leafDays": 299 } }));
    let writes = check(&world, |world| world.elapsed += SignedDuration::from_hours(24 * 210).as_secs());
    assert!(writes > 5, "{writes}");
}

#[test]
fn an_instance_that_is_deleted_leaves_nothing_wherever_that_is_cut() {
    let instance = Key::cluster(Kind::PortalInstance, "default");
    for is_foreground in [false, true] {
        let world = running(json!({}));
        let delete = |world: &mut World| {
            world.tell("user: deletes the instance");
            world.delete(&instance, is_foreground);
        };
        check(&world, delete);
        let mut scene = Scene::new(world);
        delete(&mut scene.world());
        scene.settle();
        assert_eq!(scene.ready("default").0, "gone");
        assert_eq!(scene.children("default").keys().collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

#[test]
fn an_instance_that_is_deleted_before_it_works_leaves_nothing() {
    for seconds in 0..40 {
        let mut scene = Scene::new(World::new(0));
        scene.world().set_rule("pods", Some("match: {gvk: [{kind: Pod}]}"));
        scene.apply("default", json!({}));
        scene.run(seconds);
        scene.world().delete(&Key::cluster(Kind::PortalInstance, "default"), seconds % 2 == 0);
        scene.settle();
        assert_eq!(scene.ready("default").0, "gone");
        assert_eq!(scene.children("default").len(), 0);
    }
}

#[test]
fn a_process_that_starts_anew_writes_nothing() {
    let mut scene = Scene::new(running(json!({})));
    scene.settle();
    // That the probe was answered is told by whoever asked.
    assert_eq!(scene.world().writes, 0, "{}", scene.world().story.join("\n"));
}

#[test]
fn an_instance_that_is_gone_is_given_nothing_although_a_watch_still_shows_it() {
    let mut scene = Scene::new(running(json!({})));
    scene.add_process();
    scene.run(5);
    scene.processes[1].silent = [(Source::cluster(Kind::PortalInstance), 0)].into();
    scene.world().delete(&Key::cluster(Kind::PortalInstance, "default"), false);
    scene.run(60);
    assert_eq!(scene.ready("default").0, "gone");
    // The other one takes over. It sees that all children are gone, and not that the instance is.
    scene.cut_off = vec![0];
    scene.run(120);
    assert_eq!(scene.children("default").keys().collect::<Vec<_>>(), Vec::<&String>::new());
}
