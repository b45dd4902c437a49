//! What anchors stand for, and how much their aliases may expand to.

use std::collections::HashMap;

use super::resolve::Scalar;

/// The anchors of one document, and the account of what its aliases made of them.
pub(super) struct Aliases {
    anchors: HashMap<usize, Anchor>,
    /// Values so far, those that aliases stand for included.
    values: usize,
    /// Of these, the ones that aliases stand for.
    aliased: usize,
    /// Entries that merge keys added.
    merged: usize,
}

/// What an anchor stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Anchor {
    /// A container that has not ended.
    Open,
    Scalar(Scalar<'static>),
    Container(Container),
}

/// A container of the document. Its aliases are the same word: what it has is there once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Container {
    pub(super) word: u32,
    /// Values in it, itself included.
    pub(super) values: usize,
    /// Containers within each other, itself included.
    pub(super) height: usize,
}

/// Entries that merge keys may add. They cost more than aliases, and are needed far less.
const MAX_MERGED: usize = 400_000;

impl Aliases {
    pub(super) fn new() -> Aliases {
        // The document counts too.
        Aliases { anchors: HashMap::new(), values: 1, aliased: 0, merged: 0 }
    }

    pub(super) fn define(&mut self, id: usize, anchor: Anchor) {
        // No anchor has the number zero.
        if id != 0 {
            self.anchors.insert(id, anchor);
        }
    }

    pub(super) fn get(&self, id: usize) -> Option<&Anchor> {
        self.anchors.get(&id)
    }

    /// Values so far.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    pub(super) fn count_value(&mut self) {
        self.values += 1;
    }

    /// Counts what an alias stands for, and says whether that is still little enough.
    pub(super) fn count_alias(&mut self, values: usize) -> bool {
        self.values += 1 + values;
        self.aliased += values;
        let share = self.aliased as f64 / self.values as f64;
        self.aliased <= 100 || self.values <= 1000 || share <= allowed_share(self.values)
    }

    /// Counts entries that a merge key added, and says whether that is still little enough.
    pub(super) fn count_merge(&mut self, entries: usize) -> bool {
        self.merged += entries;
        self.merged <= MAX_MERGED
    }
}

/// Which share of values may come from aliases: nearly all in a small document, few in a large one, as in go-yaml.
fn allowed_share(values: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let progress = ((values as f64 - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    0.99 - 0.89 * progress
}
