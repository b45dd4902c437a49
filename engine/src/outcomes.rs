//! What came of requests by rules that audit never asks: from the replica that let an object in to the one that tells of it.
//!
//! ```text
//! every replica:  Judge ─→ Outcomes, the last thousands, by number ─→ /state
//! the holder:     asks for those after the last that it knows ─→ the ledger of audit ─→ Board ─→ reports, alerts
//! ```
//!
//! Nothing waits for anybody: what a replica has no room for goes, and the numbers tell the holder how many that were.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use portal_core::{
    evaluate::Evaluation,
    event::{Event, Operation},
    rule::{RuleSet, source::RuleId},
};
use portal_document::Node;
use serde::{Deserialize, Serialize};

/// The outcomes of a replica. A clone has the same.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// How many there were.
    count: u64,
    /// The last of them, with their sizes.
    last: VecDeque<(Outcome, usize)>,
    bytes: usize,
}

/// What came of letting an object in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The UID of the object.
    pub uid: String,
    /// Of two outcomes of an object the later one has the higher.
    pub order: Order,
    /// What each rule said that was asked.
    pub rules: Vec<RuleOutcome>,
}

/// What tells the later of two outcomes of an object.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Order {
    /// The version of the object that was changed. None if it was made.
    pub changed: u64,
    /// When, by the clock of the replica, as milliseconds since 1970. Changes of the same version were tried one after the other.
    pub time: i64,
}

/// What a rule said.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOutcome {
    /// The rule.
    pub rule: String,
    /// Its version.
    pub version: String,
    /// What is wrong. Nothing if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Found>,
}

/// What is wrong with an object, or with a container of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Found {
    /// The name of the container, for rules that run per container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether the rule could not be evaluated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// What people are told.
    pub message: String,
    /// What the rule saw, if that says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saw: Option<String>,
}

/// Some outcomes of a replica, in their order.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The number of the first.
    pub first: u64,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

/// How much a replica keeps, for a holder that is slow or new.
const ROOM: usize = 4 << 20;

/// How much is told at a time. The rest is told a second later.
const MAX_TOLD: usize = 1 << 20;

/// What an outcome takes beside its texts.
const OVERHEAD: usize = 128;

impl Outcomes {
    /// Keeps what came of a request that was let in and will be stored, by these rules. Most are of no interest: what is made and violates
    /// nothing was never told of.
    pub fn note(&self, event: &Event<'_>, rules: &RuleSet, evaluation: &Evaluation, now: Timestamp) {
        if let Some(outcome) = Outcome::of(event, rules, evaluation, now) {
            self.add(outcome);
        }
    }

    fn add(&self, outcome: Outcome) {
        let size = outcome.size();
        let mut kept = self.kept();
        kept.count += 1;
        kept.bytes += size;
        kept.last.push_back((outcome, size));
        while kept.bytes > ROOM {
            let Some((_, size)) = kept.last.pop_front() else { break };
            kept.bytes -= size;
        }
    }

    /// The outcomes from this number on, or from the first that is kept.
    pub fn from(&self, number: u64) -> Told {
        let kept = self.kept();
        let oldest = kept.count - kept.last.len() as u64;
        let first = number.clamp(oldest, kept.count);
        let mut bytes = 0;
        let later = kept.last.iter().skip((first - oldest) as usize);
        let fitting = later.take_while(|(_, size)| {
            // One alone is always told, or nothing after it ever would be.
            let is_told = bytes == 0 || bytes + size <= MAX_TOLD;
            bytes += size;
            is_told
        });
        Told { first, outcomes: fitting.map(|(outcome, _)| outcome.clone()).collect() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// The number of the one after the last.
    pub fn next(&self) -> u64 {
        self.first + self.outcomes.len() as u64
    }
}

impl Outcome {
    fn of(event: &Event<'_>, rules: &RuleSet, evaluation: &Evaluation, now: Timestamp) -> Option<Outcome> {
        let is_made = event.operation == Operation::Create;
        if !(is_made || event.operation == Operation::Update) || !event.is_of_whole() {
            return None;
        }
        let asked = evaluation.asked.iter().filter_map(|place| rules.rules().get(*place));
        let asked: BTreeMap<&RuleId, &str> =
            asked.filter(|rule| rule.awaits_outcomes()).map(|rule| (&rule.id, &*rule.version)).collect();
        if asked.is_empty() {
            return None;
        }
        let mut findings: BTreeMap<&RuleId, Vec<Found>> = BTreeMap::new();
        for violation in &evaluation.violations {
            let saw = violation.saw.clone().filter(|saw| *saw != violation.message);
            let (container, message) = (violation.container.clone(), violation.message.clone());
            findings.entry(&violation.rule).or_default().push(Found { container, failed: false, message, saw });
        }
        for failure in &evaluation.failures {
            let (container, message) = (failure.container.clone(), failure.to_string());
            findings.entry(&failure.rule).or_default().push(Found { container, failed: true, message, saw: None });
        }
        let rules = asked.into_iter().map(|(rule, version)| {
            let (rule, findings) = (rule.to_string(), findings.remove(rule).unwrap_or_default());
            RuleOutcome { rule, version: version.to_owned(), findings }
        });
        let rules: Vec<RuleOutcome> = rules.filter(|told| !is_made || !told.findings.is_empty()).collect();
        let text = |object: Node<'_>, field: &str| {
            object.get_str("metadata")?.get_str(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        // The API server gives an object its UID before it asks.
        let uid = text(event.object?.root(), "uid").filter(|_| !rules.is_empty())?;
        let version = event.old_object.and_then(|old| text(old.root(), "resourceVersion"));
        let changed = version.and_then(|version| version.parse().ok()).unwrap_or_default();
        Some(Outcome { uid, order: Order { changed, time: now.as_millisecond() }, rules })
    }

    fn size(&self) -> usize {
        let of_found = |found: &Found| {
            let texts = [&found.container, &found.saw].into_iter().flatten();
            OVERHEAD + found.message.len() + texts.map(String::len).sum::<usize>()
        };
        let of_rule = |told: &RuleOutcome| {
            OVERHEAD + told.rule.len() + told.version.len() + told.findings.iter().map(of_found).sum::<usize>()
        };
        OVERHEAD + self.uid.len() + self.rules.iter().map(of_rule).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(uid: &str, message: &str) -> Outcome {
        let findings = vec![Found { message: message.to_owned(), ..Found::default() }];
        let said = RuleOutcome { rule: "a".to_owned(), version: "1".to_owned(), findings };
        Outcome { uid: uid.to_owned(), order: Order::default(), rules: vec![said] }
    }

    fn uids(told: &Told) -> Vec<&str> {
        told.outcomes.iter().map(|outcome| &*outcome.uid).collect()
    }

    #[test]
    fn each_is_told_once_to_whoever_goes_on_where_it_was() {
        let outcomes = Outcomes::default();
        assert_eq!(outcomes.from(0), Told::default());
        outcomes.add(outcome("a", ""));
        outcomes.add(outcome("b", ""));
        let told = outcomes.from(0);
        assert_eq!((uids(&told), told.next()), (vec!["a", "b"], 2));
        assert_eq!(uids(&outcomes.from(1)), ["b"]);
        outcomes.add(outcome("c", ""));
        assert_eq!(uids(&outcomes.from(told.next())), ["c"]);
        // Whoever knows more than there was has heard that of another process.
        assert_eq!(outcomes.from(99), Told { first: 3, outcomes: Vec::new() });
    }

    #[test]
    fn what_there_is_no_room_for_goes_and_is_seen_to_be_missing() {
        let outcomes = Outcomes::default();
        let long = "x".repeat(MAX_TOLD / 2);
        for number in 0..20 {
            outcomes.add(outcome(&number.to_string(), &long));
        }
        let (mut from, mut heard, mut asked) = (0, Vec::new(), 0);
        let lost = outcomes.from(0).first;
        while from < 20 {
            let told = outcomes.from(from);
            assert!(!told.outcomes.is_empty() && told.outcomes.len() <= 2, "{}", told.outcomes.len());
            heard.extend(uids(&told).into_iter().map(str::to_owned));
            (from, asked) = (told.next(), asked + 1);
        }
        assert!(lost > 0 && asked > 1);
        assert_eq!(heard, (lost..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
