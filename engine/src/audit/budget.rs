//! How often a pair of rule and object may be judged again because of what it looks up. A rule that reads what another controller changes all
//! the time would keep a core busy for ever.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::dependents::Pair;

/// How often, and in how long a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    /// How often a rule may judge an object again within the window.
    pub times: u32,
    /// The window.
    pub window: Duration,
}

/// What the pairs have used up. Written by whoever holds the ledger.
#[derive(Debug)]
pub(super) struct Budget {
    allowance: Allowance,
    spent: HashMap<Pair, Spent>,
    /// When the windows of pairs end, the first one first.
    ends: VecDeque<(Instant, Pair)>,
}

#[derive(Clone, Copy, Debug)]
struct Spent {
    times: u32,
    /// Whether the pair is to be judged at the end of its window.
    waits: bool,
}

/// What is to be done with a pair whose lookups have changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is judged.
    Now,
    /// From here on it waits for the end of its window.
    Waits,
    /// It waits already.
    WaitsStill,
}

impl Budget {
    pub(super) fn new(allowance: Allowance) -> Budget {
        Budget { allowance, spent: HashMap::new(), ends: VecDeque::new() }
    }

    /// A pair is to be judged again.
    pub(super) fn ask(&mut self, pair: Pair, now: Instant) -> Verdict {
        let Some(spent) = self.spent.get_mut(&pair) else {
            self.begin(pair, now);
            return Verdict::Now;
        };
        if spent.times < self.allowance.times {
            spent.times += 1;
            return Verdict::Now;
        }
        match std::mem::replace(&mut spent.waits, true) {
            false => Verdict::Waits,
            true => Verdict::WaitsStill,
        }
    }

    /// The pairs that have waited, and whose windows are over. A new one begins for each.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Pair> {
        let mut due = Vec::new();
        while let Some((_, pair)) = self.ends.pop_front_if(|(end, _)| *end <= now) {
            if self.spent.remove(&pair).is_some_and(|spent| spent.waits) {
                due.push(pair);
            }
        }
        due.iter().for_each(|pair| self.begin(*pair, now));
        due
    }

    /// When a window ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.front().map(|(end, _)| *end)
    }

    fn begin(&mut self, pair: Pair, now: Instant) {
        self.spent.insert(pair, Spent { times: 1, waits: false });
        self.ends.push_back((now + self.allowance.window, pair));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_budget_is_judged_at_the_end_of_the_window() {
        let mut budget = Budget::new(Allowance { times: 2, window: Duration::from_secs(10) });
        let (hot, calm) = (Pair { record: 1, rule: 1 }, Pair { record: 2, rule: 1 });
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let asked: Vec<Verdict> = (0..4).map(|second| budget.ask(hot, at(second))).collect();
        assert_eq!(asked, [Verdict::Now, Verdict::Now, Verdict::Waits, Verdict::WaitsStill]);
        assert_eq!(budget.ask(calm, at(4)), Verdict::Now);
        assert_eq!((budget.due(at(9)), budget.next_end()), (Vec::new(), Some(at(10))));
        assert_eq!(budget.due(at(10)), [hot]);
        // It has been judged once in its new window.
        assert_eq!((budget.ask(hot, at(11)), budget.ask(hot, at(11))), (Verdict::Now, Verdict::Waits));
        // A pair that nothing happens to is forgotten.
        assert_eq!((budget.due(at(20)), budget.due(at(31))), (vec![hot], Vec::new()));
        assert_eq!((budget.spent.len(), budget.next_end()), (0, None));
    }
}
