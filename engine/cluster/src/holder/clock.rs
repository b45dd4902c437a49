//! The clock that terms are counted by.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine started, with the time that it slept: a term runs out in a suspended process too. Nobody can set
/// this clock, and no other machine's clock is ever compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BootTime(pub(super) Duration);

impl BootTime {
    pub(super) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).expect("the clock starts at zero");
        let nanoseconds = u32::try_from(time.tv_nsec).expect("a second has fewer nanoseconds than fit");
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The time from `earlier` to this. Zero, if this came first.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}
