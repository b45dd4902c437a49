//! What came through a proxy and what was done to it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use super::request::{Subject, Verb};
use crate::audit_log::ObjectRef;

/// A request that came, or an event that something was done to.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it came, after the start of the proxy.
    pub at: Duration,
    /// The name that the test gave to the client.
    pub client: String,
    /// What was asked for.
    pub verb: Verb,
    /// What it was about. For an event the name is that of its object.
    pub object: ObjectRef,
    /// `ADDED`, `MODIFIED` or `DELETED`, for an event.
    pub event: Option<String>,
    /// How many alike came before it: the same client, verb, resource, name and kind of event.
    pub ordinal: u32,
    /// What was done to it, in order.
    pub faults: Vec<Fault>,
    /// The HTTP status that the client got; nothing before that, or if it got none.
    pub status: Option<u16>,
    /// What the client was warned of.
    pub warnings: Vec<String>,
}

/// The last entries.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    /// How many are gone, so that an entry keeps its number.
    forgotten: u64,
}

/// Enough for a history with its failure, in a few megabytes.
const KEPT: usize = 10_000;

impl Log {
    /// Writes an entry down. The number is for what is known of it later.
    pub(super) fn add(&mut self, at: Duration, subject: &Subject, ordinal: u32, faults: Vec<Fault>) -> u64 {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
            self.forgotten += 1;
        }
        self.entries.push_back(Entry {
            at,
            client: subject.client.to_string(),
            verb: subject.verb,
            object: subject.object.clone(),
            event: subject.event.clone(),
            ordinal,
            faults,
            status: None,
            warnings: Vec::new(),
        });
        self.forgotten + self.entries.len() as u64 - 1
    }

    /// Adds what the client was answered, if the entry is still there.
    pub(super) fn answered(&mut self, number: u64, status: u16, warnings: Vec<String>) {
        let index = number.checked_sub(self.forgotten).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.status = Some(status);
            entry.warnings = warnings;
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }
}

impl Entry {
    /// What was decided, without what differs between runs: the time, the namespace and the status.
    pub fn decision(&self) -> String {
        let ObjectRef { resource, subresource, name, .. } = &self.object;
        let path: Vec<&str> =
            [resource, name, subresource].into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        let faults = if faults.is_empty() { "passed".to_owned() } else { faults.join(", ") };
        let event = self.event.as_ref().map(|event| format!(" {event}")).unwrap_or_default();
        format!("{} {}{event} {} #{}: {faults}", self.client, self.verb, path.join("/"), self.ordinal)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:8.3} s  {}", self.at.as_secs_f64(), self.decision())?;
        match self.status {
            Some(status) => write!(formatter, " ({status})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_under_their_numbers() {
        let subject = Subject::of_request("a".into(), &http::Method::GET, "/api/v1/pods", "");
        let mut log = Log::default();
        for ordinal in 0..KEPT as u32 + 5 {
            assert_eq!(log.add(Duration::ZERO, &subject, ordinal, Vec::new()), u64::from(ordinal));
        }
        for number in [4, 5, KEPT as u64 + 4] {
            log.answered(number, 200, Vec::new());
        }
        let entries = log.entries();
        assert_eq!((entries.len(), entries[0].ordinal), (KEPT, 5));
        let answered: Vec<u32> =
            entries.iter().filter(|entry| entry.status == Some(200)).map(|entry| entry.ordinal).collect();
        assert_eq!(answered, [5, KEPT as u32 + 4]);
    }

    #[test]
    fn an_entry_reads_as_a_line() {
        let subject = Subject::of_request("a".into(), &http::Method::GET, "/api/v1/namespaces/x/pods/p/log", "");
        let mut log = Log::default();
        let faults = vec![Fault::Delay(Duration::from_millis(5)), Fault::CutBefore];
        log.add(Duration::from_millis(1234), &subject, 7, faults);
        let number = log.add(Duration::from_millis(1300), &subject, 8, Vec::new());
        log.answered(number, 404, Vec::new());
        let lines: Vec<String> = log.entries().iter().map(ToString::to_string).collect();
        let expected = [
            "   1.234 s  a get pods/p/log #7: delayed by 5ms, cut before it was passed on",
            "   1.300 s  a get pods/p/log #8: passed (404)",
        ];
        assert_eq!(lines, expected);
    }
}
