//! What the rules of one request are told when they ask for other objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use portal_core::{
    kinds::Kind,
    lookup::{Answer, Filter, Lookup, Query},
    object::Object,
};

use super::{
    keeper::Caches,
    store::{Seen, Shown},
};

/// Answers what the rules of one request ask. All of them see one moment of each kind, however long the request takes.
pub struct Answers<'a> {
    caches: &'a Caches,
    /// The namespace of the request, which may have been read a moment ago.
    namespace: Option<(&'a str, &'a Result<Arc<Object<'static>>, String>)>,
    /// What was seen of the feeds that were asked. Written by answers.
    seen: RefCell<Vec<(Shown, Seen)>>,
    /// Which of them knows a kind in a namespace or everywhere: whoever asks again is answered by the same one. Written by answers.
    places: RefCell<Vec<Asked>>,
    /// What was read of the API server for this request.
    fresh: HashMap<Query, FreshAnswer>,
    /// Whether nothing more is read.
    is_last_round: bool,
}

/// A kind that was asked for in a namespace or everywhere, and the place of what was seen of it.
struct Asked {
    kind: Arc<Kind>,
    namespace: Option<String>,
    place: usize,
}

/// What answers were given by.
#[derive(Debug, Default)]
pub struct Basis(Vec<(Shown, Seen)>);

/// What the API server said.
pub type FreshAnswer = Result<Vec<Arc<Object<'static>>>, String>;

impl Basis {
    /// Whether something has changed since in what was asked.
    pub fn is_stale(&self) -> bool {
        self.0.iter().any(|(shown, seen)| match (shown.moment(), seen) {
            (Some(now), Seen::Moment(seen)) => !Arc::ptr_eq(&now, seen),
            (now, _) => now.is_some(),
        })
    }
}

impl<'a> Answers<'a> {
    /// Answers from what is cached.
    pub fn new(
        caches: &'a Caches,
        namespace: Option<(&'a str, &'a Result<Arc<Object<'static>>, String>)>,
    ) -> Answers<'a> {
        let (seen, places) = (RefCell::default(), RefCell::default());
        Answers { caches, namespace, seen, places, fresh: HashMap::new(), is_last_round: false }
    }

    /// Takes what was read of the API server.
    pub fn add(&mut self, read: impl IntoIterator<Item = (Query, FreshAnswer)>) {
        self.fresh.extend(read);
    }

    /// What all of it was answered by.
    pub fn into_basis(self) -> Basis {
        Basis(self.seen.into_inner())
    }

    /// From here on, what was not read is an error.
    pub fn end_reading(&mut self) {
        self.is_last_round = true;
    }

    fn cached(&self, query: &Query) -> Answer {
        let namespace = query.namespace.as_deref();
        let Some(place) = self.place(&query.kind, namespace) else { return Answer::NotSynced };
        match &self.seen.borrow()[place].1 {
            Seen::Moment(moment) => match moment.find(namespace, &query.filter) {
                Ok(found) => Answer::Found(found),
                Err(reason) => Answer::Failed(reason),
            },
            Seen::NotSynced => Answer::NotSynced,
            Seen::Refused(reason) => Answer::Failed(reason.clone()),
        }
    }

    /// The place of what was seen of the objects of a kind. None if nobody tells of them.
    fn place(&self, kind: &Arc<Kind>, namespace: Option<&str>) -> Option<usize> {
        let mut places = self.places.borrow_mut();
        let is_known = |asked: &&Asked| asked.kind == *kind && asked.namespace.as_deref() == namespace;
        if let Some(asked) = places.iter().find(is_known) {
            return Some(asked.place);
        }
        let shown = self.caches.get(kind, namespace)?;
        let mut seen = self.seen.borrow_mut();
        let place = seen.iter().position(|(known, _)| known.is(&shown)).unwrap_or_else(|| {
            let now = shown.now();
            seen.push((shown, now));
            seen.len() - 1
        });
        places.push(Asked { kind: Arc::clone(kind), namespace: namespace.map(str::to_owned), place });
        Some(place)
    }

    fn fresh(&self, query: &Query) -> Answer {
        match self.fresh.get(query) {
            Some(Ok(found)) => Answer::Found(found.clone()),
            Some(Err(reason)) => Answer::Failed(reason.clone()),
            None if self.is_last_round => {
                Answer::Failed("the rule goes on asking for more, and a request has to be answered in time".to_owned())
            }
            None => Answer::Needs,
        }
    }
}

impl Lookup for Answers<'_> {
    fn answer(&self, query: &Query) -> Answer {
        if query.consistent {
            return self.fresh(query);
        }
        let is_namespace = query.kind.group.is_empty() && query.kind.kind == "Namespace";
        match (&self.namespace, &query.filter) {
            (Some((name, found)), Filter::Name(wanted)) if is_namespace && wanted == name => match found {
                Ok(namespace) => Answer::Found(vec![Arc::clone(namespace)]),
                Err(reason) => Answer::Failed(reason.clone()),
            },
            _ => self.cached(query),
        }
    }
}
