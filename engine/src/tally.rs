//! How often each rule was asked, and what came of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwapOption;
use portal_cluster::{
    metrics::{Label as _, Registry},
    rules::snapshot::Snapshot,
};
use portal_core::{evaluate::Evaluation, rule::source::RuleId};
use prometheus::{
    IntCounterVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use crate::metrics::{RULE_EVALUATIONS, RuleAnswer};

/// The tallies of all rules. A clone counts into the same ones.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    /// By the name of the rule, so that a rule which is compiled anew goes on counting.
    by_rule: Arc<RwLock<HashMap<RuleId, Arc<Tally>>>>,
    /// Those of the snapshot in force, by the places of its rules: a request must not look up names.
    in_force: Arc<ArcSwapOption<InForce>>,
}

/// What one rule has answered. It only grows, as long as the process lives.
#[derive(Debug, Default)]
pub struct Tally {
    passed: AtomicU64,
    violated: AtomicU64,
    failed: AtomicU64,
    /// How many evaluations the status of the rule says. Written by what the holder of the Lease tells.
    accounted: AtomicU64,
}

/// A tally at a moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Objects that did not violate the rule.
    pub passed: u64,
    /// Objects that did.
    pub violated: u64,
    /// Objects about which the rule could not say.
    pub failed: u64,
}

#[derive(Debug)]
struct InForce {
    /// The number of the snapshot.
    number: u64,
    tallies: Vec<Arc<Tally>>,
}

/// Tells Prometheus what was counted.
struct Series {
    tallies: Tallies,
    /// Filled anew whenever somebody asks.
    counters: IntCounterVec,
}

/// The most rules that have series of their own. Prometheus keeps each for weeks.
pub(crate) const MAX_RULES: usize = 1000;

/// What the rules after those share.
pub(crate) const OTHERS: &str = "other";

impl Tallies {
    /// Adds the series of rules to what is told.
    pub fn register(&self, registry: &Registry) {
        let options = Opts::new(RULE_EVALUATIONS.name, RULE_EVALUATIONS.help);
        let labels: Vec<&str> = RULE_EVALUATIONS.labels.iter().map(|(name, _)| *name).collect();
        let counters = IntCounterVec::new(options, &labels).expect("the names are valid");
        let series = Series { tallies: self.clone(), counters };
        registry.register(Box::new(series)).expect("the name is in no table");
    }

    /// Counts what came of evaluating the rules of a snapshot for one object.
    pub fn count(&self, snapshot: &Snapshot, evaluation: &Evaluation) {
        let rules = snapshot.rules.rules();
        let violated: BTreeSet<&RuleId> = evaluation.violations.iter().map(|violation| &violation.rule).collect();
        let failed: BTreeSet<&RuleId> = evaluation.failures.iter().map(|failure| &failure.rule).collect();
        let in_force = match self.in_force.load_full() {
            Some(known) if known.number >= snapshot.number => known,
            _ => self.follow(snapshot),
        };
        for number in &evaluation.asked {
            let rule = &rules[*number].id;
            let tally = match in_force.number == snapshot.number {
                true => Some(Arc::clone(&in_force.tallies[*number])),
                // The rules were swapped while the request was judged. Those that are gone are not counted any more.
                false => self.by_rule.read().unwrap_or_else(PoisonError::into_inner).get(rule).cloned(),
            };
            let counter = tally.as_deref().map(|tally| match () {
                () if violated.contains(rule) => &tally.violated,
                () if failed.contains(rule) => &tally.failed,
                () => &tally.passed,
            });
            if let Some(counter) = counter {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The tallies of rules that are in force, or were until a moment ago.
    pub fn all(&self) -> BTreeMap<RuleId, Counts> {
        let by_rule = self.by_rule.read().unwrap_or_else(PoisonError::into_inner);
        by_rule.iter().map(|(rule, tally)| (rule.clone(), tally.counts())).collect()
    }

    /// The status of a rule says so many of this replica's evaluations.
    pub fn account(&self, rule: &RuleId, evaluations: u64) {
        let by_rule = self.by_rule.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = by_rule.get(rule) {
            tally.accounted.fetch_max(evaluations, Ordering::Relaxed);
        }
    }

    /// The rules whose status does not say all: how often this replica has evaluated them, and how much of that is said.
    pub fn unaccounted(&self) -> Vec<(RuleId, u64, u64)> {
        let by_rule = self.by_rule.read().unwrap_or_else(PoisonError::into_inner);
        let counted = by_rule.iter().map(|(rule, tally)| {
            let Counts { passed, violated, failed } = tally.counts();
            (rule, passed + violated + failed, tally.accounted.load(Ordering::Relaxed))
        });
        let unaccounted = counted.filter(|(_, total, accounted)| total > accounted);
        unaccounted.map(|(rule, total, accounted)| (rule.clone(), total, accounted)).collect()
    }

    /// Takes over the rules of another snapshot. Those that are gone are forgotten.
    fn follow(&self, snapshot: &Snapshot) -> Arc<InForce> {
        let mut by_rule = self.by_rule.write().unwrap_or_else(PoisonError::into_inner);
        let rules = snapshot.rules.rules();
        let tallies: Vec<Arc<Tally>> =
            rules.iter().map(|rule| Arc::clone(by_rule.entry(rule.id.clone()).or_default())).collect();
        if by_rule.len() > rules.len() {
            let known: BTreeSet<&RuleId> = rules.iter().map(|rule| &rule.id).collect();
            by_rule.retain(|rule, _| known.contains(rule));
        }
        let in_force = Arc::new(InForce { number: snapshot.number, tallies });
        self.in_force.store(Some(Arc::clone(&in_force)));
        in_force
    }
}

impl Collector for Series {
    fn desc(&self) -> Vec<&Desc> {
        self.counters.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.counters.reset();
        for (number, (rule, counts)) in self.tallies.all().into_iter().enumerate() {
            let rule = if number < MAX_RULES { rule.to_string() } else { OTHERS.to_owned() };
            for (answer, count) in [
                (RuleAnswer::Passed, counts.passed),
                (RuleAnswer::Violated, counts.violated),
                (RuleAnswer::Failed, counts.failed),
            ] {
                self.counters.with_label_values(&[&*rule, answer.word()]).inc_by(count);
            }
        }
        self.counters.collect()
    }
}

impl Tally {
    fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts { passed: read(&self.passed), violated: read(&self.violated), failed: read(&self.failed) }
    }
}
