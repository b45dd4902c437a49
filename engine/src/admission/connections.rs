//! All connections: how many there are, what their bodies hold together, and which one goes when there is no room.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use super::{
    connection::{Connection, Phase},
    limits::ServerLimits,
};
use crate::metrics::{Closed, EngineMetrics};

/// All connections.
pub(super) struct Connections {
    pub(super) limits: ServerLimits,
    pub(super) metrics: EngineMetrics,
    /// Those that are open, by number. Entered when one is taken, removed by whoever closes it first.
    open: Mutex<HashMap<u64, Open>>,
    /// What all bodies hold.
    held: AtomicUsize,
    /// Whether the end has begun. Written once.
    is_closing: AtomicBool,
    tasks: TaskTracker,
}

/// A connection that is open.
struct Open {
    connection: Arc<Connection>,
    /// Ends it. Nothing for the moment between its entry and its start.
    task: Option<AbortHandle>,
}

/// Lives as long as a connection does, however that ends.
struct Entry {
    number: u64,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(limits: ServerLimits, metrics: EngineMetrics) -> Arc<Connections> {
        Arc::new(Connections {
            limits,
            metrics,
            open: Mutex::default(),
            held: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        })
    }

    /// Runs a connection in a task of its own. If there is no room, whoever has kept us waiting goes; only if everybody waits for us
    /// is the new one refused. Refusing it in general would be easy to abuse: whoever holds connections and sends nothing would keep
    /// the API server out.
    pub(super) fn take<F>(self: &Arc<Self>, number: u64, serve: impl FnOnce(Arc<Connection>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.open().len() >= self.limits.connections && !self.make_room() {
            self.metrics.connections_closed.at(&Closed::NoRoom).inc();
            return;
        }
        let connection = Arc::new(Connection::new());
        let entry = Entry { number, connection: Arc::clone(&connection), connections: Arc::clone(self) };
        self.change(|open| open.insert(number, Open { connection: Arc::clone(&connection), task: None }));
        let serving = serve(connection);
        let task = self.tasks.spawn(async move {
            // First, so that it is dropped last, and by whatever ends the task.
            let _entry = entry;
            serving.await;
        });
        if let Some(open) = self.open().get_mut(&number) {
            open.task = Some(task.abort_handle());
        }
    }

    /// Closes whoever is worth least. Returns whether there was one.
    pub(super) fn make_room(&self) -> bool {
        self.close_first(|connection| {
            let (worth, time) = connection.worth(&self.limits)?;
            Some((worth, std::cmp::Reverse(time)))
        })
    }

    /// Holds memory for a body. If there is none left, those go whose bodies do not get on. Returns whether it is held.
    pub(super) fn hold(&self, connection: &Connection, bytes: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.limits.bytes_in_flight);
        while self.held.fetch_update(SeqCst, SeqCst, add).is_err() {
            let is_stuck = |other: &Connection| {
                let (phase, time) = other.phase();
                let is_stuck = phase == Phase::Body && time > self.limits.patience && other.held.load(SeqCst) > 0;
                (is_stuck && !std::ptr::eq(other, connection)).then_some(std::cmp::Reverse(time))
            };
            if !self.close_first(is_stuck) {
                return false;
            }
        }
        connection.held.fetch_add(bytes, SeqCst);
        self.tell_held();
        true
    }

    /// Frees what a connection holds.
    pub(super) fn free(&self, connection: &Connection) {
        let bytes = connection.held.swap(0, SeqCst);
        if bytes > 0 {
            self.held.fetch_sub(bytes, SeqCst);
            self.tell_held();
        }
    }

    /// Closes those whose time is up, again and again.
    pub(super) async fn sweep(&self) -> ! {
        loop {
            tokio::time::sleep(self.limits.tick()).await;
            self.close(|connection| connection.overdue(&self.limits));
        }
    }

    /// From here on, each connection is closed after its answer.
    pub(super) fn begin_closing(&self) {
        self.is_closing.store(true, SeqCst);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(SeqCst)
    }

    /// Waits for the answers that are under way, and closes what is left. No connection may be taken any more.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        let answers = async {
            while !self.tasks.is_empty() {
                self.close(|connection| matches!(connection.phase(), (Phase::Idle, _)).then_some(Closed::Shutdown));
                let _ = tokio::time::timeout(self.limits.tick().min(MOMENT), self.tasks.wait()).await;
            }
        };
        if tokio::time::timeout(self.limits.last_answers, answers).await.is_err() {
            self.close(|_| Some(Closed::Shutdown));
        }
    }

    /// Closes the connection that has the least rank of those that have one. Returns whether there was one.
    fn close_first<R: Ord>(&self, rank: impl Fn(&Connection) -> Option<R>) -> bool {
        let first = |open: &HashMap<u64, Open>| {
            let ranked = running(open).filter_map(|(number, connection)| Some((rank(connection)?, number)));
            ranked.min().map(|(_, number)| (number, Closed::MakeRoom)).into_iter().collect()
        };
        self.close_picked(first) > 0
    }

    /// Closes the connections for which there is a reason.
    fn close(&self, reason: impl Fn(&Connection) -> Option<Closed>) {
        self.close_picked(|open| {
            running(open).filter_map(|(number, connection)| Some((number, reason(connection)?))).collect()
        });
    }

    /// Closes connections, and frees at once what they hold: whoever needs it is waiting. Returns how many.
    fn close_picked(&self, pick: impl FnOnce(&HashMap<u64, Open>) -> Vec<(u64, Closed)>) -> usize {
        let closed: Vec<_> = self.change(|open| {
            let picked = pick(open).into_iter();
            picked.filter_map(|(number, reason)| Some((open.remove(&number)?, reason))).collect()
        });
        for (Open { connection, task }, reason) in &closed {
            self.metrics.connections_closed.at(reason).inc();
            self.free(connection);
            if let Some(task) = task {
                task.abort();
            }
        }
        closed.len()
    }

    /// Changes which connections are open, and says how many there are.
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<u64, Open>) -> T) -> T {
        let mut open = self.open();
        let changed = change(&mut open);
        self.metrics.connections.set(open.len() as i64);
        changed
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_held(&self) {
        self.metrics.body_bytes.set(self.held.load(SeqCst) as i64);
    }
}

/// The connections that can be closed.
fn running(open: &HashMap<u64, Open>) -> impl Iterator<Item = (u64, &Connection)> {
    open.iter().filter(|(_, open)| open.task.is_some()).map(|(number, open)| (*number, &*open.connection))
}

/// How long somebody may be idle before the end notices.
const MOMENT: Duration = Duration::from_millis(50);

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.free(&self.connection);
        self.connections.change(|open| open.remove(&self.number));
    }
}
