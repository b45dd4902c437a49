//! Histories of what engines may do: rules, ceilings, namespaces and instances change in any order, requests fail, operators die and hear
//! late. At every step each account has what its rules need within the bounds, and nothing above them; in the end it has just that.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use portal_core::rule::source::RuleId;
use portal_test_kit::share::seeds;
use serde_json::{Value, json};

use super::{
    fault_points::running,
    histories::{self, events},
    invariants::rights::is_base,
    process::Process,
    scene::Scene,
    world::{Time, World, rights_of},
};
use crate::{
    instance::Instance,
    names::{LAYERS, engine},
    needs::Rules,
    object::{Key, Kind, Object},
    permissions::{Causes, Need, Verdicts, has_everybody},
};

/// What is followed from step to step.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    basis: Option<Basis>,
    /// How much had happened when it was last looked, and when that was.
    looked: (usize, Time),
    /// When somebody last changed what there should be.
    since: Time,
    /// What each account needs, within the bounds.
    needed: BTreeMap<String, BTreeSet<Need>>,
    /// What an account was given of that, since when it has not stopped to need it. Nothing of it may be taken away.
    active: BTreeSet<(String, Need)>,
}

/// What there should be follows from this.
#[derive(Clone)]
struct Basis {
    rules: Rc<Rules>,
    instances: Vec<(String, i64, bool)>,
    namespaces: Vec<(String, bool)>,
    ceiling: BTreeSet<(&'static str, &'static str)>,
}

/// How long an operator may take to follow, with requests that fail and others that take over.
const LATE: Time = 300;

/// How long a right stays that nobody needs any more.
const GRACE: Time = 90;

/// The rules that come and go. Those of a namespace go with it.
const RULES: [(&str, &[&str]); 10] = [
    ("judges", &["match: {gvk: [{kind: Pod}]}", "match: {gvk: [{kind: ConfigMap}, {group: apps, kind: Deployment}]}"]),
    ("audits", &["match: {gvk: [{kind: Service}]}\n  mode: [audit]", "match: {gvk: [{kind: Pod}]}\n  mode: [audit]"]),
    ("refuses", &["match: {gvk: [{kind: Node}]}\n  mode: [admission]"]),
    (
        "asks",
        &[
            "match: {gvk: [{kind: Pod}]}\n  mode: [admission]\n  rule: len(cluster.services.list(metadata.namespace)) > 9",
        ],
    ),
    (
        "budgets",
        &["match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.poddisruptionbudgets.list(metadata.namespace)) > 9"],
    ),
    (
        "afresh",
        &["match: {gvk: [{kind: Pod}]}\n  rule: len(consistentCluster.configmaps.list(metadata.namespace)) > 9"],
    ),
    // Nobody has this by default.
    ("secrets", &["match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.secrets.list(metadata.namespace)) > 9"]),
    // There may be no such namespace.
    ("elsewhere", &["match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.services.list('crew')) > 9"]),
    ("shop/own", &["match: {gvk: [{kind: ConfigMap}]}", "match: {gvk: [{kind: Pod}]}\n  mode: [admission]"]),
    ("crew/asks", &["match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.resourcequotas.list('crew')) > 9"]),
];

/// What the ceiling may have, or not.
const BOUNDED: [(&str, &str); 7] = [
    ("", "services"),
    ("", "pods"),
    ("", "configmaps"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("apps", "deployments"),
    ("policy", "poddisruptionbudgets"),
];

/// The namespaces of rules.
const PLACES: [&str; 2] = ["shop", "crew"];

#[test]
fn rights_follow_rules_and_ceilings_whatever_happens() {
    for seed in seeds(100, 1000) {
        let told = std::panic::catch_unwind(|| history(seed));
        if let Err(panic) = told {
            eprintln!("PORTAL_SEED={seed} PORTAL_SEEDS=1");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_rule_that_looks_where_no_namespace_is_says_so_until_there_is_one() {
    const LOOKS: &str =
        "match: {gvk: [{kind: Pod}]}\n  mode: [admission]\n  rule: len(cluster.services.list('crew')) > 9";
    let id = RuleId::parse("elsewhere");
    let crew = Key::cluster(Kind::Namespace, "crew");
    let rbac = |scene: &Scene| {
        let instance = scene.world().get(&Key::cluster(Kind::PortalInstance, "default")).unwrap();
        let conditions = instance.value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|found| found["type"] == "RBACReady").unwrap_or_default();
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    };
    let mut scene = Scene::new(running(json!({})));
    scene.world().set_rule("elsewhere", Some(LOOKS));
    for _ in 0..2 {
        scene.settle();
        let told = scene.verdicts("default").denied[&id].clone();
        assert_eq!(
            told,
            "the engine may not get, list, watch services in namespace crew, which the rule needs; there is no namespace crew, where \
             the role would be: `kubectl create namespace crew`, and the rule takes effect by itself"
        );
        let (reason, message) = rbac(&scene);
        assert_eq!(reason, "PermissionRefused");
        assert!(message.contains("rule elsewhere: get, list, watch services in namespace crew"), "{message}");
        scene.assert_ready("default", "True", "Ready");
        scene.world().make(Kind::Namespace, json!({ "metadata": { "name": "crew" } }));
        scene.settle();
        let verdicts = scene.verdicts("default");
        assert!(verdicts.denied.is_empty() && verdicts.pending.is_empty(), "{verdicts:?}");
        assert_eq!(rbac(&scene).0, "InSync");
        scene.check_verdicts("default");
        scene.world().delete(&crew, false);
    }
}

fn history(seed: u64) {
    let mut world = World::new(seed);
    world.is_steady = false;
    world.grants.insert(events::namespace_of("second").to_owned());
    world.make(Kind::Namespace, json!({ "metadata": { "name": events::namespace_of("second") } }));
    world.ledger = Some(Ledger::default());
    let mut scene = Scene::new(world);
    if scene.world().random.bool() {
        scene.add_process();
    }
    let one_in = scene.world().random.u32(6..60);
    scene.fails_one_in = Some(one_in);
    let rules = scene.world().random.u32(1..5);
    (0..rules).for_each(|_| rule(&mut scene.world()));
    instance(&mut scene.world());
    let count = scene.world().random.u32(8..24);
    for _ in 0..count {
        event(&mut scene);
        let seconds = [0, 2, 10, 40, 120, 400][scene.world().random.usize(..6)];
        scene.run_badly(seconds);
    }
    scene.calm();
    finish(&mut scene);
}

fn event(scene: &mut Scene) {
    let number = scene.world().random.u32(..26);
    match number {
        23 | 24 => return events::kill_operator(scene),
        25 => return events::cut_off(scene),
        _ => {}
    }
    let world = &mut *scene.world();
    match number {
        0..8 => rule(world),
        8..12 => ceiling(world),
        12..15 => place(world),
        15..20 => instance(world),
        20 => {
            let key = Key::cluster(Kind::PortalInstance, events::INSTANCES[world.random.usize(..2)]);
            world.tell(format!("user: deletes {key}"));
            world.delete(&key, false);
        }
        _ => by_hand(world),
    }
}

fn rule(world: &mut World) {
    let (name, texts) = RULES[world.random.usize(..RULES.len())];
    let place = name.split_once('/').map(|(namespace, _)| Key::cluster(Kind::Namespace, namespace));
    if place.is_some_and(|place| world.get(&place).is_none_or(|found| found.is_terminating())) {
        return;
    }
    let number = world.random.usize(..=texts.len());
    world.tell(format!("user: rule {name} is {:?}", texts.get(number)));
    world.set_rule(name, texts.get(number).copied());
}

fn ceiling(world: &mut World) {
    let right = BOUNDED[world.random.usize(..BOUNDED.len())];
    let is_held = world.random.bool();
    world.tell(format!("user: the operator may read {right:?}: {is_held}"));
    match is_held {
        true => drop(world.ceiling.insert(right)),
        false => drop(world.ceiling.remove(&right)),
    }
}

/// A namespace of rules comes, or goes with its rules.
fn place(world: &mut World) {
    let name = PLACES[world.random.usize(..2)];
    let key = Key::cluster(Kind::Namespace, name);
    if world.get(&key).is_none() {
        world.tell(format!("user: makes {key}"));
        world.make(Kind::Namespace, json!({ "metadata": { "name": name } }));
        return;
    }
    world.tell(format!("user: deletes {key}"));
    for (rule, _) in RULES.iter().filter(|(rule, _)| rule.starts_with(&format!("{name}/"))) {
        world.set_rule(rule, None);
    }
    world.delete(&key, false);
}

fn instance(world: &mut World) {
    let name = events::INSTANCES[usize::from(world.random.u32(..4) == 0)];
    let found = world.get(&Key::cluster(Kind::PortalInstance, name));
    if found.is_some_and(|found| found.is_terminating()) {
        return;
    }
    let (layers, bounds) = (layers(), bounds());
    let mut spec = layers[world.random.usize(..layers.len())].clone();
    spec["rbac"] = bounds[world.random.usize(..bounds.len())].clone();
    spec["namespace"] = events::namespace_of(name).into();
    match world.random.u32(..8) {
        0 => spec["watchedGvks"] = json!([{ "kind": "ConfigMap" }]),
        // No rule has the label.
        1 => spec["ruleSelector"] = json!({ "matchLabels": { "team": "a" } }),
        _ => {}
    }
    world.apply_instance(name, spec);
}

fn layers() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "audit": { "enabled": true } }),
        json!({ "mode": "split" }),
        json!({ "mode": "split", "audit": { "enabled": true } }),
        json!({ "mode": "split", "audit": { "enabled": true }, "admission": { "enabled": false } }),
        json!({ "audit": { "enabled": true }, "admission": { "enabled": false } }),
    ]
}

fn bounds() -> Vec<Value> {
    vec![
        json!({}),
        json!({}),
        json!({ "allowedResources": [{ "group": "", "resource": "secrets" }] }),
        json!({ "deniedResources": [{ "group": "", "resource": "services" }, { "group": "", "resource": "pods" }] }),
        json!({ "mode": "Manual" }),
        json!({ "mode": "Audit" }),
    ]
}

/// Somebody edits a role or deletes it, or a binding.
fn by_hand(world: &mut World) {
    let is_meant =
        |key: &&Key| matches!(key.kind, Kind::ClusterRole | Kind::Role | Kind::ClusterRoleBinding | Kind::RoleBinding);
    let keys: Vec<Key> = world.objects.keys().filter(is_meant).cloned().collect();
    if keys.is_empty() {
        return;
    }
    let key = keys[world.random.usize(..keys.len())].clone();
    let number = world.random.u32(..3);
    world.tell(format!("user: edits {key} ({number})"));
    let star = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    let field = if matches!(key.kind, Kind::ClusterRole | Kind::Role) { "rules" } else { "subjects" };
    match number {
        0 => world.delete(&key, false),
        1 => drop(world.edit(&key, |value| value[field] = json!([]))),
        _ if field == "rules" => drop(world.edit(&key, |value| value[field] = star)),
        _ => {}
    }
    let elapsed = world.elapsed;
    if let Some(ledger) = &mut world.ledger {
        ledger.since = elapsed;
        ledger.active.retain(|(account, _)| *account != key.name);
    }
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
        let (ready, expected) = (scene.ready(name), histories::expected(&scene.world(), name));
        if !expected.iter().any(|(status, reason)| ready == ((*status).to_owned(), (*reason).to_owned())) {
            scene.world().fail(&format!("{name} should be {expected:?}, and is {ready:?}"));
        }
        if ready.0 == "True" {
            scene.world().check_rights(name);
            scene.world().check_told(name);
            scene.check_verdicts(name);
        }
    }
}

impl Scene {
    /// What was found out of the rules of an instance by the operator that acts.
    fn verdicts(&self, name: &str) -> Verdicts {
        let acts = |process: &&Process| process.desk.way.borrow().holds_until > self.world().elapsed;
        let process = self.processes.iter().find(acts).expect("an operator acts");
        process.verdicts.get(name).cloned().unwrap_or_default()
    }

    /// A rule is told that it is granted what it needs if it has all of it, and otherwise that it is not.
    fn check_verdicts(&self, name: &str) {
        let verdicts = self.verdicts(name);
        let world = self.world();
        let instance = world.get(&Key::cluster(Kind::PortalInstance, name)).expect("it is ready");
        let instance = Instance::try_from(&*instance).expect("it is ready");
        // Who grants by hand is asked for, and nobody does in this world.
        let needs = world.rules.needs(&instance, &instance.engines(), |_| None).expect("rules are known");
        for rule in verdicts.rules.iter() {
            let lacks = needs.engines.iter().find_map(|(layer, grants)| {
                let given = world.given(&engine(name, layer));
                let is_given = |need: &Need| given.contains(need) || given.contains(&(need.0.clone(), None));
                let mut of_rule =
                    grants.iter().filter(|(need, rules)| rules.contains(&rule.id) && !has_everybody(need));
                of_rule.find(|(need, _)| !is_given(need)).map(|(need, _)| need.clone())
            });
            let told = verdicts.denied.get(&rule.id);
            if lacks.is_some() != told.is_some() || verdicts.pending.contains(&rule.id) {
                world.fail(&format!("{} lacks {lacks:?} in {name}, and is told {told:?}: {verdicts:?}", rule.id));
            }
        }
    }
}

impl World {
    /// Checks what each account has, after something has happened.
    pub(super) fn follow_rights(&mut self) {
        let Some(mut ledger) = self.ledger.take() else { return };
        // A look is dear, and most of what happens is about something else.
        let is_about = |key: &Key| key.namespace.is_none() || matches!(key.kind, Kind::Role | Kind::RoleBinding);
        let (seen, at) = ledger.looked;
        let is_same = ledger.basis.as_ref().is_some_and(|known| known.is_of(self))
            && self.log.iter().skip(seen).all(|change| !is_about(&change.key));
        if is_same && self.elapsed < at + 60 {
            self.ledger = Some(ledger);
            return;
        }
        ledger.looked = (self.log.len(), self.elapsed);
        if ledger.basis.as_ref().is_none_or(|known| !known.is(&self.basis())) {
            ledger.basis = Some(self.basis());
            ledger.since = self.elapsed;
            ledger.needed = self.all_needed();
        }
        let Ledger { since, needed, active, .. } = &mut ledger;
        let late = self.elapsed - *since;
        let mut still_active = BTreeSet::new();
        for (account, needed) in needed.iter() {
            let (instance, engine) = self.engine_of(account).expect("something is needed of it");
            let given = self.given(account);
            let has = |need: &Need| given.contains(need) || given.contains(&(need.0.clone(), None));
            let believed = self.believed.get(account).filter(|believed| believed.generation == instance.generation);
            // Of pods that go an operator may not hear in time.
            let is_asked_for = instance.engines().iter().any(|one| one.name == *account);
            for need in needed {
                let entry = (account.clone(), need.clone());
                if has(need) {
                    if active.contains(&entry) || believed.is_some_and(|believed| believed.needed.contains(need)) {
                        still_active.insert(entry);
                    }
                } else if active.contains(&entry) && is_asked_for && believed.is_some() {
                    self.fail(&format!("{account} loses {need:?}, which an active rule needs"));
                } else if is_asked_for && late > LATE {
                    self.fail(&format!("{account} lacks {need:?} for {late} s"));
                }
            }
            let surplus = |need: &&Need| !is_base(&engine, need);
            for need in given.iter().filter(surplus) {
                if late > LATE && !self.may_be_given(&instance, need) {
                    self.fail(&format!("{account} has {need:?} for {late} s, which is above the bounds"));
                }
                let everywhere = (need.0.clone(), None);
                if late > LATE + GRACE && !needed.contains(need) && !needed.contains(&everywhere) {
                    self.fail(&format!("{account} has {need:?} for {late} s, which no rule needs"));
                }
            }
        }
        *active = still_active;
        self.ledger = Some(ledger);
    }

    /// What each account of an instance needs within the bounds.
    fn all_needed(&self) -> BTreeMap<String, BTreeSet<Need>> {
        let instances = self.of_kind(Kind::PortalInstance).into_iter().filter(|found| !found.is_terminating());
        let accounts = instances.flat_map(|found| LAYERS.map(|layer| engine(&found.key.name, layer)));
        let needed = accounts.filter_map(|account| {
            let (instance, engine) = self.engine_of(&account)?;
            Some((account, self.needed(&instance, &engine)))
        });
        needed.collect()
    }

    /// What an account may do: what is in a role of its name that is bound to it.
    pub(super) fn given(&self, account: &str) -> BTreeSet<Need> {
        let is_bound = |role: &Object| {
            let kind = if role.key.kind == Kind::Role { Kind::RoleBinding } else { Kind::ClusterRoleBinding };
            let binding = self.objects.get(&Key { kind, ..role.key.clone() });
            let subjects = binding.and_then(|binding| binding.value["subjects"].as_array());
            subjects.is_some_and(|subjects| subjects.iter().any(|subject| subject["name"] == *account))
        };
        self.roles_of(account).filter(|role| is_bound(role)).flat_map(|role| rights_of(role)).collect()
    }

    fn basis(&self) -> Basis {
        let instances = self.of_kind(Kind::PortalInstance);
        let generation = |found: &Object| found.value["metadata"]["generation"].as_i64().unwrap_or_default();
        let namespaces = self.of_kind(Kind::Namespace);
        Basis {
            rules: Rc::clone(&self.rules),
            instances: instances
                .iter()
                .map(|found| (found.uid().to_owned(), generation(found), found.is_terminating()))
                .collect(),
            namespaces: namespaces.iter().map(|found| (found.uid().to_owned(), found.is_terminating())).collect(),
            ceiling: self.ceiling.clone(),
        }
    }

    /// The condition of an instance says whether something is refused.
    fn check_told(&self, name: &str) {
        let object = self.get(&Key::cluster(Kind::PortalInstance, name)).expect("it is ready");
        let instance = Instance::try_from(&*object).expect("it is ready");
        let needs = self.rules.needs(&instance, &instance.engines(), |_| None).expect("rules are known");
        let is_refused = |grants: &BTreeMap<Need, Causes>, need: &Need| {
            let is_everywhere = grants.contains_key(&(need.0.clone(), None));
            !self.may_be_given(&instance, need) || !self.is_place(need) && !is_everywhere
        };
        let mut needed = needs.engines.values().flat_map(|grants| grants.keys().map(move |need| (grants, need)));
        let is_lacking = needed.any(|(grants, need)| !has_everybody(need) && is_refused(grants, need));
        let expected = if is_lacking { "PermissionRefused" } else { "InSync" };
        let conditions = object.value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let told = conditions.into_iter().find(|found| found["type"] == "RBACReady").unwrap_or_default();
        if told["reason"] != expected {
            self.fail(&format!("RBACReady of {name} should be {expected}, and is {told}"));
        }
    }
}

impl Basis {
    /// Whether rules and ceiling are still those.
    fn is_of(&self, world: &World) -> bool {
        Rc::ptr_eq(&self.rules, &world.rules) && self.ceiling == world.ceiling
    }

    fn is(&self, other: &Basis) -> bool {
        Rc::ptr_eq(&self.rules, &other.rules)
            && (&self.instances, &self.namespaces, &self.ceiling)
                == (&other.instances, &other.namespaces, &other.ceiling)
    }
}
