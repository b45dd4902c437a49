//! What the connections of a proxy share: the decisions, the way to the API server, and what is under way.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::decide::{Decision, Decisions};
use super::fault::Fault;
use super::request::{Requests, Subject};

/// The state of a running proxy.
pub(super) struct Shared {
    /// Presents the certificate that lets it speak for others.
    pub(super) upstream: Client,
    /// Reads what was stored earlier.
    pub(super) admin: Client,
    decisions: Mutex<Decisions>,
    /// Says that the decisions changed.
    changed: watch::Sender<()>,
    /// Requests and streams under way, by their number.
    open: Mutex<BTreeMap<u64, Arc<UnderWay>>>,
    opened: AtomicU64,
    /// How many requests were done and never answered.
    held: AtomicU32,
    /// Requests whose client has been cut off.
    late: Mutex<JoinSet<()>>,
}

/// A request or a stream that is under way for as long as this lives.
pub(super) struct Open {
    pub(super) shared: Arc<Shared>,
    number: u64,
    under_way: Arc<UnderWay>,
}

/// What is known of a request under way, and how to cut it.
struct UnderWay {
    subject: Subject,
    cut: Notify,
}

/// The end of a connection where nobody expects it.
#[derive(Debug)]
pub(super) struct Cut;

impl Shared {
    pub(super) fn new(upstream: Client, admin: Client, seed: u64, first_revision: u64) -> Self {
        Self {
            upstream,
            admin,
            decisions: Mutex::new(Decisions::new(seed, first_revision, Instant::now())),
            changed: watch::Sender::new(()),
            open: Mutex::default(),
            opened: AtomicU64::new(0),
            held: AtomicU32::new(0),
            late: Mutex::default(),
        }
    }

    /// Changes the decisions, and tells whoever waits for a change.
    pub(super) fn change<T>(&self, run: impl FnOnce(&mut Decisions) -> T) -> T {
        let result = run(&mut lock(&self.decisions));
        self.changed.send_replace(());
        result
    }

    /// The decisions so far.
    pub(super) fn decisions(&self) -> MutexGuard<'_, Decisions> {
        lock(&self.decisions)
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Decides what happens to a request or an event.
    pub(super) fn decide(&self, subject: &Subject) -> Decision {
        let decision = self.change(|decisions| decisions.decide(subject, Instant::now()));
        if let Some(requests) = &decision.refused {
            self.cut(requests);
        }
        decision
    }

    /// Notes a request as under way.
    pub(super) fn open(self: &Arc<Self>, subject: Subject) -> Open {
        let under_way = Arc::new(UnderWay { subject, cut: Notify::new() });
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(number, Arc::clone(&under_way));
        Open { shared: Arc::clone(self), number, under_way }
    }

    /// Cuts what is under way.
    pub(super) fn cut(&self, requests: &Requests) {
        for under_way in lock(&self.open).values() {
            if requests.include(&under_way.subject) {
                under_way.cut.notify_one();
            }
        }
    }

    /// Returns when no partition holds the subject back.
    pub(super) async fn until_heard(&self, subject: &Subject) -> Result<(), Cut> {
        // Before the first look, so that no change is missed.
        let mut changes = self.changes();
        loop {
            let partition = self.decisions().partition(subject, Instant::now());
            let Some(partition) = partition else { return Ok(()) };
            if partition.fault == Fault::Refuse {
                return Err(Cut);
            }
            let ended = async {
                match partition.until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ended => {}
                // The sender is ours, so it is there.
                _ = changes.changed() => {}
            }
        }
    }

    /// Notes that a request was done and is never answered.
    pub(super) fn hold(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        self.changed.send_replace(());
    }

    /// How many requests were done and never answered.
    pub(super) fn held(&self) -> u32 {
        self.held.load(Ordering::SeqCst)
    }

    /// Does something later, whatever becomes of the client.
    pub(super) fn later(&self, delay: Duration, task: impl Future<Output = ()> + Send + 'static) {
        let mut late = lock(&self.late);
        while late.try_join_next().is_some() {}
        late.spawn(async move {
            tokio::time::sleep(delay).await;
            task.await;
        });
    }

    /// What is to be done later.
    pub(super) fn take_late(&self) -> JoinSet<()> {
        std::mem::take(&mut lock(&self.late))
    }
}

impl Open {
    pub(super) fn subject(&self) -> &Subject {
        &self.under_way.subject
    }

    /// Returns when somebody cuts it.
    pub(super) async fn is_cut(&self) {
        self.under_way.cut.notified().await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.shared.open).remove(&self.number);
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cut by the fault proxy")
    }
}

impl std::error::Error for Cut {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
