//! Rules that could not say because what they look up was not at hand. Nobody tells that it is again by a change of an object: there may be
//! none.

use std::time::Instant;

use super::{Ledger, RecordNo};
use crate::audit::dependents::Pair;

impl Ledger {
    /// Notes whether a rule that looks something up could not say.
    pub(super) fn note_failure(&mut self, pair: Pair, has_failed: bool) {
        if has_failed {
            self.failed.insert(pair);
        } else if !self.failed.is_empty() {
            self.failed.remove(&pair);
        }
    }

    /// Forgets an object.
    pub(super) fn forget_failures(&mut self, record: RecordNo) {
        let of_record = Pair { record, rule: 0 }..=Pair { record, rule: u32::MAX };
        let pairs: Vec<Pair> = self.failed.range(of_record).copied().collect();
        pairs.iter().for_each(|pair| _ = self.failed.remove(pair));
    }

    /// Objects of some kind are at hand, or the API server tells of them again: whoever could not say may be able to.
    pub(in crate::audit) fn ask_failed_again(&mut self, now: Instant) {
        for pair in std::mem::take(&mut self.failed) {
            self.ask_again(pair, now);
            // It may have to wait, and fail again for another reason.
            self.failed.insert(pair);
        }
    }
}
