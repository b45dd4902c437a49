//! The reports of one process, for histories of more than reports.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::{Cluster, SMALL, about};
use crate::{
    findings::{Board, Outlet},
    sinks::report::{layout::Layout, model::Api},
};

/// What a cluster stores of reports.
#[derive(Default)]
pub(crate) struct Reports(Cluster);

/// Writes the reports of a process.
pub(crate) struct Reporter {
    layout: Layout,
    outlet: Outlet,
    /// Whether the end of what nobody finds any more was noted in this term.
    is_settled: bool,
}

impl Reports {
    /// The results, times apart. Each is there once.
    pub(crate) fn results(&self) -> BTreeSet<String> {
        let results = self.0.results();
        assert!(results.values().all(|times| *times == 1), "a result is in two reports");
        results.into_keys().collect()
    }
}

impl Reporter {
    pub(crate) fn new(board: &Board) -> Reporter {
        Reporter {
            layout: Layout::new(about(Api::PolicyReport), SMALL),
            outlet: board.outlet_with_passes(),
            is_settled: false,
        }
    }

    /// A term begins: what there is was listed.
    pub(crate) fn begin(&mut self, reports: &Reports) {
        self.take();
        reports.0.show(&mut self.layout, *self.outlet.is_complete().borrow());
        self.is_settled = false;
        self.take();
    }

    /// Takes what has changed on the board.
    pub(crate) fn take(&mut self) {
        for (id, offender) in self.outlet.take() {
            self.layout.put(id, offender);
        }
        if !self.is_settled && *self.outlet.is_complete().borrow() {
            self.is_settled = true;
            self.layout.complete();
        }
    }

    /// Writes some of what has to be written, unless the API server takes nothing.
    pub(crate) fn write_some(&mut self, reports: &mut Reports, random: &mut Rng, is_down: bool) {
        let mut dirty: Vec<_> = self.layout.take_dirty().into_iter().collect();
        random.shuffle(&mut dirty);
        let begun = if is_down { 0 } else { random.usize(..=dirty.len()) };
        self.layout.dirty.extend(dirty.drain(begun..));
        for key in dirty {
            if let Some(step) = self.layout.step(&key) {
                reports.0.take(&mut self.layout, &key, step);
            }
        }
    }

    /// Writes all.
    pub(crate) fn write_all(&mut self, reports: &mut Reports) {
        self.take();
        reports.0.settle(&mut self.layout);
    }
}
