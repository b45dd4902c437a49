//! How long a term is, and how often it is renewed.

use std::time::Duration;

/// The three times of a Lease, checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// What is wrong with three times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// A holder that stops a little late would act at the same time as the next one.
    #[error(
        "the lease duration of {duration:?} must be at least a tenth longer than the renew deadline of {renew_deadline:?}"
    )]
    Duration {
        /// How long others wait.
        duration: Duration,
        /// After how long without a renewal a holder stops.
        renew_deadline: Duration,
    },
    /// Others do not believe a record with a longer duration: they would take over while the holder acts.
    #[error("the lease duration of {0:?} is longer than {LONGEST:?}")]
    TooLong(Duration),
    /// A holder could not try a second time before it has to stop.
    #[error("the renew deadline of {renew_deadline:?} must be longer than 1.2 times the retry period of {retry:?}")]
    RenewDeadline {
        /// After how long without a renewal a holder stops.
        renew_deadline: Duration,
        /// How often it renews.
        retry: Duration,
    },
    /// Requests would follow each other without a pause.
    #[error("the retry period of {0:?} is shorter than {SHORTEST_RETRY:?}")]
    Retry(Duration),
}

/// Longer durations in a record are not believed. A Lease that somebody edited must not stop everything for ever.
const LONGEST: Duration = Duration::from_secs(300);
/// An API server that needs longer for a write is not well.
const LONGEST_ACTION: Duration = Duration::from_secs(4);
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

impl Timing {
    /// `duration` is how long others wait after the last change that they saw, `renew_deadline` how long a holder goes on after
    /// the last renewal that it sent with success, and `retry` how often everybody looks.
    pub fn new(duration: Duration, renew_deadline: Duration, retry: Duration) -> Result<Self, TimingError> {
        if duration > LONGEST {
            return Err(TimingError::TooLong(duration));
        }
        // A tenth is there for clocks that do not run at the same rate.
        if renew_deadline.checked_mul(11).is_none_or(|least| duration < least / 10) {
            return Err(TimingError::Duration { duration, renew_deadline });
        }
        if retry.checked_mul(12).is_none_or(|least| renew_deadline * 10 <= least) {
            return Err(TimingError::RenewDeadline { renew_deadline, retry });
        }
        if retry < SHORTEST_RETRY {
            return Err(TimingError::Retry(retry));
        }
        Ok(Self { duration, renew_deadline, retry })
    }

    /// What the record says. Others of the same release wait for exactly `duration`, and none waits for less than the record says.
    pub(super) fn duration_seconds(self) -> i32 {
        i32::try_from(self.duration.as_millis().div_ceil(1000)).expect("it is not longer than the longest")
    }

    /// How long a record that says this is waited out: never shorter than by our own settings, because anybody can edit a
    /// record, and never shorter than it says, because its holder may have other settings.
    pub(super) fn patience(self, seconds: Option<i32>) -> Duration {
        let said = Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0));
        self.duration.max(said.min(LONGEST))
    }

    /// How long a process waits that never saw a Lease. A holder whose Lease was deleted writes it again within one retry.
    pub(super) fn first_patience(self) -> Duration {
        self.retry * 2
    }

    pub(super) fn renew_deadline(self) -> Duration {
        self.renew_deadline
    }

    pub(super) fn retry(self) -> Duration {
        self.retry
    }

    /// A request that takes longer has failed. Three of them fit before the deadline, so one that hangs costs no term.
    pub(super) fn request_timeout(self) -> Duration {
        self.renew_deadline / 3
    }

    /// How long an action of the holder may take. Right before each renewal twice as much is left of the term, so that an action
    /// can begin at any time while renewals succeed.
    pub fn action_timeout(self) -> Duration {
        LONGEST_ACTION.min((self.renew_deadline - self.retry * 12 / 10) / 2)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2))
            .expect("the defaults fit each other")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(milliseconds: [u64; 3], expected: &str) {
        let [duration, renew_deadline, retry] = milliseconds.map(Duration::from_millis);
        let said = match Timing::new(duration, renew_deadline, retry) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn times_that_do_not_fit_each_other_are_refused() {
        check([15_000, 10_000, 2_000], "fine");
        check([3_000, 2_000, 500], "fine");
        check([300_000, 200_000, 2_000], "fine");
        check(
            [10_999, 10_000, 2_000],
            "the lease duration of 10.999s must be at least a tenth longer than the renew deadline of 10s",
        );
        check([300_001, 10_000, 2_000], "the lease duration of 300.001s is longer than 300s");
        check(
            [15_000, 2_400, 2_000],
            "the renew deadline of 2.4s must be longer than 1.2 times the retry period of 2s",
        );
        check([15_000, 10_000, 99], "the retry period of 99ms is shorter than 100ms");
    }

    #[test]
    fn times_that_no_clock_can_tell_are_refused() {
        let (max, second) = (Duration::MAX, Duration::from_secs(1));
        assert_eq!(Timing::new(max, second, second), Err(TimingError::TooLong(max)));
        let duration = TimingError::Duration { duration: second, renew_deadline: max };
        assert_eq!(Timing::new(second, max, second), Err(duration));
        let renew_deadline = TimingError::RenewDeadline { renew_deadline: second, retry: max };
        assert_eq!(Timing::new(2 * second, second, max), Err(renew_deadline));
    }

    #[test]
    fn an_action_fits_into_what_is_left_before_a_renewal() {
        let timeout = |milliseconds: [u64; 3]| {
            let [duration, renew_deadline, retry] = milliseconds.map(Duration::from_millis);
            Timing::new(duration, renew_deadline, retry).unwrap().action_timeout().as_millis()
        };
        assert_eq!(timeout([15_000, 10_000, 2_000]), 3_800);
        assert_eq!(timeout([60_000, 40_000, 2_000]), 4_000);
        assert_eq!(timeout([3_000, 2_000, 500]), 700);
    }

    #[test]
    fn a_record_is_waited_out_for_as_long_as_it_says_within_bounds() {
        let patience = |seconds| Timing::default().patience(seconds).as_secs();
        assert_eq!([None, Some(-1), Some(1), Some(15)].map(patience), [15; 4]);
        assert_eq!([Some(60), Some(i32::MAX)].map(patience), [60, 300]);
    }
}
