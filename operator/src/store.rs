//! The objects that the operator watches, as far as it has been told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::object::{Key, Kind, Object};

/// What is watched: a kind, in the whole cluster or in a namespace.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Source {
    /// The kind.
    pub kind: Kind,
    /// The namespace, if only one is watched.
    pub namespace: Option<String>,
}

/// The objects of all watches. A clone sees the same ones.
#[derive(Clone, Debug, Default)]
pub struct Store {
    contents: Arc<Mutex<Contents>>,
    /// Grows with every change.
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<Key, Arc<Object>>,
    /// How each watch is. Without one: nobody has begun it.
    sources: BTreeMap<Source, SourceState>,
    /// The UIDs of objects that are gone, the last ones, with the version in which they went: an answer about one of them may come after the
    /// watch has told that it is gone.
    gone: VecDeque<(String, u128)>,
}

/// How a watch is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum SourceState {
    /// Its first list is not at its end.
    #[default]
    Listing,
    /// What it has told is complete.
    Synced,
    /// The API server refuses to tell.
    Refused(String),
}

/// How many objects that are gone are remembered. An answer takes seconds at most.
const REMEMBERED: usize = 256;

impl Store {
    /// Tells when something has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Notes that a watch begins. Returns whether it had not begun before.
    pub fn begin(&self, source: &Source) -> bool {
        let mut contents = self.lock();
        let is_new = !contents.sources.contains_key(source);
        if is_new {
            contents.sources.insert(source.clone(), SourceState::Listing);
        }
        is_new
    }

    /// Notes that a watch has ended because nobody needs it. What it has told is not known any more.
    pub fn end(&self, source: &Source) {
        let mut contents = self.lock();
        if contents.sources.remove(source).is_none() {
            return;
        }
        contents.objects.retain(|key, _| !source.covers(key));
        drop(contents);
        self.tell();
    }

    /// Takes a whole list. What it does not name is gone.
    pub fn set_all(&self, source: &Source, objects: Vec<Object>) {
        let mut contents = self.lock();
        let named: BTreeSet<Key> = objects.iter().map(|object| object.key.clone()).collect();
        contents.objects.retain(|key, _| !source.covers(key) || named.contains(key));
        contents.objects.extend(objects.into_iter().map(|object| (object.key.clone(), Arc::new(object))));
        contents.sources.insert(source.clone(), SourceState::Synced);
        drop(contents);
        self.tell();
    }

    /// Takes an object, unless a later version of it is known, or that it is gone.
    pub fn set(&self, object: Object) {
        let mut contents = self.lock();
        // A later version is of an object that has only left what is watched: somebody took our label away.
        let version = version_of(&object).unwrap_or_default();
        if contents.gone.iter().any(|(uid, gone)| uid == object.uid() && version < *gone) {
            return;
        }
        let is_stale = contents.objects.get(&object.key).is_some_and(|known| is_later(known, &object));
        let is_same = contents.objects.get(&object.key).is_some_and(|known| **known == object);
        if is_stale || is_same {
            return;
        }
        contents.objects.insert(object.key.clone(), Arc::new(object));
        drop(contents);
        self.tell();
    }

    /// Takes that an object is gone, and in which version. That of another UID is another object.
    pub fn remove(&self, object: &Object) {
        self.forget(&object.key, object.uid(), version_of(object).unwrap_or(u128::MAX));
    }

    /// Takes that the object with this UID is gone, or any of its name if the UID is not known.
    pub fn forget(&self, key: &Key, uid: &str, version: u128) {
        let mut contents = self.lock();
        if !uid.is_empty() {
            contents.gone.push_back((uid.to_owned(), version));
            let surplus = contents.gone.len().saturating_sub(REMEMBERED);
            contents.gone.drain(..surplus);
        }
        let is_other = contents.objects.get(key).is_none_or(|known| !uid.is_empty() && known.uid() != uid);
        if is_other {
            return;
        }
        contents.objects.remove(key);
        drop(contents);
        self.tell();
    }

    /// Takes that the API server refuses to tell.
    pub fn refuse(&self, source: &Source, problem: String) {
        let mut contents = self.lock();
        let state = SourceState::Refused(problem);
        if contents.sources.insert(source.clone(), state.clone()) == Some(state) {
            return;
        }
        contents.objects.retain(|key, _| !source.covers(key));
        drop(contents);
        self.tell();
    }

    /// How a watch is.
    pub fn state(&self, source: &Source) -> SourceState {
        self.lock().sources.get(source).cloned().unwrap_or_default()
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.lock().objects.get(key).cloned()
    }

    /// The objects that fit.
    pub fn select(&self, fits: impl Fn(&Object) -> bool) -> BTreeMap<Key, Arc<Object>> {
        let contents = self.lock();
        let found = contents.objects.iter().filter(|(_, object)| fits(object));
        found.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    fn tell(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// A kind in the whole cluster.
    pub fn cluster(kind: Kind) -> Source {
        Source { kind, namespace: None }
    }

    /// A kind in a namespace.
    pub fn of_namespace(kind: Kind, namespace: &str) -> Source {
        Source { kind, namespace: Some(namespace.to_owned()) }
    }

    pub(crate) fn covers(&self, key: &Key) -> bool {
        key.kind == self.kind && self.namespace.as_ref().is_none_or(|own| key.namespace.as_ref() == Some(own))
    }
}

/// Whether what is known is a later version than what is told. Kubernetes promises that versions are numbers that grow.
fn is_later(known: &Object, told: &Object) -> bool {
    known.uid() == told.uid() && version_of(known).zip(version_of(told)).is_some_and(|(known, told)| known > told)
}

fn version_of(object: &Object) -> Option<u128> {
    object.resource_version().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(name: &str, version: &str) -> Object {
        Object::from_value(
            Kind::Secret,
            json!({ "metadata": { "name": name, "namespace": "a", "uid": name, "resourceVersion": version } }),
        )
    }

    #[test]
    fn an_answer_that_is_later_than_the_watch_stays() {
        let store = Store::default();
        store.set(secret("x", "10"));
        store.set(secret("x", "9"));
        assert_eq!(store.get(&secret("x", "").key).unwrap().resource_version(), "10");
        store.forget(&secret("x", "").key, "another", 12);
        assert!(store.get(&secret("x", "").key).is_some());
        store.remove(&secret("x", "12"));
        assert!(store.get(&secret("x", "").key).is_none());
    }

    #[test]
    fn an_answer_about_what_is_gone_brings_nothing_back() {
        let store = Store::default();
        store.remove(&secret("x", "12"));
        store.set(secret("x", "11"));
        assert!(store.get(&secret("x", "").key).is_none());
        // It has only lost its label, and is there.
        store.set(secret("x", "12"));
        assert!(store.get(&secret("x", "").key).is_some());
    }

    #[test]
    fn a_list_ends_what_it_does_not_name_and_nothing_of_other_namespaces() {
        let store = Store::default();
        store.set(secret("x", "1"));
        store.set(secret("y", "1"));
        store.set_all(&Source::of_namespace(Kind::Secret, "b"), Vec::new());
        assert_eq!(store.select(|_| true).len(), 2);
        store.set_all(&Source::of_namespace(Kind::Secret, "a"), vec![secret("y", "2")]);
        assert_eq!(store.select(|_| true).into_keys().map(|key| key.name).collect::<Vec<_>>(), ["y"]);
        store.refuse(&Source::of_namespace(Kind::Secret, "a"), "no".to_owned());
        assert_eq!(store.select(|_| true).len(), 0);
    }

    #[test]
    fn a_watch_that_has_ended_leaves_nothing_and_may_begin_again() {
        let (store, source) = (Store::default(), Source::of_namespace(Kind::Secret, "a"));
        assert!(store.begin(&source) && !store.begin(&source));
        store.set_all(&source, vec![secret("x", "1")]);
        store.end(&Source::of_namespace(Kind::Secret, "b"));
        assert_eq!((store.state(&source), store.select(|_| true).len()), (SourceState::Synced, 1));
        store.end(&source);
        assert_eq!((store.state(&source), store.select(|_| true).len()), (SourceState::Listing, 0));
        assert!(store.begin(&source));
    }
}
