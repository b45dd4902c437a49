//! Faults at random, all of which Kubernetes allows: a client that is right survives them.

use std::time::Duration;

use fastrand::Rng;

use super::fault::{Answer, Fault};
use super::request::{Requests, Subject, Verb};

/// Faults at random. A watch loses no event without the client being told, and only reads that allow any
/// resourceVersion are stale: once it is over, a client that is right has what a fresh start would have.
#[derive(Clone, Debug)]
pub struct Storm {
    /// Whom it hits.
    pub on: Requests,
    /// The share of requests that something happens to, between 0 and 1.
    pub requests: f64,
    /// The share of events that something happens to.
    pub events: f64,
    /// Whether a client is cut off at times. Which of its requests come in that time depends on how fast the machine is.
    pub partitions: bool,
    /// The longest delay, and the longest partition.
    pub longest: Duration,
}

impl Default for Storm {
    fn default() -> Self {
        Self { on: Requests::all(), requests: 0.2, events: 0.1, partitions: true, longest: Duration::from_millis(300) }
    }
}

impl Storm {
    /// What happens to a request or an event, and for how long if it is a partition.
    pub(super) fn pick(&self, subject: &Subject, first_revision: u64, random: &mut Rng) -> Option<(Fault, Duration)> {
        let share = if subject.event.is_some() { self.events } else { self.requests };
        if !self.on.include(subject) || random.f64() >= share {
            return None;
        }
        // In whole milliseconds, which read better.
        let longest = (self.longest.as_millis() as u64).max(1);
        let length = Duration::from_millis(random.u64(1..=longest));
        let mut faults =
            if subject.event.is_some() { event_faults(length) } else { self.faults(subject, first_revision, length) };
        Some((faults.swap_remove(random.usize(..faults.len())), length))
    }

    fn faults(&self, subject: &Subject, first_revision: u64, length: Duration) -> Vec<Fault> {
        let mut faults = vec![
            Fault::Delay(length),
            Fault::Answer(Answer { retry_after: None, ..Answer::TOO_MANY_REQUESTS }),
            Fault::Answer(Answer::INTERNAL_ERROR),
            Fault::Answer(Answer::UNAVAILABLE),
            Fault::CutBefore,
        ];
        if self.partitions {
            faults.extend([Fault::Refuse, Fault::Silence]);
        }
        if subject.verb.is_write() {
            faults.extend([Fault::CutAfter, Fault::AnswerAfter(Answer::TIMEOUT), Fault::Late(length)]);
        }
        if matches!(subject.verb, Verb::Update | Verb::Patch) {
            faults.push(Fault::Answer(Answer::CONFLICT));
        }
        if subject.verb == Verb::Watch {
            faults.extend([Fault::Answer(Answer::EXPIRED), Fault::Expire]);
        }
        if matches!(subject.verb, Verb::Get | Verb::List) && subject.resource_version == Some(0) {
            faults.push(Fault::Stale(first_revision));
        }
        faults
    }
}

fn event_faults(length: Duration) -> Vec<Fault> {
    vec![Fault::DelayEvent(length), Fault::DuplicateEvent, Fault::CutStream, Fault::ExpireStream]
}
