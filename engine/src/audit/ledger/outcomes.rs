//! What admission let in although a rule has something to say that audit never asks. It is told of an object once that is seen, until the
//! object is changed for the better, or goes, or the rule changes.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

use foldhash::quality::RandomState;
use jiff::Timestamp;
use portal_core::rule::source::RuleId;

use super::{Found, Ledger, RecordNo, RuleNo, objects::uid_of};
use crate::{
    findings::Finding,
    outcomes::{self, Order, Outcome, RuleOutcome},
};

/// Outcomes of objects that nobody has seen yet, or of rules that are not in force here yet.
#[derive(Default)]
pub(super) struct Awaiting {
    by_uid: HashMap<u64, Vec<Told>, RandomState>,
    /// In the order in which they came, with the hash of the uid and a number.
    came: VecDeque<(Instant, u64, u64)>,
    last: u64,
}

/// What one rule said of an object.
#[derive(Clone, Debug)]
struct Told {
    /// Its number among those that wait.
    number: u64,
    uid: String,
    order: Order,
    said: RuleOutcome,
}

/// The last outcome that was heard of a rule and an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    rule: RuleNo,
    order: Order,
}

/// How many outcomes may wait. If there are more, the oldest go.
const MOST: usize = 20_000;

/// For how long they wait, once everything was listed. What is not there by then was refused by somebody else.
const PATIENCE: Duration = Duration::from_secs(60);

impl Ledger {
    /// Takes what came of a request. It may be heard twice, and in any order.
    pub(in crate::audit) fn hear(&mut self, outcome: &Outcome, now: Instant) {
        for said in &outcome.rules {
            let told = Told { number: 0, uid: outcome.uid.clone(), order: outcome.order, said: said.clone() };
            if !self.take_outcome(&told) {
                self.awaiting.add(self.hashes.hash_one(told.uid.as_str()), told, now);
            }
        }
    }

    /// Looks again at what has waited.
    pub(super) fn retry_outcomes(&mut self, uid: Option<u64>, now: Instant) {
        let waiting = match uid {
            Some(uid) => self.awaiting.by_uid.remove(&uid).map(|told| (uid, told)).into_iter().collect(),
            None => std::mem::take(&mut self.awaiting.by_uid),
        };
        for (uid, told) in waiting {
            for told in told {
                if !self.take_outcome(&told) {
                    self.awaiting.put_back(uid, told);
                }
            }
        }
        self.awaiting.prune(now, self.is_complete);
    }

    /// Others tell of outcomes from here on, or know more of them than this replica.
    pub(in crate::audit) fn forget_outcomes(&mut self) {
        self.awaiting = Awaiting::default();
        for number in 0..self.records.len() as RecordNo {
            let Some(record) = &mut self.records[number as usize] else { continue };
            if record.heard.is_empty() {
                continue;
            }
            record.heard.clear();
            let told = record.findings.iter().filter(|found| found.finding.rule.awaits_outcomes());
            let told: Vec<RuleNo> = told.map(|found| found.rule).collect();
            self.drop_findings(number, |rule| told.contains(&rule));
        }
    }

    /// Drops what was found by versions of rules that are not in force any more: audit cannot find out what the new ones say.
    pub(super) fn drop_outdated_outcomes(&mut self) {
        if !self.rules.all().any(|(_, known)| known.rule.awaits_outcomes()) {
            return;
        }
        for number in 0..self.records.len() as RecordNo {
            let findings = self.records[number as usize].iter().flat_map(|record| &record.findings);
            let is_outdated = |found: &&Found| {
                let known = self.rules.get(found.rule).filter(|known| known.rule.awaits_outcomes());
                known.is_some_and(|known| known.rule.version != found.finding.rule.version)
            };
            let outdated: Vec<RuleNo> = findings.filter(is_outdated).map(|found| found.rule).collect();
            if !outdated.is_empty() {
                self.drop_findings(number, |rule| outdated.contains(&rule));
            }
        }
    }

    /// Takes what one rule said of an object. Returns whether both are known.
    fn take_outcome(&mut self, told: &Told) -> bool {
        let Told { uid, order, said, .. } = told;
        let Some(number) = self.by_uid.get(&self.hashes.hash_one(uid.as_str())).copied() else { return false };
        let Some(rule) = self.rules.number_of(&RuleId::parse(&said.rule), &said.version) else { return false };
        let Some(record) = self.records[number as usize].as_mut().filter(|record| uid_of(&record.object) == uid) else {
            return false;
        };
        let heard = record.heard.iter_mut().find(|heard| heard.rule == rule);
        match heard {
            Some(heard) if heard.order >= *order => return true,
            Some(heard) => heard.order = *order,
            None => record.heard.push(Heard { rule, order: *order }),
        }
        let Some(known) = self.rules.get(rule).filter(|known| known.rule.awaits_outcomes()) else { return true };
        let since = Timestamp::from_millisecond(order.time).unwrap_or_default();
        let findings = said.findings.iter().map(|outcomes::Found { container, failed, message, saw }| Finding {
            rule: known.rule.clone(),
            container: container.clone(),
            is_failure: *failed,
            message: message.clone(),
            saw: saw.clone(),
            since,
        });
        let findings = findings.collect();
        if self.set_findings(number, rule, findings, since) {
            self.show_all(number);
        }
        true
    }
}

impl Awaiting {
    fn add(&mut self, uid: u64, told: Told, now: Instant) {
        self.last += 1;
        self.came.push_back((now, uid, self.last));
        self.put_back(uid, Told { number: self.last, ..told });
        while self.came.len() > MOST {
            self.forget_first();
        }
    }

    fn put_back(&mut self, uid: u64, told: Told) {
        let waiting = self.by_uid.entry(uid).or_default();
        let is_same = |known: &&mut Told| known.uid == told.uid && known.said.rule == told.said.rule;
        match waiting.iter_mut().find(is_same) {
            Some(known) if known.order >= told.order => {}
            Some(known) => *known = told,
            None => waiting.push(told),
        }
    }

    /// Forgets what has waited for too long. Before everything was listed, anything may come yet.
    fn prune(&mut self, now: Instant, is_complete: bool) {
        while is_complete && self.came.front().is_some_and(|(came, ..)| now.duration_since(*came) > PATIENCE) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((_, uid, number)) = self.came.pop_front() else { return };
        if let Some(waiting) = self.by_uid.get_mut(&uid) {
            waiting.retain(|told| told.number > number);
            if waiting.is_empty() {
                self.by_uid.remove(&uid);
            }
        }
    }
}
