//! What is wrong in the cluster at this moment: between audit, which finds it, and whoever tells of it.
//!
//! The board holds states, not events. Whoever reads it asks what has changed since it last asked, and sees each object as it is then: a
//! reader that is slow or gone costs no memory, and loses nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use portal_cluster::metrics::Registry;
use portal_core::rule::{Rule, source::RuleId};
use portal_crds::Severity;
use prometheus::{
    IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use tokio::sync::{Notify, watch};

use crate::{
    metrics::AUDIT_VIOLATIONS,
    tally::{MAX_RULES, OTHERS},
};

/// What is wrong in the cluster. A clone is the same board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Inner>);

/// What one reader has not seen yet. It begins with everything that is on the board.
#[derive(Debug)]
pub struct Outlet {
    inner: Arc<Inner>,
    place: usize,
    wants_passes: bool,
    changed: Arc<Notify>,
    is_complete: watch::Receiver<bool>,
}

/// An object, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Offender {
    /// The uid.
    pub uid: String,
    /// The group and version, as objects say it: `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if its kind has one.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// What is wrong, in the order of rules and containers. Empty for nobody but readers who want to know what rules are met.
    pub findings: Vec<Finding>,
    /// The rules that it meets, if anybody wants to know.
    pub passes: Vec<Pass>,
}

/// A rule that an object meets, with all its containers.
#[derive(Clone)]
pub struct Pass {
    /// The rule, in the version that was asked.
    pub rule: Arc<Rule>,
    /// Since when this process knows of it.
    pub since: Timestamp,
}

/// An object, or a container of it, that violates a rule, or about which a rule could not say.
#[derive(Clone)]
pub struct Finding {
    /// The rule, in the version that found it.
    pub rule: Arc<Rule>,
    /// The name of the container, for rules that run per container.
    pub container: Option<String>,
    /// Whether the rule could not be evaluated.
    pub is_failure: bool,
    /// What people are told.
    pub message: String,
    /// What the rule saw, if that says more.
    pub saw: Option<String>,
    /// Since when this process knows of it.
    pub since: Timestamp,
}

/// The number of an object on the board. It is never given to another one.
pub type OffenderId = u64;

/// What has become of an object. Nothing if it is not wrong any more, or gone.
pub type Change = (OffenderId, Option<Arc<Offender>>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    is_complete: watch::Sender<bool>,
    recounted: Notify,
    /// How many numbers were given to objects.
    numbers: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    offenders: BTreeMap<OffenderId, Arc<Offender>>,
    /// How many objects violate each rule.
    counts: HashMap<RuleId, Count>,
    /// The rules whose counts have changed since somebody asked.
    recounted: HashSet<RuleId>,
    readers: Vec<Reader>,
}

/// How many objects violate a rule.
#[derive(Clone, Copy, Debug)]
struct Count {
    objects: usize,
    severity: Severity,
}

/// Tells Prometheus how many objects violate rules.
struct Series {
    board: Board,
    /// Filled anew whenever somebody asks.
    gauges: IntGaugeVec,
}

#[derive(Debug)]
struct Reader {
    /// Whether it wants to know what rules are met.
    wants_passes: bool,
    /// The objects that changed since it last asked.
    unseen: HashSet<OffenderId>,
    changed: Arc<Notify>,
}

impl Board {
    /// A number that no object has.
    pub fn number(&self) -> OffenderId {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Says what is wrong with an object now. Called by audit alone.
    pub fn put(&self, id: OffenderId, offender: Option<Offender>) {
        let mut state = self.0.state();
        let known = state.offenders.get(&id);
        if let (Some(known), Some(offender)) = (known, &offender)
            && known.is_same(offender)
        {
            return;
        }
        let is_as_wrong = match (known.filter(|known| known.is_wrong()), offender.as_ref().filter(|now| now.is_wrong()))
        {
            (None, None) => true,
            (Some(known), Some(offender)) => known.is_wrong_alike(offender),
            _ => false,
        };
        let before = match offender {
            Some(offender) => {
                let offender = Arc::new(offender);
                state.count(&offender, 1);
                state.offenders.insert(id, offender)
            }
            None => match state.offenders.remove(&id) {
                Some(before) => Some(before),
                None => return,
            },
        };
        if let Some(before) = before {
            state.count(&before, -1);
        }
        self.0.recounted.notify_one();
        for reader in state.readers.iter_mut().filter(|reader| reader.wants_passes || !is_as_wrong) {
            reader.unseen.insert(id);
            reader.changed.notify_one();
        }
    }

    /// Says that every object that rules are about has been judged by them at least once since the process began. Until then nobody
    /// may conclude from what is not on the board that it is mended. Called by audit alone.
    pub fn set_complete(&self) {
        self.0.is_complete.send_if_modified(|before| !std::mem::replace(before, true));
    }

    /// Whether everything was judged once, and a way to wait for it.
    pub fn is_complete(&self) -> watch::Receiver<bool> {
        self.0.is_complete.subscribe()
    }

    /// A reader, to whom everything on the board is new.
    pub fn outlet(&self) -> Outlet {
        self.read(false)
    }

    /// The same, which sees also what rules are met: by objects that something is wrong with, and by others.
    pub fn outlet_with_passes(&self) -> Outlet {
        self.read(true)
    }

    fn read(&self, wants_passes: bool) -> Outlet {
        let mut state = self.0.state();
        let seen = state.offenders.iter().filter(|(_, offender)| wants_passes || offender.is_wrong());
        let (changed, unseen) = (Arc::new(Notify::new()), seen.map(|(id, _)| *id).collect());
        changed.notify_one();
        let place = state.readers.len();
        state.readers.push(Reader { wants_passes, unseen, changed: Arc::clone(&changed) });
        Outlet { inner: Arc::clone(&self.0), place, wants_passes, changed, is_complete: self.is_complete() }
    }

    /// How many objects violate each rule now. Rules that none violates are not named.
    pub fn counts(&self) -> BTreeMap<RuleId, usize> {
        self.0.state().counts.iter().map(|(rule, count)| (rule.clone(), count.objects)).collect()
    }

    /// Adds the numbers of violations to what is told.
    pub fn register(&self, registry: &Registry) {
        let options = Opts::new(AUDIT_VIOLATIONS.name, AUDIT_VIOLATIONS.help);
        let labels: Vec<&str> = AUDIT_VIOLATIONS.labels.iter().map(|(name, _)| *name).collect();
        let gauges = IntGaugeVec::new(options, &labels).expect("the names are valid");
        let series = Series { board: self.clone(), gauges };
        registry.register(Box::new(series)).expect("the name is in no table");
    }

    /// How many objects violate a rule now. Nothing as long as not everything has been judged once.
    pub fn count(&self, rule: &RuleId) -> Option<usize> {
        let is_complete = *self.0.is_complete.borrow();
        is_complete.then(|| self.0.state().counts.get(rule).map_or(0, |count| count.objects))
    }

    /// Waits until the counts of rules have changed, and says of which. For one reader alone.
    pub async fn recounted(&self) -> Vec<RuleId> {
        loop {
            let recounted = std::mem::take(&mut self.0.state().recounted);
            if !recounted.is_empty() {
                return recounted.into_iter().collect();
            }
            self.0.recounted.notified().await;
        }
    }

    /// All objects that something is wrong with, by their numbers.
    pub fn offenders(&self) -> Vec<(OffenderId, Arc<Offender>)> {
        let state = self.0.state();
        let wrong = state.offenders.iter().filter(|(_, offender)| offender.is_wrong());
        wrong.map(|(id, offender)| (*id, Arc::clone(offender))).collect()
    }
}

impl Offender {
    /// Whether anything is wrong with it.
    fn is_wrong(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Whether another state of the same object says the same, times apart.
    fn is_same(&self, other: &Offender) -> bool {
        let version = |pass: &Pass| (pass.rule.id.clone(), pass.rule.version.clone());
        self.is_wrong_alike(other) && self.passes.iter().map(version).eq(other.passes.iter().map(version))
    }

    /// Whether the same is wrong in another state of the same object.
    fn is_wrong_alike(&self, other: &Offender) -> bool {
        let is_same = |one: &Finding, other: &Finding| {
            (&one.rule.id, &one.rule.version) == (&other.rule.id, &other.rule.version)
                && (&one.container, one.is_failure, &one.message, &one.saw)
                    == (&other.container, other.is_failure, &other.message, &other.saw)
        };
        self.uid == other.uid
            && self.findings.len() == other.findings.len()
            && self.findings.iter().zip(&other.findings).all(|(one, other)| is_same(one, other))
    }
}

impl Outlet {
    /// Waits until something has changed that this reader has not seen, and returns all of it. Nothing is lost if the wait is cut off.
    pub async fn changes(&mut self) -> Vec<Change> {
        loop {
            let changes = self.take();
            if !changes.is_empty() {
                return changes;
            }
            self.changed.notified().await;
        }
    }

    /// What has changed that this reader has not seen, without waiting.
    pub fn take(&mut self) -> Vec<Change> {
        let mut state = self.inner.state();
        let unseen = std::mem::take(&mut state.readers[self.place].unseen);
        let mut unseen: Vec<OffenderId> = unseen.into_iter().collect();
        unseen.sort_unstable();
        let seen = |id: &OffenderId| {
            state.offenders.get(id).filter(|offender| self.wants_passes || offender.is_wrong()).cloned()
        };
        unseen.into_iter().map(|id| (id, seen(&id))).collect()
    }

    /// Whether everything was judged once, and a way to wait for it.
    pub fn is_complete(&self) -> watch::Receiver<bool> {
        self.is_complete.clone()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an object for the rules that it violates. A rule that could not say is not violated.
    fn count(&mut self, offender: &Offender, by: isize) {
        let mut last = None;
        for Finding { rule, .. } in offender.findings.iter().filter(|finding| !finding.is_failure) {
            // Findings of a rule follow each other.
            if last == Some(&rule.id) {
                continue;
            }
            last = Some(&rule.id);
            self.recounted.insert(rule.id.clone());
            let severity = rule.severity;
            let count = self.counts.entry(rule.id.clone()).or_insert(Count { objects: 0, severity });
            *count = Count { objects: count.objects.saturating_add_signed(by), severity };
            if count.objects == 0 {
                self.counts.remove(&rule.id);
            }
        }
    }
}

impl Collector for Series {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.gauges.reset();
        let mut counts: Vec<(RuleId, Count)> =
            self.board.0.state().counts.iter().map(|(rule, count)| (rule.clone(), *count)).collect();
        counts.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (number, (rule, Count { objects, severity })) in counts.into_iter().enumerate() {
            let (rule, severity) = match number < MAX_RULES {
                true => (rule.to_string(), severity.to_string()),
                false => (OTHERS.to_owned(), "any".to_owned()),
            };
            self.gauges.with_label_values(&[&*rule, &*severity]).add(objects as i64);
        }
        self.gauges.collect()
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.rule.id)
    }
}

impl fmt::Debug for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, container, is_failure, message, .. } = self;
        write!(formatter, "{} {container:?} {is_failure} {message:?}", rule.id)
    }
}
