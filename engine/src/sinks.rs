//! Who is told what the engine decides. A sink that is slow or gone costs records, which are counted, and never a decision.

pub mod alertmanager;
pub mod log;
pub mod report;
mod stdout;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use portal_cluster::metrics::Counters;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::metrics::SinkName;

pub use self::stdout::Stdout;

/// A place that records go to.
pub trait OutputSink: Send + Sync {
    /// Its name, in metrics and logs: always the same.
    fn name(&self) -> SinkName;

    /// Whether it wants to be told of a decision: of what it was, in a word, and of whether rules had something to say. Called by whoever
    /// decides, so it must not take long.
    fn wants(&self, decision: &str, has_rules: bool) -> bool;

    /// Writes a record. It may block: it has a thread of its own. What it cannot write is counted and not tried again.
    fn write(&self, record: &Record) -> io::Result<()>;
}

/// All sinks, for whoever has something to tell. A clone tells the same ones.
#[derive(Clone)]
pub struct Outputs {
    queues: Arc<[Queue]>,
    lost: Counters<SinkName>,
}

/// What waits for a sink, which has a thread of its own.
struct Queue {
    sink: Arc<dyn OutputSink>,
    records: mpsc::Sender<Arc<Record>>,
}

/// What is told of a decision. It never holds the object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// When, as seconds since 1970.
    pub time: f64,
    /// What happened: `allowed`, `warned`, `denied`, `excluded`, `bypassed`, `unknown`.
    pub decision: &'static str,
    /// What it was about.
    #[serde(flatten)]
    pub about: About,
    /// The rules that had something to say, by what came of it.
    pub rules: BTreeMap<&'static str, String>,
    /// Milliseconds until the answer was made.
    pub milliseconds: f64,
}

/// What a request is about, without anything that the object holds.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The uid of the request.
    pub uid: String,
    /// What is done.
    pub operation: String,
    /// The resource, with its subresource and group.
    pub resource: String,
    /// The namespace; empty if there is none.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// Who asks.
    pub user: String,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// Which decisions are printed on standard output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DecisionLog {
    /// None.
    Off,
    /// Those in which a rule had something to say, or was passed by.
    Rules,
    /// All.
    All,
}

/// How many records may wait for a sink.
const QUEUE: usize = 4096;

/// The sinks for decisions that an engine has.
pub fn builtin(log: DecisionLog) -> Vec<Box<dyn OutputSink>> {
    match log {
        DecisionLog::Off => Vec::new(),
        DecisionLog::Rules | DecisionLog::All => vec![Box::new(Stdout { all: log == DecisionLog::All })],
    }
}

impl Outputs {
    /// Starts a thread for each sink, which ends with the last clone of this.
    pub fn start(sinks: Vec<Box<dyn OutputSink>>, lost: &Counters<SinkName>) -> Outputs {
        let queues = sinks.into_iter().map(|sink| {
            let sink: Arc<dyn OutputSink> = Arc::from(sink);
            // Prometheus does not see the first growth of a series that begins with it.
            lost.at(&sink.name());
            let (records, mut waiting) = mpsc::channel::<Arc<Record>>(QUEUE);
            let (writing, lost) = (Arc::clone(&sink), lost.clone());
            std::thread::spawn(move || {
                while let Some(record) = waiting.blocking_recv() {
                    if writing.write(&record).is_err() {
                        lost.at(&writing.name()).inc();
                    }
                }
            });
            Queue { sink, records }
        });
        Outputs { queues: queues.collect(), lost: lost.clone() }
    }

    /// Tells every sink that wants it. Never waits: what a full queue has no place for is counted as lost. A record that nobody wants is
    /// not even made, and most are such.
    pub fn send(&self, decision: &str, has_rules: bool, record: impl FnOnce() -> Record) {
        let mut wanting = self.queues.iter().filter(|queue| queue.sink.wants(decision, has_rules)).peekable();
        if wanting.peek().is_none() {
            return;
        }
        let record = Arc::new(record());
        for Queue { sink, records } in wanting {
            if records.try_send(Arc::clone(&record)).is_err() {
                self.lost.at(&sink.name()).inc();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc as blocking};

    use portal_cluster::metrics::Instrument as _;

    use super::*;

    /// Writes when it is let.
    struct Slow(Mutex<blocking::Receiver<()>>, blocking::Sender<f64>);

    impl OutputSink for Slow {
        fn name(&self) -> SinkName {
            SinkName("slow")
        }

        fn wants(&self, decision: &str, _: bool) -> bool {
            decision == "denied"
        }

        fn write(&self, record: &Record) -> io::Result<()> {
            self.0.lock().unwrap().recv().map_err(io::Error::other)?;
            self.1.send(record.time).map_err(io::Error::other)
        }
    }

    fn send(outputs: &Outputs, time: f64, decision: &'static str) {
        let (about, rules) = (About::default(), BTreeMap::new());
        outputs.send(decision, true, || Record { time, decision, about, rules, milliseconds: 0.0 });
    }

    #[test]
    fn a_sink_that_hangs_costs_records_and_nobodys_time() {
        let lost = Counters::<SinkName>::new("portal_lost_total", "Lost.");
        let (let_it, is_let) = blocking::channel();
        let (written, is_written) = blocking::channel();
        let outputs = Outputs::start(vec![Box::new(Slow(Mutex::new(is_let), written))], &lost);
        send(&outputs, 0.0, "allowed");
        // One of them is in its hands, if it was quick.
        for number in 0..QUEUE + 10 {
            send(&outputs, number as f64, "denied");
        }
        let lost = lost.at(&SinkName("slow")).get() as usize;
        assert!((9..=11).contains(&lost), "{lost}");
        drop(outputs);
        for _ in 0..QUEUE + 10 {
            let_it.send(()).unwrap();
        }
        let told: Vec<f64> = is_written.iter().collect();
        assert_eq!(told.len(), QUEUE + 10 - lost);
        assert!(told.is_sorted());
    }
}
