//! When rules are asked again that could not say because the API server has not answered them. What is read afresh is followed by nobody, so
//! that no change would ask them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

use foldhash::quality::FixedState;

use super::{
    dependents::Pair,
    ledger::{RecordNo, RuleNo},
};

/// The pairs that wait for an answer. Written by whoever holds the ledger.
#[derive(Debug, Default)]
pub(super) struct Retries {
    unanswered: BTreeMap<Pair, Unanswered>,
    /// When pairs are asked again, the first one first.
    due: BTreeSet<(Instant, Pair)>,
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    /// How often in a row.
    times: u32,
    /// When it is asked again. Nothing if it is being asked.
    due: Option<Instant>,
}

/// How long the first pause is, and the longest one.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

impl Retries {
    /// A pair was not answered.
    pub(super) fn fail(&mut self, pair: Pair, now: Instant) {
        let unanswered = self.unanswered.entry(pair).or_insert(Unanswered { times: 0, due: None });
        // It may have been asked for another reason meanwhile.
        if unanswered.due.is_none() {
            let due = now + pause(pair, unanswered.times);
            *unanswered = Unanswered { times: unanswered.times + 1, due: Some(due) };
            self.due.insert((due, pair));
        }
    }

    /// A pair was answered, or asks nothing any more.
    pub(super) fn succeed(&mut self, pair: Pair) {
        if let Some(due) = self.unanswered.remove(&pair).and_then(|unanswered| unanswered.due) {
            self.due.remove(&(due, pair));
        }
    }

    /// Forgets an object.
    pub(super) fn forget(&mut self, record: RecordNo) {
        let of_record = Pair { record, rule: 0 }..=Pair { record, rule: RuleNo::MAX };
        let pairs: Vec<Pair> = self.unanswered.range(of_record).map(|(pair, _)| *pair).collect();
        pairs.into_iter().for_each(|pair| self.succeed(pair));
    }

    /// Forgets rules.
    pub(super) fn forget_rules(&mut self, rules: &HashSet<RuleNo>) {
        self.unanswered.retain(|pair, _| !rules.contains(&pair.rule));
        self.due.retain(|(_, pair)| !rules.contains(&pair.rule));
    }

    /// The pairs that are to be asked again now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Pair> {
        let mut pairs = Vec::new();
        while self.next().is_some_and(|due| due <= now)
            && let Some((_, pair)) = self.due.pop_first()
        {
            if let Some(unanswered) = self.unanswered.get_mut(&pair) {
                unanswered.due = None;
            }
            pairs.push(pair);
        }
        pairs
    }

    /// When the next pair is asked again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }
}

/// How long a pair waits that has failed so often before: twice as long each time, and up to a quarter less, so that pairs that fail together are not
/// asked together for ever.
fn pause(pair: Pair, times: u32) -> Duration {
    let pause = FIRST.saturating_mul(1 << times.min(16)).min(LONGEST);
    let share = FixedState::with_seed(u64::from(times)).hash_one(pair) % 256;
    pause - pause / 4 * share as u32 / 256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_there_is_an_answer() {
        let (one, other) = (Pair { record: 1, rule: 1 }, Pair { record: 2, rule: 1 });
        let mut retries = Retries::default();
        let mut now = Instant::now();
        retries.fail(other, now);
        let mut waited = Vec::new();
        for _ in 0..12 {
            retries.succeed(other);
            retries.fail(one, now);
            // Asked for another reason, and still not answered.
            retries.fail(one, now);
            let due = retries.next().unwrap();
            assert_eq!(retries.due(due - Duration::from_millis(1)), []);
            assert_eq!((retries.due(due), retries.next()), (vec![one], None));
            waited.push((due - now).as_secs_f64());
            now = due;
        }
        for (times, waited) in waited.iter().enumerate() {
            let longest = f64::from(1 << times).min(300.0);
            assert!((longest * 0.75..=longest).contains(waited), "{times}: {waited}");
        }
        retries.succeed(one);
        retries.fail(one, now);
        assert!(retries.next().unwrap() <= now + FIRST);
    }

    #[test]
    fn pairs_that_fail_together_are_asked_one_after_the_other() {
        let mut retries = Retries::default();
        let now = Instant::now();
        (0..100).for_each(|record| retries.fail(Pair { record, rule: 1 }, now));
        let moments: HashSet<Instant> = retries.due.iter().map(|(due, _)| *due).collect();
        assert!(moments.len() > 50, "{}", moments.len());
    }

    #[test]
    fn what_is_gone_is_not_asked() {
        let mut retries = Retries::default();
        let now = Instant::now();
        let pairs = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(record, rule)| Pair { record, rule });
        pairs.into_iter().for_each(|pair| retries.fail(pair, now));
        retries.forget(1);
        retries.forget_rules(&HashSet::from([1]));
        assert_eq!(retries.due(now + LONGEST), [pairs[3]]);
        retries.succeed(pairs[3]);
        assert!(retries.unanswered.is_empty() && retries.due.is_empty());
    }
}
