//! Writes reports, as long as this replica holds the Lease.
//!
//! It takes what has changed on the board at any time, so that a replica that takes over knows what there should be. What there is it
//! asks the API server when its term begins, and now and then: others can change and delete reports.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use portal_cluster::{
    holder::{ActError, Holder},
    rules::snapshot::InForce,
    runtime::Runtime,
    watch::chain,
};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    layout::{About, Key, Layout, Seen, Sizes, Step},
    model::Api,
    pace::{Pace, pause},
    requests::{Failure, Outcome, Requests},
};
use crate::{
    audit::Hearing,
    findings::{Change, Outlet},
    metrics::{EngineMetrics, ReportWrite},
};

/// Which reports are written, and for whom.
#[derive(Clone, Debug)]
pub struct ReportSettings {
    /// The name of the instance.
    pub instance: String,
    /// Its UID, if it is an object of the cluster: its reports go with it.
    pub instance_uid: Option<String>,
    /// Which kind of report.
    pub api: Api,
    /// How long a write may take. The Lease has to be held for longer than that.
    pub timeout: Duration,
    /// How often it is looked whether all reports are as they were left: [`LOOK`].
    pub look: Duration,
}

/// How often it is looked whether all reports are as they were left. A look asks for their metadata alone.
pub const LOOK: Duration = Duration::from_secs(600);

/// How the reports are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Reporting {
    /// Another replica writes them, or none does.
    #[default]
    Standby,
    /// This replica holds the Lease, and is finding out which reports there are.
    Starting,
    /// They are written.
    Available,
    /// The API server does not know the kind. Nothing is written until it does.
    NotServed(String),
    /// Some or all could not be written. They are tried again.
    Failing(String),
}

/// The writer's state. One task owns it.
pub struct Writer {
    runtime: Runtime,
    metrics: EngineMetrics,
    timeout: Duration,
    look: Duration,
    holder: Holder,
    outlet: Outlet,
    /// Who takes what only admission can tell, and reports say.
    hearing: Option<Hearing>,
    /// The last term in which it was told. Later in a term reports say nothing that audit does not know, unless others have written it.
    told_in: Option<i32>,
    in_force: InForce,
    requests: Requests,
    layout: Layout,
    pace: Pace,
    phase: Phase,
    /// The term in which the phase began. What was asked in another one says nothing any more.
    term: Option<i32>,
    /// Lists that failed one after the other.
    failures: u32,
    /// Reports that are being written, and whether they have to be looked at again after that.
    writing: HashMap<Key, bool>,
    /// Reports that could not be written.
    failing: BTreeMap<Key, Failing>,
    /// When it is looked whether all reports are as they were left.
    next_look: Instant,
    /// How many writes have ended. A look during which that changes says nothing.
    writes: u64,
    tasks: JoinSet<Told>,
    reporting: watch::Sender<Reporting>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Standby,
    /// A list is under way.
    Listing,
    /// A list failed, and is tried again then.
    Waiting(Instant),
    Working,
}

/// A report that could not be written.
#[derive(Debug)]
struct Failing {
    /// How often in a row.
    times: u32,
    /// It is not tried again before, whatever changes.
    until: Instant,
    /// Why. Nothing if nobody can do anything about it.
    problem: Option<String>,
}

/// What tasks tell.
enum Told {
    Listed(Option<i32>, Result<Vec<Seen>, Failure>),
    Looked(Option<i32>, u64, Result<BTreeMap<(Option<String>, String), String>, Failure>),
    Wrote(Option<i32>, Key, usize, Outcome),
}

/// How often the API server is asked for kinds that it did not know. It is asked at once when it says that it knows them.
const NOT_SERVED: Duration = Duration::from_secs(60);

impl Writer {
    /// A writer for what an outlet of the board tells. What comes back says how the reports are.
    pub fn new(
        runtime: Runtime,
        metrics: EngineMetrics,
        settings: ReportSettings,
        holder: Holder,
        outlet: Outlet,
        in_force: InForce,
    ) -> (Writer, watch::Receiver<Reporting>) {
        let ReportSettings { instance, instance_uid, api, timeout, look } = settings;
        let about = About { api, instance, instance_uid };
        let (reporting, reporting_in) = watch::channel(Reporting::default());
        let now = Instant::now();
        let writer = Writer {
            requests: Requests::new(runtime.client.clone(), about.clone()),
            layout: Layout::new(about, Sizes::default()),
            pace: Pace::new(now),
            phase: Phase::Standby,
            term: None,
            failures: 0,
            writing: HashMap::new(),
            failing: BTreeMap::new(),
            next_look: now,
            writes: 0,
            tasks: JoinSet::new(),
            runtime,
            metrics,
            timeout,
            look,
            holder,
            outlet,
            hearing: None,
            told_in: None,
            in_force,
            reporting,
        };
        (writer, reporting_in)
    }

    /// The same, which tells audit what reports say that only admission can tell.
    pub fn telling(self, hearing: Hearing) -> Writer {
        Writer { hearing: Some(hearing), ..self }
    }

    /// Writes what has to be written, until the end.
    pub async fn run(mut self) {
        let shutdown = self.runtime.shutdown.clone();
        let mut is_complete = self.outlet.is_complete();
        let mut kinds = self.in_force.numbers();
        loop {
            self.follow_lease();
            let wake = self.start();
            self.tell();
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.holder.changed() => {}
                changes = self.outlet.changes() => self.take(changes),
                Some(told) = self.tasks.join_next() => match told {
                    Ok(told) => self.hear(told),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Ok(()) = is_complete.changed() => self.settle(),
                Ok(()) = kinds.changed() => self.look_for_kinds(),
                () = async { match wake { Some(at) => sleep_until(at).await, None => std::future::pending().await } } => {}
            }
        }
        // What is on its way is let finish: the holder waits for it before it lets go of the Lease.
        while self.tasks.join_next().await.is_some() {}
    }

    fn follow_lease(&mut self) {
        let term = self.holder.term();
        if term == self.term {
            return;
        }
        self.term = term;
        self.layout.forget();
        self.pace.clear();
        self.failing.clear();
        self.failures = 0;
        self.phase = if term.is_some() { Phase::Waiting(Instant::now()) } else { Phase::Standby };
        if term.is_some() {
            info!("Reports are written by this replica");
        }
    }

    /// Starts what may start. Returns when to look again, if something has to wait.
    fn start(&mut self) -> Option<Instant> {
        let now = Instant::now();
        match self.phase {
            Phase::Standby | Phase::Listing => None,
            Phase::Waiting(until) if until > now => Some(until),
            Phase::Waiting(_) => {
                self.phase = Phase::Listing;
                // What was true before the list began is on the board when it is compared.
                let keeps = !*self.outlet.is_complete().borrow();
                let (requests, term) = (self.requests.clone(), self.term);
                self.tasks.spawn(async move { Told::Listed(term, requests.list(keeps).await) });
                None
            }
            Phase::Working => {
                let wake = self.start_writes(now);
                self.start_look(now);
                wake.into_iter().chain((self.next_look > now).then_some(self.next_look)).min()
            }
        }
    }

    fn start_writes(&mut self, now: Instant) -> Option<Instant> {
        for key in self.layout.take_dirty() {
            self.pace.push(key);
        }
        loop {
            let key = match self.pace.pop(now, self.writing.len()) {
                Ok(key) => key,
                Err(wake) => return wake,
            };
            if self.failing.get(&key).is_some_and(|failing| failing.until > now) {
                // It comes to its turn then.
                continue;
            }
            if let Some(again) = self.writing.get_mut(&key) {
                *again = true;
                continue;
            }
            let Some(step) = self.layout.step(&key) else {
                self.failing.remove(&key);
                continue;
            };
            let bytes = match &step {
                Step::Write(writing) => super::results::length(&writing.report),
                Step::Delete(_) => 0,
            };
            self.pace.started(&key, now, bytes);
            self.writing.insert(key.clone(), false);
            let (requests, holder, timeout, term) =
                (self.requests.clone(), self.holder.clone(), self.timeout, self.term);
            self.tasks.spawn(async move {
                let outcome = match holder.act(timeout, |_| requests.take(&key, step)).await {
                    Ok(outcome) => outcome,
                    Err(ActError::NotHeld) => Outcome::NotHeld,
                    Err(error @ ActError::TimedOut(_)) => Outcome::Failed(Failure::Failed(chain(&error), None)),
                };
                Told::Wrote(term, key, bytes, outcome)
            });
        }
    }

    /// Looks whether all reports are as they were left, if it is time and nothing else is going on.
    fn start_look(&mut self, now: Instant) {
        if self.next_look > now || !self.tasks.is_empty() || !self.pace.is_idle() {
            return;
        }
        self.next_look = now + self.look;
        let (requests, term, writes) = (self.requests.clone(), self.term, self.writes);
        self.tasks.spawn(async move { Told::Looked(term, writes, requests.versions().await) });
    }

    fn take(&mut self, changes: Vec<Change>) {
        self.pace.changed(Instant::now(), changes.len());
        for (id, offender) in changes {
            self.layout.put(id, offender);
        }
        if self.phase != Phase::Working {
            // Each report is looked at when it is known which there are.
            self.layout.take_dirty();
        }
    }

    /// If everything has been judged, what reports say beyond what is on the board is over.
    fn settle(&mut self) {
        if *self.outlet.is_complete().borrow() {
            // All of it was there before the board said that it is complete.
            let changes = self.outlet.take();
            self.take(changes);
            self.layout.complete();
        }
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Listed(term, listed) if term == self.term => match listed {
                Ok(seen) => {
                    debug!(reports = seen.len(), "Reports that are there are known");
                    if let Some(hearing) = self.hearing.as_ref().filter(|_| self.told_in != term) {
                        // On the board before it is looked what is not there.
                        self.told_in = term;
                        seen.iter().for_each(|seen| hearing.hear(&seen.outcomes));
                    }
                    let changes = self.outlet.take();
                    self.take(changes);
                    self.layout.adopt(seen);
                    self.phase = Phase::Working;
                    self.settle();
                    self.note_counts();
                    self.failures = 0;
                    self.next_look = Instant::now() + self.look;
                    self.reporting.send_if_modified(|state| set(state, Reporting::Available));
                }
                Err(failure) => self.fail_to_list(failure),
            },
            Told::Looked(term, writes, versions) if term == self.term && self.phase == Phase::Working => {
                match versions {
                    Ok(versions) if writes == self.writes && self.writing.is_empty() => {
                        if versions != self.layout.versions() {
                            info!("Reports were changed or deleted by others");
                            self.phase = Phase::Waiting(Instant::now());
                        }
                    }
                    // Something was written meanwhile, and nobody knows what was seen of it.
                    Ok(_) => self.next_look = Instant::now() + self.look / 10,
                    Err(failure @ Failure::NotServed(_)) => self.fail_to_list(failure),
                    Err(Failure::Refused(problem) | Failure::Failed(problem, _)) => {
                        warn!(error = problem, "Reports could not be looked at, which is tried again");
                        self.next_look = Instant::now() + self.look / 10;
                    }
                }
            }
            Told::Wrote(term, key, bytes, outcome) => {
                self.writes += 1;
                let again = self.writing.remove(&key).unwrap_or_default();
                if term == self.term && self.phase == Phase::Working {
                    self.wrote(key.clone(), bytes, outcome);
                    if again {
                        self.pace.push(key);
                    }
                }
                self.note_counts();
            }
            Told::Listed(..) | Told::Looked(..) => {}
        }
    }

    /// Says how many reports there are.
    fn note_counts(&self) {
        let (reports, left_out) = self.layout.counts();
        self.metrics.reports.set(reports as i64);
        self.metrics.report_results_left_out.set(left_out as i64);
    }

    fn wrote(&mut self, key: Key, bytes: usize, outcome: Outcome) {
        let now = Instant::now();
        let count = |outcome| self.metrics.report_writes.at(&outcome).inc();
        match outcome {
            Outcome::Written { version, print, left_out, is_new } => {
                count(if is_new { ReportWrite::Created } else { ReportWrite::Replaced });
                self.metrics.report_bytes.inc_by(bytes as u64);
                self.layout.wrote(&key, version, print, left_out);
                self.is_well(&key);
            }
            Outcome::Deleted => {
                count(ReportWrite::Deleted);
                self.layout.gone(&key);
                self.is_well(&key);
            }
            Outcome::Found(found) => {
                count(ReportWrite::Conflict);
                match found {
                    Some(seen) => self.layout.found(*seen),
                    None => self.layout.gone(&key),
                }
                self.is_well(&key);
            }
            // What is wrong in the namespace goes with it. Until then it is asked less and less often.
            Outcome::NoNamespace => {
                self.layout.gone(&key);
                self.delay(key, now, None);
            }
            Outcome::NotHeld => self.pace.delay(key, now + pause(0)),
            Outcome::Failed(failure @ Failure::NotServed(_)) => self.fail_to_list(failure),
            Outcome::Failed(Failure::Refused(problem)) => {
                count(ReportWrite::Failed);
                self.delay(key, now, Some(problem));
            }
            Outcome::Failed(Failure::Failed(problem, at_least)) => {
                count(ReportWrite::Failed);
                self.pace.failed(now, at_least);
                self.delay(key, now, Some(problem));
            }
        }
    }

    fn is_well(&mut self, key: &Key) {
        self.pace.succeeded();
        self.failing.remove(key);
    }

    /// Tries a report again later. If nobody can do anything about it, nobody is told.
    fn delay(&mut self, key: Key, now: Instant, problem: Option<String>) {
        let times = self.failing.get(&key).map_or(0, |failing| failing.times);
        let until = now + pause(times);
        self.failing.insert(key.clone(), Failing { times: times + 1, until, problem });
        self.pace.delay(key, until);
    }

    fn fail_to_list(&mut self, failure: Failure) {
        let now = Instant::now();
        // Whatever was on its way says nothing any more.
        self.layout.forget();
        self.pace.clear();
        self.failing.clear();
        let (until, state) = match failure {
            Failure::NotServed(problem) => (now + NOT_SERVED, Reporting::NotServed(problem)),
            Failure::Refused(problem) | Failure::Failed(problem, None) => {
                (now + pause(self.failures), Reporting::Failing(problem))
            }
            Failure::Failed(problem, Some(at_least)) => {
                (now + pause(self.failures).max(at_least), Reporting::Failing(problem))
            }
        };
        self.failures += 1;
        self.phase = Phase::Waiting(until);
        self.reporting.send_if_modified(|current| set(current, state));
        self.metrics.reports.set(0);
    }

    /// The API server may serve the kinds of reports from here on.
    fn look_for_kinds(&mut self) {
        if !matches!(*self.reporting.borrow(), Reporting::NotServed(_)) {
            return;
        }
        let (kinds, api) = (&self.in_force.now().kinds, self.layout.about().api);
        let is_served = [true, false].into_iter().all(|is_namespaced| {
            let kind = kinds.get(api.group(), api.kind(is_namespaced));
            kind.is_some_and(|kind| kind.versions.iter().any(|version| version == api.version()))
        });
        if let (true, Phase::Waiting(until)) = (is_served, &mut self.phase) {
            *until = Instant::now();
        }
    }

    /// Says how the reports are.
    fn tell(&self) {
        let problem = self.failing.values().find_map(|failing| failing.problem.clone());
        let state = match (self.phase, problem) {
            (Phase::Standby, _) => Reporting::Standby,
            (Phase::Working, None) => Reporting::Available,
            (Phase::Working, Some(problem)) => Reporting::Failing(problem),
            // A list that failed has said so. One that looks after others has nothing to say yet.
            (Phase::Listing | Phase::Waiting(_), _) => match &*self.reporting.borrow() {
                Reporting::Standby => Reporting::Starting,
                state => state.clone(),
            },
        };
        self.reporting.send_if_modified(|current| set(current, state));
        if self.phase == Phase::Standby {
            self.metrics.reports.set(0);
            self.metrics.report_results_left_out.set(0);
        }
    }
}

/// Replaces a state, and says whether it is another one.
fn set(current: &mut Reporting, state: Reporting) -> bool {
    let is_other = *current != state;
    *current = state;
    is_other
}
