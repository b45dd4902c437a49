//! Histories of a whole engine: objects, rules and namespaces change, watches lose, repeat and delay what they tell, the holder of the
//! Lease is killed, and whoever is told of findings is down for a while. Once it is quiet, what is found, what reports say and what fires is
//! what a fresh start on the same cluster says.
//!
//! What is real: the caches, the ledger of audit with its judges, the board, the layout of reports, the book of alerts and their receivers. The API
//! server, the Alertmanagers and the clock are simulated, and each step happens when the history says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use portal_core::selector::Selector;
use portal_test_kit::share;
use serde_json::{Value, json};

use crate::{
    audit::{
        Allowance,
        testing::{KINDS, NAMESPACES, Scene, object, rules},
    },
    sinks::{
        alertmanager::{Alerter, FakeAlertmanager, wanted},
        report::{Reporter, Reports},
    },
};

/// What is true, whoever knows of it.
#[derive(Default)]
struct ApiServer {
    objects: BTreeMap<Place, Value>,
    version: u64,
    rules: String,
}

/// Kind, namespace and name.
type Place = (String, Option<String>, String);

/// What a watch tells.
#[derive(Clone)]
enum Told {
    There(Value),
    Gone(Place),
}

/// A replica.
struct Replica {
    scene: Scene,
    /// What it has not been told yet, by kind.
    watches: BTreeMap<&'static str, VecDeque<Told>>,
    /// The kinds that it has to list: because it has just begun, or because its watch cannot go on where it was.
    unlisted: BTreeSet<&'static str>,
    /// The rules that it has not taken yet.
    rules: VecDeque<String>,
    /// Whether it knows all that it needs to judge everything.
    is_settled: bool,
    reporter: Reporter,
    alerter: Alerter,
}

struct World {
    random: Rng,
    api: ApiServer,
    replicas: Vec<Replica>,
    holder: usize,
    reports: Reports,
    alertmanagers: Vec<FakeAlertmanager>,
    second: u64,
    /// Until when each of them takes nothing.
    reports_down: u64,
    alerts_down: u64,
}

const REPLICAS: usize = 2;
const ALERTMANAGERS: usize = 2;

/// How many seconds there are after everything, so that what has ended was told, and ends where it was not.
const QUIET: u64 = 900;

fn place_of(object: &Value) -> Place {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &object["metadata"];
    let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
    (kind.unwrap_or_default(), text(&metadata["namespace"]), name.unwrap_or_default())
}

impl ApiServer {
    /// Makes or changes an object, and returns what is told of it.
    fn apply(&mut self, mut object: Value) -> Vec<Told> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let place = place_of(&object);
        let before = self.objects.insert(place.clone(), object.clone());
        // Another object of the same name can only be there after the first is gone.
        let is_other = before.is_some_and(|before| before["metadata"]["uid"] != object["metadata"]["uid"]);
        is_other.then_some(Told::Gone(place)).into_iter().chain([Told::There(object)]).collect()
    }

    fn delete(&mut self, place: &Place) -> Vec<Told> {
        self.objects.remove(place).map(|_| Told::Gone(place.clone())).into_iter().collect()
    }

    fn list(&self, kind: &str) -> Vec<Value> {
        self.objects.values().filter(|object| object["kind"] == kind).cloned().collect()
    }
}

impl Replica {
    fn new(api: &ApiServer, random: &mut Rng) -> Replica {
        let allowance = Allowance { times: random.u32(1..5), window: Duration::from_secs(random.u64(1..20)) };
        let mut scene = Scene::new(allowance, Selector::default());
        scene.settles_by_itself = false;
        let (reporter, alerter) = (Reporter::new(&scene.board), Alerter::new(&scene.board, ALERTMANAGERS, random));
        let kinds = KINDS.map(|(_, kind)| kind);
        Replica {
            scene,
            watches: kinds.map(|kind| (kind, VecDeque::new())).into(),
            unlisted: kinds.into(),
            rules: [api.rules.clone()].into(),
            is_settled: false,
            reporter,
            alerter,
        }
    }

    /// Is told of something by its watches, sooner or later.
    fn hear(&mut self, told: &[Told], random: &mut Rng) {
        for told in told {
            let kind = match told {
                Told::There(object) => object["kind"].as_str().unwrap_or_default(),
                Told::Gone((kind, ..)) => kind,
            };
            let kind = KINDS.map(|(_, kind)| kind).into_iter().find(|known| *known == kind).expect("it is one of ours");
            let watch = self.watches.get_mut(kind).expect("there is one for each kind");
            if !self.unlisted.contains(kind) {
                watch.push_back(told.clone());
                // A watch that was made anew may repeat the last.
                if random.u8(..6) == 0 {
                    watch.push_back(told.clone());
                }
            }
        }
    }

    /// Some events of a watch arrive.
    fn deliver(&mut self, kind: &str, count: usize) {
        let watch = self.watches.get_mut(kind).expect("there is one for each kind");
        for told in watch.drain(..count.min(watch.len())).collect::<Vec<_>>() {
            match told {
                Told::There(object) => self.scene.tell(&object),
                Told::Gone((kind, namespace, name)) => self.scene.delete(&kind, namespace.as_deref(), &name),
            }
        }
    }

    /// The watch of a kind cannot go on where it was: what it had to tell is lost.
    fn lose(&mut self, kind: &'static str) {
        self.watches.insert(kind, VecDeque::new());
        self.unlisted.insert(kind);
    }

    /// The API server refuses to tell of a kind. What it lets one see comes anew.
    fn refuse(&mut self, kind: &'static str) {
        self.lose(kind);
        self.scene.refuse(kind, true);
    }

    fn list(&mut self, kind: &'static str, api: &ApiServer) {
        self.unlisted.remove(kind);
        self.scene.refuse(kind, false);
        self.scene.list(kind, &api.list(kind));
    }

    fn take_rules(&mut self) {
        if let Some(rules) = self.rules.pop_front().filter(|rules| !rules.is_empty()) {
            self.scene.rules(&rules);
            if self.is_settled {
                self.scene.settle();
            }
        }
    }

    /// Notes whether everything is known that the start has waited for.
    fn note_start(&mut self) {
        if !self.is_settled && self.unlisted.is_empty() && self.rules.is_empty() {
            self.is_settled = true;
            self.scene.settle();
        }
    }

    /// Comes to the end of all that it has to do.
    fn quiet(&mut self, api: &ApiServer) {
        while !self.rules.is_empty() {
            self.take_rules();
        }
        for (_, kind) in KINDS {
            match self.unlisted.contains(kind) {
                true => self.list(kind, api),
                false => self.deliver(kind, usize::MAX),
            }
        }
        self.note_start();
        self.scene.quiet();
        assert!(*self.scene.board.is_complete().borrow());
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let api = ApiServer::default();
        let replicas = (0..REPLICAS).map(|_| Replica::new(&api, &mut random)).collect();
        let mut world = World {
            random,
            api,
            replicas,
            holder: 0,
            reports: Reports::default(),
            alertmanagers: (0..ALERTMANAGERS).map(|_| FakeAlertmanager::default()).collect(),
            second: 0,
            reports_down: 0,
            alerts_down: 0,
        };
        world.hold(0);
        world
    }

    /// A replica gets the Lease.
    fn hold(&mut self, holder: usize) {
        self.holder = holder;
        let Replica { reporter, alerter, .. } = &mut self.replicas[holder];
        reporter.begin(&self.reports);
        alerter.begin(self.second);
    }

    fn tell_all(&mut self, told: &[Told]) {
        for replica in &mut self.replicas {
            replica.hear(told, &mut self.random);
        }
    }

    fn step(&mut self) {
        let which = self.random.usize(..REPLICAS);
        let kind = KINDS[self.random.usize(..KINDS.len())].1;
        match self.random.u8(..32) {
            0..7 => {
                let told = self.api.apply(object(&mut self.random));
                self.tell_all(&told);
            }
            7..9 => {
                // A rule that cannot say without a Namespace leaves an alert as it is, which depends on what was before.
                let places = self.api.objects.keys().filter(|(kind, ..)| kind != "Namespace");
                if let Some(place) = self.random.choice(places.cloned().collect::<Vec<_>>()) {
                    let told = self.api.delete(&place);
                    self.tell_all(&told);
                }
            }
            9 => {
                let (name, team) = (NAMESPACES[self.random.usize(..2)], ["a", "b"][self.random.usize(..2)]);
                let metadata = json!({"name": name, "uid": name, "labels": {"team": team}});
                let told = self.api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
                self.tell_all(&told);
            }
            10 => {
                let rules = rules(&mut self.random).replace("\nmessage:", "\nalert: Wrong\nmessage:");
                if !rules.is_empty() {
                    self.api.rules.clone_from(&rules);
                    self.replicas.iter_mut().for_each(|replica| replica.rules.push_back(rules.clone()));
                }
            }
            11 => match self.random.bool() {
                true => self.replicas[which].lose(kind),
                false => self.replicas[which].refuse(kind),
            },
            12..15 => {
                if let Some(kind) = self.replicas[which].unlisted.first().copied() {
                    self.replicas[which].list(kind, &self.api);
                }
                self.replicas[which].note_start();
            }
            15 => self.replicas[which].take_rules(),
            16..20 => {
                let count = self.random.usize(1..6);
                self.replicas[which].deliver(kind, count);
            }
            20..24 => _ = self.replicas[which].scene.begin(),
            24..27 => {
                let scene = &mut self.replicas[which].scene;
                if let Some(place) = scene.in_hand.len().checked_sub(1) {
                    scene.end(self.random.usize(..=place));
                }
            }
            27 => match self.random.u8(..3) {
                // The holder is killed, and begins anew while the other one holds.
                0 => {
                    self.replicas[self.holder] = Replica::new(&self.api, &mut self.random);
                    self.hold((self.holder + 1) % REPLICAS);
                }
                // It gives the Lease away.
                1 => self.hold((self.holder + 1) % REPLICAS),
                // It gets it again, and does not know what others have done meanwhile.
                _ => self.hold(self.holder),
            },
            28 => match self.random.bool() {
                true => self.reports_down = self.second + self.random.u64(..60),
                false => self.alerts_down = self.second + self.random.u64(..60),
            },
            _ => {
                let seconds = self.random.u64(1..20);
                self.replicas[which].scene.now += Duration::from_secs(seconds);
                self.pass(seconds);
            }
        }
    }

    /// So many seconds pass for whoever is told.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            let down = if self.second < self.alerts_down { 1 } else { 0 };
            for (place, replica) in self.replicas.iter_mut().enumerate() {
                replica.alerter.work(self.second, place == self.holder, down, &mut self.alertmanagers);
            }
            let reporter = &mut self.replicas[self.holder].reporter;
            reporter.take();
            reporter.write_some(&mut self.reports, &mut self.random, self.second < self.reports_down);
        }
    }
}

/// A history. Returns how many results and alerts there were in the end.
fn history(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    for _ in 0..world.random.usize(50..400) {
        world.step();
    }
    for replica in &mut world.replicas {
        replica.quiet(&world.api);
    }
    (world.reports_down, world.alerts_down) = (0, 0);
    world.pass(QUIET);
    world.replicas[world.holder].reporter.write_all(&mut world.reports);

    let mut fresh = Replica::new(&world.api, &mut Rng::with_seed(0));
    fresh.quiet(&world.api);
    let mut reports = Reports::default();
    fresh.reporter.begin(&reports);
    fresh.reporter.write_all(&mut reports);
    let expected = fresh.scene.shown();
    for (place, replica) in world.replicas.iter().enumerate() {
        assert_eq!(replica.scene.shown(), expected, "seed {seed}: what replica {place} has found");
    }
    let (said, fires) = (reports.results(), wanted(&fresh.scene.board));
    assert_eq!(world.reports.results(), said, "seed {seed}: what reports say");
    for alertmanager in &world.alertmanagers {
        assert_eq!(alertmanager.firing(world.second), fires, "seed {seed}: what fires");
    }
    (said.len(), fires.len())
}

#[tokio::test]
async fn once_it_is_quiet_everybody_is_told_what_a_fresh_start_tells() {
    let (mut results, mut alerts, mut histories) = (0, 0, 0);
    for seed in share::seeds(40, 1_000) {
        let (more_results, more_alerts) = history(seed);
        (results, alerts, histories) = (results + more_results, alerts + more_alerts, histories + 1);
    }
    assert!(histories < 20 || (results > histories && alerts > histories), "{results} results, {alerts} alerts");
}
