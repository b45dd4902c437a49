//! What audit knows: the objects that rules are about, what was found of each, and what has to be judged again. Pure: the caches and the rules
//! tell it what has changed, workers take jobs and hand them back. Whatever order that happens in, the end is the same.

mod failed;
mod folding;
mod objects;
mod outcomes;
mod records;
mod rules;
#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use foldhash::quality::RandomState;
use jiff::Timestamp;
use portal_cluster::rules::snapshot::Snapshot;
use portal_core::{kinds::Kind, lookup::Query, object::Object, rule::Rule};
use portal_expr::Moment as Time;

use self::{
    objects::{labels, version_of},
    outcomes::{Awaiting, Heard},
    rules::Rules,
};
use super::{
    budget::{Allowance, Budget, Verdict},
    dependents::{Changed, Dependents, Pair},
    queue::Queue,
    retries::Retries,
};
use crate::{
    cache::{
        answers::Basis,
        changes::{Change, Place},
        keeper::Caches,
        moment::{Moment, split},
    },
    findings::{Board, Finding, OffenderId},
};

/// The place of a record. It is given to another one when its object is gone.
pub(super) type RecordNo = u32;

/// The number of a rule. It is never given to another one.
pub(super) type RuleNo = u32;

/// The number of a kind in a version.
pub(super) type SourceNo = u16;

/// What is asked about every object by the instance itself: whether it serves the namespace.
pub(super) const INSTANCE: RuleNo = 0;

/// Everything that audit knows.
pub(super) struct Ledger {
    snapshot: Arc<Snapshot>,
    /// Grows whenever rules have to be asked again.
    epoch: u64,
    rules: Rules,
    sources: Vec<Source>,
    records: Vec<Option<Record>>,
    free: Vec<RecordNo>,
    /// How many records there ever were.
    born: u64,
    hashes: RandomState,
    /// By the hash of the uid.
    by_uid: HashMap<u64, RecordNo, RandomState>,
    /// The records whose owner has a uid, by its hash.
    owned: HashMap<u64, Vec<RecordNo>, RandomState>,
    queue: Queue,
    judging: usize,
    dependents: Dependents,
    budget: Budget,
    awaiting: Awaiting,
    /// Pairs that look something up and could not say.
    failed: BTreeSet<Pair>,
    /// Pairs that the API server has not answered.
    retries: Retries,
    board: Board,
    /// Whether the board is told what rules are met.
    tells_passes: bool,
    /// Whether the objects of all kinds are known that the rules need, and by which snapshot.
    settled: Option<u64>,
    is_complete: bool,
    pub(super) counted: Counted,
}

/// What was counted since it was last taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counted {
    /// Pairs that had to wait because their budget was used up.
    pub(super) suppressed: u64,
    /// Objects whose queries were forgotten to make room.
    pub(super) forgotten: u64,
}

/// A kind in a version, and its records.
struct Source {
    kind: Arc<Kind>,
    version: Arc<str>,
    /// The rules by which its objects are told of: their places in the set, and their numbers. Without any there are no records.
    rules: Arc<[(u32, RuleNo)]>,
    records: HashMap<Arc<str>, RecordNo>,
}

/// An object that rules are about.
struct Record {
    born: u64,
    source: SourceNo,
    state: State,
    /// Which feeds have it: the one of all namespaces, and the one of its own.
    is_in: [bool; 2],
    /// Every rule is to be asked again, whatever has changed.
    is_due: bool,
    name: Arc<str>,
    object: Arc<Object<'static>>,
    /// As it was when it was last judged.
    judged: Option<Arc<Object<'static>>>,
    /// The epoch in which it was last judged.
    judged_in: u64,
    /// Rules whose lookups have changed since.
    pending: Vec<RuleNo>,
    /// Since when something about it waits to be judged that has changed.
    waits_since: Option<Instant>,
    /// In the order of rules and containers.
    findings: Vec<Found>,
    /// The rules that it meets, and since when. Empty if nobody is told.
    passes: Vec<(RuleNo, Timestamp)>,
    /// What was heard of it by rules that audit never asks.
    heard: Vec<Heard>,
    offender: Option<OffenderId>,
    /// The hash of the uid of what made it.
    owner: Option<u64>,
}

#[derive(Clone, Debug)]
struct Found {
    rule: RuleNo,
    finding: Finding,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Idle,
    Queued,
    /// A worker has it.
    Judging,
    /// A worker has it, and something has changed since.
    Outdated,
}

/// An object that is to be judged.
pub(super) struct Job {
    record: RecordNo,
    born: u64,
    epoch: u64,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) kind: Arc<Kind>,
    pub(super) version: Arc<str>,
    pub(super) object: Arc<Object<'static>>,
    /// As it was when it was last judged.
    pub(super) before: Option<Arc<Object<'static>>>,
    /// The places of the rules that are to be asked.
    pub(super) asked: Vec<u32>,
    /// The places of the rules that are to be asked if they read something that differs from what was judged.
    pub(super) doubtful: Vec<u32>,
    /// Since when it waits, if something has changed.
    pub(super) waits_since: Option<Instant>,
}

/// What came of a job.
#[derive(Default)]
pub(super) struct Judged {
    /// What each rule found that was asked, by its place.
    pub(super) rules: Vec<OfRule>,
    /// What was asked to find out whether the instance serves the namespace.
    pub(super) reads: Vec<Query>,
    /// What lookups were answered by.
    pub(super) basis: Basis,
}

/// What a rule found.
#[derive(Default)]
pub(super) struct OfRule {
    pub(super) place: u32,
    pub(super) findings: Vec<Finding>,
    /// Whether it was asked and has found nothing.
    pub(super) is_met: bool,
    /// What it has looked up.
    pub(super) reads: Vec<Query>,
    /// Whether it could not say because the API server has not answered.
    pub(super) is_unanswered: bool,
}

impl Ledger {
    pub(super) fn new(board: Board, dependencies: usize, allowance: Allowance) -> Ledger {
        Ledger {
            snapshot: Arc::default(),
            epoch: 0,
            rules: Rules::default(),
            sources: Vec::new(),
            records: Vec::new(),
            free: Vec::new(),
            born: 0,
            hashes: RandomState::default(),
            by_uid: HashMap::default(),
            owned: HashMap::default(),
            queue: Queue::default(),
            judging: 0,
            dependents: Dependents::new(dependencies),
            budget: Budget::new(allowance),
            awaiting: Awaiting::default(),
            failed: BTreeSet::new(),
            retries: Retries::default(),
            board,
            tells_passes: false,
            settled: None,
            is_complete: false,
            counted: Counted::default(),
        }
    }

    /// The same, which tells the board what rules are met.
    pub(super) fn telling_passes(self) -> Ledger {
        Ledger { tells_passes: true, ..self }
    }

    /// How many objects wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing waits and nobody judges.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.len() == 0 && self.judging == 0
    }

    /// How many queries of pairs are known, and how many bytes of memory they take.
    pub(super) fn dependencies(&self) -> (usize, usize) {
        (self.dependents.len(), self.dependents.size_bytes())
    }

    /// When to take again although nothing has changed.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.budget.next_end().into_iter().chain(self.retries.next()).min()
    }

    /// Takes another set of rules. What caches have of kinds that no rule was about is taken from there.
    pub(super) fn follow(&mut self, snapshot: Arc<Snapshot>, caches: &Caches) {
        if snapshot.number < self.snapshot.number {
            return;
        }
        self.epoch += 1;
        self.snapshot = snapshot;
        let (renewed, gone) = self.rules.follow(&self.snapshot, self.epoch);
        if !gone.is_empty() {
            self.dependents.retain_rules(|rule| !gone.contains(&rule));
            self.retries.forget_rules(&gone);
            for record in 0..self.records.len() as RecordNo {
                self.drop_findings(record, |rule| gone.contains(&rule));
            }
        }
        self.drop_outdated_outcomes();
        self.arrange(caches);
        self.retry_outcomes(None, Instant::now());
        for source in 0..self.sources.len() {
            if self.sources[source].rules.iter().any(|(_, rule)| renewed.contains(rule)) {
                let records: Vec<RecordNo> = self.sources[source].records.values().copied().collect();
                records.into_iter().for_each(|record| self.enqueue(record));
            }
        }
        self.note_completion();
    }

    /// The objects of all kinds are known, or refused, that the rules of a snapshot need, those of the start included; or they are not.
    pub(super) fn settle(&mut self, snapshot: Option<u64>) {
        self.settled = snapshot;
        self.note_completion();
    }

    /// All objects of a feed were listed.
    pub(super) fn listed(&mut self, place: Place<'_>, before: Option<&Moment>, after: &Moment, now: Instant) {
        for (name, object) in after.entries() {
            let known = before.and_then(|before| before.of_name(name));
            if known.is_some_and(|known| version_of(known) == version_of(object) && !version_of(object).is_empty()) {
                self.refresh(place, name, object);
                continue;
            }
            self.changed(
                place,
                &Change { name: Arc::clone(name), before: known.cloned(), after: Some(Arc::clone(object)) },
                now,
            );
        }
        self.ask_failed_again(now);
        for (name, object) in before.into_iter().flat_map(Moment::entries) {
            if after.of_name(name).is_none() {
                self.changed(
                    place,
                    &Change { name: Arc::clone(name), before: Some(Arc::clone(object)), after: None },
                    now,
                );
            }
        }
    }

    /// A feed has ended. Its objects may still be there; nobody tells of them any more.
    pub(super) fn ended(&mut self, place: Place<'_>) {
        let Some(source) = self.source_of(place.kind) else { return };
        let records: Vec<RecordNo> = self.sources[source].records.values().copied().collect();
        for record in records {
            self.leave(record, place.namespace);
        }
    }

    /// An object was made, changed or removed.
    pub(super) fn changed(&mut self, place: Place<'_>, change: &Change, now: Instant) {
        let (namespace, name) = split(&change.name);
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let labels =
            [&change.before, &change.after].map(|object| object.as_ref().and_then(|object| labels(object.root())));
        let affected = self.dependents.affected(Changed { kind: place.kind, namespace, name, labels });
        for pair in affected {
            self.ask_again(pair, now);
        }
        let Some(source) = self.source_of(place.kind).filter(|source| !self.sources[*source].rules.is_empty()) else {
            return;
        };
        match &change.after {
            Some(object) => self.put(source, place, &change.name, object, now),
            None => {
                if let Some(record) = self.sources[source].records.get(&change.name).copied() {
                    self.leave(record, place.namespace);
                }
            }
        }
    }

    /// Every object is judged again by every rule.
    pub(super) fn resync(&mut self) {
        for record in 0..self.records.len() as RecordNo {
            if let Some(known) = &mut self.records[record as usize] {
                known.is_due = true;
                self.enqueue(record);
            }
        }
    }

    /// When the next exception ends, after this time.
    pub(super) fn next_expiry(&self, now: Time) -> Option<Time> {
        self.rules.all().filter_map(|(_, known)| known.rule.next_expiry(now)).min()
    }

    /// Rules with an exception that has ended between these times are asked again.
    pub(super) fn expire(&mut self, since: Time, now: Time) {
        self.epoch += 1;
        let epoch = self.epoch;
        let mut expired = HashSet::new();
        for (number, known) in self.rules.known.iter_mut().enumerate() {
            let Some(known) = known else { continue };
            if known.rule.next_expiry(since).is_some_and(|end| end <= now) {
                known.since = epoch;
                expired.insert(number as RuleNo);
            }
        }
        for source in 0..self.sources.len() {
            if self.sources[source].rules.iter().any(|(_, rule)| expired.contains(rule)) {
                let records: Vec<RecordNo> = self.sources[source].records.values().copied().collect();
                records.into_iter().for_each(|record| self.enqueue(record));
            }
        }
    }

    /// What is to be judged next.
    pub(super) fn take(&mut self, now: Instant) -> Option<Job> {
        for pair in self.budget.due(now).into_iter().chain(self.retries.due(now)) {
            self.add_pending(pair, now);
        }
        loop {
            let Some(number) = self.queue.pop() else {
                self.note_completion();
                return None;
            };
            let Some(record) = self.records[number as usize].as_mut().filter(|record| record.state == State::Queued)
            else {
                continue;
            };
            let Source { kind, version, rules, .. } = &self.sources[usize::from(record.source)];
            let pending = std::mem::take(&mut record.pending);
            let is_due = std::mem::take(&mut record.is_due) || pending.contains(&INSTANCE) || record.judged.is_none();
            let is_changed = record.judged.as_ref().is_none_or(|judged| !Arc::ptr_eq(judged, &record.object));
            let (mut asked, mut doubtful) = (Vec::new(), Vec::new());
            for (place, rule) in rules.iter() {
                let Some(known) = self.rules.get(*rule).filter(|known| known.rule.is_audited()) else { continue };
                if is_due
                    || known.since > record.judged_in
                    || pending.contains(rule)
                    || (is_changed && known.rule.uses_now)
                {
                    asked.push(*place);
                } else if is_changed {
                    doubtful.push(*place);
                }
            }
            let before = record.judged.clone();
            if asked.is_empty() && doubtful.is_empty() {
                (record.state, record.judged, record.judged_in) =
                    (State::Idle, Some(Arc::clone(&record.object)), self.epoch);
                record.waits_since = None;
                continue;
            }
            record.state = State::Judging;
            self.judging += 1;
            return Some(Job {
                record: number,
                born: record.born,
                epoch: self.epoch,
                snapshot: Arc::clone(&self.snapshot),
                kind: Arc::clone(kind),
                version: Arc::clone(version),
                object: Arc::clone(&record.object),
                before,
                asked,
                doubtful,
                waits_since: record.waits_since.take(),
            });
        }
    }

    /// Takes what came of a job.
    pub(super) fn finish(&mut self, job: Job, judged: Judged, since: Timestamp, now: Instant) {
        self.judging -= 1;
        let number = job.record;
        let is_there = |record: &&mut Record| record.born == job.born;
        if self.records[number as usize].as_mut().filter(is_there).is_none() {
            // The object is gone, or another one has its name.
            return self.note_completion();
        }
        self.depend(Pair { record: number, rule: INSTANCE }, &judged.reads);
        // Looked at after the ledger was taken: what changes from here on finds the queries that are noted below, and whoever tells of it waits
        // for the ledger.
        let is_stale = judged.basis.is_stale();
        let mut stale = Vec::new();
        // What it has made waits for that with what it meets itself.
        let mut is_other = self.tells_passes && job.before.is_none();
        for OfRule { place, findings, is_met, reads, is_unanswered } in judged.rules {
            let asked = &job.snapshot.rules.rules()[place as usize];
            let Some(rule) = self.rules.number(asked) else { continue };
            self.depend(Pair { record: number, rule }, &reads);
            let has_failed = findings.iter().any(|finding| finding.is_failure) && !reads.is_empty();
            self.note_failure(Pair { record: number, rule }, has_failed);
            match is_unanswered {
                true => self.retries.fail(Pair { record: number, rule }, now),
                false => self.retries.succeed(Pair { record: number, rule }),
            }
            if is_stale && !reads.is_empty() {
                stale.push(rule);
            }
            is_other |= self.set_findings(number, rule, findings, since);
            is_other |= self.set_pass(number, rule, is_met, since);
        }
        if is_stale && !judged.reads.is_empty() {
            stale.push(INSTANCE);
        }
        let record = self.records[number as usize].as_mut().expect("it was there a moment ago");
        let is_outdated = record.state == State::Outdated || !stale.is_empty();
        (record.judged, record.judged_in) = (Some(job.object), job.epoch);
        record.pending.extend(stale);
        record.state = State::Idle;
        if is_outdated || record.judged_in < self.epoch {
            self.enqueue(number);
        }
        if is_other {
            self.show_all(number);
        }
        self.note_completion();
    }

    /// A pair is to be judged again because of what it has looked up, if its budget allows.
    fn ask_again(&mut self, pair: Pair, now: Instant) {
        match self.budget.ask(pair, now) {
            Verdict::Now => self.add_pending(pair, now),
            Verdict::Waits => {
                self.counted.suppressed += 1;
                let name = self.records[pair.record as usize].as_ref().map(|record| record.name.replace('\0', "/"));
                let rule = self.rules.get(pair.rule).map(|known| known.rule.id.to_string());
                tracing::info!(
                    rule,
                    object = name,
                    "What a rule looks up changes so often that it waits before it judges an object again"
                );
            }
            Verdict::WaitsStill => self.counted.suppressed += 1,
        }
    }

    fn add_pending(&mut self, pair: Pair, now: Instant) {
        let Some(record) = self.records.get_mut(pair.record as usize).and_then(Option::as_mut) else { return };
        if !record.pending.contains(&pair.rule) {
            record.pending.push(pair.rule);
        }
        record.waits_since.get_or_insert(now);
        self.enqueue(pair.record);
    }

    fn enqueue(&mut self, number: RecordNo) {
        let Some(record) = &mut self.records[number as usize] else { return };
        match record.state {
            State::Idle => {
                record.state = State::Queued;
                self.queue.push(record.source, number);
            }
            State::Judging => record.state = State::Outdated,
            State::Queued | State::Outdated => {}
        }
    }

    /// Keeps the rules of each kind, makes records of kinds that rules are about now, and drops those of kinds that none is about.
    fn arrange(&mut self, caches: &Caches) {
        let told_of = self.snapshot.rules.rules().iter().filter(|rule| is_told_of(rule));
        let kinds: HashSet<Arc<Kind>> =
            told_of.flat_map(|rule| &rule.judged).map(|judged| Arc::clone(&judged.kind)).collect();
        for kind in &kinds {
            let source = self.source_for(kind);
            self.sources[source].kind = Arc::clone(kind);
        }
        for number in 0..self.sources.len() {
            let kind = Arc::clone(&self.sources[number].kind);
            let rules: Vec<(u32, RuleNo)> = match kinds.contains(&kind) {
                true => self.rules_of(&kind),
                false => Vec::new(),
            };
            let had_rules = !self.sources[number].rules.is_empty();
            let has_rules = !rules.is_empty();
            self.sources[number].rules = rules.into();
            if had_rules && !has_rules {
                let records: Vec<RecordNo> = self.sources[number].records.values().copied().collect();
                records.into_iter().for_each(|record| self.remove(record));
            }
            if has_rules && !had_rules {
                // What feeds tell from here on comes after this, because they wait for the ledger.
                for (namespace, moment) in caches.moments(&kind) {
                    let place = Place { kind: &kind, namespace: namespace.as_deref() };
                    for (name, object) in moment.entries() {
                        self.put(number, place, name, object, Instant::now());
                    }
                }
            }
        }
    }

    fn rules_of(&self, kind: &Kind) -> Vec<(u32, RuleNo)> {
        let rules = self.snapshot.rules.rules();
        let places = self.snapshot.rules.places(kind).filter(|place| is_told_of(&rules[*place]));
        places.filter_map(|place| Some((place as u32, self.rules.number(&rules[place])?))).collect()
    }

    /// The source of a kind in the version that it prefers.
    fn source_of(&self, kind: &Kind) -> Option<usize> {
        let version = kind.versions.first().map_or("", String::as_str);
        let is_own = |source: &Source| {
            source.kind.plural == kind.plural && source.kind.group == kind.group && &*source.version == version
        };
        self.sources.iter().position(is_own)
    }

    fn source_for(&mut self, kind: &Arc<Kind>) -> usize {
        self.source_of(kind).unwrap_or_else(|| {
            let version = kind.versions.first().map_or("", String::as_str).into();
            let (rules, records) = (Arc::default(), HashMap::new());
            self.sources.push(Source { kind: Arc::clone(kind), version, rules, records });
            self.sources.len() - 1
        })
    }

    fn depend(&mut self, pair: Pair, reads: &[Query]) {
        let forgotten = self.dependents.set(pair, reads);
        self.counted.forgotten += forgotten.len() as u64;
    }

    fn note_completion(&mut self) {
        let is_settled = self.settled.is_some_and(|settled| settled >= self.snapshot.number);
        if !self.is_complete && is_settled && self.is_quiet() {
            self.is_complete = true;
            self.board.set_complete();
        }
    }
}

/// Whether what violates a rule is told of: because audit asks it, or because admission lets it in.
fn is_told_of(rule: &Rule) -> bool {
    rule.is_audited() || rule.awaits_outcomes()
}
