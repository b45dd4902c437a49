//! The objects of a kind at one moment, and how they are found.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, LazyLock};

use foldhash::quality::RandomState;
use portal_core::{
    lookup::Filter,
    object::Object,
    selector::{Selector, Test},
};
use portal_document::{Key, Node};

use super::tree::Tree;

/// The objects of a kind, or of a kind in a namespace, at one moment. Nothing in it ever changes; a clone costs a few counters.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The places of objects, by [`full_name`]: the order in which objects are listed.
    pub(super) places: Tree<Arc<str>, Place>,
    /// The hash of a name, and the place of its object behind it. To find one name among others takes a comparison of texts at each
    /// step, all over the memory; numbers lie side by side.
    pub(super) names: Tree<u64, ()>,
    pub(super) objects: Tree<Place, Stored>,
    /// Which objects have which labels: the hash of a [`Term`], and the place of an object behind it. A hash that two terms
    /// share costs a comparison, because whatever is found is compared with what was asked for.
    pub(super) terms: Tree<u64, ()>,
    /// The objects that cannot be read, by their names, and why. Whoever asks for something that may be one of them is told.
    pub(super) unreadable: Tree<Arc<str>, Arc<str>>,
    /// Bytes of memory that the objects hold for themselves.
    pub(super) bytes: usize,
}

/// Where an object is. Places of objects that are gone are given to others.
pub(super) type Place = u32;

/// An object and its [`full_name`].
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: Arc<str>,
    pub(super) object: Arc<Object<'static>>,
}

/// An object of a list, by its [`full_name`], or why it cannot be read.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Arc<str>,
    pub(super) object: Result<Arc<Object<'static>>, Arc<str>>,
}

/// What objects can be found by: a label, in one namespace or in any.
#[derive(Clone, Copy)]
struct Term<'a> {
    namespace: Option<&'a str>,
    key: &'a str,
    value: &'a str,
}

/// Seeded per process: nobody can prepare labels that share a hash.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);

impl Moment {
    /// The moment at the end of a list. Of two objects of one name the later one counts.
    pub(super) fn of(mut listed: Vec<Listed>) -> Moment {
        // Most lists come in order, and to sort one costs little then. Those of one name stay as they are: the later one first.
        listed.reverse();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed.dedup_by(|one, other| one.name == other.name);
        let (mut places, mut names, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        let (mut terms, mut unreadable, mut bytes) = (Vec::new(), Vec::new(), 0);
        for Listed { name, object } in listed {
            let object = match object {
                Ok(object) => object,
                Err(reason) => {
                    unreadable.push((name, reason));
                    continue;
                }
            };
            let place = objects.len() as Place;
            bytes += object.size_bytes();
            let namespace = Some(split(&name).0).filter(|namespace| !namespace.is_empty());
            terms.extend(unsorted_terms(place, object.root(), namespace));
            names.push(name_entry(place, &name));
            places.push((Arc::clone(&name), place));
            objects.push((place, Stored { name, object }));
        }
        let sorted = |mut entries: Vec<u64>| {
            entries.sort_unstable();
            entries.dedup();
            Tree::of_sorted(entries.into_iter().map(|entry| (entry, ())))
        };
        Moment {
            places: Tree::of_sorted(places.into_iter()),
            names: sorted(names),
            objects: Tree::of_sorted(objects.into_iter()),
            terms: sorted(terms),
            unreadable: Tree::of_sorted(unreadable.into_iter()),
            bytes,
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the objects hold for themselves.
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// All objects, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object<'static>>> {
        self.named("")
    }

    /// All objects with their [`full_name`], by namespace and name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Object<'static>>)> {
        let stored = self.places.iter_from("").filter_map(|(_, place)| self.objects.get(place));
        stored.map(|stored| (&stored.name, &stored.object))
    }

    /// The object of a [`full_name`].
    pub(crate) fn of_name(&self, full_name: &str) -> Option<&Arc<Object<'static>>> {
        let (namespace, name) = split(full_name);
        self.stored(namespace, name).map(|(_, stored)| &stored.object)
    }

    /// The object of a name.
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<&Arc<Object<'static>>> {
        self.stored(namespace.unwrap_or_default(), name).map(|(_, stored)| &stored.object)
    }

    /// The object of a name, and its place. The namespace is empty if it is in none.
    pub(super) fn stored(&self, namespace: &str, name: &str) -> Option<(Place, &Stored)> {
        let hash = hash_of_name(namespace, name);
        let is_named = |full_name: &str| {
            let own_name = full_name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('\0'));
            own_name == Some(name)
        };
        let mut next = entry(hash, 0);
        loop {
            let found = *self.names.first_from(&next).filter(|found| **found >> 32 == u64::from(hash))?;
            let place = found as Place;
            match self.objects.get(&place) {
                Some(stored) if is_named(&stored.name) => return Some((place, stored)),
                // Another name has the same hash.
                _ => next = found + 1,
            }
        }
    }

    /// The objects that are asked for, by namespace and name: in every replica they come in the same order. Without a namespace, those of
    /// all. An error is for people.
    pub fn find(&self, namespace: Option<&str>, filter: &Filter) -> Result<Vec<Arc<Object<'static>>>, String> {
        self.check_readable(namespace, filter)?;
        let found = match filter {
            Filter::Name(name) => self.get(namespace, name).into_iter().cloned().collect(),
            Filter::Labels(selector) => match self.candidates(namespace, selector) {
                Some(candidates) => self.choose(candidates, namespace, selector),
                None => {
                    let prefix = namespace.map(|namespace| full_name(Some(namespace), "")).unwrap_or_default();
                    let fits =
                        |object: &&Arc<Object<'_>>| selector.is_empty() || selector.matches(labels(object.root()));
                    self.named(&prefix).filter(fits).cloned().collect()
                }
            },
        };
        Ok(found)
    }

    /// The objects whose full names begin so, in the order of names.
    fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Arc<Object<'static>>> {
        let named = self.places.iter_from(prefix).take_while(move |(name, _)| name.starts_with(prefix));
        named.filter_map(|(_, place)| self.objects.get(place)).map(|stored| &stored.object)
    }

    /// The places of objects among which are all that a selector fits, if some of its labels tell. Of several labels the one decides
    /// that the fewest objects have: all are gone through side by side, until the first is at its end.
    fn candidates(&self, namespace: Option<&str>, selector: &Selector) -> Option<Vec<Place>> {
        let mut labels: Vec<_> = selector
            .requirements()
            .filter_map(|requirement| match &requirement.test {
                Test::In(values) => Some((requirement.key.as_str(), values)),
                _ => None,
            })
            .map(|(key, values)| {
                let terms = values.iter().map(move |value| Term { namespace, key, value });
                (Vec::new(), terms.flat_map(|term| self.places_of(term)))
            })
            .collect();
        if labels.is_empty() {
            return None;
        }
        loop {
            for (found, more) in &mut labels {
                match more.next() {
                    Some(place) => found.push(place),
                    None => return Some(std::mem::take(found)),
                }
            }
        }
    }

    fn places_of(&self, term: Term<'_>) -> impl Iterator<Item = Place> {
        let hash = term.hash();
        let entries = self.terms.iter_from(&entry(hash, 0));
        entries.take_while(move |(entry, ())| *entry >> 32 == u64::from(hash)).map(|(entry, ())| *entry as Place)
    }

    /// Of these places, the objects that a selector fits, in the order of names.
    fn choose(
        &self,
        candidates: Vec<Place>,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Object<'static>>> {
        let fits = |stored: &&Stored| {
            namespace.is_none_or(|namespace| split(&stored.name).0 == namespace)
                && selector.matches(labels(stored.object.root()))
        };
        let mut found: Vec<&Stored> = self.objects.get_all(candidates).filter(fits).collect();
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        found.dedup_by(|one, other| Arc::ptr_eq(&one.name, &other.name));
        found.into_iter().map(|stored| Arc::clone(&stored.object)).collect()
    }

    /// Fails if an object that cannot be read may be one that is asked for.
    fn check_readable(&self, namespace: Option<&str>, filter: &Filter) -> Result<(), String> {
        if self.unreadable.len() == 0 {
            return Ok(());
        }
        let wanted = match filter {
            Filter::Name(name) => full_name(namespace, name),
            Filter::Labels(_) => namespace.map(|namespace| full_name(Some(namespace), "")).unwrap_or_default(),
        };
        let (first, is_exact) = (self.unreadable.iter_from(&*wanted).next(), matches!(filter, Filter::Name(_)));
        let is_wanted = |name: &str| if is_exact { name == wanted } else { name.starts_with(&wanted) };
        match first {
            Some((name, reason)) if is_wanted(name) => {
                Err(format!("{} cannot be read: {reason}", name.trim_start_matches('\0').replace('\0', "/")))
            }
            _ => Ok(()),
        }
    }
}

impl Term<'_> {
    fn hash(self) -> u32 {
        // No name, key or value has such a byte, so that no two terms are written alike.
        hash_of(&[self.namespace.unwrap_or("\u{1}"), "\0", self.key, "\0", self.value])
    }
}

fn hash_of_name(namespace: &str, name: &str) -> u32 {
    hash_of(&[namespace, "\0", name])
}

fn hash_of(parts: &[&str]) -> u32 {
    let mut hasher = HASHES.build_hasher();
    parts.iter().for_each(|part| hasher.write(part.as_bytes()));
    (hasher.finish() >> 32) as u32
}

/// What the names hold of an object.
pub(super) fn name_entry(place: Place, full_name: &str) -> u64 {
    let (namespace, name) = split(full_name);
    entry(hash_of_name(namespace, name), place)
}

/// What the terms hold of an object, in order: each label for its namespace, and each for all namespaces.
pub(super) fn terms_of(place: Place, object: Node<'_>, namespace: Option<&str>) -> Vec<u64> {
    let mut terms: Vec<u64> = unsorted_terms(place, object, namespace).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn unsorted_terms<'a>(place: Place, object: Node<'a>, namespace: Option<&'a str>) -> impl Iterator<Item = u64> + 'a {
    let entries = labels(object).and_then(Node::as_object).into_iter().flat_map(|labels| labels.iter());
    let texts = entries.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let terms = texts.flat_map(move |(key, value)| {
        let own = namespace.map(|namespace| Term { namespace: Some(namespace), key, value });
        own.into_iter().chain([Term { namespace: None, key, value }])
    });
    terms.map(move |term| entry(term.hash(), place))
}

fn entry(hash: u32, place: Place) -> u64 {
    u64::from(hash) << 32 | u64::from(place)
}

/// Namespace and name in one text, in whose order objects are listed.
pub(super) fn full_name(namespace: Option<&str>, name: &str) -> String {
    [namespace.unwrap_or_default(), "\0", name].concat()
}

/// The namespace of a [`full_name`], which is empty if it is in none, and the name.
pub(crate) fn split(full_name: &str) -> (&str, &str) {
    full_name.split_once('\0').unwrap_or(("", full_name))
}

fn labels(object: Node<'_>) -> Option<Node<'_>> {
    // Prepared, because they are looked for in every object that may be meant.
    static LABELS: LazyLock<[Key; 2]> = LazyLock::new(|| ["metadata", "labels"].map(Key::new));
    object.follow(&*LABELS).ok().flatten()
}
