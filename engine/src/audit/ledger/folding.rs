//! What was found of objects, and what of it is told: of pods it is told under what made them.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use jiff::Timestamp;
use portal_core::rule::{JudgedKind, Rule};

use super::{
    Found, Ledger, Record, RecordNo, RuleNo, Source,
    objects::{owner_of, uid_of},
    rules::Known,
};
use crate::{
    cache::moment::split,
    findings::{Finding, Offender, Pass},
};

impl Ledger {
    /// Takes what a rule found of an object, in the place of what it found before. Returns whether that is something else.
    pub(super) fn set_findings(
        &mut self,
        number: RecordNo,
        rule: RuleNo,
        findings: Vec<Finding>,
        now: Timestamp,
    ) -> bool {
        let Some(record) = &mut self.records[number as usize] else { return false };
        let first = record.findings.partition_point(|found| found.rule < rule);
        let end = record.findings.partition_point(|found| found.rule <= rule);
        if first == end && findings.is_empty() {
            return false;
        }
        let before: Vec<Found> = record.findings.splice(first..end, []).collect();
        let found = findings.into_iter().map(|finding| {
            let known = before.iter().find(|found| found.finding.container == finding.container);
            Found { rule, finding: Finding { since: known.map_or(now, |known| known.finding.since), ..finding } }
        });
        let found: Vec<Found> = found.collect();
        record.findings.splice(first..first, found);
        true
    }

    /// Notes whether an object meets a rule, if anybody is told. Returns whether there is something to tell: the rule may be another version.
    pub(super) fn set_pass(&mut self, number: RecordNo, rule: RuleNo, is_met: bool, now: Timestamp) -> bool {
        let Some(record) = self.records[number as usize].as_mut().filter(|_| self.tells_passes) else { return false };
        let place = record.passes.binary_search_by_key(&rule, |(known, _)| *known);
        match (place, is_met) {
            (Err(place), true) => record.passes.insert(place, (rule, now)),
            (Ok(place), false) => _ = record.passes.remove(place),
            _ => {}
        }
        is_met || place.is_ok()
    }

    pub(super) fn drop_findings(&mut self, number: RecordNo, is_gone: impl Fn(RuleNo) -> bool) {
        let Some(record) = &mut self.records[number as usize] else { return };
        let before = record.findings.len() + record.passes.len();
        record.findings.retain(|found| !is_gone(found.rule));
        record.passes.retain(|(rule, _)| !is_gone(*rule));
        if record.findings.len() + record.passes.len() < before {
            self.show_all(number);
        }
    }

    /// Keeps what made an object. If that is something else than before, it may be folded otherwise.
    pub(super) fn note_owner(&mut self, number: RecordNo) {
        let Some(record) = &mut self.records[number as usize] else { return };
        let owner = owner_of(&record.object).map(|uid| self.hashes.hash_one(uid));
        let before = std::mem::replace(&mut record.owner, owner);
        if before == owner {
            return;
        }
        if let Some(before) = before {
            self.disown(before, number);
        }
        if let Some(owner) = owner {
            self.owned.entry(owner).or_default().push(number);
        }
        self.show_all(number);
    }

    pub(super) fn disown(&mut self, owner: u64, number: RecordNo) {
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.retain(|known| *known != number);
            if owned.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }

    /// Shows what was found of an object, and of whatever it made, because that is folded under it.
    pub(super) fn show_all(&mut self, number: RecordNo) {
        let mut next = vec![number];
        let mut seen = HashSet::new();
        while let Some(number) = next.pop() {
            if !seen.insert(number) {
                continue;
            }
            self.show(number);
            if let Some(record) = &self.records[number as usize] {
                let uid = self.hashes.hash_one(uid_of(&record.object));
                next.extend(self.owned.get(&uid).into_iter().flatten());
            }
        }
    }

    fn show(&mut self, number: RecordNo) {
        let Some(record) = &self.records[number as usize] else { return };
        let findings: Vec<Finding> = record
            .findings
            .iter()
            .filter(|found| !self.is_folded(record, found))
            .map(|found| found.finding.clone())
            .collect();
        let owner = self.owner(record);
        let passes = record.passes.iter().filter_map(|(number, since)| {
            let Known { rule, .. } = self.rules.get(*number)?;
            // What is made by something that the rule was asked about, or will be, is told of there.
            let is_told = |owner: &Record| self.makes_pods(rule, owner) && owner.is_judged_by(*number);
            (!owner.is_some_and(is_told)).then(|| Pass { rule: Arc::clone(rule), since: *since })
        });
        let passes: Vec<Pass> = passes.collect();
        let offender = (!findings.is_empty() || !passes.is_empty()).then(|| {
            let Source { kind, version, .. } = &self.sources[usize::from(record.source)];
            let (namespace, name) = split(&record.name);
            Offender {
                uid: uid_of(&record.object).to_owned(),
                api_version: kind.api_version(version),
                kind: kind.kind.clone(),
                namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
                name: name.to_owned(),
                findings,
                passes,
            }
        });
        let id = match (record.offender, &offender) {
            (Some(id), _) => id,
            (None, None) => return,
            (None, Some(_)) => self.board.number(),
        };
        let is_shown = offender.is_some();
        self.board.put(id, offender);
        if let Some(record) = &mut self.records[number as usize] {
            record.offender = is_shown.then_some(id);
        }
    }

    /// Whether a finding is told of what made the object instead. What stands between a Deployment and its pods is never told of: it keeps old
    /// templates long after they were mended.
    fn is_folded(&self, record: &Record, found: &Found) -> bool {
        let Some(Known { rule, .. }) = self.rules.get(found.rule) else { return false };
        let is_expanded = |record: &Record| self.judged_as(rule, record).is_some_and(|judged| judged.expanded);
        let mut child = record;
        // Nothing in Kubernetes makes longer chains, and owners may name each other in a circle.
        for _ in 0..8 {
            let Some(owner) = self.owner(child).filter(|owner| self.makes_pods(rule, owner)) else { return false };
            if is_expanded(record) {
                return true;
            }
            let is_same =
                |other: &&Found| other.rule == found.rule && other.finding.container == found.finding.container;
            if self.owner(owner).filter(|next| self.makes_pods(rule, next)).is_none()
                && owner.findings.iter().any(|other| is_same(&other))
            {
                return true;
            }
            child = owner;
        }
        false
    }

    /// Whether a rule about pods judges the template of an object. It may name some of what makes pods, such as a Deployment.
    fn makes_pods(&self, rule: &Rule, record: &Record) -> bool {
        rule.judged.iter().any(|judged| judged.expanded)
            && self.judged_as(rule, record).is_some_and(JudgedKind::makes_pods)
    }

    fn judged_as<'rule>(&self, rule: &'rule Rule, record: &Record) -> Option<&'rule JudgedKind> {
        let kind = &self.sources[usize::from(record.source)].kind;
        rule.judged.iter().find(|judged| (&judged.kind.group, &judged.kind.kind) == (&kind.group, &kind.kind))
    }

    fn owner(&self, record: &Record) -> Option<&Record> {
        let uid = owner_of(&record.object)?;
        let number = self.by_uid.get(&self.hashes.hash_one(uid))?;
        self.records[*number as usize].as_ref().filter(|owner| uid_of(&owner.object) == uid)
    }
}

impl Record {
    /// Whether a rule was asked about it, or may be. Known only if the board is told what rules are met.
    fn is_judged_by(&self, rule: RuleNo) -> bool {
        self.judged.is_none()
            || self.passes.iter().any(|(met, _)| *met == rule)
            || self.findings.iter().any(|found| found.rule == rule)
    }
}
