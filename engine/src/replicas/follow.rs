//! The holder asks the other replicas, and itself.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use portal_cluster::{holder::Holder, runtime::Runtime};
use portal_core::rule::source::RuleId;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    Question,
    ask::{AskSettings, Way},
    ledger::Ledger,
    peers::{self, Peers},
    serve::Own,
    view::{Replica, View},
};
use crate::{audit::Hearing, metrics::EngineMetrics, outcomes::Outcome};

/// How other replicas are found and asked.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Where they are.
    pub peers: Peers,
    /// How they are asked.
    pub ask: AskSettings,
}

/// What the writer of status is told about replicas.
pub struct Replicas {
    /// Who runs what. Nothing before all were asked once in a term of this replica.
    pub view: watch::Receiver<Option<Arc<View>>>,
    /// What was counted.
    pub ledger: Ledger,
    /// The rules of which more was counted.
    pub counted: mpsc::Receiver<RuleId>,
}

/// The task that asks.
struct Follower {
    own: Own,
    /// Where others reach this replica: nobody asks itself by the network.
    own_address: Option<SocketAddr>,
    settings: Option<PeerSettings>,
    holder: Holder,
    view: watch::Sender<Option<Arc<View>>>,
    ledger: Ledger,
    counted: mpsc::Sender<RuleId>,
    ways: HashMap<SocketAddr, Asked>,
    /// Who is told of outcomes. Nobody without audit.
    hearing: Option<Hearing>,
    /// How many of its own outcomes this replica has told of.
    own_outcomes: Option<u64>,
    metrics: EngineMetrics,
}

/// Another replica, between two questions.
struct Asked {
    way: Way,
    replica: Replica,
    process: Option<String>,
    /// The number of the first of its outcomes that are not known.
    outcomes: Option<u64>,
    /// The number of what is known to keep its rules from being asked.
    lacks: u64,
    /// Whether nobody was there.
    is_gone: bool,
}

/// What a replica has let in since it was last asked.
#[derive(Default)]
struct Heard {
    told: Vec<Outcome>,
    /// How many it had no room for.
    lost: u64,
}

/// How often replicas are asked, and how often while they begin to run other rules, which takes no longer than this. What differs after that
/// lacks something.
const INTERVAL: Duration = Duration::from_secs(1);
const WHILE_CHANGING: Duration = Duration::from_millis(250);
const CHANGING: Duration = Duration::from_secs(30);

/// How many rules may wait to be told of.
const QUEUE: usize = 1024;

/// Follows the replicas for as long as this one holds the Lease. The task ends with the process.
pub fn follow(
    own: Own,
    own_address: Option<SocketAddr>,
    settings: Option<PeerSettings>,
    holder: Holder,
    hearing: Option<Hearing>,
    metrics: EngineMetrics,
    runtime: Runtime,
) -> (Replicas, impl Future<Output = ()> + Send) {
    let (view, view_in) = watch::channel(None);
    let (counted, counted_in) = mpsc::channel(QUEUE);
    let ledger = Ledger::default();
    let replicas = Replicas { view: view_in, ledger: ledger.clone(), counted: counted_in };
    let (ways, own_outcomes) = (HashMap::new(), None);
    let follower =
        Follower { own, own_address, settings, holder, view, ledger, counted, ways, hearing, own_outcomes, metrics };
    (replicas, follower.run(runtime))
}

impl Follower {
    async fn run(mut self, runtime: Runtime) {
        let shutdown = runtime.shutdown.clone();
        let are_named = self.settings.as_ref().is_some_and(|settings| matches!(settings.peers, Peers::Named(_)));
        let peers = self.settings.as_ref().map_or_else(|| Peers::Named(Vec::new()), |settings| settings.peers.clone());
        let (mut addresses, following) = peers::follow(peers, runtime);
        let mut rule_sets = self.own.in_force.numbers();
        let asking = async {
            let (mut known, mut changed) = ((String::new(), None), Instant::now());
            loop {
                if self.holder.is_held() {
                    let wanted: Vec<SocketAddr> = addresses.borrow_and_update().iter().copied().collect();
                    self.ask(&wanted, are_named).await;
                } else {
                    self.rest();
                }
                let now = (self.own.in_force.now().fingerprint().to_owned(), self.view.borrow().clone());
                let differs = now.1.as_ref().is_some_and(|view| view.differs(&now.0));
                if now != known {
                    (known, changed) = (now, Instant::now());
                }
                let is_changing = differs && changed.elapsed() < CHANGING;
                let next = Instant::now() + if is_changing { WHILE_CHANGING } else { INTERVAL };
                tokio::select! {
                    () = sleep_until(next) => {}
                    () = self.holder.changed() => {}
                    Ok(_) = rule_sets.changed() => {}
                    Ok(()) = addresses.changed() => {}
                }
            }
        };
        let both = async { tokio::join!(asking, following) };
        shutdown.run_until_cancelled(both).await;
    }

    /// Another one asks now.
    fn rest(&mut self) {
        self.ways.clear();
        if let Some(hearing) = self.hearing.as_ref().filter(|_| self.own_outcomes.take().is_some()) {
            hearing.forget();
        }
        self.ledger.retain(|_| false);
        self.view.send_if_modified(|view| view.take().is_some());
    }

    /// Asks all replicas at these addresses, at the same time. If `are_named`, nobody else knows which of them are there.
    async fn ask(&mut self, wanted: &[SocketAddr], are_named: bool) {
        self.ways.retain(|address, _| wanted.contains(address));
        for address in wanted.iter().filter(|address| Some(**address) != self.own_address) {
            self.ways.entry(*address).or_insert_with(|| Asked::new(*address));
        }
        let mut more = self.ask_own();
        if let Some(settings) = &self.settings {
            let (ask, ledger, own) = (&settings.ask, &self.ledger, &*self.own.process);
            let hears = self.hearing.is_some();
            let asked = join_all(self.ways.values_mut().map(|asked| asked.ask(ask, ledger, own, hears))).await;
            for (counted, told) in asked {
                more.extend(counted);
                self.hear(&told);
            }
        }
        let here: Vec<String> = self.ways.values().filter_map(|asked| asked.process.clone()).collect();
        let own = self.own.process.to_string();
        self.ledger.retain(|process| *process == own || here.iter().any(|here| here == process));
        let counts = |asked: &Asked| {
            let is_own = asked.process.as_deref() == Some(&*self.own.process);
            !(is_own || are_named && asked.is_gone)
        };
        let others = self.ways.iter().filter(|(_, asked)| counts(asked));
        let replicas = others.map(|(address, asked)| (address.to_string(), asked.replica.clone())).collect();
        let view = View { replicas };
        self.view.send_if_modified(|known| {
            let is_changed = known.as_deref() != Some(&view);
            if is_changed {
                *known = Some(Arc::new(view));
            }
            is_changed
        });
        for rule in more {
            // Whoever does not listen now is told again when more is counted, or by what it claims.
            let _ = self.counted.try_send(rule);
        }
    }

    /// What this replica has counted itself.
    fn ask_own(&mut self) -> Vec<RuleId> {
        let told = self.ledger.owed(&self.own.process);
        let known = Some(self.own.in_force.now().fingerprint().to_owned());
        let process = Some(self.own.process.to_string());
        let from = self.own_outcomes.unwrap_or_default();
        let outcomes = self.hearing.is_some().then_some(from);
        // What keeps its own rules from being asked the writer of status hears at once.
        let lacks = None;
        let state = self.own.answer(&Question { known, process, accounted: told.clone(), outcomes, lacks });
        if let Some(told) = &state.outcomes {
            let lost = self.own_outcomes.replace(told.next()).map_or(0, |known| told.first.saturating_sub(known));
            self.hear(&Heard { told: told.outcomes.clone(), lost });
        }
        self.ledger.take(&state.process, &state.evaluations, &told)
    }

    fn hear(&self, heard: &Heard) {
        if let Some(hearing) = self.hearing.as_ref().filter(|_| !heard.told.is_empty()) {
            hearing.hear(&heard.told);
        }
        self.metrics.outcomes_lost.inc_by(heard.lost);
    }
}

impl Asked {
    fn new(address: SocketAddr) -> Asked {
        // As long as nobody has said otherwise, who is at a ready address is ready.
        let replica = Replica { is_ready: true, ..Replica::default() };
        Asked { way: Way::new(address), replica, process: None, outcomes: None, lacks: 0, is_gone: false }
    }

    /// Asks the replica, and returns the rules of which it has counted more, and what it has let in.
    async fn ask(&mut self, settings: &AskSettings, ledger: &Ledger, own: &str, hears: bool) -> (Vec<RuleId>, Heard) {
        let told = self.process.as_deref().map(|process| ledger.owed(process)).unwrap_or_default();
        let (known, process) = (self.replica.fingerprint.clone(), self.process.clone());
        let outcomes = hears.then(|| self.outcomes.unwrap_or_default());
        let question = Question { known, process, accounted: told.clone(), outcomes, lacks: Some(self.lacks) };
        match self.way.ask(settings, &question).await {
            Ok(state) => {
                self.is_gone = false;
                let is_other = self.process.as_ref() != Some(&state.process);
                self.replica.fingerprint = Some(state.fingerprint);
                self.replica.identity = Some(state.identity);
                self.replica.is_ready = state.ready;
                self.replica.problem = None;
                if let Some(rules) = state.rules {
                    self.replica.runs(rules);
                }
                if let Some(told) = state.lacks {
                    self.lacks = told.number;
                    self.replica.lacks(told.rules);
                }
                self.process = Some(state.process.clone());
                // What this replica counted itself it knows already.
                if state.process == own {
                    return Default::default();
                }
                let mut heard = Heard::default();
                if let Some(told) = state.outcomes {
                    // What a holder before this one was told is in its reports.
                    let known = self.outcomes.filter(|_| !is_other).unwrap_or(told.first);
                    heard.lost = told.first.saturating_sub(known);
                    self.outcomes = Some(told.next());
                    heard.told = told.outcomes;
                }
                let told = if is_other { Default::default() } else { told };
                (ledger.take(&state.process, &state.evaluations, &told), heard)
            }
            Err(error) => {
                self.is_gone = error.is_nobody_there();
                self.replica.problem = Some(error.to_string());
                Default::default()
            }
        }
    }
}
