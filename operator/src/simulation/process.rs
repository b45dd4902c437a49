//! An operator: what a process of it knows and remembers, and what it does when it looks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use portal_cluster::metrics::Registry;
use portal_crds::RbacMode;

use super::world::{Believed, Time, World};
use crate::{
    certificates::fingerprint,
    desired::{desired, engines},
    executor::{Error, Executor, Server},
    instance::{Engine, Instance},
    metrics::OperatorMetrics,
    names::{MANAGED_BY, engine},
    needs::{Needs, Rules},
    object::{Key, Kind, Object},
    observed::{Memory, Observed},
    permissions::{Permissions, Verdicts},
    plan::{Plan, Step},
    probe::Answer,
    request::Request,
    store::{Source, SourceState, Store},
    view::{self, Shown},
    watches::is_of_others,
};

/// What the rules of an instance need, and what that was worked out from.
type KnownNeeds = (Rc<Rules>, Basis, Option<Needs>);

/// A process of the operator.
pub(super) struct Process {
    pub(super) desk: Desk,
    pub(super) store: Store,
    /// How far each watch has told what happened.
    pub(super) told: BTreeMap<Source, usize>,
    /// Watches that tell nothing.
    pub(super) silent: BTreeMap<Source, Time>,
    pub(super) memories: BTreeMap<String, Memory>,
    pub(super) shown: BTreeMap<String, Shown>,
    /// The rules that it knows. None while it has not listed them.
    pub(super) rules: Option<Rc<Rules>>,
    /// What it tells of rules in each instance.
    pub(super) verdicts: BTreeMap<String, Verdicts>,
    executor: Executor<Desk>,
    /// What the rules need, and what that was worked out from.
    needs: BTreeMap<String, Option<KnownNeeds>>,
}

/// What needs are worked out from: which rules, which version of the instance and of its ConfigMaps, and which sets of pods there are.
#[derive(PartialEq)]
struct Basis {
    rules: usize,
    uid: String,
    generation: i64,
    config_maps: Vec<String>,
    engines: Vec<Engine>,
}

/// Where the requests of a process go, and what happens to them on the way.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) way: Rc<RefCell<Way>>,
}

/// What happens to requests.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Until when the process thinks that it holds the Lease.
    pub(super) holds_until: Time,
    /// Whether it is dead.
    pub(super) is_dead: bool,
    /// It dies after so many writes, or loses the answer to that one.
    pub(super) cut: Option<(usize, Cut)>,
    /// One in so many requests goes wrong.
    pub(super) fails_one_in: Option<u32>,
}

/// What happens to the request that is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cut {
    /// It is done, and the process dies.
    Dies,
    /// It is done, and the process never hears of it.
    LosesAnswer,
}

impl Process {
    pub(super) fn new(world: &Rc<RefCell<World>>) -> Process {
        let desk = Desk { world: Rc::clone(world), way: Rc::default() };
        let store = Store::default();
        let executor = Executor {
            server: desk.clone(),
            store: store.clone(),
            operator: super::world::operator_settings(),
            metrics: OperatorMetrics::register(&Registry::new()),
        };
        let (told, silent, memories, shown, verdicts, needs) = Default::default();
        Process { desk, store, told, silent, memories, shown, rules: None, verdicts, executor, needs }
    }

    fn world(&self) -> std::cell::RefMut<'_, World> {
        self.desk.world.borrow_mut()
    }

    /// The watches that this process has.
    pub(super) fn sources(&self) -> Vec<Source> {
        let operator = &self.executor.operator;
        let mut sources = vec![Source::cluster(Kind::PortalInstance)];
        let served = self.world().served.clone();
        for instance in self.store.select(|object| object.key.kind == Kind::PortalInstance).values() {
            if let Ok(instance) = Instance::try_from(&**instance) {
                sources.extend(view::sources(&instance, operator, &served));
            }
        }
        sources.sort();
        sources.dedup();
        sources
    }

    /// Lists and hears everything that there is to know, but for watches that are silent.
    pub(super) fn catch_up(&mut self) {
        // Instances that are heard of bring further watches.
        for _ in 0..2 {
            for source in self.sources() {
                self.hear(&source, usize::MAX);
            }
        }
        let rules = Rc::clone(&self.world().rules);
        self.rules = Some(rules);
    }

    /// A watch tells what happened next, at most so many things. One that has not begun lists.
    pub(super) fn hear(&mut self, source: &Source, most: usize) {
        if self.silent.contains_key(source) {
            return;
        }
        let Some(told) = self.told.get(source).copied() else {
            let end = self.world().log.len();
            return self.list(source, end);
        };
        if self.is_refused(source) {
            return self.store.refuse(source, format!("may not list {}", source.kind));
        }
        if matches!(self.store.state(source), SourceState::Refused(_)) {
            let end = self.world().log.len();
            return self.list(source, end);
        }
        let changes: Vec<_> = self.world().log.iter().skip(told).cloned().collect();
        let mut heard = 0;
        for (number, change) in changes.into_iter().enumerate() {
            if heard >= most {
                self.told.insert(source.clone(), told + number);
                return;
            }
            if !source.covers(&change.key) {
                continue;
            }
            heard += 1;
            self.tell(source, change.before.as_deref(), change.after.as_deref());
        }
        let end = self.world().log.len();
        self.told.insert(source.clone(), end);
    }

    fn tell(&self, source: &Source, before: Option<&Object>, after: Option<&Object>) {
        let seen = |object: &&Object| is_of_others(source.kind) || object.label(MANAGED_BY.0) == Some(MANAGED_BY.1);
        match (after.filter(seen), before.filter(seen)) {
            (Some(after), _) => self.store.set(after.clone()),
            (None, Some(before)) => self.store.remove(before),
            (None, None) => {}
        }
    }

    /// A watch lists what was there after so many things had happened.
    pub(super) fn list(&mut self, source: &Source, at: usize) {
        self.told.insert(source.clone(), at);
        if self.is_refused(source) {
            return self.store.refuse(source, format!("may not list {}", source.kind));
        }
        let mut objects = BTreeMap::new();
        for change in self.world().log.iter().take(at).filter(|change| source.covers(&change.key)) {
            match &change.after {
                Some(after) => drop(objects.insert(change.key.clone(), after.clone())),
                None => drop(objects.remove(&change.key)),
            }
        }
        let seen = |object: &Object| is_of_others(source.kind) || object.label(MANAGED_BY.0) == Some(MANAGED_BY.1);
        let objects = objects.into_values().filter(|object| seen(object)).map(|object| (*object).clone());
        self.store.set_all(source, objects.collect());
    }

    fn is_refused(&self, source: &Source) -> bool {
        let world = self.world();
        let is_granted =
            |namespace: &String| world.grants.contains(namespace) || *namespace == world.operator.namespace;
        source.namespace.as_ref().is_some_and(|namespace| !is_granted(namespace))
    }

    /// Looks after all instances, once. Returns when to look again.
    pub(super) fn look(&mut self) -> Option<Timestamp> {
        let names: Vec<String> = self
            .store
            .select(|object| object.key.kind == Kind::PortalInstance)
            .into_keys()
            .map(|key| key.name)
            .collect();
        self.memories.retain(|name, _| names.contains(name));
        names.iter().filter_map(|name| self.look_after(name)).min()
    }

    /// Looks after an instance, as its caretaker does.
    fn look_after(&mut self, name: &str) -> Option<Timestamp> {
        let object = self.store.get(&Key::cluster(Kind::PortalInstance, name))?;
        let instance = Instance::try_from(&*object).unwrap_or_else(|error| self.world().fail(&error));
        let now = self.world().now();
        let elapsed = self.world().elapsed;
        if self.desk.way.borrow().holds_until <= elapsed {
            self.memories.remove(name);
            return None;
        }
        let operator = self.executor.operator.clone();
        let served = self.world().served.clone();
        let sources = view::sources(&instance, &operator, &served);
        if !sources.iter().all(|source| self.store.state(source) != SourceState::Listing) {
            return None;
        }
        let shown = self.shown.entry(name.to_owned()).or_default();
        for pod in view::pods_to_ask(&instance, &self.store, now, shown) {
            let world = self.desk.world.borrow();
            let shows = world.pods.get(pod.uid()).filter(|pod| pod.dead_until <= world.elapsed);
            shown.insert(pod.uid().to_owned(), (shows.and_then(|pod| fingerprint(pod.shown.as_ref()?)), now));
        }
        let mut memory = self.memories.remove(name).unwrap_or_default();
        let times = (now, self.desk.uptime());
        let mut observed =
            view::observe(&instance, &self.store, &sources, &operator, times, served, shown, &mut memory);
        let needs = self.needs(&instance, &observed);
        if let Some(needs) = &needs {
            memory.needs(needs, &instance, &observed);
            observed.memory.needed = memory.needed.clone();
            let asked = needs.grants.keys().chain(memory.needed.keys().map(|(_, need)| need));
            // Nobody grants anything by hand.
            let is_auto = instance.spec.rbac.mode == RbacMode::Auto;
            observed.held = asked.map(|need| (need.clone(), is_auto && self.world().holds(need))).collect();
            for (layer, grants) in &needs.engines {
                let lately = memory.needed.keys().filter(|(of, _)| of == layer).map(|(_, need)| need.clone());
                let believed = Believed {
                    generation: instance.generation,
                    needed: grants.keys().cloned().collect(),
                    lately: lately.collect(),
                };
                self.desk.world.borrow_mut().believed.insert(engine(name, layer), believed);
            }
        }
        let plan = desired(&instance, needs.as_ref(), &observed, &operator);
        self.check_plan(&instance, &plan);
        let is_done = self.executor.execute(Some(&instance), &observed, &plan, &mut memory).now_or_never();
        let is_done = is_done.expect("nothing is waited for");
        let failed = memory.failure.as_ref().map(|failure| failure.until);
        if let Some(needs) = &needs {
            let permissions = Permissions::judge(&instance, needs, &observed);
            let verdicts = Verdicts::new(&instance, needs, &permissions);
            let verdicts = verdicts.by_roles(&instance, &permissions, &observed, memory.failure.as_ref());
            self.verdicts.insert(name.to_owned(), verdicts);
        }
        self.memories.insert(name.to_owned(), memory);
        if is_done { plan.look_again } else { failed }
    }

    /// What the rules need, worked out again only if something of it has changed.
    fn needs(&mut self, instance: &Instance, observed: &Observed) -> Option<Needs> {
        let rules = self.rules.clone()?;
        let config_maps = instance.spec.bootstrap_rules.config_maps.iter().map(|name| {
            let found = observed.get(&Key::namespaced(Kind::ConfigMap, instance.namespace(), name));
            found.map(|found| found.resource_version().to_owned()).unwrap_or_default()
        });
        let engines = engines(instance, observed);
        let basis = Basis {
            rules: Rc::as_ptr(&rules) as usize,
            uid: instance.uid.clone(),
            generation: instance.generation,
            config_maps: config_maps.collect(),
            engines: engines.clone(),
        };
        let known = self.needs.entry(instance.name.clone()).or_default();
        if known.as_ref().is_none_or(|(_, before, _)| *before != basis) {
            let needs = rules.needs(instance, &engines, |key| observed.get(key));
            *known = Some((rules, basis, needs));
        }
        known.as_ref().and_then(|(_, _, needs)| needs.clone())
    }

    fn check_plan(&self, instance: &Instance, plan: &Plan) {
        let world = self.world();
        let is_status = |step: &Step| matches!(step, Step::Status(_));
        if instance.is_paused && !instance.is_deleted && !plan.steps.iter().all(is_status) {
            world.fail(&format!("{} is paused, and yet: {:?}", instance.name, plan.steps));
        }
        // No watch tells what the probe has found out.
        let soon = world.now() + SignedDuration::from_secs(1);
        if plan.steps.iter().any(|step| !step.is_write()) && plan.look_again.is_none_or(|moment| moment > soon) {
            world
                .fail(&format!("{} asks, and what is answered is not looked at: {:?}", instance.name, plan.look_again));
        }
        if plan.look_again.is_none_or(|moment| moment <= world.now()) {
            world.fail(&format!("{} would be looked after for ever: {:?}", instance.name, plan.look_again));
        }
    }
}

impl Server for Desk {
    fn now(&self) -> Timestamp {
        self.world.borrow().now()
    }

    fn uptime(&self) -> Duration {
        Duration::from_secs(self.world.borrow().elapsed.unsigned_abs())
    }

    async fn act(&self, request: &Request) -> Result<Option<Object>, Error> {
        let (mut way, mut world) = (self.way.borrow_mut(), self.world.borrow_mut());
        if way.is_dead || way.holds_until <= world.elapsed {
            return Err(Error::NotHeld);
        }
        let fault = way.fails_one_in.filter(|one_in| world.random.u32(..*one_in) == 0).map(|_| world.random.u32(..6));
        let refused = match fault {
            Some(0) => Some(Error::Api("conflict".to_owned(), 409)),
            Some(1) => Some(Error::Api("too many requests".to_owned(), 429)),
            Some(2) => Some(Error::Api("internal error".to_owned(), 500)),
            Some(3) => Some(Error::TimedOut),
            _ => None,
        };
        if let Some(error) = refused {
            let key = request.key().to_string();
            world.tell(format!("fault: {key}: {error}"));
            return Err(error);
        }
        let writes = world.writes;
        let answer = world.request(request);
        world.check();
        world.follow_rights();
        let is_written = world.writes > writes;
        if let Some((left, cut)) = way.cut.as_mut().filter(|_| is_written) {
            *left -= 1;
            let cut = *cut;
            if *left == 0 {
                way.cut = None;
                world.tell(format!("cut: {cut:?}"));
                way.is_dead = cut == Cut::Dies;
                return Err(if way.is_dead { Error::NotHeld } else { Error::TimedOut });
            }
        }
        match answer {
            Ok(_) if fault == Some(4) => {
                world.tell("fault: the answer is lost");
                Err(Error::TimedOut)
            }
            Ok(_) if fault == Some(5) => {
                world.tell("fault: the process dies");
                way.is_dead = true;
                Err(Error::NotHeld)
            }
            Ok(answer) => Ok(answer),
            Err((code, said)) => {
                world.tell(format!("refused: {code} {said}"));
                Err(Error::Api(said, code))
            }
        }
    }

    async fn probe(&self, instance: &str) -> Answer {
        let mut world = self.world.borrow_mut();
        let answer = world.probe(instance);
        world.tell(format!("operator: probe {instance}: {answer:?}"));
        answer
    }
}
