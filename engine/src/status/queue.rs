//! In which order, and how often, status is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use portal_core::rule::source::RuleId;
use tokio::time::Instant;

/// Writes of one kind of rules that are on their way at the same time.
const WRITES: usize = 6;

/// Writes of counters alone: how many per second, and how many at once after a quiet time.
const COUNTER_RATE: f64 = 2.0;
const COUNTER_BURST: f64 = 10.0;

/// The pauses after something that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The pause after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(MAX_PAUSE)
}

/// Rules that wait, oldest first: one that always comes back must not keep others waiting.
#[derive(Debug, Default)]
pub(super) struct Queue {
    turns: BTreeMap<u64, RuleId>,
    ids: HashMap<RuleId, u64>,
    next: u64,
}

impl Queue {
    /// Adds a rule at the end, unless it waits already.
    pub(super) fn push(&mut self, id: RuleId) {
        if !self.ids.contains_key(&id) {
            self.turns.insert(self.next, id.clone());
            self.ids.insert(id, self.next);
            self.next += 1;
        }
    }

    pub(super) fn first(&self) -> Option<&RuleId> {
        self.turns.first_key_value().map(|(_, id)| id)
    }

    pub(super) fn pop(&mut self) -> Option<RuleId> {
        let (_, id) = self.turns.pop_first()?;
        self.ids.remove(&id);
        Some(id)
    }

    pub(super) fn remove(&mut self, id: &RuleId) {
        if let Some(turn) = self.ids.remove(id) {
            self.turns.remove(&turn);
        }
    }
}

/// The writes to rules of one kind. What is wrong with one of them is likely wrong with all: a verb that is missing, an API server
/// that does not answer. After a failure there is a pause, and then one write at a time until one succeeds.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Rules whose status may have to be written at once.
    pub(super) urgent: Queue,
    writing: HashSet<RuleId>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Lane {
    /// Whether a write may start. If not, the time at which it may, or nothing if it has to wait for another write to end.
    pub(super) fn may_start(&self, now: Instant) -> Result<(), Option<Instant>> {
        if let Some(at) = self.not_before.filter(|at| *at > now) {
            return Err(Some(at));
        }
        let most = if self.failures == 0 { WRITES } else { 1 };
        if self.writing.len() < most { Ok(()) } else { Err(None) }
    }

    pub(super) fn is_writing(&self, id: &RuleId) -> bool {
        self.writing.contains(id)
    }

    pub(super) fn started(&mut self, id: RuleId) {
        self.writing.insert(id);
    }

    pub(super) fn ended(&mut self, id: &RuleId) {
        self.writing.remove(id);
    }

    pub(super) fn failed(&mut self, now: Instant) {
        // Those that were on their way together failed for the same reason.
        if self.not_before.is_none_or(|at| at <= now) {
            self.not_before = Some(now + pause(self.failures));
            self.failures += 1;
        }
    }

    pub(super) fn succeeded(&mut self) {
        (self.failures, self.not_before) = (0, None);
    }
}

/// A bucket that fills by itself.
#[derive(Debug)]
pub(super) struct Tokens {
    left: f64,
    since: Instant,
}

impl Tokens {
    pub(super) fn new() -> Tokens {
        Tokens { left: COUNTER_BURST, since: Instant::now() }
    }

    /// When the next token comes, unless there is one.
    pub(super) fn next(&mut self, now: Instant) -> Option<Instant> {
        self.left = (self.left + now.duration_since(self.since).as_secs_f64() * COUNTER_RATE).min(COUNTER_BURST);
        self.since = now;
        (self.left < 1.0).then(|| now + Duration::from_secs_f64((1.0 - self.left) / COUNTER_RATE))
    }

    pub(super) fn take(&mut self) {
        self.left -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep_until;

    use super::*;

    fn id(name: &str) -> RuleId {
        RuleId { namespace: None, name: name.to_owned() }
    }

    #[test]
    fn who_comes_back_waits_behind_the_others() {
        let mut queue = Queue::default();
        for name in ["b", "a", "b", "c"] {
            queue.push(id(name));
        }
        assert_eq!(queue.pop(), Some(id("b")));
        queue.push(id("b"));
        queue.remove(&id("c"));
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(id("a")), Some(id("b")), None]);
        assert!(queue.ids.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_one_write_tries_until_one_succeeds() {
        let mut lane = Lane::default();
        for number in 0..WRITES {
            assert_eq!(lane.may_start(Instant::now()), Ok(()));
            lane.started(id(&number.to_string()));
        }
        assert_eq!(lane.may_start(Instant::now()), Err(None));
        // All of them fail, which is one failure.
        let start = Instant::now();
        for number in 0..WRITES {
            lane.ended(&id(&number.to_string()));
            lane.failed(start);
        }
        assert_eq!(lane.may_start(start), Err(Some(start + FIRST_PAUSE)));
        let later = start + FIRST_PAUSE;
        assert_eq!(lane.may_start(later), Ok(()));
        lane.started(id("probe"));
        assert_eq!(lane.may_start(later), Err(None));
        lane.ended(&id("probe"));
        lane.failed(later);
        assert_eq!(lane.may_start(later), Err(Some(later + 2 * FIRST_PAUSE)));
        lane.succeeded();
        lane.started(id("one"));
        assert_eq!(lane.may_start(later), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_come_at_a_rate_and_do_not_pile_up() {
        let mut tokens = Tokens::new();
        let mut taken = 0;
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            match tokens.next(Instant::now()) {
                Some(at) => sleep_until(at).await,
                None => {
                    tokens.take();
                    taken += 1;
                }
            }
        }
        assert!((125..=130).contains(&taken), "{taken}");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        tokens.next(Instant::now());
        assert!(tokens.left <= COUNTER_BURST);
    }
}
