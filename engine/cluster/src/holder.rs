//! One replica acts for all: the holder of a Lease. This module holds the Lease, or waits for it, and says which.
//!
//! [`election`] has the rules, [`requests`] the API server. `docs/operator/ha-and-leader-election.md` says how far the promise goes.

mod clock;
mod election;
mod record;
mod requests;
mod timing;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use tokio::sync::{RwLock, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::clock::BootTime;
use self::election::{Answer, Election, Held, Step};
use self::requests::{Outcome, Requests, Verb};
use crate::{health::Part, runtime::Runtime};

pub use self::record::ADDRESS;
pub use self::timing::{Timing, TimingError};

/// Which Lease, and who wants it.
#[derive(Clone, Debug)]
pub struct Candidacy {
    /// Where the Lease is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Who this is, for people: the name of the pod. In the Lease a random part follows it, because a pod that restarts keeps its
    /// name, and must not take what its former process held for its own.
    pub identity: String,
    /// Where the other replicas reach this one when it holds, if that is known.
    pub address: Option<String>,
    /// The object that the Lease is deleted with.
    pub owner: Option<OwnerReference>,
    /// How long a term is.
    pub timing: Timing,
}

/// Whether this process holds. A clone sees the same Lease.
#[derive(Clone, Debug)]
pub struct Holder {
    state: watch::Receiver<State>,
    problem: watch::Receiver<Option<String>>,
    /// Those who act hold it for reading. The task takes it for writing, and so waits for them, before it lets go of the Lease.
    acting: Arc<RwLock<()>>,
}

/// Who holds, as this process last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenHolder {
    /// Its name with the random part.
    pub identity: String,
    /// Where it is reached.
    pub address: Option<String>,
}

/// Why an action was not done, or is not known to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActError {
    /// Nothing was sent.
    #[error("this replica does not hold the Lease, or not for long enough")]
    NotHeld,
    /// The action was begun and did not end in time. It may have been done all the same.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    held: Option<Held>,
    seen: Option<SeenHolder>,
}

/// The task behind a [`Holder`].
struct Task {
    election: Election,
    requests: Requests,
    timing: Timing,
    identity: Arc<str>,
    state: watch::Sender<State>,
    problem: watch::Sender<Option<String>>,
    /// What was refused, and what somebody has to do about it.
    refused: Option<(Verb, String)>,
    acting: Arc<RwLock<()>>,
}

/// How long a process that stops may take to let go: longer than what it still does as the holder. Without an answer the others
/// wait the term out.
const RELEASE: Duration = Duration::from_secs(6);

impl Holder {
    /// Starts a task that tries to get the Lease. When `shutdown` is cancelled, the process no longer counts as the holder, lets
    /// those who act come to an end, lets go of the Lease, and the task ends.
    pub fn start(client: Client, candidacy: &Candidacy, shutdown: CancellationToken) -> (Self, JoinHandle<()>) {
        let state = watch::Sender::default();
        let problem = watch::Sender::default();
        let acting = Arc::new(RwLock::new(()));
        let holder = Self { state: state.subscribe(), problem: problem.subscribe(), acting: acting.clone() };
        // Both are seeded by the system, differently in each process. Nothing secret is made of them.
        let (suffix, seed) = (fastrand::u64(..), fastrand::u64(..));
        let identity: Arc<str> = format!("{}_{suffix:016x}", candidacy.identity).into();
        let task = Task {
            election: Election::new(identity.clone(), candidacy.timing, seed, BootTime::now()),
            requests: Requests::new(client, candidacy),
            timing: candidacy.timing,
            identity,
            state,
            problem,
            refused: None,
            acting,
        };
        (holder, tokio::spawn(task.run(shutdown)))
    }

    /// Whether this process holds, at this very moment: a process that slept through its term sees that it is over.
    pub fn is_held(&self) -> bool {
        self.term().is_some()
    }

    /// The number of this process's term, if it holds. It is the Lease's `leaseTransitions`: each term has a higher one, until
    /// somebody deletes the Lease.
    pub fn term(&self) -> Option<i32> {
        self.left().map(|(held, _)| held.term)
    }

    /// Does what only the holder may do, if this process holds for at least as long as that may take. What is on its way when the
    /// process is told to stop comes to its end before the Lease is let go. `work` gets the number of the term.
    pub async fn act<T, F>(&self, timeout: Duration, work: impl FnOnce(i32) -> F) -> Result<T, ActError>
    where
        F: Future<Output = T>,
    {
        // Taken before the look, so that the task either waits for this or has already said that the term is over.
        let Ok(_acting) = self.acting.try_read() else { return Err(ActError::NotHeld) };
        let (held, _) = self.left().filter(|(_, left)| *left > timeout).ok_or(ActError::NotHeld)?;
        tokio::time::timeout(timeout, work(held.term)).await.map_err(|_| ActError::TimedOut(timeout))
    }

    /// Waits until a term of this process begins or ends, or another holder is seen.
    pub async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            // The task has ended, and nothing will ever change again.
            std::future::pending().await
        }
    }

    /// Who holds, as last seen.
    pub fn observed(&self) -> Option<SeenHolder> {
        self.state.borrow().seen.clone()
    }

    /// What is in the way of holding the Lease: a permission that is missing, a namespace that does not exist, an API server that
    /// does not answer.
    pub fn problem(&self) -> watch::Receiver<Option<String>> {
        self.problem.clone()
    }

    fn left(&self) -> Option<(Held, Duration)> {
        let held = self.state.borrow().held?;
        let left = held.until.since(BootTime::now());
        (!left.is_zero()).then_some((held, left))
    }
}

impl Task {
    async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let now = BootTime::now();
            let step = self.election.next(now, Timestamp::now());
            self.publish();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.follow(step, now) => {}
            }
        }
        // A request that was cut off may have been done.
        self.election.answered(BootTime::now(), Answer::Lost);
        self.election.stop(BootTime::now());
        self.publish();
        if tokio::time::timeout(RELEASE, self.release()).await.is_err() {
            warn!(identity = %self.identity, "Lease could not be let go in time: others wait until it runs out");
        }
    }

    async fn release(&mut self) {
        // Nobody may take over while something of this term is on its way.
        let acting = self.acting.clone();
        let _nobody_acts = acting.write().await;
        loop {
            let now = BootTime::now();
            match self.election.next(now, Timestamp::now()) {
                Step::End => break,
                step => self.follow(step, now).await,
            }
        }
    }

    /// Does what the election says. `now` is the time that the election was told.
    async fn follow(&mut self, step: Step, now: BootTime) {
        if let Step::Wait(until) = step {
            tokio::time::sleep(until.since(now)).await;
            return;
        }
        let timeout = self.timing.request_timeout();
        let timeout = self.election.held().map_or(timeout, |held| timeout.min(held.until.since(now)));
        let Outcome { verb, answer, problem, failure } = self.requests.ask(&step, timeout).await;
        self.election.answered(BootTime::now(), answer);
        // A request that worked was allowed. That the Lease may be read says nothing about whether it may be written.
        match problem {
            Some(problem) => self.refused = Some((verb, problem)),
            None if failure.is_none() => drop(self.refused.take_if(|(refused, _)| *refused <= verb)),
            None => {}
        }
        let problem = self.refused.as_ref().map(|(_, problem)| problem.clone()).or(failure);
        self.problem.send_if_modified(|current| std::mem::replace(current, problem.clone()) != problem);
        self.publish();
    }

    /// Says who holds, to those who wait for a change. A renewal is none.
    fn publish(&self) {
        let seen = self.election.holder().map(|identity| SeenHolder {
            identity: identity.to_owned(),
            address: self.requests.holder_address.clone(),
        });
        let state = State { held: self.election.held(), seen };
        self.state.send_if_modified(|current| {
            let terms = [current.held, state.held].map(|held| held.map(|held| held.term));
            let is_changed = terms[0] != terms[1] || current.seen != state.seen;
            match terms {
                [before, after] if before == after => {}
                [_, Some(term)] => info!(identity = %self.identity, term, "Term begins"),
                [Some(term), None] => info!(identity = %self.identity, term, "Term is over"),
                [None, None] => {}
            }
            *current = state;
            is_changed
        });
    }
}

/// Says in a metric whether this replica holds the Lease, and on `/readyz` what keeps it from that. It is ready all the same:
/// others may hold the Lease.
pub async fn follow(mut holder: Holder, runtime: Runtime) {
    let mut problem = holder.problem();
    loop {
        runtime.metrics.lease_held.set(i64::from(holder.is_held()));
        match problem.borrow_and_update().clone() {
            Some(problem) => runtime.health.unwell(&Part::Lease, &problem),
            None => runtime.health.well(&Part::Lease),
        }
        tokio::select! {
            changed = problem.changed() => if changed.is_err() { return },
            () = holder.changed() => {}
            () = runtime.shutdown.cancelled() => return,
        }
    }
}
