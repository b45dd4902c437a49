//! Writes the status of the cluster's rules, as long as this replica holds the Lease.
//!
//! What has become of a rule is written at once; counters wait for a token, so that a thousand noisy rules cost a few writes
//! a second. A write names the version that it was made from: whoever wrote in between wins, and we look again.

mod desired;
mod instances;
mod queue;
mod standing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{
    Api,
    api::{ApiResource, Patch, PatchParams},
};
use portal_cluster::{
    health::Part,
    holder::{ActError, Holder},
    rules::{
        Outcome, Report,
        cluster::{RuleObject, SeenRule},
        snapshot::InForce,
        status::{entries, patch, without},
    },
    runtime::Runtime,
    watch::{Watched, chain, explain},
};
use portal_core::{event::Front, layers::Layers, rule::source::RuleId};
use portal_crds::{PortalClusterRule, PortalRule};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::{debug, info};

use crate::{
    cache::keeper::Caches,
    findings::Board,
    metrics::{EngineMetrics, StatusWrite},
    replicas::{
        ledger::{Claim, Ledger},
        view::View,
    },
};

use self::{
    desired::{Counters, Wanted, desired},
    instances::Instances,
    queue::{Lane, Queue, Tokens, pause},
    standing::{Standings, follow_configuration},
};

/// The name under which the API server notes who wrote a field.
const FIELD_MANAGER: &str = "portal-engine";

/// How many writes of a rule are remembered of which nobody knows whether they were done.
const MAX_CLAIMS: usize = 8;

/// Whose status is written, and how.
pub(crate) struct StatusSettings {
    /// The name of the instance, which has an entry of its own in the status of each rule.
    pub(crate) instance: String,
    /// Where its Lease is.
    pub(crate) namespace: String,
    /// The layers of all its pods.
    pub(crate) layers: Layers,
    /// Those of this one.
    pub(crate) own_layers: Layers,
    /// How long a write may take. The Lease has to be held for longer than that.
    pub(crate) timeout: Duration,
}

/// The writer's state. One task owns it.
pub(crate) struct Writer {
    runtime: Runtime,
    metrics: EngineMetrics,
    instance: String,
    namespace: String,
    layers: Layers,
    holder: Holder,
    /// How many objects violate rules.
    board: Board,
    standings: Standings,
    /// What replicas have counted.
    ledger: Ledger,
    /// How long a write may take. The Lease has to be held for longer than that.
    timeout: Duration,
    instances: Instances,
    rules: HashMap<RuleId, Known>,
    /// The writes to cluster rules and to rules of a namespace.
    lanes: [Lane; 2],
    /// Rules of which only the counters changed.
    counted: Queue,
    tokens: Tokens,
    /// Rules that are looked at again at a certain time, even without news about them.
    delayed: BTreeSet<(Instant, RuleId)>,
    /// Rules whose last write failed, and why.
    failing: BTreeMap<RuleId, String>,
    writes: JoinSet<(RuleId, Written)>,
}

/// What is known of a rule.
#[derive(Default)]
struct Known {
    seen: Option<SeenRule>,
    report: Option<Report>,
    /// What was claimed by writes whose outcome is not seen yet, with the count that each was to lead to.
    claims: Vec<(Claim, i64)>,
    /// A write failed, and the rule is not looked at again before this time, unless there is news.
    not_before: Option<Instant>,
    failures: u32,
}

/// What came of a write.
enum Written {
    /// This is the object now.
    Done(Box<Watched<RuleObject>>),
    /// Somebody wrote in between.
    Conflict,
    /// The object is gone.
    Gone,
    /// The Lease is not ours, or not for long enough.
    NotHeld,
    /// The API server does not take this status.
    Refused(String),
    /// The API server did not take the write, or nobody knows whether it did.
    Failed(String),
}

/// What the writer is told.
pub(crate) struct Channels {
    /// What has become of rules. Nothing for those that are gone.
    pub(crate) reports: mpsc::Receiver<(RuleId, Option<Report>)>,
    /// The rules of which more was counted.
    pub(crate) counted: mpsc::Receiver<RuleId>,
    /// What the objects of rules are now. Nothing for those that are gone.
    pub(crate) seen: mpsc::Receiver<(RuleId, Option<SeenRule>)>,
}

impl Writer {
    /// A writer for the rules in force. What is known of the other replicas comes through the view and the ledger.
    pub(crate) fn new(
        runtime: Runtime,
        metrics: EngineMetrics,
        settings: StatusSettings,
        holder: Holder,
        in_force: InForce,
        (view, ledger): (watch::Receiver<Option<Arc<View>>>, Ledger),
        (board, caches): (Board, Caches),
    ) -> Writer {
        let StatusSettings { instance, namespace, layers, own_layers, timeout } = settings;
        Writer {
            runtime,
            metrics,
            standings: Standings::new(&instance, (layers, own_layers), in_force, view, caches),
            instances: Instances::new(&instance),
            instance,
            namespace,
            layers,
            holder,
            board,
            ledger,
            timeout,
            rules: HashMap::new(),
            lanes: Default::default(),
            counted: Queue::default(),
            tokens: Tokens::new(),
            delayed: BTreeSet::new(),
            failing: BTreeMap::new(),
            writes: JoinSet::new(),
        }
    }

    /// Writes what has to be written, until the end.
    pub(crate) async fn run(mut self, mut channels: Channels) {
        let mut lookout = pin!(self.instances.lookout(self.runtime.client.clone(), self.holder.clone()).look());
        let mut configuration = pin!(self.follow_configuration());
        let shutdown = self.runtime.shutdown.clone();
        let (board, mut is_complete) = (self.board.clone(), self.board.is_complete());
        let mut was_held = false;
        loop {
            let is_held = self.holder.is_held();
            if is_held && !was_held {
                // Whoever held before may have left anything undone.
                info!(rules = self.rules.len(), "Status of rules is written by this replica");
                self.lanes.iter_mut().for_each(Lane::succeeded);
                self.wake_all();
            }
            if !is_held && !self.failing.is_empty() {
                // Now it is the next holder's matter.
                self.failing.clear();
                self.runtime.health.recovered(&Part::Status);
            }
            was_held = is_held;
            // The other replicas are asked first: a rule that only this one runs is not active.
            let wake = if is_held && self.standings.is_known() { self.start_writes() } else { None };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.holder.changed() => {}
                Some((id, report)) = channels.reports.recv() => self.hear(id, report),
                Some(id) = channels.counted.recv() => if self.rules.contains_key(&id) { self.counted.push(id) },
                Some((id, seen)) = channels.seen.recv() => self.see(id, seen),
                Some(written) = self.writes.join_next() => match written {
                    Ok((id, written)) => self.wrote(id, written),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = &mut lookout => {}
                () = &mut configuration => {}
                changed = self.standings.changed() => match changed {
                    Some(rules) => rules.into_iter().for_each(|id| self.look_again(id)),
                    None => self.wake_all(),
                },
                rules = board.recounted() => self.recount(rules),
                Ok(()) = is_complete.changed() => {
                    let rules = self.rules.keys().cloned().collect();
                    self.recount(rules);
                }
                () = self.instances.changed() => self.wake_all(),
                () = async { match wake { Some(at) => sleep_until(at).await, None => std::future::pending().await } } => {}
            }
        }
        // What is on its way is let finish: the holder waits for it before it lets go of the Lease.
        while self.writes.join_next().await.is_some() {}
    }

    /// Other numbers of objects violate these rules.
    fn recount(&mut self, rules: Vec<RuleId>) {
        for id in rules {
            if self.rules.contains_key(&id) {
                self.counted.push(id);
            }
        }
    }

    fn hear(&mut self, id: RuleId, report: Option<Report>) {
        let Some(report) = report else { return self.forget_part(&id, |known| known.report = None) };
        let known = self.rules.entry(id.clone()).or_default();
        if known.report.as_ref() != Some(&report) {
            known.report = Some(report);
            self.wake(id);
        }
    }

    /// Follows the webhook configuration, if that decides what rules judge. Never ends.
    fn follow_configuration(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let (configuration, following) = follow_configuration(&self.instance, self.runtime.clone());
        self.standings.follow(configuration);
        let is_needed = self.layers.admission;
        async move {
            if is_needed {
                following.await;
            }
            std::future::pending().await
        }
    }

    fn see(&mut self, id: RuleId, seen: Option<SeenRule>) {
        // A rule that this instance does not serve matters only as long as its status has an entry of this instance.
        let matters = |seen: &SeenRule| {
            seen.is_served || entries(&seen.status).any(|entry| entry["instance"] == self.instance.as_str())
        };
        let Some(seen) = seen.filter(matters) else {
            if let Some(seen) = self.rules.get(&id).and_then(|known| known.seen.as_ref()) {
                self.instances.note(Some(&seen.status), None);
            }
            return self.forget_part(&id, |known| known.seen = None);
        };
        let known = self.rules.entry(id.clone()).or_default();
        let before = known.seen.as_ref();
        // What we wrote is known before the watch shows it, and what the watch shows then may be older.
        if !seen.is_listed && before.is_some_and(|before| seen.is_older_than(before)) {
            return;
        }
        if before.is_some_and(|before| before.uid != seen.uid) {
            // Another rule of the same name.
            known.claims.clear();
        }
        if before.is_some_and(|before| before.resource_version != seen.resource_version) {
            let count = own_count(&seen.status, &self.instance);
            // Only the holder counts up, so that whatever count is there was written by one of these, or by none of them.
            for (claim, _) in known.claims.drain(..).filter(|(_, expected)| *expected == count) {
                self.ledger.settle(&id, &claim);
            }
        }
        self.instances.note(before.map(|before| &before.status), Some(&seen.status));
        known.seen = Some(seen);
        self.wake(id);
    }

    /// Forgets one of the two things that are known of a rule, and the rule itself if the other one is forgotten already.
    fn forget_part(&mut self, id: &RuleId, forget: impl FnOnce(&mut Known)) {
        let Some(known) = self.rules.get_mut(id) else { return };
        forget(known);
        if known.seen.is_none() && known.report.is_none() {
            if let Some(at) = known.not_before {
                self.delayed.remove(&(at, id.clone()));
            }
            self.rules.remove(id);
            self.lane(id).urgent.remove(id);
            self.counted.remove(id);
            self.is_well(id);
        }
    }

    fn lane(&mut self, id: &RuleId) -> &mut Lane {
        &mut self.lanes[usize::from(id.namespace.is_some())]
    }

    /// There is news about a rule: what failed may work now.
    fn wake(&mut self, id: RuleId) {
        if let Some(known) = self.rules.get_mut(&id) {
            known.failures = 0;
            if let Some(at) = known.not_before.take() {
                self.delayed.remove(&(at, id.clone()));
            }
        }
        self.lane(&id).urgent.push(id);
    }

    /// Looks at a rule again, if it is one of ours.
    fn look_again(&mut self, id: RuleId) {
        if self.rules.contains_key(&id) {
            self.lane(&id).urgent.push(id);
        }
    }

    fn wake_all(&mut self) {
        for id in self.rules.keys().cloned().collect::<Vec<_>>() {
            self.lane(&id).urgent.push(id);
        }
    }

    /// Looks at a rule again after a while, or as soon as there is news about it.
    fn delay(&mut self, id: RuleId) {
        if let Some(known) = self.rules.get_mut(&id) {
            let at = Instant::now() + pause(known.failures);
            known.failures += 1;
            if let Some(before) = known.not_before.replace(at) {
                self.delayed.remove(&(before, id.clone()));
            }
            self.delayed.insert((at, id));
        }
    }

    /// Starts the writes that may start. Returns when to look again, if some have to wait.
    fn start_writes(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = self.delayed.pop_first() else { break };
            if let Some(known) = self.rules.get_mut(&id) {
                known.not_before = None;
            }
            self.lane(&id).urgent.push(id);
        }
        let mut wake = self.delayed.first().map(|(at, _)| *at);
        let mut wake_at = |at: Instant| wake = Some(wake.map_or(at, |wake| wake.min(at)));
        for lane in 0..self.lanes.len() {
            while self.lanes[lane].urgent.first().is_some() {
                match self.lanes[lane].may_start(now) {
                    Ok(()) => {}
                    Err(at) => {
                        at.map(&mut wake_at);
                        break;
                    }
                }
                if let Some(id) = self.lanes[lane].urgent.pop() {
                    self.start_write(id, false);
                }
            }
        }
        while let Some(id) = self.counted.first().cloned() {
            match self.lane(&id).may_start(now) {
                Ok(()) => {}
                Err(None) => break,
                Err(Some(_)) => {
                    // Its lane has a pause after a failure: it waits with the other rules of its kind.
                    self.counted.remove(&id);
                    self.lane(&id).urgent.push(id);
                    continue;
                }
            }
            if let Some(at) = self.tokens.next(now) {
                wake_at(at);
                break;
            }
            self.counted.remove(&id);
            if self.start_write(id, true) {
                self.tokens.take();
            }
        }
        wake
    }

    /// Starts a write if the status is not what it should be. Returns whether one was started.
    ///
    /// Counters go along with what else has changed; alone they need a token, and wait for their turn without one.
    fn start_write(&mut self, id: RuleId, has_token: bool) -> bool {
        if self.lane(&id).is_writing(&id) {
            // The rule is looked at again when the write that is under way has ended.
            return false;
        }
        let Some(known) = self.rules.get(&id) else { return false };
        let Some(seen) = &known.seen else { return false };
        let claim = self.ledger.claim(&id).filter(|_| seen.is_served);
        let mut has_counters = false;
        let (urgent, whole) = if seen.is_served {
            let Some(report) = &known.report else { return false };
            if seen.uid != report.uid || seen.generation != report.generation {
                // One of the two is about an older version of the rule. The newer one is on its way.
                return false;
            }
            let (instance, namespace, now) = (&self.instance, &self.namespace, Timestamp::now());
            // Audit alone knows how many objects violate a rule.
            let counts_violations = self.layers.audit && report.mode.contains(&Front::Audit);
            let is_counted = counts_violations && report.outcome == Outcome::Active;
            let violations = self.board.count(&id).filter(|_| is_counted).and_then(|count| i64::try_from(count).ok());
            let standing = &self.standings.of(&id, report);
            let change = |counters| {
                let wanted = Wanted { instance, namespace, report, standing, counts_violations, counters, now };
                patch(&seen.status, &desired(&seen.status, &wanted, &|entry| self.instances.is_alive(entry)))
            };
            let is_recounted = violations.is_some() && violations != own_violations(&seen.status, &self.instance);
            has_counters = claim.is_some() || is_recounted;
            let urgent = if has_counters { change(None) } else { None };
            let evaluations = claim.as_ref().map_or(0, |claim| claim.evaluations);
            (urgent, change(has_counters.then_some(Counters { evaluations, violations })))
        } else {
            let change = patch(&seen.status, &without(&seen.status, &self.instance));
            (change.clone(), change)
        };
        let Some(patch) = whole else {
            // What was to be written is there, whoever wrote it.
            self.is_well(&id);
            return false;
        };
        if urgent.is_none() && has_counters && !has_token {
            self.counted.push(id);
            return false;
        }
        // What it counted is written with the rest.
        self.counted.remove(&id);
        let body =
            json!({ "metadata": { "resourceVersion": seen.resource_version, "uid": seen.uid }, "status": patch });
        let claim = claim.map(|claim| {
            let count = own_count(&seen.status, &self.instance).saturating_add_unsigned(claim.evaluations);
            (claim, count)
        });
        if let Some(known) = self.rules.get_mut(&id) {
            known.claims.extend(claim);
            // Writes of which nobody knows whether they were done are few.
            let forgotten = known.claims.len().saturating_sub(MAX_CLAIMS);
            known.claims.drain(..forgotten);
        }
        let (api, holder, timeout) = (self.api(&id), self.holder.clone(), self.timeout);
        self.lane(&id).started(id.clone());
        self.writes.spawn(async move {
            let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let body = Patch::Merge(body);
            let write = |_| api.patch_status(&id.name, &parameters, &body);
            let written = match holder.act(timeout, write).await {
                Ok(Ok(object)) => Written::Done(Box::new(object)),
                Ok(Err(error)) => Written::of(&id, &error),
                Err(ActError::NotHeld) => Written::NotHeld,
                Err(error @ ActError::TimedOut(_)) => Written::Failed(chain(&error)),
            };
            (id, written)
        });
        true
    }

    fn wrote(&mut self, id: RuleId, written: Written) {
        self.lane(&id).ended(&id);
        let count = |outcome| self.metrics.status_writes.at(&outcome).inc();
        match &written {
            Written::Done(_) => count(StatusWrite::Written),
            Written::Conflict => count(StatusWrite::Conflict),
            Written::Refused(_) | Written::Failed(_) => count(StatusWrite::Failed),
            Written::Gone | Written::NotHeld => {}
        }
        match written {
            Written::Done(object) => {
                self.lane(&id).succeeded();
                self.is_well(&id);
                // Unless it was removed meanwhile.
                if let Some(seen) = self.rules.get(&id).and_then(|known| known.seen.as_ref()) {
                    let written = SeenRule::new(&object, seen.is_served);
                    self.see(id, Some(written));
                }
            }
            // The newer version comes through the watch, and wakes this rule.
            Written::Conflict | Written::NotHeld => self.delay(id),
            Written::Gone => {
                debug!(rule = %id, "Rule is gone before its status was written");
                self.is_well(&id);
            }
            Written::Refused(problem) => self.fail(id, problem),
            Written::Failed(problem) => {
                self.lane(&id).failed(Instant::now());
                self.fail(id, problem);
            }
        }
    }

    fn fail(&mut self, id: RuleId, problem: String) {
        if self.rules.contains_key(&id) {
            self.failing.insert(id.clone(), problem);
            self.tell_health();
            self.delay(id);
        }
    }

    /// Nothing keeps the status of a rule from being written.
    fn is_well(&mut self, id: &RuleId) {
        if self.failing.remove(id).is_some() {
            self.tell_health();
        }
    }

    fn tell_health(&self) {
        match self.failing.first_key_value() {
            Some((id, problem)) => self.runtime.health.unwell(&Part::Status, &format!("{problem} (rule {id})")),
            None => self.runtime.health.recovered(&Part::Status),
        }
    }

    fn api(&self, id: &RuleId) -> Api<Watched<RuleObject>> {
        match &id.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.runtime.client.clone(), namespace, &ApiResource::erase::<PortalRule>(&()))
            }
            None => Api::all_with(self.runtime.client.clone(), &ApiResource::erase::<PortalClusterRule>(&())),
        }
    }
}

impl Written {
    fn of(id: &RuleId, error: &kube::Error) -> Written {
        let problem = || explain("patch", &resource_of(id), error);
        match error {
            kube::Error::Api(status) => match status.code {
                409 => Written::Conflict,
                404 => Written::Gone,
                400 | 413 | 422 => Written::Refused(problem()),
                _ => Written::Failed(problem()),
            },
            _ => Written::Failed(problem()),
        }
    }
}

/// How many evaluations a status says of an instance.
fn own_count(status: &Value, instance: &str) -> i64 {
    let own = entries(status).find(|entry| entry["instance"] == instance);
    own.and_then(|entry| entry["evalCount"].as_i64()).unwrap_or_default()
}

/// How many objects violate the rule, as a status says of an instance.
fn own_violations(status: &Value, instance: &str) -> Option<i64> {
    entries(status).find(|entry| entry["instance"] == instance)?["violationCount"].as_i64()
}

fn resource_of(id: &RuleId) -> String {
    let resource = match &id.namespace {
        Some(_) => ApiResource::erase::<PortalRule>(&()),
        None => ApiResource::erase::<PortalClusterRule>(&()),
    };
    format!("{}/status.{}", resource.plural, resource.group)
}
