//! Writes the status of the cluster's rules, as long as this replica holds the Lease.
//!
//! What has become of a rule is written at once; counters wait for a token, so that a thousand noisy rules cost a few writes
//! a second. A write names the version that it was made from: whoever wrote in between wins, and we look again.

mod desired;
mod instances;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use portal_core::rule::source::RuleId;
use portal_crds::{PortalClusterRule, PortalRule};
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::{debug, info};

use self::instances::Instances;
use crate::{
    health::{Health, Part},
    holder::{ActError, Holder},
    metrics::Metrics,
    rules::{Report, cluster::Seen},
    run::Shutdown,
    watch::{chain, explain},
};

pub use self::desired::Counts;
use self::desired::{Wanted, desired, patch};

/// Writes that are on their way at the same time.
const WRITES: usize = 8;

/// How long one may take. The Lease has to be held for longer than that.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Writes of counters alone, in a second and at once.
const COUNTER_RATE: f64 = 2.0;
const COUNTER_BURST: f64 = 10.0;

/// The pauses after a write that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Who writes fields, for whoever asks the API server.
const FIELD_MANAGER: &str = "portal-engine";

/// The writer's state. It has one task.
pub(crate) struct Writer {
    client: Client,
    instance: String,
    holder: Holder,
    health: Health,
    metrics: Metrics,
    instances: Instances,
    rules: HashMap<RuleId, Known>,
    /// Rules whose status may have to be written at once.
    urgent: BTreeSet<RuleId>,
    /// Rules of which only the counters changed, by their turn: a rule that counts all the time must not keep others waiting.
    counted: BTreeMap<u64, RuleId>,
    next_turn: u64,
    tokens: Tokens,
    writes: JoinSet<(RuleId, Written)>,
    writing: BTreeSet<RuleId>,
}

/// What is known of a rule.
#[derive(Default)]
struct Known {
    seen: Option<Seen>,
    report: Option<Report>,
    counts: Option<Counts>,
    /// Its key in `counted`.
    turn: Option<u64>,
    /// Not before this: a write failed.
    not_before: Option<Instant>,
    failures: u32,
}

/// What came of a write.
enum Written {
    /// This is the object now.
    Done(Box<DynamicObject>),
    /// Somebody wrote in between.
    Conflict,
    /// The object is gone.
    Gone,
    /// The Lease is not ours, or not for long enough.
    NotHeld,
    Failed(String),
}

/// A bucket that fills by itself.
struct Tokens {
    left: f64,
    since: Instant,
}

impl Writer {
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        instance: &str,
        holder: Holder,
        health: Health,
        metrics: Metrics,
    ) -> Writer {
        Writer {
            instances: Instances::new(client.clone(), namespace, instance),
            client,
            instance: instance.to_owned(),
            holder,
            health,
            metrics,
            rules: HashMap::new(),
            urgent: BTreeSet::new(),
            counted: BTreeMap::new(),
            next_turn: 0,
            tokens: Tokens { left: COUNTER_BURST, since: Instant::now() },
            writes: JoinSet::new(),
            writing: BTreeSet::new(),
        }
    }

    /// Writes what has to be written, until the end.
    pub(crate) async fn run(
        mut self,
        mut reports: mpsc::Receiver<(RuleId, Option<Report>)>,
        mut counts: mpsc::Receiver<(RuleId, Counts)>,
        mut seen: mpsc::Receiver<(RuleId, Option<Seen>)>,
        mut shutdown: Shutdown,
    ) {
        let mut was_held = false;
        loop {
            let is_held = self.holder.is_held();
            self.metrics.lease_held.with_label_values(&[] as &[&str]).set(i64::from(is_held));
            if is_held && !was_held {
                // Whoever held before may have left anything undone.
                info!(rules = self.rules.len(), "Status of rules is written by this replica");
                self.urgent.extend(self.rules.keys().cloned());
            }
            was_held = is_held;
            let wake = if is_held { self.start_writes() } else { None };
            tokio::select! {
                () = shutdown.wait() => break,
                () = self.holder.changed() => {}
                Some((id, report)) = reports.recv() => self.hear(id, report),
                Some((id, counts)) = counts.recv() => self.count(id, counts),
                Some((id, seen)) = seen.recv() => self.see(id, seen),
                Some(written) = self.writes.join_next() => {
                    if let Ok((id, written)) = written {
                        self.wrote(id, written);
                    }
                }
                () = self.instances.look(), if is_held => {
                    self.urgent.extend(self.rules.keys().cloned());
                }
                () = async { match wake { Some(at) => sleep_until(at).await, None => std::future::pending().await } } => {}
            }
        }
        // What is on its way is let finish: the holder waits for it before it lets go of the Lease.
        while self.writes.join_next().await.is_some() {}
    }

    fn hear(&mut self, id: RuleId, report: Option<Report>) {
        let Some(report) = report else { return self.forget_part(&id, |known| known.report = None) };
        let known = self.rules.entry(id.clone()).or_default();
        if known.report.as_ref() != Some(&report) {
            known.report = Some(report);
            known.go_on();
            self.urgent.insert(id);
        }
    }

    fn count(&mut self, id: RuleId, counts: Counts) {
        if let Some(known) = self.rules.get_mut(&id).filter(|known| known.counts != Some(counts)) {
            known.counts = Some(counts);
            self.queue(id);
        }
    }

    /// Lets a rule wait for its turn to write counters.
    fn queue(&mut self, id: RuleId) {
        if let Some(known) = self.rules.get_mut(&id).filter(|known| known.turn.is_none()) {
            known.turn = Some(self.next_turn);
            self.counted.insert(self.next_turn, id);
            self.next_turn += 1;
        }
    }

    fn see(&mut self, id: RuleId, seen: Option<Seen>) {
        let Some(seen) = seen else { return self.forget_part(&id, |known| known.seen = None) };
        self.instances.note(&seen.status);
        let known = self.rules.entry(id.clone()).or_default();
        // What we wrote is known before the watch shows it, and what the watch shows then may be older.
        if known.seen.as_ref().is_some_and(|before| seen.is_older_than(before)) {
            return;
        }
        known.seen = Some(seen);
        known.go_on();
        self.urgent.insert(id);
    }

    /// Forgets one of the two things that are known of a rule, and the rule with the second one.
    fn forget_part(&mut self, id: &RuleId, forget: impl FnOnce(&mut Known)) {
        let Some(known) = self.rules.get_mut(id) else { return };
        forget(known);
        if known.seen.is_none() && known.report.is_none() {
            if let Some(turn) = known.turn {
                self.counted.remove(&turn);
            }
            self.rules.remove(id);
            self.urgent.remove(id);
        }
    }

    /// Starts the writes that may start. When to look again, if some have to wait.
    fn start_writes(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let mut wake = None;
        for id in std::mem::take(&mut self.urgent) {
            if self.writing.contains(&id) || self.writes.len() >= WRITES {
                self.urgent.insert(id);
            } else if let Some(at) = self.rules.get(&id).and_then(|known| known.not_before).filter(|at| *at > now) {
                wake = Some(wake.map_or(at, |wake: Instant| wake.min(at)));
                self.urgent.insert(id);
            } else {
                self.start_write(id, false);
            }
        }
        while let Some((turn, id)) = self.counted.first_key_value() {
            if self.writes.len() >= WRITES || self.writing.contains(id) {
                break;
            }
            if let Some(at) = self.tokens.next(now) {
                return Some(wake.map_or(at, |wake| wake.min(at)));
            }
            let (turn, id) = (*turn, id.clone());
            if self.start_write(id, true) {
                self.tokens.take();
            }
            self.counted.remove(&turn);
        }
        wake
    }

    /// Starts a write if the status is not what it should be. Whether one was started.
    ///
    /// Counters go along with what else has changed; alone they need a token, and wait for their turn without one.
    fn start_write(&mut self, id: RuleId, has_token: bool) -> bool {
        let Some(known) = self.rules.get_mut(&id) else { return false };
        if has_token {
            known.turn = None;
        }
        let (Some(seen), Some(report)) = (&known.seen, &known.report) else { return false };
        if seen.uid != report.uid || seen.generation != report.generation {
            // One of the two is older. The other one is on its way.
            return false;
        }
        let now = Timestamp::now();
        let change = |counts| {
            let wanted = Wanted { instance: &self.instance, report, counts, now };
            patch(&seen.status, &desired(&seen.status, &wanted, &|name| self.instances.is_alive(name)))
        };
        let is_due = has_token || known.counts.is_none() || !is_empty(&change(None));
        let patch = change(known.counts);
        if is_empty(&patch) {
            return false;
        }
        if !is_due {
            self.queue(id);
            return false;
        }
        // What it counted is written with the rest.
        if let Some(turn) = known.turn.take() {
            self.counted.remove(&turn);
        }
        let body =
            json!({ "metadata": { "resourceVersion": seen.resource_version, "uid": seen.uid }, "status": patch });
        let (api, holder) = (self.api(&id), self.holder.clone());
        self.writing.insert(id.clone());
        self.writes.spawn(async move {
            let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let body = Patch::Merge(body);
            let write = |_| api.patch_status(&id.name, &parameters, &body);
            let written = match holder.act(TIMEOUT, write).await {
                Ok(Ok(object)) => Written::Done(Box::new(object)),
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => Written::Conflict,
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => Written::Gone,
                Ok(Err(error)) => Written::Failed(explain("patch", &resource_of(&id), &error)),
                Err(ActError::NotHeld) => Written::NotHeld,
                Err(error @ ActError::TimedOut(_)) => Written::Failed(chain(&error)),
            };
            (id, written)
        });
        true
    }

    fn wrote(&mut self, id: RuleId, written: Written) {
        self.writing.remove(&id);
        let Some(known) = self.rules.get_mut(&id) else { return };
        match written {
            Written::Done(mut object) => {
                self.metrics.status_writes.with_label_values(&["written"]).inc();
                self.health.well(Part::Status);
                // Unless it was removed meanwhile.
                if known.seen.is_some() {
                    self.see(id, Some(Seen::new(&mut object)));
                }
            }
            // The newer version comes through the watch, and wakes this rule.
            Written::Conflict => {
                self.metrics.status_writes.with_label_values(&["conflict"]).inc();
                self.pause(id);
            }
            Written::Gone => debug!(rule = %id, "Rule is gone before its status was written"),
            Written::NotHeld => self.pause(id),
            Written::Failed(problem) => {
                self.metrics.status_writes.with_label_values(&["failed"]).inc();
                self.health.unwell(Part::Status, &problem);
                self.pause(id);
            }
        }
    }

    /// Tries a rule again after a while, or as soon as there is news about it.
    fn pause(&mut self, id: RuleId) {
        if let Some(known) = self.rules.get_mut(&id) {
            let pause = FIRST_PAUSE.saturating_mul(1 << known.failures.min(10)).min(MAX_PAUSE);
            known.failures += 1;
            known.not_before = Some(Instant::now() + pause);
            self.urgent.insert(id);
        }
    }

    fn api(&self, id: &RuleId) -> Api<DynamicObject> {
        match &id.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, &ApiResource::erase::<PortalRule>(&()))
            }
            None => Api::all_with(self.client.clone(), &ApiResource::erase::<PortalClusterRule>(&())),
        }
    }
}

impl Known {
    /// There is news: what failed may work now.
    fn go_on(&mut self) {
        (self.failures, self.not_before) = (0, None);
    }
}

fn is_empty(patch: &serde_json::Value) -> bool {
    patch.as_object().is_none_or(serde_json::Map::is_empty)
}

fn resource_of(id: &RuleId) -> String {
    let resource = match &id.namespace {
        Some(_) => ApiResource::erase::<PortalRule>(&()),
        None => ApiResource::erase::<PortalClusterRule>(&()),
    };
    format!("{}/status.{}", resource.plural, resource.group)
}

impl Tokens {
    /// When the next token comes, unless there is one.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        self.left = (self.left + now.duration_since(self.since).as_secs_f64() * COUNTER_RATE).min(COUNTER_BURST);
        self.since = now;
        (self.left < 1.0).then(|| now + Duration::from_secs_f64((1.0 - self.left) / COUNTER_RATE))
    }

    fn take(&mut self) {
        self.left -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_come_at_a_rate_and_do_not_pile_up() {
        let mut tokens = Tokens { left: COUNTER_BURST, since: Instant::now() };
        let mut taken = 0;
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            match tokens.next(Instant::now()) {
                Some(at) => sleep_until(at).await,
                None => {
                    tokens.take();
                    taken += 1;
                }
            }
        }
        assert!((125..=130).contains(&taken), "{taken}");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        tokens.next(Instant::now());
        assert!(tokens.left <= COUNTER_BURST);
    }
}
