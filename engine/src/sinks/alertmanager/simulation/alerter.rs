//! The alerts of one process, for histories of more than alerts.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::{Fake, INSTANCE, at};
use crate::{
    findings::{Board, Outlet},
    sinks::alertmanager::{
        alert::of_offender,
        book::{Book, Class},
        receiver::{May, Outcome, Receiver},
    },
};

/// An Alertmanager.
#[derive(Default)]
pub(crate) struct FakeAlertmanager(Fake);

/// Sends the alerts of a process to some of them.
pub(crate) struct Alerter {
    book: Book,
    receivers: Vec<Receiver>,
    outlet: Outlet,
}

impl FakeAlertmanager {
    /// The labels of what fires at this second.
    pub(crate) fn firing(&self, second: u64) -> BTreeSet<String> {
        self.0.firing(at(second).wall)
    }
}

impl Alerter {
    pub(crate) fn new(board: &Board, receivers: usize, random: &mut Rng) -> Alerter {
        let receivers = (0..receivers).map(|_| Receiver::new(random.u64(..))).collect();
        Alerter { book: Book::new(INSTANCE, 1 << 20), receivers, outlet: board.outlet() }
    }

    /// A term begins.
    pub(crate) fn begin(&mut self, second: u64) {
        let ids = self.book.audit();
        self.receivers.iter_mut().for_each(|receiver| receiver.begin(&ids, at(second)));
    }

    /// What happens in a second. The first `down` of those whom it tells do not answer.
    pub(crate) fn work(&mut self, second: u64, is_holder: bool, down: usize, to: &mut [FakeAlertmanager]) {
        let now = at(second);
        for (id, offender) in self.outlet.take() {
            for alert in self.book.note(id, offender.as_deref(), now) {
                self.receivers.iter_mut().for_each(|receiver| receiver.touch(alert, Class::Audit, now));
            }
        }
        for (id, class) in self.book.prune(now) {
            self.receivers.iter_mut().for_each(|receiver| _ = receiver.forget(id, class));
        }
        let may = May { audit: is_holder, end: *self.outlet.is_complete().borrow() };
        for (place, (receiver, to)) in self.receivers.iter_mut().zip(to).enumerate() {
            while let Some(message) = receiver.next(&self.book, may, now) {
                let outcome = match place < down {
                    true => Outcome::Failed(None),
                    false => {
                        assert!(to.0.take(&message.body, now.wall));
                        Outcome::Taken
                    }
                };
                receiver.settle(outcome, &self.book, now);
            }
        }
    }
}

/// The labels of the alerts that should fire.
pub(crate) fn wanted(board: &Board) -> BTreeSet<String> {
    let offenders = board.offenders();
    let alerts = offenders.iter().flat_map(|(_, offender)| of_offender(offender, INSTANCE));
    alerts.map(|alert| alert.labels.to_string()).collect()
}
