//! Objects come, change and go.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Instant;

use portal_core::object::Object;

use super::{
    Ledger, Record, RecordNo, SourceNo, State,
    objects::{is_newer, uid_of, version_of},
};
use crate::cache::{changes::Place, moment::split};

impl Ledger {
    /// The same object as before was named by another list. The text of the one before can go.
    pub(super) fn refresh(&mut self, place: Place<'_>, name: &Arc<str>, object: &Arc<Object<'static>>) {
        let Some(source) = self.source_of(place.kind) else { return };
        let Some(number) = self.sources[source].records.get(name).copied() else { return };
        let Some(record) = &mut self.records[number as usize] else { return };
        record.is_in[usize::from(place.namespace.is_some())] = true;
        if version_of(&record.object) == version_of(object) {
            if record.judged.as_ref().is_some_and(|judged| Arc::ptr_eq(judged, &record.object)) {
                record.judged = Some(Arc::clone(object));
            }
            record.object = Arc::clone(object);
        }
    }

    pub(super) fn put(
        &mut self,
        source: usize,
        place: Place<'_>,
        name: &Arc<str>,
        object: &Arc<Object<'static>>,
        now: Instant,
    ) {
        let known = self.sources[source].records.get(name).copied();
        if let Some(number) = known
            && let Some(record) = &mut self.records[number as usize]
        {
            if uid_of(&record.object) == uid_of(object) {
                record.is_in[usize::from(place.namespace.is_some())] = true;
                if is_newer(object, &record.object) {
                    record.object = Arc::clone(object);
                    record.waits_since.get_or_insert(now);
                    self.enqueue(number);
                    self.note_owner(number);
                }
                return;
            }
            // Another object of the same name.
            self.remove(number);
        }
        self.born += 1;
        let mut is_in = [false; 2];
        is_in[usize::from(place.namespace.is_some())] = true;
        let record = Record {
            born: self.born,
            source: source as SourceNo,
            state: State::Idle,
            is_in,
            is_due: false,
            name: Arc::clone(name),
            object: Arc::clone(object),
            judged: None,
            judged_in: 0,
            pending: Vec::new(),
            waits_since: Some(now),
            findings: Vec::new(),
            passes: Vec::new(),
            heard: Vec::new(),
            offender: None,
            owner: None,
        };
        let number = match self.free.pop() {
            Some(free) => {
                self.records[free as usize] = Some(record);
                free
            }
            None => {
                self.records.push(Some(record));
                (self.records.len() - 1) as RecordNo
            }
        };
        self.sources[source].records.insert(Arc::clone(name), number);
        let uid = self.hashes.hash_one(uid_of(object));
        self.by_uid.insert(uid, number);
        self.enqueue(number);
        self.note_owner(number);
        if self.owned.contains_key(&uid) {
            self.show_all(number);
        }
        self.retry_outcomes(Some(uid), now);
    }

    /// A feed has an object no more. If no other one has it, it is gone.
    pub(super) fn leave(&mut self, number: RecordNo, namespace: Option<&str>) {
        let Some(record) = &mut self.records[number as usize] else { return };
        if namespace.is_some_and(|namespace| split(&record.name).0 != namespace) {
            return;
        }
        record.is_in[usize::from(namespace.is_some())] = false;
        if record.is_in == [false; 2] {
            self.remove(number);
        }
    }

    pub(super) fn remove(&mut self, number: RecordNo) {
        self.drop_findings(number, |_| true);
        let Some(record) = self.records[number as usize].take() else { return };
        if let Some(owner) = record.owner {
            self.disown(owner, number);
        }
        self.dependents.forget(number);
        self.forget_failures(number);
        self.retries.forget(number);
        self.sources[usize::from(record.source)].records.remove(&record.name);
        let uid = self.hashes.hash_one(uid_of(&record.object));
        if self.by_uid.get(&uid) == Some(&number) {
            self.by_uid.remove(&uid);
            // What it made is not folded under it any more.
            for child in self.owned.get(&uid).cloned().unwrap_or_default() {
                self.show_all(child);
            }
        }
        self.free.push(number);
    }
}
