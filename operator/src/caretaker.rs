//! Looks after one instance: plans whenever something has changed, and does what the plan says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, future::join_all, stream};
use jiff::Timestamp;
use portal_cluster::{
    access::{Subject, is_allowed},
    holder::Holder,
    runtime::Runtime,
};
use portal_crds::RbacMode;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use crate::{
    announce::announce,
    desired::{self, desired},
    executor::{Executor, Server as _},
    instance::{Engine, Instance},
    metrics::InstanceName,
    names::engine,
    needs::Needs,
    object::{Key, Kind, Object},
    observed::{Memory, Observed},
    permissions::{Held, Need, Permissions, Verdicts, has_everybody},
    plan::{Plan, STATUS, Step},
    rule_status::RuleStatuses,
    shown,
    store::{Source, SourceState, Store},
    view::{self, Shown},
    watches::{Ceiling, SharedRules, Watching, are_synced},
};

/// What caretakers share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// What every part of a process is given.
    pub runtime: Runtime,
    /// The objects of the cluster.
    pub store: Store,
    /// The watches that instances need beside those that are always there.
    pub watching: Watching,
    /// The rules of the cluster.
    pub rules: SharedRules,
    /// What is said of them.
    pub statuses: RuleStatuses,
    /// Grows when what the operator may do itself has changed.
    pub ceiling: watch::Receiver<Ceiling>,
    /// Does steps.
    pub executor: Executor,
}

/// Looks after one instance.
pub(crate) struct Caretaker {
    surroundings: Surroundings,
    name: String,
    /// Tells when this replica begins or ends to act. Kept, because a clone would tell again what the one before has told.
    holder: Holder,
    memory: Memory,
    /// What pods were last seen to show.
    shown: Shown,
    /// What the API server has told of rights, and when.
    asked: BTreeMap<Question, (bool, Instant)>,
    /// What that depended on: how permissions come, and which version of the ceiling.
    asked_by: Option<(RbacMode, u64)>,
    /// What the rules need, and what that was worked out from.
    needs: Option<(Basis, Option<Arc<Needs>>)>,
    /// When rules have changed, and nobody has looked yet: the first and the last time.
    rules_changed: Option<(Instant, Instant)>,
}

/// Whether somebody may do something: the operator itself, or the pods of a layer.
type Question = (Option<&'static str>, Need);

/// What needs are worked out from.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    rules: u64,
    generation: i64,
    config_maps: Vec<String>,
    engines: Vec<Engine>,
}

/// Changes that come at once are planned for together.
const QUIET: Duration = Duration::from_millis(50);

/// The same for rules, of which a thousand may come at once, and how long they may be waited for.
const RULES_QUIET: Duration = Duration::from_millis(200);
const RULES_LATEST: Duration = Duration::from_secs(2);

/// How often it is asked whether somebody may do what they could do before, and what they could not. The ceiling is watched; whoever else
/// grants something, or takes it away, does not tell.
const ALLOWED: Duration = Duration::from_secs(600);
const DENIED: Duration = Duration::from_secs(5);

/// The same of what engines may do for which somebody else grants: they may have had it from the operator until a moment ago.
const ALLOWED_BY_HAND: Duration = Duration::from_secs(60);

/// When a step is tried again that could not begin, because too little was left of the term.
const SHORTLY: Duration = Duration::from_millis(500);

/// How many questions about rights are asked at a time.
const AT_A_TIME: usize = 8;

impl Caretaker {
    /// One who knows nothing yet.
    pub(crate) fn new(surroundings: Surroundings, name: String) -> Caretaker {
        let (memory, shown) = Default::default();
        let holder = surroundings.executor.server.holder.clone();
        Caretaker {
            surroundings,
            name,
            holder,
            memory,
            shown,
            asked: BTreeMap::new(),
            asked_by: None,
            needs: None,
            rules_changed: None,
        }
    }

    /// Looks after the instance until it is gone, or until the end.
    pub(crate) async fn run(mut self) {
        let shutdown = self.surroundings.runtime.shutdown.clone();
        // A step that is under way comes to its end: the Lease waits for it.
        while !shutdown.is_cancelled() {
            let mut changes = self.surroundings.store.changes();
            changes.mark_unchanged();
            let mut rules = self.surroundings.rules.changes();
            rules.mark_unchanged();
            self.surroundings.ceiling.mark_unchanged();
            let Some(look_again) = self.look().await else { break };
            tokio::select! {
                () = self.wait(changes, rules, look_again) => {}
                () = shutdown.cancelled() => break,
            }
        }
        self.surroundings.statuses.set(&self.name, None);
        let label = InstanceName(self.name.clone());
        let metrics = &self.surroundings.executor.metrics;
        for family in [&metrics.ready, &metrics.paused, &metrics.expiry] {
            family.forget(&label);
        }
    }

    /// Plans once and does what the plan says. Returns when to look again; nothing if the instance is gone.
    async fn look(&mut self) -> Option<Instant> {
        let Surroundings { store, executor, .. } = &self.surroundings;
        let soon = Instant::now() + Duration::from_secs(60);
        let object = store.get(&Key::cluster(Kind::PortalInstance, &self.name));
        let Some(object) = object else {
            // Before the first list nobody knows.
            return (store.state(&Source::cluster(Kind::PortalInstance)) == SourceState::Listing).then_some(soon);
        };
        let instance = match Instance::try_from(&*object) {
            Ok(instance) => instance,
            Err(error) => {
                warn!(instance = self.name, error, "Instance cannot be read");
                return Some(soon);
            }
        };
        if !executor.server.holder.is_held() {
            // Another replica acts, and what this one remembers grows old.
            self.memory = Memory::default();
            return Some(soon);
        }
        let sources = self.sources(&instance);
        if !are_synced(&self.surroundings.store, &sources) {
            return Some(soon);
        }
        self.ask_pods(&instance).await;
        let mut observed = self.observe(&instance, &sources);
        let needs = self.needs(&instance, &observed);
        if let Some(needs) = &needs {
            self.memory.needs(needs, &instance, &observed);
            observed.memory.needed = self.memory.needed.clone();
            observed.held = self.ask_rights(&instance, needs).await;
        }
        let plan = desired(&instance, needs.as_deref(), &observed, &self.surroundings.executor.operator);
        self.surroundings.executor.metrics.plans.inc();
        debug!(instance = self.name, steps = ?plan.steps.iter().map(Step::subject).collect::<Vec<_>>(), "Planned");
        let is_done = self.carry_out(&instance, &observed, &plan).await;
        self.count(&instance, &plan);
        let ask_again = self.judge_rules(&instance, needs.as_deref(), &observed);
        let moment = match is_done {
            true => plan.look_again,
            false => match &self.memory.failure {
                Some(failure) => Some(failure.until),
                // The term ends, or is renewed at this moment. Nothing else would tell that it goes on.
                None => return Some(Instant::now() + SHORTLY),
            },
        };
        Some(instant(moment).unwrap_or(soon).min(soon).min(ask_again.unwrap_or(soon)))
    }

    /// Finds out about the rights that rules need beside what every engine has. What was told a moment ago is not asked again.
    async fn ask_rights(&mut self, instance: &Instance, needs: &Needs) -> Held {
        let ceiling = self.surroundings.ceiling.borrow().version;
        let asked_of = |need: &Need| -> Vec<Option<&'static str>> {
            match instance.spec.rbac.mode {
                // What the operator may do itself it can hand on.
                RbacMode::Auto => vec![None],
                RbacMode::Manual | RbacMode::Audit => needs.layers_of(need).map(Some).collect(),
            }
        };
        let basis = (instance.spec.rbac.mode, ceiling);
        if self.asked_by != Some(basis) {
            self.asked_by = Some(basis);
            // An answer that is old is better than none: without one nothing is granted that was not before.
            let long_ago = Instant::now().checked_sub(ALLOWED);
            self.asked.values_mut().for_each(|(_, at)| *at = long_ago.unwrap_or(*at));
        }
        let lately = self.memory.needed.keys().map(|(_, need)| need);
        let wanted: BTreeSet<&Need> = needs.grants.keys().chain(lately).filter(|need| !has_everybody(need)).collect();
        let questions: BTreeSet<Question> =
            wanted.iter().flat_map(|need| asked_of(need).into_iter().map(|who| (who, (*need).clone()))).collect();
        self.asked.retain(|question, _| questions.contains(question));
        let allowed = if instance.spec.rbac.mode == RbacMode::Auto { ALLOWED } else { ALLOWED_BY_HAND };
        let is_due = |(is_allowed, at): &(bool, Instant)| at.elapsed() >= if *is_allowed { allowed } else { DENIED };
        let due = questions.into_iter().filter(|question| self.asked.get(question).is_none_or(is_due));
        let (client, name) = (&self.surroundings.runtime.client, &self.name);
        let questions = due.map(|question| async move {
            let (who, need) = &question;
            let subject = who.map(|layer| Subject::account(instance.namespace(), &engine(&instance.name, layer)));
            let answer = is_allowed(client, subject.as_ref(), &need.0, need.1.as_deref()).await;
            let answer = answer.inspect_err(|error| warn!(instance = name, error, "Rights could not be asked for"));
            Some((question, answer.ok()?))
        });
        let answers: Vec<_> = stream::iter(questions.collect::<Vec<_>>()).buffered(AT_A_TIME).collect().await;
        let now = Instant::now();
        self.asked.extend(answers.into_iter().flatten().map(|(question, is_allowed)| (question, (is_allowed, now))));
        // Of several who need it, each has to be allowed.
        let told = |need: &Need| {
            let answers = asked_of(need).into_iter().map(|who| self.asked.get(&(who, need.clone())));
            let answers: Vec<Option<bool>> = answers.map(|answer| answer.map(|(is_allowed, _)| *is_allowed)).collect();
            let is_refused = answers.contains(&Some(false));
            if is_refused { Some(false) } else { (!answers.contains(&None)).then_some(true) }
        };
        wanted.into_iter().filter_map(|need| Some((need.clone(), told(need)?))).collect()
    }

    /// Says which rules lack what they need. Returns when to ask again whether they still do.
    fn judge_rules(&self, instance: &Instance, needs: Option<&Needs>, observed: &Observed) -> Option<Instant> {
        let is_left_alone = instance.is_deleted || instance.is_paused || instance.problem.is_some();
        let needs = needs.filter(|_| !is_left_alone)?;
        let permissions = Permissions::judge(instance, needs, observed);
        let failure = self.memory.failure.as_ref();
        let verdicts = Verdicts::new(instance, needs, &permissions).by_roles(instance, &permissions, observed, failure);
        self.surroundings.statuses.set(&self.name, Some(verdicts));
        let is_lacking = permissions.is_incomplete || !permissions.refused.is_empty();
        is_lacking.then(|| Instant::now() + DENIED)
    }

    async fn carry_out(&mut self, instance: &Instance, observed: &Observed, plan: &Plan) -> bool {
        let executor = self.surroundings.executor.clone();
        let is_done = executor.execute(Some(instance), observed, plan, &mut self.memory).await;
        if let Some(Step::Status(status)) = plan.steps.first()
            && (is_done || self.memory.failure.as_ref().is_none_or(|failure| failure.subject != STATUS))
        {
            announce(&executor.server.client, instance, &status.conditions).await;
        }
        is_done
    }

    /// The watches that this instance needs. Those that are not there are begun.
    fn sources(&self, instance: &Instance) -> Vec<Source> {
        let Surroundings { runtime, store, watching, .. } = &self.surroundings;
        let sources = self.surroundings.sources(instance);
        watching.begin(sources.iter().filter(|source| is_of(instance, source)), runtime, store);
        sources
    }

    /// The kinds that other operators bring, and that are served.
    fn served(&self) -> Vec<Kind> {
        self.surroundings.served()
    }

    /// What is known at this moment.
    fn observe(&mut self, instance: &Instance, sources: &[Source]) -> Observed {
        let served = self.served();
        let Surroundings { store, executor, .. } = &self.surroundings;
        let now = (executor.server.now(), executor.server.uptime());
        let is_ceiling_unbounded = self.surroundings.ceiling.borrow().is_unbounded;
        let observed =
            view::observe(instance, store, sources, &executor.operator, now, served, &self.shown, &mut self.memory);
        Observed { is_ceiling_unbounded, ..observed }
    }

    /// What the rules need, worked out again only if something of it has changed.
    fn needs(&mut self, instance: &Instance, observed: &Observed) -> Option<Arc<Needs>> {
        let Surroundings { rules, .. } = &self.surroundings;
        let key = |name: &String| Key::namespaced(Kind::ConfigMap, instance.namespace(), name);
        let config_maps =
            instance.spec.bootstrap_rules.config_maps.iter().map(|name| {
                observed.get(&key(name)).map(|found| found.resource_version().to_owned()).unwrap_or_default()
            });
        let basis = Basis {
            rules: *rules.changes().borrow(),
            generation: instance.generation,
            config_maps: config_maps.collect(),
            engines: desired::engines(instance, observed),
        };
        if self.needs.as_ref().is_none_or(|(known, _)| *known != basis) {
            let needs = rules.with(|rules| rules.needs(instance, &basis.engines, |key| observed.get(key)));
            self.needs = Some((basis, needs.map(Arc::new)));
        }
        self.needs.as_ref().and_then(|(_, needs)| needs.clone())
    }

    /// Asks pods which certificate they show, if that is not known to be the one that they should.
    async fn ask_pods(&mut self, instance: &Instance) {
        let now = Timestamp::now();
        let due = view::pods_to_ask(instance, &self.surroundings.store, now, &mut self.shown);
        let port = instance.spec.admission.port;
        let asked = due.into_iter().filter_map(|pod| {
            let ip: IpAddr = pod.value["status"]["podIP"].as_str()?.parse().ok()?;
            let uid = pod.uid().to_owned();
            Some(async move { (uid, shown::ask(ip, port).await) })
        });
        for (uid, shown) in join_all(asked.collect::<Vec<_>>()).await {
            self.shown.insert(uid, (shown, now));
        }
    }

    fn count(&self, instance: &Instance, plan: &Plan) {
        let metrics = &self.surroundings.executor.metrics;
        let label = InstanceName(instance.name.clone());
        let status = match plan.steps.first() {
            Some(Step::Status(status)) => (**status).clone(),
            _ => desired::status_of(instance),
        };
        let is_ready = status.conditions.iter().any(|found| found.type_ == "Ready" && found.status == "True");
        metrics.ready.at(&label).set(i64::from(is_ready));
        metrics.paused.at(&label).set(i64::from(instance.is_paused));
        if let Some(end) = status.certificates.and_then(|certificates| certificates.not_after) {
            metrics.expiry.at(&label).set(end.0.duration_since(Timestamp::now()).as_secs());
        }
    }

    /// Waits until there is something to look at.
    async fn wait(&mut self, mut changes: watch::Receiver<u64>, mut rules: watch::Receiver<u64>, look_again: Instant) {
        loop {
            let deadline = match self.rules_changed {
                Some((first, last)) => look_again.min((last + RULES_QUIET).min(first + RULES_LATEST)),
                None => look_again,
            };
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() { return }
                    sleep(QUIET).await;
                    break;
                }
                changed = rules.changed() => {
                    if changed.is_err() { return }
                    let now = Instant::now();
                    let first = self.rules_changed.map_or(now, |(first, _)| first);
                    self.rules_changed = Some((first, now));
                }
                () = self.holder.changed() => break,
                // API servers take a moment to heed it.
                Ok(()) = self.surroundings.ceiling.changed() => {
                    sleep(QUIET).await;
                    break;
                }
                () = sleep_until(deadline) => break,
            }
        }
        self.rules_changed = None;
    }
}

/// Whether a watch is of the namespace of an instance, and not one that is always there.
fn is_of(instance: &Instance, source: &Source) -> bool {
    source.namespace.as_deref() == Some(instance.namespace())
}

impl Surroundings {
    /// The watches that an instance needs.
    fn sources(&self, instance: &Instance) -> Vec<Source> {
        view::sources(instance, &self.executor.operator, &self.served())
    }

    /// The kinds that other operators bring, and that are served.
    fn served(&self) -> Vec<Kind> {
        self.rules.with(|rules| view::served(rules.kinds().map(|kinds| &**kinds)))
    }

    /// Ends the watches that none of these instances needs.
    pub(crate) fn end_watches<'a>(&self, instances: impl Iterator<Item = &'a Object>) {
        let instances: Vec<Instance> = instances.filter_map(|object| Instance::try_from(object).ok()).collect();
        let needed = instances.iter().flat_map(|instance| {
            let sources = self.sources(instance).into_iter();
            sources.filter(|source| is_of(instance, source))
        });
        self.watching.end_but(&needed.collect(), &self.store);
    }

    /// Sees to it that the guard of the bypass is there, until the end.
    pub(crate) async fn guard(self) {
        let mut changes = self.store.changes();
        let sources = [Kind::ValidatingAdmissionPolicy, Kind::ValidatingAdmissionPolicyBinding].map(Source::cluster);
        let mut memory = Memory::default();
        let mut holder = self.executor.server.holder.clone();
        loop {
            let mut pause = Duration::from_secs(300);
            if holder.is_held() && are_synced(&self.store, &sources) {
                let objects = self.store.select(|object| sources.iter().any(|source| source.kind == object.key.kind));
                let nothing = Observed::nothing(Timestamp::now(), self.executor.server.uptime());
                let observed = Observed { objects, memory: memory.clone(), ..nothing };
                let plan = desired::guard(&observed);
                self.executor.execute(None, &observed, &plan, &mut memory).await;
                let next = memory.failure.as_ref().map(|failure| failure.until).or(plan.look_again);
                pause = instant(next).map_or(pause, |next| next.saturating_duration_since(Instant::now()));
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() { return }
                    sleep(QUIET).await;
                }
                () = holder.changed() => {}
                () = sleep(pause) => {}
                () = self.runtime.shutdown.cancelled() => return,
            }
        }
    }
}

fn instant(moment: Option<Timestamp>) -> Option<Instant> {
    let left = moment?.duration_since(Timestamp::now());
    Some(Instant::now() + Duration::try_from(left).unwrap_or_default())
}
