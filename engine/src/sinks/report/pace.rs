//! When reports may be written: soon, and not so often that the cluster suffers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::layout::Key;

/// A report is written at most this often. Its first change is written at once.
const INTERVAL: Duration = Duration::from_millis(250);

/// So many changes in a second are a storm. Then all reports together have a budget.
const STORM: usize = 200;

/// The budget, and how much may be written at once after a quiet time.
const BYTES_PER_SECOND: f64 = (2 << 20) as f64;

/// Writes that are on their way at the same time.
const WRITES: usize = 4;

/// The pauses after something that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The pause after so many failures in a row. Replicas and clusters that failed together do not come back together.
pub(super) fn pause(failures: u32) -> Duration {
    let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(MAX_PAUSE);
    pause.mul_f64(0.75 + fastrand::f64() / 2.0)
}

/// Reports that wait for their turn, those that have waited longest first.
#[derive(Debug)]
pub(super) struct Pace {
    turns: BTreeMap<u64, Key>,
    waiting: HashMap<Key, u64>,
    next: u64,
    /// Reports that do not come to their turn before a time.
    delayed: BTreeSet<(Instant, Key)>,
    /// When each was written last, unless that is long ago.
    last: HashMap<Key, Instant>,
    /// What is left of the budget.
    bytes: f64,
    filled: Instant,
    /// Changes in this second, which began then, and in the one before.
    second: Instant,
    changes: usize,
    before: usize,
    /// How often in a row something failed that is likely wrong with all, and when it is tried again.
    failures: u32,
    not_before: Option<Instant>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace {
            turns: BTreeMap::new(),
            waiting: HashMap::new(),
            next: 0,
            delayed: BTreeSet::new(),
            last: HashMap::new(),
            bytes: BYTES_PER_SECOND,
            filled: now,
            second: now,
            changes: 0,
            before: 0,
            failures: 0,
            not_before: None,
        }
    }

    /// Nobody waits any more.
    pub(super) fn clear(&mut self) {
        self.turns.clear();
        self.waiting.clear();
        self.delayed.clear();
        (self.failures, self.not_before) = (0, None);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.turns.is_empty() && self.delayed.is_empty()
    }

    /// So much has changed.
    pub(super) fn changed(&mut self, now: Instant, count: usize) {
        self.turn(now);
        self.changes += count;
    }

    /// A report has to be looked at.
    pub(super) fn push(&mut self, key: Key) {
        if !self.waiting.contains_key(&key) {
            self.turns.insert(self.next, key.clone());
            self.waiting.insert(key, self.next);
            self.next += 1;
        }
    }

    /// A report has to be looked at after a time.
    pub(super) fn delay(&mut self, key: Key, until: Instant) {
        self.delayed.insert((until, key));
    }

    /// The report whose turn it is, or the time at which there is one. Without either, something has to happen first.
    pub(super) fn pop(&mut self, now: Instant, under_way: usize) -> Result<Key, Option<Instant>> {
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.delayed.pop_first() else { break };
            self.push(key);
        }
        if under_way >= if self.failures == 0 { WRITES } else { 1 } {
            return Err(None);
        }
        let wake = self.delayed.first().map(|(at, _)| *at);
        let may_go = self.not_before.filter(|at| *at > now).into_iter().chain(self.budget(now)).max();
        loop {
            let Some(entry) = self.turns.first_entry() else { return Err(wake) };
            if let Some(at) = may_go {
                return Err(Some(at));
            }
            let key = entry.remove();
            self.waiting.remove(&key);
            match self.last.get(&key).map(|last| *last + INTERVAL).filter(|at| *at > now) {
                Some(at) => self.delay(key, at),
                None => return Ok(key),
            }
            if self.turns.is_empty() {
                return Err(self.delayed.first().map(|(at, _)| *at));
            }
        }
    }

    /// A report is being written.
    pub(super) fn started(&mut self, key: &Key, now: Instant, bytes: usize) {
        if self.last.len() > 1_000 {
            self.last.retain(|_, last| *last + INTERVAL > now);
        }
        self.last.insert(key.clone(), now);
        self.fill(now);
        // What was written in quiet times is paid by them.
        self.bytes = (self.bytes - bytes as f64).max(-BYTES_PER_SECOND);
    }

    /// A write has failed for a reason that others have too. They wait, at least as long as the API server says.
    pub(super) fn failed(&mut self, now: Instant, at_least: Option<Duration>) {
        // Those that were on their way together failed for the same reason.
        if self.not_before.is_none_or(|at| at <= now) {
            self.not_before = Some(now + pause(self.failures).max(at_least.unwrap_or_default()));
            self.failures += 1;
        }
    }

    pub(super) fn succeeded(&mut self) {
        (self.failures, self.not_before) = (0, None);
    }

    /// When the budget allows to write, unless it does.
    fn budget(&mut self, now: Instant) -> Option<Instant> {
        self.turn(now);
        self.fill(now);
        let is_storm = self.changes.max(self.before) > STORM;
        // A little later than exactly, so that rounding does not wake anybody too early.
        let wait = || Duration::from_secs_f64(-self.bytes / BYTES_PER_SECOND) + Duration::from_millis(1);
        (is_storm && self.bytes < 0.0).then(|| now + wait())
    }

    fn fill(&mut self, now: Instant) {
        let seconds = now.duration_since(self.filled).as_secs_f64();
        self.bytes = (self.bytes + seconds * BYTES_PER_SECOND).min(BYTES_PER_SECOND);
        self.filled = now;
    }

    fn turn(&mut self, now: Instant) {
        let seconds = now.duration_since(self.second).as_secs();
        if seconds > 0 {
            self.before = if seconds == 1 { self.changes } else { 0 };
            (self.changes, self.second) = (0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Level;
    use super::*;

    fn key(shard: u8) -> Key {
        Key { namespace: None, level: Level::All, shard }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_change_goes_at_once_and_further_ones_wait() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.push(key(1));
        pace.push(key(1));
        assert_eq!(pace.pop(start, 0), Ok(key(1)));
        assert_eq!(pace.pop(start, 0), Err(None));
        pace.started(&key(1), start, 100);
        pace.push(key(1));
        pace.push(key(2));
        // Another one need not wait for it.
        assert_eq!(pace.pop(start + MS, 1), Ok(key(2)));
        assert_eq!(pace.pop(start + MS, 1), Err(Some(start + INTERVAL)));
        // However often it changes until then.
        pace.push(key(1));
        assert_eq!(pace.pop(start + MS, 1), Err(Some(start + INTERVAL)));
        assert_eq!(pace.pop(start + INTERVAL, 1), Ok(key(1)));
        assert!(pace.is_idle());
    }

    #[test]
    fn only_some_are_on_their_way_and_one_after_a_failure() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        (0..9).for_each(|shard| pace.push(key(shard)));
        assert_eq!(pace.pop(start, WRITES - 1), Ok(key(0)));
        assert_eq!(pace.pop(start, WRITES), Err(None));
        pace.failed(start, Some(Duration::from_secs(7)));
        pace.failed(start, None);
        assert_eq!(pace.pop(start, 0), Err(Some(start + Duration::from_secs(7))));
        let later = start + Duration::from_secs(7);
        assert_eq!(pace.pop(later, 0), Ok(key(1)));
        assert_eq!(pace.pop(later, 1), Err(None));
        pace.succeeded();
        assert_eq!(pace.pop(later, 1), Ok(key(2)));
    }

    /// How much is written in ten seconds in which so many changes a second come, each to another report of 64 KiB.
    fn written(changes_per_second: u32) -> usize {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut written = 0;
        for tick in 0..10_000 {
            let now = start + tick * MS;
            if tick % (1_000 / changes_per_second) == 0 {
                pace.changed(now, 1);
                pace.push(key((tick % 256) as u8));
            }
            while let Ok(key) = pace.pop(now, 0) {
                pace.started(&key, now, 64 << 10);
                written += 64 << 10;
            }
        }
        written
    }

    #[test]
    fn a_storm_has_a_budget() {
        let budget = 11.0 * BYTES_PER_SECOND;
        let (quiet, storm) = (written(100) as f64, written(500) as f64);
        assert!(quiet > 2.0 * budget, "{quiet}");
        // At its beginning nobody knows that it is one.
        assert!((0.8 * budget..1.6 * budget).contains(&storm), "{storm}");
    }
}
