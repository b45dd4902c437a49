//! Alerts. Every Alertmanager is told what fires, again and again, and what has ended.
//!
//! ```text
//! Board ── Outlet ─┐
//! admission ─ Denials ─┴→ Book (what fires) → Receiver (what this one was told) → Way ─ POST ─► Alertmanager
//! ```
//!
//! Every replica keeps the book. The holder of the Lease sends what audit has found, so that a new holder knows at once what fires and what
//! has ended lately. What admission refuses is sent by whoever refused it.

mod alert;
mod book;
mod credentials;
mod denials;
mod post;
mod receiver;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use portal_cluster::holder::{ActError, Holder};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::{
    alert::Alert,
    book::{AlertId, Book, Class, Now},
    credentials::Credentials,
    denials::QUEUE,
    post::Way,
    receiver::{May, Message, Outcome, Receiver},
};
use crate::{
    findings::{Board, Change, Outlet},
    metrics::{AlertFailure, AlertLoss, AlertMode, EngineMetrics, ReceiverNumber},
};

pub use self::denials::{Denials, Refused, owner};
pub use self::post::{Address, AddressError};
#[cfg(test)]
pub(crate) use self::simulation::alerter::{Alerter, FakeAlertmanager, wanted};

/// Where alerts are sent.
#[derive(Clone, Debug)]
pub struct AlertmanagerSettings {
    /// Every Alertmanager. Each is sent everything.
    pub addresses: Vec<Address>,
    /// A folder with `username` and `password`, or `token`, and `ca.crt`. They are sent to these addresses, and to nobody else.
    pub credentials: Option<PathBuf>,
    /// The name of the instance, which is a label of each alert.
    pub instance: String,
}

/// What sends alerts.
pub struct Alertmanager {
    book: Book,
    receivers: Vec<Recipient>,
    audit: Option<Audit>,
    /// Nothing once nobody can refuse anything any more.
    denials: Option<mpsc::Receiver<Alert>>,
    metrics: EngineMetrics,
    shutdown: CancellationToken,
    begin: Instant,
    /// Messages on their way, with the receivers that they are for.
    posts: JoinSet<(usize, Way, Outcome)>,
}

/// A receiver, and the way to it unless a message is on it.
struct Recipient {
    number: ReceiverNumber,
    receiver: Receiver,
    way: Option<Way>,
}

/// What audit has found, and whether this process speaks for it.
struct Audit {
    board: Board,
    outlet: Outlet,
    is_complete: watch::Receiver<bool>,
    turn: Turn,
    /// The term in which the receivers are told.
    term: Option<i32>,
    /// Whether what is gone from the board has ended.
    may_end: bool,
}

/// Whose turn it is to speak for audit.
#[derive(Clone)]
enum Turn {
    Holder(Holder),
    /// A term, as a test wants it.
    #[cfg(test)]
    Test(watch::Receiver<Option<i32>>),
}

/// How much memory alerts may take.
const ROOM: usize = 32 << 20;

/// How long the Lease must still be held for a message to be sent: longer than the message may take.
const TURN: Duration = Duration::from_millis(5500);

impl Alertmanager {
    /// Sends what is on the board while the Lease is held, and what is refused. Without audit there is no board. Nothing happens until
    /// [`Alertmanager::run`].
    pub fn new(
        settings: AlertmanagerSettings,
        audit: Option<(&Board, Holder)>,
        metrics: EngineMetrics,
        shutdown: CancellationToken,
    ) -> (Alertmanager, Denials) {
        let audit = audit.map(|(board, holder)| Audit::new(board, Turn::Holder(holder)));
        Alertmanager::with(settings, audit, ROOM, metrics, shutdown)
    }

    fn with(
        settings: AlertmanagerSettings,
        audit: Option<Audit>,
        room: usize,
        metrics: EngineMetrics,
        shutdown: CancellationToken,
    ) -> (Alertmanager, Denials) {
        let AlertmanagerSettings { addresses, credentials, instance } = settings;
        let credentials = Credentials(credentials);
        let receivers = addresses.into_iter().enumerate().map(|(place, address)| Recipient {
            number: ReceiverNumber((place + 1).to_string()),
            receiver: Receiver::new(fastrand::u64(..)),
            way: Some(Way::new(address, credentials.clone())),
        });
        let (queue, denials) = mpsc::channel(QUEUE);
        let handle = Denials { queue, instance: instance.as_str().into(), lost: metrics.alerts_lost.clone() };
        let alertmanager = Alertmanager {
            book: Book::new(&instance, room),
            receivers: receivers.collect(),
            audit,
            denials: Some(denials),
            metrics,
            shutdown,
            begin: Instant::now(),
            posts: JoinSet::new(),
        };
        (alertmanager, handle)
    }

    /// Sends until the process is to end. What audit has found is left to the next holder then; what was refused here is sent at last.
    pub async fn run(mut self) {
        let shutdown = self.shutdown.clone();
        shutdown.run_until_cancelled(self.go_on()).await;
        self.audit = None;
        // Whoever does not take it in time is not told.
        let _ = tokio::time::timeout(LAST_WORDS, self.finish()).await;
    }

    async fn finish(&mut self) {
        let mut denials = self.denials.take();
        while let Some(denial) = denials.as_mut().and_then(|denials| denials.try_recv().ok()) {
            self.deny(&denial);
        }
        self.look();
        while let Some(posted) = self.posts.join_next().await {
            let (place, way, outcome) = whole(posted);
            self.settle(place, way, outcome);
            self.look();
        }
    }

    async fn go_on(&mut self) {
        loop {
            let wakes = self.look();
            let Alertmanager { audit, denials, posts, .. } = self;
            let news = async {
                match audit {
                    Some(audit) => audit.news().await,
                    None => std::future::pending().await,
                }
            };
            let refused = async {
                match denials {
                    Some(denials) => denials.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changes = news => self.note(changes),
                denial = refused => match denial {
                    Some(denial) => self.deny(&denial),
                    None => self.denials = None,
                },
                Some(posted) = posts.join_next() => {
                    let (place, way, outcome) = whole(posted);
                    self.settle(place, way, outcome);
                }
                () = sleep_until(wakes.unwrap_or_else(|| Instant::now() + IDLE)) => {}
            }
        }
    }

    /// Sends whatever is to be sent at this moment. Returns when there will be something, if nothing else happens.
    fn look(&mut self) -> Option<Instant> {
        let now = self.now();
        self.prune(now);
        let may = self.take_turn(now);
        for place in 0..self.receivers.len() {
            let Recipient { receiver, way, .. } = &mut self.receivers[place];
            if way.is_none() {
                continue;
            }
            if let Some(message) = receiver.next(&self.book, may, now)
                && let Some(way) = way.take()
            {
                self.post(place, way, message);
            }
        }
        for Recipient { number, receiver, .. } in &self.receivers {
            self.metrics.alerts_waiting.at(number).set(receiver.waiting(may, now) as i64);
        }
        for (mode, class) in [(AlertMode::Admission, Class::Denial), (AlertMode::Audit, Class::Audit)] {
            self.metrics.alerts_firing.at(&mode).set(self.book.firing(class) as i64);
        }
        let first = self.receivers.iter().filter_map(|told| told.receiver.wakes(may)).min();
        first.map(|wakes| self.begin + wakes)
    }

    /// Finds out whether this process speaks for audit. Whoever begins to tells everything again.
    fn take_turn(&mut self, now: Now) -> May {
        let Some(audit) = &mut self.audit else { return May { audit: false, end: true } };
        let term = audit.turn.term();
        let begins = term.is_some() && term != audit.term;
        audit.term = term;
        let may_end = *audit.is_complete.borrow();
        if begins || (may_end && !audit.may_end) {
            let ids = self.book.audit();
            for Recipient { receiver, .. } in &mut self.receivers {
                if begins {
                    receiver.begin(&ids, now);
                } else {
                    let ended = ids.iter().filter(|id| self.book.has_ended(**id));
                    ended.for_each(|id| receiver.touch(*id, Class::Audit, now));
                }
            }
        }
        audit.may_end = may_end;
        May { audit: term.is_some(), end: may_end }
    }

    fn note(&mut self, changes: Vec<Change>) {
        let now = self.now();
        for (id, offender) in changes {
            let changed = self.book.note(id, offender.as_deref(), now);
            self.touch(&changed, now);
        }
        self.metrics.alerts_lost.at(&AlertLoss::NoRoom).inc_by(self.book.take_refused() as u64);
    }

    fn touch(&mut self, changed: &[AlertId], now: Now) {
        for Recipient { receiver, .. } in &mut self.receivers {
            changed.iter().for_each(|id| receiver.touch(*id, Class::Audit, now));
        }
    }

    fn deny(&mut self, denial: &Alert) {
        let now = self.now();
        match self.book.deny(denial, now) {
            Some(id) => {
                for Recipient { receiver, .. } in &mut self.receivers {
                    receiver.touch_in_time(id, Class::Denial, now);
                }
            }
            None => self.metrics.alerts_lost.at(&AlertLoss::NoRoom).inc_by(self.book.take_refused() as u64),
        }
    }

    /// Forgets what nobody has to be told of any more.
    fn prune(&mut self, now: Now) {
        for (id, class) in self.book.prune(now) {
            for Recipient { receiver, .. } in &mut self.receivers {
                if receiver.forget(id, class) && class == Class::Denial {
                    self.metrics.alerts_lost.at(&AlertLoss::TooLate).inc();
                }
            }
        }
        if let Some(audit) = &self.audit
            && self.book.take_has_room_again()
        {
            for (id, offender) in audit.board.offenders() {
                let changed = self.book.note(id, Some(&offender), now);
                for Recipient { receiver, .. } in &mut self.receivers {
                    changed.iter().for_each(|id| receiver.touch(*id, Class::Audit, now));
                }
            }
            // They were counted when they were first not taken.
            self.book.take_refused();
        }
    }

    fn post(&mut self, place: usize, mut way: Way, message: Message) {
        let Message { class, body, alerts } = message;
        let turn = match (class, &self.audit) {
            (Class::Audit, Some(audit)) => Some(audit.turn.clone()),
            _ => None,
        };
        let (metrics, number) = (self.metrics.clone(), place + 1);
        self.posts.spawn(async move {
            let posted = match turn {
                None => Ok(way.post(body).await),
                Some(turn) => turn.act(way.post(body)).await,
            };
            let outcome = match posted {
                Ok(Ok(())) => Outcome::Taken,
                Ok(Err(error)) => {
                    metrics.alert_failures.at(&error.reason()).inc();
                    let outcome = error.outcome();
                    let receiver = way.address().to_string();
                    tracing::debug!(%error, number, receiver, alerts, "Alertmanager did not take a message");
                    way.fail(&error);
                    outcome
                }
                Err(ActError::NotHeld) => Outcome::NotSent,
                Err(ActError::TimedOut(_)) => {
                    metrics.alert_failures.at(&AlertFailure::LeaseLost).inc();
                    Outcome::Failed(None)
                }
            };
            (place, way, outcome)
        });
    }

    fn settle(&mut self, place: usize, mut way: Way, outcome: Outcome) {
        let now = self.now();
        let Recipient { number, receiver, way: home } = &mut self.receivers[place];
        let told = receiver.settle(outcome, &self.book, now);
        self.metrics.alerts_sent.at(number).inc_by(told.taken as u64);
        let (address, error) = (way.address().to_string(), way.take_failure());
        if told.begins_to_fail {
            warn!(%error, receiver = %number.0, address, "Alertmanager takes no alerts; they are sent when it does");
        }
        if told.works_again {
            info!(receiver = %number.0, address, "Alertmanager takes alerts again");
        }
        if let Some(refused) = told.refused {
            self.metrics.alerts_lost.at(&AlertLoss::Refused).inc();
            let labels = self.book.labels(refused).unwrap_or_default();
            warn!(%error, receiver = %number.0, address, %labels, "Alertmanager refuses an alert; the others are sent");
        }
        *home = Some(way);
    }

    fn now(&self) -> Now {
        Now { since: self.begin.elapsed(), wall: Timestamp::now() }
    }
}

/// How long a process that ends may take to tell of what it has refused.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long is waited if there is nothing to send: a Lease may be lost without a word.
const IDLE: Duration = Duration::from_secs(60);

impl Audit {
    fn new(board: &Board, turn: Turn) -> Audit {
        let outlet = board.outlet();
        let is_complete = outlet.is_complete();
        Audit { board: board.clone(), outlet, is_complete, turn, term: None, may_end: false }
    }

    /// Waits for anything to look at: what has changed on the board, or whose turn it is. Nothing is lost if the wait is cut off.
    async fn news(&mut self) -> Vec<Change> {
        tokio::select! {
            changes = self.outlet.changes() => changes,
            () = self.turn.changed() => Vec::new(),
            changed = self.is_complete.changed() => match changed {
                Ok(()) => Vec::new(),
                // The board is gone, and with it everything that could change.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Turn {
    fn term(&self) -> Option<i32> {
        match self {
            Turn::Holder(holder) => holder.term(),
            #[cfg(test)]
            Turn::Test(term) => *term.borrow(),
        }
    }

    async fn changed(&mut self) {
        match self {
            Turn::Holder(holder) => holder.changed().await,
            #[cfg(test)]
            Turn::Test(term) => {
                if term.changed().await.is_err() {
                    std::future::pending().await
                }
            }
        }
    }

    /// Sends what only the holder may send. It is cut off when the term ends, which waits for it.
    async fn act<T>(self, work: impl Future<Output = T>) -> Result<T, ActError> {
        let (term, mut watching) = (self.term(), self.clone());
        let over = async {
            while term.is_some() && watching.term() == term {
                watching.changed().await;
            }
        };
        let sent = async {
            match self {
                Turn::Holder(holder) => holder.act(TURN, |_| work).await,
                #[cfg(test)]
                Turn::Test(_) => Ok(work.await),
            }
        };
        tokio::select! {
            biased;
            sent = sent => sent,
            () = over => Err(ActError::NotHeld),
        }
    }
}

/// What a task came to. One that panicked ends the process, as every part does.
fn whole<T>(joined: Result<T, JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
