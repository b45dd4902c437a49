//! The rules by which replicas agree on one holder, without I/O: times and answers go in, requests come out.
//!
//! What makes it safe: a write carries the `resourceVersion` that was read, so it is done only if nobody wrote in between. Whoever
//! takes a Lease over has seen it unchanged for longer than its holder goes on after the last renewal that it sent. Nobody
//! compares the times in a record with a clock: they only have to differ from one renewal to the next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;

use super::clock::BootTime;
use super::record::{RELEASED_SECONDS, Record};
use super::timing::Timing;

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;

/// What one process knows of a Lease.
#[derive(Debug)]
pub(super) struct Election {
    identity: Arc<str>,
    timing: Timing,
    /// What was last seen, and since when it is so. None before the first look.
    seen: Option<(Sight, BootTime)>,
    /// When the last look was.
    looked: BootTime,
    /// Whether the next request may rely on `seen`. After a write whose answer was lost, nobody knows what is there.
    is_current: bool,
    /// The last record that was seen. It is kept when the Lease is deleted: its holder may go on without knowing of that.
    last: Option<Record>,
    held: Option<Held>,
    /// Writes by this process that may be what the Lease says. A record that names this process and is none of these was made by
    /// somebody's hand.
    written: VecDeque<Mark>,
    /// The last time of renewal that was sent. A wall clock that stands or goes back must not make two renewals look like one.
    renewed: Option<Timestamp>,
    /// The request that is on its way.
    sent: Option<Sent>,
    /// When the last round of requests began. A round is a look and what follows from it at once.
    round: BootTime,
    /// How many writes of this round ended in a conflict.
    conflicts: u32,
    /// When the next round begins. None: this one goes on.
    due: Option<BootTime>,
    is_stopping: bool,
    random: Rng,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Read the Lease.
    Get,
    /// Make the Lease, if there is none.
    Create(Record),
    /// Change the Lease that was last read or written to say this, if it is still the same.
    Put(Record),
    /// Ask [`Election::next`] again at this time, at the latest.
    Wait(BootTime),
    /// Nothing is left to do for a process that stops.
    End,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The Lease was read.
    Found(Arc<str>, Record),
    /// There is no Lease.
    Missing,
    /// The Lease with this uid says what was sent.
    Written(Arc<str>),
    /// The write was refused: the Lease has changed since it was read.
    Conflict,
    /// The API server refused, and did nothing.
    Refused,
    /// Nobody knows whether it was done.
    Lost,
}

/// A term of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Which one it is. Each that begins has a higher number than those before it.
    pub(super) term: i32,
    /// When it is over, unless it is renewed.
    pub(super) until: BootTime,
    acquired: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    Missing,
    /// A Lease by its uid, and what it says.
    Lease(Arc<str>, Record),
}

/// Tells a write from all others: times of renewal never repeat in a process, and a PUT reaches only the Lease with this uid. A
/// Lease that this process made without getting an answer has no mark: it may have been made late, after others held and let go.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    uid: Arc<str>,
    renewed: Option<Timestamp>,
}

#[derive(Debug)]
struct Sent {
    record: Option<Record>,
    at: BootTime,
}

/// Older writes than these are forgotten. They then count as somebody else's, and are waited out.
const MARKS: usize = 16;

/// How many writes of a round that end in a conflict are tried again at once.
const CONFLICTS: u32 = 1;

/// What pauses are stretched by at most, in thousandths, so that replicas do not ask in step.
const JITTER: u64 = 200;

impl Election {
    /// `identity` must be different in each process, and `seed` should be.
    pub(super) fn new(identity: Arc<str>, timing: Timing, seed: u64, now: BootTime) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            looked: now,
            is_current: false,
            last: None,
            held: None,
            written: VecDeque::new(),
            renewed: None,
            sent: None,
            round: now,
            conflicts: 0,
            due: Some(now),
            is_stopping: false,
            random: Rng::with_seed(seed),
        }
    }

    /// The term of this process, if it may act. It is over at `until`, whether anybody asks or not.
    pub(super) fn held(&self) -> Option<Held> {
        self.held
    }

    /// Who holds, as last seen.
    pub(super) fn holder(&self) -> Option<&str> {
        match &self.seen {
            Some((Sight::Lease(_, record), _)) if !record.holder.is_empty() => Some(&record.holder),
            _ => None,
        }
    }

    /// From here on the process does not act, and all that is left to do is to let go.
    pub(super) fn stop(&mut self, now: BootTime) {
        self.is_stopping = true;
        // A term proves that nobody else holds. It does not after a release whose answer was lost: others may hold by then.
        self.held = None;
        self.due = Some(now);
    }

    /// What is to be done. A request must be answered before the next call. `wall` goes into records, for people to read.
    pub(super) fn next(&mut self, now: BootTime, wall: Timestamp) -> Step {
        self.held = self.held.filter(|held| now < held.until);
        if self.is_stopping && self.written.is_empty() {
            return Step::End;
        }
        if let Some(due) = self.due {
            if now < due {
                return Step::Wait(self.held.map_or(due, |held| due.min(held.until)));
            }
            self.round = now;
            self.conflicts = 0;
        }
        let step = self.request(now, wall);
        self.due = None;
        self.is_current = false;
        let record = match &step {
            Step::Create(record) | Step::Put(record) => Some(record.clone()),
            _ => None,
        };
        self.sent = Some(Sent { record, at: now });
        step
    }

    /// Takes the answer to the last request, which came at `now`.
    pub(super) fn answered(&mut self, now: BootTime, answer: Answer) {
        let Some(sent) = self.sent.take() else { return };
        match (answer, sent.record) {
            (Answer::Found(uid, record), _) => self.look(now, Sight::Lease(uid, record)),
            (Answer::Missing, _) => self.look(now, Sight::Missing),
            (Answer::Written(uid), Some(record)) => self.wrote(now, sent.at, uid, record),
            (Answer::Conflict, _) if self.conflicts < CONFLICTS => self.conflicts += 1,
            (Answer::Conflict, _) => self.due = Some(self.round + self.pause()),
            (Answer::Written(_) | Answer::Refused | Answer::Lost, _) => self.due = Some(sent.at + self.pause()),
        }
    }

    /// The request that follows from what is known.
    fn request(&mut self, now: BootTime, wall: Timestamp) -> Step {
        let Some((sight, _)) = self.seen.as_ref().filter(|_| self.is_current) else { return Step::Get };
        match sight.clone() {
            Sight::Missing if self.is_stopping => Step::End,
            Sight::Lease(..) if self.is_stopping && !self.is_mine() => Step::End,
            Sight::Missing if self.may_write(now) => Step::Create(self.claim(wall)),
            Sight::Lease(uid, seen) if self.may_write(now) => {
                let record = if self.is_stopping { self.release(seen, wall) } else { self.claim(wall) };
                if self.written.len() == MARKS {
                    self.written.pop_front();
                }
                self.written.push_back(Mark { uid, renewed: record.renewed });
                Step::Put(record)
            }
            Sight::Missing | Sight::Lease(..) => Step::Get,
        }
    }

    /// Takes what a look showed. It counts as seen at `now`, when the answer was there, and not when the request was sent.
    fn look(&mut self, now: BootTime, sight: Sight) {
        if let Sight::Lease(_, record) = &sight {
            if record.holder != self.identity {
                self.held = None;
            }
            self.last = Some(record.clone());
        }
        // A renewed record always looks different. A missing Lease always looks the same: one may have come and gone in between.
        let is_long_ago = sight == Sight::Missing && now.since(self.looked) > self.timing.first_patience();
        if is_long_ago || self.seen.as_ref().is_none_or(|(seen, _)| *seen != sight) {
            self.seen = Some((sight, now));
        }
        self.looked = now;
        self.is_current = true;
        if !self.is_stopping && !self.may_write(now) {
            self.is_current = false;
            self.due = Some(self.free_at(now).min(self.round + self.pause()));
        }
    }

    /// Takes a write that is known to be done. The term counts from when it was sent: others may have seen it right then.
    fn wrote(&mut self, now: BootTime, sent: BootTime, uid: Arc<str>, record: Record) {
        self.written.clear();
        if self.is_stopping {
            return;
        }
        self.held = record.renewed.map(|renewed| Held {
            term: record.transitions,
            until: sent + self.timing.renew_deadline(),
            acquired: record.acquired.unwrap_or(renewed),
        });
        self.written.push_back(Mark { uid: uid.clone(), renewed: record.renewed });
        self.look(now, Sight::Lease(uid, record));
        self.due = Some(sent + self.timing.retry());
    }

    fn may_write(&self, now: BootTime) -> bool {
        self.is_mine() || now >= self.free_at(now)
    }

    /// Whether nobody else can hold: this process holds, or the Lease says what this process wrote.
    fn is_mine(&self) -> bool {
        match &self.seen {
            Some((Sight::Lease(uid, record), _)) if record.holder == self.identity => {
                let is_marked = |mark: &Mark| mark.uid == *uid && mark.renewed == record.renewed;
                self.held.is_some() || self.written.iter().any(is_marked)
            }
            Some((Sight::Lease(..), _)) | None => false,
            Some((Sight::Missing, _)) => self.held.is_some(),
        }
    }

    /// The time from which on nobody else holds, unless the Lease was written again after it was last seen.
    fn free_at(&self, now: BootTime) -> BootTime {
        match &self.seen {
            Some((Sight::Lease(_, record), since)) if record.is_released() => *since,
            Some((Sight::Lease(_, record), since)) => *since + self.timing.patience(record.duration_seconds),
            Some((Sight::Missing, since)) => match &self.last {
                Some(record) => *since + self.timing.patience(record.duration_seconds),
                None => *since + self.timing.first_patience(),
            },
            None => now + self.timing.patience(None),
        }
    }

    /// A record that begins a term, or renews it.
    fn claim(&mut self, wall: Timestamp) -> Record {
        let renewed = self.tick(wall);
        let next_term = || self.last.as_ref().map_or(0, |record| record.transitions.checked_add(1).unwrap_or(0));
        Record {
            holder: self.identity.clone(),
            duration_seconds: Some(self.timing.duration_seconds()),
            acquired: Some(self.held.map_or(renewed, |held| held.acquired)),
            renewed: Some(renewed),
            transitions: self.held.map_or_else(next_term, |held| held.term),
        }
    }

    /// A record that lets others begin at once.
    fn release(&mut self, seen: Record, wall: Timestamp) -> Record {
        let time = Some(self.tick(wall));
        Record {
            holder: "".into(),
            duration_seconds: Some(RELEASED_SECONDS),
            acquired: time,
            renewed: time,
            transitions: seen.transitions,
        }
    }

    /// A time of renewal that this process never sent before, as fine as a Lease stores it.
    fn tick(&mut self, wall: Timestamp) -> Timestamp {
        let wall = Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall);
        let after = |last: Timestamp| last.checked_add(Duration::from_micros(1)).unwrap_or(last);
        let renewed = self.renewed.map_or(wall, |last| wall.max(after(last)));
        self.renewed = Some(renewed);
        renewed
    }

    fn pause(&mut self) -> Duration {
        let thousandths = 1000 + self.random.u64(..JITTER);
        self.timing.retry().mul_f64(thousandths as f64 / 1000.0)
    }
}
