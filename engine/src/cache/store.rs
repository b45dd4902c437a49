//! The objects of a kind as one task keeps them, and how others see them.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use portal_core::object::Object;

use super::changes::Change;
use super::moment::{Listed, Moment, Place, Stored, full_name, name_entry, split, terms_of};

/// Keeps the objects of a kind. Written by the task of its feed alone.
#[derive(Debug, Default)]
pub struct Store {
    /// What was told so far. Others see it when it is [published](Store::publish).
    now: Moment,
    /// Places that no object has.
    free: Vec<Place>,
    /// The objects that a list that is under way has named.
    listed: Vec<Listed>,
    shown: Shown,
}

/// What others see of a store. A clone sees the same.
#[derive(Clone, Debug, Default)]
pub struct Shown(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Nothing until all objects were listed once.
    moment: ArcSwapOption<Moment>,
    /// Why the API server refuses to tell more, if it does.
    refusal: ArcSwapOption<String>,
}

/// What can be said of a store.
#[derive(Clone, Debug)]
pub enum Seen {
    /// The objects, as far as anybody knows.
    Moment(Arc<Moment>),
    /// They have not been listed yet.
    NotSynced,
    /// The API server refuses to tell, for this reason.
    Refused(String),
}

impl Store {
    /// What others see of it.
    pub fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// All objects are going to be named. What was told before stays until the end of it.
    pub fn begin_list(&mut self) {
        self.listed.clear();
    }

    /// An object of a list that has [begun](Store::begin_list).
    pub fn list(&mut self, namespace: Option<&str>, name: &str, object: Result<Object<'static>, String>) {
        let object = object.map(Arc::new).map_err(Arc::from);
        self.listed.push(Listed { name: full_name(namespace, name).into(), object });
    }

    /// All objects were named: others are gone. Returns what was shown before, if anything was.
    pub fn end_list(&mut self) -> Option<Arc<Moment>> {
        let before = self.shown.moment();
        self.now = Moment::of(std::mem::take(&mut self.listed));
        self.free.clear();
        self.publish();
        before
    }

    /// An object was made or changed.
    pub fn apply(&mut self, namespace: Option<&str>, name: &str, object: Result<Object<'static>, String>) -> Change {
        let change = self.put(namespace, name, object);
        self.publish();
        change
    }

    /// An object is gone.
    pub fn delete(&mut self, namespace: Option<&str>, name: &str) -> Change {
        let name: Arc<str> = full_name(namespace, name).into();
        let before = self.forget(&name);
        self.publish();
        Change { name, before, after: None }
    }

    /// The API server refuses to tell more, or tells again.
    pub fn set_refusal(&self, reason: Option<String>) {
        self.shown.0.refusal.store(reason.map(Arc::new));
    }

    fn publish(&self) {
        self.shown.0.moment.store(Some(Arc::new(self.now.clone())));
    }

    fn put(&mut self, namespace: Option<&str>, name: &str, object: Result<Object<'static>, String>) -> Change {
        let wanted = full_name(namespace, name);
        let object = match object {
            Ok(object) => Arc::new(object),
            Err(reason) => {
                let before = self.forget(&wanted);
                let name: Arc<str> = wanted.into();
                self.now.unreadable.insert(Arc::clone(&name), reason.into());
                return Change { name, before, after: None };
            }
        };
        self.now.unreadable.remove(&*wanted);
        self.now.bytes += object.size_bytes();
        let known = self.now.stored(namespace.unwrap_or_default(), name);
        let Some((place, name)) = known.map(|(place, stored)| (place, Arc::clone(&stored.name))) else {
            let name: Arc<str> = wanted.into();
            let place = self.free.pop().unwrap_or(self.now.objects.len() as Place);
            for term in terms_of(place, object.root(), namespace) {
                self.now.terms.insert(term, ());
            }
            self.now.places.insert(Arc::clone(&name), place);
            self.now.names.insert(name_entry(place, &name), ());
            self.now.objects.insert(place, Stored { name: Arc::clone(&name), object: Arc::clone(&object) });
            return Change { name, before: None, after: Some(object) };
        };
        let after = terms_of(place, object.root(), namespace);
        let stored = Stored { name: Arc::clone(&name), object: Arc::clone(&object) };
        let mut change = Change { name, before: None, after: Some(object) };
        if let Some(before) = self.now.objects.insert(place, stored) {
            self.now.bytes -= before.object.size_bytes();
            let terms = terms_of(place, before.object.root(), namespace);
            // Most changes leave the labels alone.
            for term in terms.iter().filter(|term| after.binary_search(term).is_err()) {
                self.now.terms.remove(term);
            }
            for term in after.iter().filter(|term| terms.binary_search(term).is_err()) {
                self.now.terms.insert(*term, ());
            }
            change.before = Some(before.object);
        }
        change
    }

    /// Forgets an object. Returns it.
    fn forget(&mut self, full_name: &str) -> Option<Arc<Object<'static>>> {
        self.now.unreadable.remove(full_name);
        let place = self.now.places.remove(full_name)?;
        self.now.names.remove(&name_entry(place, full_name));
        let forgotten = self.now.objects.remove(&place).map(|stored| stored.object);
        if let Some(object) = &forgotten {
            self.now.bytes -= object.size_bytes();
            let namespace = Some(split(full_name).0).filter(|namespace| !namespace.is_empty());
            for term in terms_of(place, object.root(), namespace) {
                self.now.terms.remove(&term);
            }
        }
        self.free.push(place);
        forgotten
    }
}

impl Shown {
    /// Whether both show the same store.
    pub fn is(&self, other: &Shown) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What can be said at this moment. Whoever answers a request takes it once, and answers by that alone.
    pub fn now(&self) -> Seen {
        match &*self.0.refusal.load() {
            Some(reason) => Seen::Refused(reason.to_string()),
            None => self.moment().map_or(Seen::NotSynced, Seen::Moment),
        }
    }

    /// The objects as they were told last, even if the API server refuses to tell more. Nothing before they were listed once.
    pub fn moment(&self) -> Option<Arc<Moment>> {
        self.0.moment.load_full()
    }
}

#[cfg(test)]
mod tests;
