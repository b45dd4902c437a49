//! What is in force, as one value: rules, the kinds that they were compiled against, and what they need.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use portal_core::{
    kinds::{Kind, Kinds},
    layers::Layers,
    requirements::{Reach, Reason, Requirements},
    rule::{Rule, RuleSet, source::RuleId},
};
use tokio::sync::watch;

use crate::rules::quota::Population;

/// Rules, kinds and needs that belong together. Immutable: a change makes another one, so that nobody ever sees new rules with
/// old kinds.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The rules, found by the kind of what they judge.
    pub rules: RuleSet,
    /// What the API server served when the rules were compiled: the same kinds that the rules name.
    pub kinds: Arc<Kinds>,
    /// Its place in the order of those that were in force in this process.
    pub number: u64,
    /// Rules that are not in force, because the objects that they look up are not at hand yet.
    starved: Vec<Arc<Rule>>,
    layers: Layers,
    /// The layers that other pods of the instance have.
    other_layers: Layers,
    requirements: OnceLock<Requirements>,
    fingerprint: OnceLock<String>,
}

/// The snapshot in force. A clone sees the same one.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// How many rules namespaces have, those that are not in force too.
    population: Arc<ArcSwap<Population>>,
    /// The number of the snapshot, for whoever waits for another one.
    number: Arc<watch::Sender<u64>>,
}

impl Snapshot {
    /// A snapshot for an engine with these layers.
    pub fn new(rules: RuleSet, kinds: Arc<Kinds>, layers: Layers) -> Snapshot {
        let (starved, requirements, fingerprint) = (Vec::new(), OnceLock::new(), OnceLock::new());
        let other_layers = Layers::default();
        Snapshot { rules, kinds, number: 0, starved, layers, other_layers, requirements, fingerprint }
    }

    /// The same in an instance whose other pods have these layers.
    pub fn beside(self, other_layers: Layers) -> Snapshot {
        Snapshot { other_layers, ..self }
    }

    /// The same, with rules that wait for objects.
    pub(super) fn with_starved(self, starved: Vec<Arc<Rule>>) -> Snapshot {
        Snapshot { starved, ..self }
    }

    /// What the rules need. Worked out when somebody first asks: with thousands of rules it takes longer than the swap, for
    /// which requests wait.
    pub fn requirements(&self) -> &Requirements {
        self.requirements.get_or_init(|| Requirements::of(&self.rules, self.layers))
    }

    /// The rules that are not in force, because the objects that they look up are not at hand yet.
    pub fn starved(&self) -> &[Arc<Rule>] {
        &self.starved
    }

    /// The kinds whose objects must be at hand, for the rules in force and for those that wait for just that: what they look up, and with
    /// audit what they judge, and what admission lets in although they have something to say.
    pub fn watched(&self) -> BTreeMap<Arc<Kind>, Reach> {
        let rules = self.rules.rules().iter().chain(&self.starved);
        let rules: Vec<Arc<Rule>> = rules.filter(|rule| self.layers.audit || rule.reads_others()).cloned().collect();
        let needs = Requirements::of_engine(&RuleSet::new(rules), self.layers, self.layers.with(self.other_layers));
        let wanted = [Reason::Match, Reason::Lookup, Reason::Outcome];
        let watched = needs.watches.into_iter().filter_map(|(kind, mut reasons)| {
            let mut reaches = wanted.iter().filter_map(|reason| reasons.remove(reason));
            let first = reaches.next()?;
            Some((kind, reaches.fold(first, Reach::joined)))
        });
        watched.collect()
    }

    /// A rule, by its name. The [index](super::index) puts them in the order of names.
    pub fn rule(&self, id: &RuleId) -> Option<&Arc<Rule>> {
        let rules = self.rules.rules();
        rules.binary_search_by(|rule| rule.id.cmp(id)).ok().map(|place| &rules[place])
    }

    /// What tells its rules from those of other snapshots, in this process and in others.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| self.rules.fingerprint())
    }
}

impl InForce {
    /// What is in force at this moment. Whoever judges something takes it once, and judges by that alone.
    pub fn now(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Tells when another snapshot is in force.
    pub fn numbers(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }

    /// How many rules a namespace has in the cluster, those that are not in force too.
    pub fn rules_of(&self, namespace: &str) -> usize {
        self.population.load().get(namespace).copied().unwrap_or_default()
    }

    /// Tells how many rules namespaces have. Called by one task alone.
    pub(super) fn count(&self, population: Arc<Population>) {
        self.population.store(population);
    }

    /// Puts another snapshot in force. Called by one task alone. Returns the one before, which takes a while to go.
    pub(super) fn swap(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let number = self.snapshot.load().number + 1;
        let before = self.snapshot.swap(Arc::new(Snapshot { number, ..snapshot }));
        self.number.send_replace(number);
        before
    }
}
