//! A process of a history, with clocks of its own.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;

use super::{SECOND, Time};
use crate::holder::clock::BootTime;
use crate::holder::election::Election;
use crate::holder::timing::Timing;

/// An hour in microseconds.
const HOUR: i64 = 3_600 * SECOND as i64;

pub(super) struct Process {
    name: usize,
    pub(super) election: Election,
    /// Counts up when the process is started anew. It then knows nothing of what it knew before.
    pub(super) life: u64,
    pub(super) is_alive: bool,
    /// The clock that terms are counted by: what it shows at the start, and by how many parts in a million it is fast.
    boot: Time,
    fast: i64,
    /// How far the wall clock is off, in microseconds.
    wall: i64,
    /// The uid and version of the Lease that it last read or wrote.
    pub(super) base: Option<(Arc<str>, u64)>,
    /// The Leases that it ever saw, by their uids.
    pub(super) uids: Vec<Arc<str>>,
    /// The request that it waits for.
    pub(super) request: u64,
    pub(super) frozen_until: Time,
    pub(super) cut_until: Time,
    pub(super) refused_until: Time,
}

impl Process {
    pub(super) fn new(name: usize, random: &mut Rng, timing: Timing) -> Self {
        Self {
            name,
            election: Election::new("".into(), timing, 0, BootTime(Duration::ZERO)),
            life: 0,
            is_alive: false,
            boot: random.u64(..100_000 * SECOND),
            fast: random.i64(-10_000..=10_000),
            wall: random.i64(-HOUR..HOUR),
            base: None,
            uids: Vec::new(),
            request: 0,
            frozen_until: 0,
            cut_until: 0,
            refused_until: 0,
        }
    }

    pub(super) fn start(&mut self, now: Time, random: &mut Rng, timing: Timing) {
        self.life += 1;
        self.is_alive = true;
        self.base = None;
        self.uids.clear();
        self.request += 1;
        self.frozen_until = now;
        self.election = Election::new(self.identity(), timing, random.u64(..), self.clock(now));
    }

    pub(super) fn identity(&self) -> Arc<str> {
        format!("{}-{}", self.name, self.life).into()
    }

    pub(super) fn clock(&self, now: Time) -> BootTime {
        let drift = now as i64 * self.fast / 1_000_000;
        BootTime(Duration::from_micros((self.boot + now).saturating_add_signed(drift)))
    }

    /// When its clock will have passed this.
    pub(super) fn time_of(&self, clock: BootTime, now: Time) -> Time {
        let left = clock.since(self.clock(now)).as_micros() as i64;
        now + (left * 1_000_000 / (1_000_000 + self.fast)) as Time + 2
    }

    pub(super) fn wall(&self, now: Time) -> Timestamp {
        Timestamp::from_microsecond(1_800_000_000_000_000 + self.wall + now as i64).unwrap()
    }

    pub(super) fn holds(&self, now: Time) -> bool {
        self.is_alive && self.election.held().is_some_and(|held| self.clock(now) < held.until)
    }
}
