//! How long is waited after an error, and when a watch that failed counts as well again.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::{Instant, sleep_until, timeout};

/// The longest pause between two tries: whoever fixes the cause should not wait for long.
const MAX_PAUSE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Pauses, each twice as long as the one before. They start over when no pause was needed for a while.
#[derive(Debug, Default)]
pub struct Pauses {
    tries: u32,
    last: Option<Instant>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.tries.min(10)).min(MAX_PAUSE);
        self.tries += 1;
        self.last = Some(Instant::now());
        Some(pause)
    }
}

impl Backoff for Pauses {
    /// Called for every event of a watch. The first one only says that the watch begins, and is no sign that it works.
    fn reset(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() > 2 * MAX_PAUSE) {
            *self = Pauses::default();
        }
    }
}

/// Finds out when a watch that failed works again: a watch that works sends nothing as long as nothing changes.
#[derive(Debug, Default)]
pub(super) struct Calm {
    failed: Option<Instant>,
}

impl Calm {
    /// It failed, and is tried again.
    pub(super) fn disturb(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// Waits until the last failure is longer ago than the longest pause, and `probe` gets an answer: a try may still be hanging.
    pub(super) async fn wait<F: Future<Output = bool>>(&mut self, probe: impl Fn() -> F) {
        loop {
            match self.failed {
                Some(failed) => sleep_until(failed + 3 * MAX_PAUSE).await,
                None => std::future::pending().await,
            }
            if timeout(MAX_PAUSE, probe()).await == Ok(true) {
                self.failed = None;
                return;
            }
            self.disturb();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_bound_and_begin_again_after_a_while() {
        let mut pauses = Pauses::default();
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.extend(pauses.next().map(|pause| pause.as_secs_f64()));
            pauses.reset();
        }
        assert_eq!(seconds, [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]);
        tokio::time::advance(Duration::from_secs(11)).await;
        pauses.reset();
        assert_eq!(pauses.next(), Some(FIRST_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn calm_comes_a_while_after_the_last_failure() {
        let mut calm = Calm::default();
        calm.disturb();
        tokio::time::advance(Duration::from_secs(10)).await;
        calm.disturb();
        let start = Instant::now();
        calm.wait(|| ready(true)).await;
        assert_eq!(start.elapsed(), 3 * MAX_PAUSE);
        assert!(timeout(Duration::from_secs(3600), calm.wait(|| ready(true))).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_whose_server_does_not_answer_is_not_calm() {
        let mut calm = Calm::default();
        calm.disturb();
        let start = Instant::now();
        let tries = Cell::new(0);
        // Nothing comes, then an error, then an answer.
        calm.wait(|| {
            tries.set(tries.get() + 1);
            let tries = tries.get();
            async move {
                match tries {
                    1 => std::future::pending().await,
                    2 => false,
                    _ => true,
                }
            }
        })
        .await;
        assert_eq!(tries.get(), 3);
        assert_eq!(start.elapsed(), 10 * MAX_PAUSE);
    }
}
