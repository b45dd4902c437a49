//! Judges what is in the cluster, whenever it changes, and whenever something changes that rules look up for it.
//!
//! ```text
//! feeds ── Changes ──┐
//! snapshot in force ─┼→ Ledger ⇄ workers (judge) → Board → sinks
//! clock ─────────────┘
//! ```
//!
//! See [the decision](../../../docs/adr/0027-audit-is-a-state.md). Nothing here writes to the cluster.

mod budget;
mod dependents;
mod judge;
mod ledger;
mod queue;
mod retries;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use portal_cluster::{rules::snapshot::InForce, runtime::Runtime};
use portal_core::selector::Selector;
use portal_expr::{Limits, Moment as Time};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::info;

use self::{judge::Judge, ledger::Ledger};
use crate::{
    cache::{
        changes::{Change, Changes, Place},
        fresh::Fresh,
        keeper::Caches,
        moment::Moment,
    },
    findings::Board,
    metrics::EngineMetrics,
    outcomes::Outcome,
    tally::Tallies,
};

#[cfg(test)]
pub(crate) mod testing {
    //! Audit without threads, for histories.

    pub(crate) use super::ledger::tests::{
        KINDS, Scene,
        histories::{NAMESPACES, object, rules},
    };
}

pub use self::budget::Allowance;

/// How audit works.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// How many objects are judged at a time.
    pub workers: usize,
    /// After how long every object is judged again although nothing has changed.
    pub resync: Duration,
    /// How many queries of rules are remembered.
    pub dependencies: usize,
    /// How often a rule may judge an object again because of what it looks up.
    pub allowance: Allowance,
    /// Whether the board is told what rules are met. That takes memory for every object.
    pub passes: bool,
    /// The namespaces that the instance serves, by their labels.
    pub namespaces: Selector,
    /// What an evaluation may take.
    pub limits: Limits,
}

/// Audit, before it has begun. It is told of changes from here on.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

/// Takes what admission has let in by rules that audit never asks. A clone takes it for the same audit.
#[derive(Clone)]
pub struct Hearing(Arc<Shared>);

/// What the listener of the caches, the workers and the clock share.
struct Shared {
    settings: AuditSettings,
    ledger: Mutex<Ledger>,
    /// Something waits, or it is the end.
    changed: Condvar,
    metrics: EngineMetrics,
}

/// How often what was counted is told, and it is looked whether an exception has ended.
const TELLING: Duration = Duration::from_secs(1);

impl Default for AuditSettings {
    fn default() -> AuditSettings {
        AuditSettings {
            workers: 2,
            resync: Duration::from_secs(600),
            dependencies: 500_000,
            allowance: Allowance { times: 3, window: Duration::from_secs(10) },
            passes: false,
            namespaces: Selector::default(),
            limits: Limits::default(),
        }
    }
}

impl Audit {
    /// An audit that says on the board what it finds.
    pub fn new(settings: AuditSettings, board: Board, metrics: EngineMetrics) -> Audit {
        let mut ledger = Ledger::new(board, settings.dependencies, settings.allowance);
        if settings.passes {
            ledger = ledger.telling_passes();
        }
        let ledger = Mutex::new(ledger);
        Audit { shared: Arc::new(Shared { settings, ledger, changed: Condvar::new(), metrics }) }
    }

    /// Who has to be told of changes.
    pub fn listener(&self) -> Arc<dyn Changes> {
        Arc::clone(&self.shared) as Arc<dyn Changes>
    }

    /// Who has to be told of what admission has let in.
    pub fn hearing(&self) -> Hearing {
        Hearing(Arc::clone(&self.shared))
    }

    /// Judges until the end. Fresh reads of rules are done by `fresh`.
    pub async fn run(self, in_force: InForce, caches: Caches, fresh: Fresh, tallies: Tallies, runtime: Runtime) {
        let Audit { shared } = self;
        let mut workers: Vec<_> = (0..shared.settings.workers.max(1))
            .map(|number| {
                let judge = Judge {
                    caches: caches.clone(),
                    fresh: fresh.clone(),
                    namespaces: shared.settings.namespaces.clone(),
                    limits: shared.settings.limits,
                    runtime: Handle::current(),
                };
                let (shared, tallies, shutdown) = (Arc::clone(&shared), tallies.clone(), runtime.shutdown.clone());
                let work = move || shared.work(&judge, &tallies, || shutdown.is_cancelled());
                std::thread::Builder::new().name(format!("audit-{number}")).spawn(work).expect("threads can be started")
            })
            .collect();
        let keeping = async {
            tokio::select! {
                () = shared.keep_time(&in_force, &caches) => {}
                // A worker ends before the others only if it has panicked, and nothing would be judged any more.
                () = until_one_ends(&workers) => {}
            }
        };
        let _ = runtime.shutdown.run_until_cancelled(keeping).await;
        shared.changed.notify_all();
        // The one that has panicked first: the others go on.
        workers.sort_by_key(|worker| !worker.is_finished());
        let joined = tokio::task::spawn_blocking(move || {
            for worker in workers {
                if let Err(panic) = worker.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        if let Err(error) = joined.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

impl Hearing {
    /// Takes outcomes. Some of them may be known already. They are on the board when this returns, if their objects are known.
    pub fn hear(&self, outcomes: &[Outcome]) {
        let (mut ledger, now) = (self.0.ledger(), Instant::now());
        outcomes.iter().for_each(|outcome| ledger.hear(outcome, now));
    }

    /// Forgets all of them: another replica hears of them from here on.
    pub fn forget(&self) {
        self.0.ledger().forget_outcomes();
    }
}

impl Shared {
    /// Takes over other rules, judges everything again now and then, and notices when exceptions end. Never returns.
    async fn keep_time(self: &Arc<Shared>, in_force: &InForce, caches: &Caches) {
        let mut numbers = in_force.numbers();
        numbers.mark_changed();
        let mut resync = tokio::time::interval(self.settings.resync);
        resync.reset();
        let mut checked = time_now();
        loop {
            tokio::select! {
                changed = numbers.changed() => {
                    if changed.is_err() {
                        // Nobody puts rules in force any more.
                        std::future::pending::<()>().await;
                    }
                    let (shared, in_force, caches) = (Arc::clone(self), in_force.clone(), caches.clone());
                    let followed = tokio::task::spawn_blocking(move || shared.ledger().follow(in_force.now(), &caches));
                    if let Err(error) = followed.await {
                        std::panic::resume_unwind(error.into_panic());
                    }
                }
                _ = resync.tick() => {
                    self.ledger().resync();
                    self.metrics.audit_resyncs.inc();
                    info!("Every object is judged again");
                }
                () = sleep(TELLING) => {}
            }
            let now = time_now();
            let mut ledger = self.ledger();
            if ledger.next_expiry(checked).is_some_and(|end| end <= now) {
                ledger.expire(checked, now);
                checked = now;
            }
            drop(ledger);
            self.tell();
            self.changed.notify_all();
        }
    }

    /// Takes jobs until the end.
    fn work(&self, judge: &Judge, tallies: &Tallies, is_over: impl Fn() -> bool) {
        let mut ledger = self.ledger();
        while !is_over() {
            let now = Instant::now();
            let Some(job) = ledger.take(now) else {
                let pause = ledger.next_wake().map_or(TELLING, |wake| wake.saturating_duration_since(now));
                let waited = self.changed.wait_timeout(ledger, pause.clamp(Duration::from_millis(1), TELLING));
                ledger = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            drop(ledger);
            let waits_since = job.waits_since;
            let judged = judge.judge(&job, tallies, &self.metrics);
            ledger = self.ledger();
            ledger.finish(job, judged, Timestamp::now(), Instant::now());
            if let Some(since) = waits_since {
                self.metrics.audit_seconds.observe(since.elapsed().as_secs_f64());
            }
        }
    }

    fn tell(&self) {
        let mut ledger = self.ledger();
        let counted = std::mem::take(&mut ledger.counted);
        let (dependencies, _) = ledger.dependencies();
        self.metrics.audit_queue.set(ledger.waiting() as i64);
        self.metrics.lookup_dependencies.set(dependencies as i64);
        self.metrics.lookups_suppressed.inc_by(counted.suppressed);
        self.metrics.dependencies_forgotten.inc_by(counted.forgotten);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changes for Shared {
    fn changed(&self, place: Place<'_>, change: &Change) {
        self.ledger().changed(place, change, Instant::now());
        self.changed.notify_one();
    }

    fn listed(&self, place: Place<'_>, before: Option<&Moment>, after: &Moment) {
        self.ledger().listed(place, before, after, Instant::now());
        if before.is_some() {
            self.metrics.audit_relists.inc();
        }
        self.changed.notify_all();
    }

    fn recovered(&self, _: Place<'_>) {
        self.ledger().ask_failed_again(Instant::now());
        self.changed.notify_all();
    }

    fn ended(&self, place: Place<'_>) {
        self.ledger().ended(place);
    }

    fn settled(&self, snapshot: Option<u64>) {
        self.ledger().settle(snapshot);
    }
}

fn time_now() -> Time {
    let now = Timestamp::now();
    Time::new(now.as_second(), now.subsec_nanosecond().unsigned_abs())
}

async fn until_one_ends(workers: &[JoinHandle<()>]) {
    while workers.iter().all(|worker| !worker.is_finished()) {
        sleep(TELLING).await;
    }
}
