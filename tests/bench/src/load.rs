//! Load for a server: as fast as it goes, or as requests come in a cluster, whether or not the ones before them are answered.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::client::{Connection, Target};
use crate::process::processor_seconds;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// Requests a second, at random times that do not depend on the answers. None: each connection asks again once it is answered.
    pub rate: Option<f64>,
    /// When it ends.
    pub end: End,
}

/// When a load ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// After so many requests.
    Requests(u64),
    /// After so many seconds.
    Seconds(f64),
}

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Requests that were answered.
    pub requests: u64,
    /// How long it took.
    pub seconds: f64,
    /// Answers a second.
    pub per_second: f64,
    /// Answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without an answer.
    pub failures: u64,
    /// Answers that are not the same as the first.
    pub unlike: u64,
    /// How long an answer took, from the moment that it should have been asked for.
    pub milliseconds: Quantiles,
    /// Seconds that the watched processes had of processors, in the order of their numbers.
    pub processors: Vec<f64>,
    /// The first answer.
    pub first: String,
}

/// Times that a share of all is within.
#[derive(Debug, Default, Serialize)]
pub struct Quantiles {
    /// Half.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// All.
    pub max: f64,
}

/// What one connection has seen.
#[derive(Default)]
struct Tally {
    times: Vec<Duration>,
    statuses: BTreeMap<u16, u64>,
    failures: u64,
    unlike: u64,
}

/// What the connections share.
struct Shared {
    load: Load,
    begin: Instant,
    first: Vec<u8>,
    /// Requests that were begun.
    begun: Cell<u64>,
    /// Requests whose time has come, by the time that they should have been sent.
    due: RefCell<VecDeque<Instant>>,
    /// Whether none comes after those.
    is_over: Cell<bool>,
    news: Notify,
}

/// Puts a load on a server, on this thread alone. `watched` are processes whose time is told.
pub fn run(target: Target, load: Load, watched: &[u32]) -> Result<Outcome, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, put(Arc::new(target), load, watched))
}

async fn put(target: Arc<Target>, load: Load, watched: &[u32]) -> Result<Outcome, Box<dyn Error>> {
    // Open and warm before anything counts: a handshake costs as much as twenty requests.
    let mut connections = Vec::new();
    let mut first = Vec::new();
    for _ in 0..load.connections {
        let mut connection = Connection::new(Arc::clone(&target));
        first = connection.ask().await?.1.to_vec();
        connections.push(connection);
    }
    let times = || watched.iter().map(|process| processor_seconds(*process)).collect::<Result<Vec<f64>, _>>();
    let before = times()?;
    let shared = Rc::new(Shared {
        load,
        begin: Instant::now(),
        first,
        begun: Cell::new(0),
        due: RefCell::default(),
        is_over: Cell::new(false),
        news: Notify::new(),
    });
    let asking: Vec<_> =
        connections.into_iter().map(|connection| spawn_local(ask(connection, Rc::clone(&shared)))).collect();
    let awake = spawn_local(stay_awake());
    if let Some(rate) = load.rate {
        pace(rate, &shared).await;
    }
    let mut tally = Tally::default();
    for asked in asking {
        tally.add(asked.await?);
    }
    awake.abort();
    let seconds = shared.begin.elapsed().as_secs_f64();
    let processors = times()?.iter().zip(before).map(|(after, before)| after - before).collect();
    let first = String::from_utf8_lossy(&shared.first).into_owned();
    Ok(tally.outcome(seconds, processors, first))
}

/// Asks on one connection until there is nothing more to ask.
async fn ask(mut connection: Connection, shared: Rc<Shared>) -> Tally {
    let mut tally = Tally::default();
    while let Some(due) = shared.next().await {
        match connection.ask().await {
            Ok((status, body)) => {
                tally.times.push(due.elapsed());
                *tally.statuses.entry(status).or_default() += 1;
                tally.unlike += u64::from(body != shared.first);
            }
            Err(_) => tally.failures += 1,
        }
    }
    tally
}

/// Keeps this thread from sleeping. A server pays for waking who has gone to sleep, and the slower it is the more often.
async fn stay_awake() {
    loop {
        yield_now().await;
    }
}

/// Says when requests are due: independent of each other, so many a second in the mean.
async fn pace(rate: f64, shared: &Shared) {
    let mut random = Rng::with_seed(1);
    let mut due = shared.begin;
    loop {
        due += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate);
        if shared.load.end.is_reached(shared.begun.get(), due - shared.begin) {
            break;
        }
        // A timer would be late by up to a millisecond.
        loop {
            yield_now().await;
            if Instant::now() >= due {
                break;
            }
        }
        shared.begun.update(|begun| begun + 1);
        shared.due.borrow_mut().push_back(due);
        shared.news.notify_one();
    }
    shared.is_over.set(true);
    shared.news.notify_waiters();
}

impl Shared {
    /// Waits for the next request, and returns when it should be sent. None at the end.
    async fn next(&self) -> Option<Instant> {
        if self.load.rate.is_none() {
            let is_over = self.load.end.is_reached(self.begun.get(), self.begin.elapsed());
            self.begun.update(|begun| begun + 1);
            return (!is_over).then(Instant::now);
        }
        loop {
            if let Some(due) = self.due.borrow_mut().pop_front() {
                return Some(due);
            }
            if self.is_over.get() {
                return None;
            }
            self.news.notified().await;
        }
    }
}

impl End {
    fn is_reached(self, requests: u64, time: Duration) -> bool {
        match self {
            End::Requests(most) => requests >= most,
            End::Seconds(most) => time.as_secs_f64() >= most,
        }
    }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.times.extend(other.times);
        self.failures += other.failures;
        self.unlike += other.unlike;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
    }

    fn outcome(self, seconds: f64, processors: Vec<f64>, first: String) -> Outcome {
        let Tally { mut times, statuses, failures, unlike } = self;
        times.sort();
        let at = |share: f64| {
            let last = times.len().saturating_sub(1) as f64;
            times.get((last * share) as usize).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        let milliseconds = Quantiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1.0) };
        let requests = times.len() as u64;
        let per_second = requests as f64 / seconds;
        Outcome { requests, seconds, per_second, statuses, failures, unlike, milliseconds, processors, first }
    }
}
