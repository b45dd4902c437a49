//! The objects of a kind as one task keeps them, and how others see them.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use portal_core::object::Object;

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

    /// All objects were named: others are gone.
    pub fn end_list(&mut self) {
        self.now = Moment::of(std::mem::take(&mut self.listed));
        self.free.clear();
        self.publish();
    }

    /// An object was made or changed.
    pub fn apply(&mut self, namespace: Option<&str>, name: &str, object: Result<Object<'static>, String>) {
        self.put(namespace, name, object);
        self.publish();
    }

    /// An object is gone.
    pub fn delete(&mut self, namespace: Option<&str>, name: &str) {
        self.forget(&full_name(namespace, name));
        self.publish();
    }

    /// The API server refuses to tell more, or tells again.
    pub fn set_refusal(&self, reason: Option<String>) {
        self.shown.0.refusal.store(reason.map(Arc::new));
    }

    fn publish(&self) {
        self.shown.0.moment.store(Some(Arc::new(self.now.clone())));
    }

    fn put(&mut self, namespace: Option<&str>, name: &str, object: Result<Object<'static>, String>) {
        let wanted = full_name(namespace, name);
        let object = match object {
            Ok(object) => Arc::new(object),
            Err(reason) => {
                self.forget(&wanted);
                self.now.unreadable.insert(wanted.into(), reason.into());
                return;
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
            self.now.objects.insert(place, Stored { name, object });
            return;
        };
        let after = terms_of(place, object.root(), namespace);
        if let Some(before) = self.now.objects.insert(place, Stored { name, object }) {
            self.now.bytes -= before.object.size_bytes();
            let before = terms_of(place, before.object.root(), namespace);
            // Most changes leave the labels alone.
            for term in before.iter().filter(|term| after.binary_search(term).is_err()) {
                self.now.terms.remove(term);
            }
            for term in after.iter().filter(|term| before.binary_search(term).is_err()) {
                self.now.terms.insert(*term, ());
            }
        }
    }

    fn forget(&mut self, full_name: &str) {
        self.now.unreadable.remove(full_name);
        let Some(place) = self.now.places.remove(full_name) else { return };
        self.now.names.remove(&name_entry(place, full_name));
        if let Some(Stored { object, .. }) = self.now.objects.remove(&place) {
            self.now.bytes -= object.size_bytes();
            let namespace = Some(split(full_name).0).filter(|namespace| !namespace.is_empty());
            for term in terms_of(place, object.root(), namespace) {
                self.now.terms.remove(&term);
            }
        }
        self.free.push(place);
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
