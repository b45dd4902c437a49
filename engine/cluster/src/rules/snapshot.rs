//! What is in force, as one value: rules, the kinds that they were compiled against, and what they need.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use portal_core::{kinds::Kinds, layers::Layers, requirements::Requirements, rule::RuleSet};

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
    layers: Layers,
    requirements: OnceLock<Requirements>,
}

/// The snapshot in force. A clone sees the same one.
#[derive(Clone, Debug, Default)]
pub struct InForce(Arc<ArcSwap<Snapshot>>);

impl Snapshot {
    /// A snapshot for an engine with these layers.
    pub fn new(rules: RuleSet, kinds: Arc<Kinds>, layers: Layers) -> Snapshot {
        Snapshot { rules, kinds, number: 0, layers, requirements: OnceLock::new() }
    }

    /// What the rules need. Worked out when somebody first asks: with thousands of rules it takes longer than the swap, for
    /// which requests wait.
    pub fn requirements(&self) -> &Requirements {
        self.requirements.get_or_init(|| Requirements::of(&self.rules, self.layers))
    }
}

impl InForce {
    /// What is in force at this moment. Whoever judges something takes it once, and judges by that alone.
    pub fn now(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    /// Puts another snapshot in force. Called by one task alone.
    pub(super) fn swap(&self, snapshot: Snapshot) {
        let number = self.0.load().number + 1;
        self.0.store(Arc::new(Snapshot { number, ..snapshot }));
    }
}
