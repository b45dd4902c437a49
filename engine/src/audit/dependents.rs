//! Which rules have asked what about other objects, and for which object: whose answer may change when one of those changes.
//!
//! A query is kept once, however many pairs ask it, also if it found nothing. A pair that is found although its answer is the same costs an evaluation and nothing
//! else, so names are kept as hashes.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::quality::RandomState;
use portal_core::{
    kinds::Kind,
    lookup::{Filter, Query},
    selector::{Selector, Test},
};
use portal_document::Node;

use super::ledger::{RecordNo, RuleNo};

/// A rule, and an object that it judges.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Pair {
    pub(super) record: RecordNo,
    pub(super) rule: RuleNo,
}

/// What the pairs have asked. Written by whoever holds the ledger.
#[derive(Debug)]
pub(super) struct Dependents {
    hashes: RandomState,
    queries: Vec<Asked>,
    /// Places of queries that nobody asks any more.
    free: Vec<QueryNo>,
    /// Queries by name, and lists by all that they say.
    by_hash: HashMap<u64, QueryNo, RandomState>,
    /// Lists by a label that objects must have to be in them, or by their kind and namespace if no label tells.
    lists: HashMap<u64, Vec<QueryNo>, RandomState>,
    /// What each record asks, in the order of rules.
    by_record: Vec<Vec<(RuleNo, QueryNo)>>,
    entries: usize,
    most: usize,
    /// Where the search goes on for a record whose queries are forgotten when there are too many.
    hand: usize,
}

/// The place of a query.
type QueryNo = u32;

#[derive(Debug)]
struct Asked {
    hash: u64,
    /// The selector and where the query is to be found among the lists. Nothing for a query by name.
    list: Option<Box<List>>,
    pairs: Pairs,
}

#[derive(Debug)]
struct List {
    selector: Selector,
    terms: Vec<u64>,
}

/// Who asks a query. Most are asked by one pair alone.
#[derive(Debug)]
enum Pairs {
    One(Pair),
    Many(Vec<Pair>),
}

/// An object that was made, changed or removed.
#[derive(Clone, Copy)]
pub(super) struct Changed<'a> {
    pub(super) kind: &'a Kind,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    /// The labels that it had, and that it has.
    pub(super) labels: [Option<Node<'a>>; 2],
}

impl Dependents {
    /// Nobody has asked anything. As many entries are kept, each a query of a pair.
    pub(super) fn new(most: usize) -> Dependents {
        Dependents {
            hashes: RandomState::default(),
            queries: Vec::new(),
            free: Vec::new(),
            by_hash: HashMap::default(),
            lists: HashMap::default(),
            by_record: Vec::new(),
            entries: 0,
            most,
            hand: 0,
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Takes what a rule has asked for an object, in the place of what it asked before. Returns the records whose queries were forgotten
    /// to make room.
    pub(super) fn set(&mut self, pair: Pair, queries: &[Query]) -> Vec<RecordNo> {
        let place = pair.record as usize;
        if self.by_record.len() <= place {
            if queries.is_empty() {
                return Vec::new();
            }
            self.by_record.resize_with(place + 1, Vec::new);
        }
        let mut wanted: Vec<(u64, &Query)> = queries.iter().map(|query| (self.hash_of(query), query)).collect();
        wanted.sort_unstable_by_key(|(hash, _)| *hash);
        wanted.dedup_by_key(|(hash, _)| *hash);
        let own: Vec<QueryNo> =
            self.by_record[place].iter().filter(|(rule, _)| *rule == pair.rule).map(|(_, query)| *query).collect();
        for query in own {
            let hash = self.queries[query as usize].hash;
            match wanted.binary_search_by_key(&hash, |(hash, _)| *hash) {
                // It asks that again, as nearly all do.
                Ok(known) => _ = wanted.remove(known),
                Err(_) => {
                    self.by_record[place].retain(|entry| *entry != (pair.rule, query));
                    self.leave(query, pair);
                }
            }
        }
        let mut forgotten = Vec::new();
        for (hash, query) in wanted {
            if self.entries >= self.most {
                let Some(record) = self.forget_other_than(pair.record) else { break };
                forgotten.push(record);
            }
            let query = self.join(hash, query, pair);
            let entries = &mut self.by_record[place];
            let at = entries.partition_point(|entry| *entry < (pair.rule, query));
            entries.insert(at, (pair.rule, query));
            self.entries += 1;
        }
        forgotten
    }

    /// Forgets what was asked for an object.
    pub(super) fn forget(&mut self, record: RecordNo) {
        let Some(entries) = self.by_record.get_mut(record as usize) else { return };
        for (rule, query) in std::mem::take(entries) {
            self.leave(query, Pair { record, rule });
        }
    }

    /// Forgets what was asked by rules that are gone.
    pub(super) fn retain_rules(&mut self, is_there: impl Fn(RuleNo) -> bool) {
        for record in 0..self.by_record.len() {
            let entries = std::mem::take(&mut self.by_record[record]);
            let (kept, gone): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(rule, _)| is_there(*rule));
            self.by_record[record] = kept;
            for (rule, query) in gone {
                self.leave(query, Pair { record: record as RecordNo, rule });
            }
        }
    }

    /// The pairs whose answers may be others now, each once.
    pub(super) fn affected(&self, changed: Changed<'_>) -> Vec<Pair> {
        let Changed { kind, namespace, name, labels } = changed;
        let mut found = Vec::new();
        if self.entries == 0 {
            return found;
        }
        for place in [namespace, None].into_iter().take(if namespace.is_some() { 2 } else { 1 }) {
            if let Some(query) = self.by_hash.get(&self.hash_of_name(kind, place, name)) {
                found.extend(self.queries[*query as usize].pairs.iter());
            }
            if self.lists.is_empty() {
                continue;
            }
            let own = labels.iter().flatten().filter_map(|labels| labels.as_object()).flat_map(|labels| labels.iter());
            let terms = own.filter_map(|(key, value)| Some(self.term(kind, place, Some((key, value.as_str()?)))));
            for term in terms.chain([self.term(kind, place, None)]) {
                for query in self.lists.get(&term).into_iter().flatten() {
                    let Asked { list, pairs, .. } = &self.queries[*query as usize];
                    if list.as_ref().is_some_and(|list| labels.iter().any(|labels| list.selector.matches(*labels))) {
                        found.extend(pairs.iter());
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn size_bytes(&self) -> usize {
        let many = |asked: &Asked| match &asked.pairs {
            Pairs::One(_) => 0,
            Pairs::Many(pairs) => pairs.capacity() * size_of::<Pair>(),
        };
        let list = |asked: &Asked| asked.list.as_ref().map_or(0, |list| size_of::<List>() + list.terms.len() * 8);
        self.queries.capacity() * size_of::<Asked>()
            + self.queries.iter().map(|asked| many(asked) + list(asked)).sum::<usize>()
            + self.by_hash.capacity() * (size_of::<(u64, QueryNo)>() + 1)
            + self.lists.capacity() * (size_of::<(u64, Vec<QueryNo>)>() + 1)
            + self.by_record.capacity() * size_of::<Vec<(RuleNo, QueryNo)>>()
            + self.by_record.iter().map(|entries| entries.capacity() * size_of::<(RuleNo, QueryNo)>()).sum::<usize>()
    }

    fn join(&mut self, hash: u64, query: &Query, pair: Pair) -> QueryNo {
        if let Some(known) = self.by_hash.get(&hash) {
            self.queries[*known as usize].pairs.add(pair);
            return *known;
        }
        let list = match &query.filter {
            Filter::Name(_) => None,
            Filter::Labels(selector) => {
                let terms = self.terms_of(query, selector);
                Some(Box::new(List { selector: selector.clone(), terms }))
            }
        };
        let asked = Asked { hash, list, pairs: Pairs::One(pair) };
        let number = match self.free.pop() {
            Some(free) => {
                self.queries[free as usize] = asked;
                free
            }
            None => {
                self.queries.push(asked);
                (self.queries.len() - 1) as QueryNo
            }
        };
        self.by_hash.insert(hash, number);
        if let Some(list) = &self.queries[number as usize].list {
            for term in &list.terms {
                self.lists.entry(*term).or_default().push(number);
            }
        }
        number
    }

    /// A pair asks a query no more. It is out of the record's list already, or about to be.
    fn leave(&mut self, query: QueryNo, pair: Pair) {
        self.entries -= 1;
        let asked = &mut self.queries[query as usize];
        if asked.pairs.remove(pair) {
            return;
        }
        self.by_hash.remove(&asked.hash);
        for term in asked.list.take().into_iter().flat_map(|list| list.terms) {
            if let Some(lists) = self.lists.get_mut(&term) {
                lists.retain(|list| *list != query);
                if lists.is_empty() {
                    self.lists.remove(&term);
                }
            }
        }
        self.free.push(query);
    }

    /// Forgets the queries of another record, each in its turn.
    fn forget_other_than(&mut self, record: RecordNo) -> Option<RecordNo> {
        let records = self.by_record.len();
        for _ in 0..records {
            self.hand = (self.hand + 1) % records;
            if self.hand as RecordNo != record && !self.by_record[self.hand].is_empty() {
                self.forget(self.hand as RecordNo);
                return Some(self.hand as RecordNo);
            }
        }
        None
    }

    /// Where a list is found: at each value of the label that has the fewest, or at its kind if no label must be there.
    fn terms_of(&self, query: &Query, selector: &Selector) -> Vec<u64> {
        let (kind, namespace) = (&*query.kind, query.namespace.as_deref());
        let labels = selector.requirements().filter_map(|requirement| match &requirement.test {
            Test::In(values) => Some((&requirement.key, values)),
            _ => None,
        });
        match labels.min_by_key(|(_, values)| values.len()) {
            Some((key, values)) => values.iter().map(|value| self.term(kind, namespace, Some((key, value)))).collect(),
            None => vec![self.term(kind, namespace, None)],
        }
    }

    fn hash_of(&self, query: &Query) -> u64 {
        match &query.filter {
            Filter::Name(name) => self.hash_of_name(&query.kind, query.namespace.as_deref(), name),
            Filter::Labels(selector) => {
                let mut hasher = self.begin("list", &query.kind, query.namespace.as_deref());
                selector.hash(&mut hasher);
                hasher.finish()
            }
        }
    }

    fn hash_of_name(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> u64 {
        let mut hasher = self.begin("name", kind, namespace);
        name.hash(&mut hasher);
        hasher.finish()
    }

    fn term(&self, kind: &Kind, namespace: Option<&str>, label: Option<(&str, &str)>) -> u64 {
        let mut hasher = self.begin("term", kind, namespace);
        label.hash(&mut hasher);
        hasher.finish()
    }

    fn begin(&self, what: &str, kind: &Kind, namespace: Option<&str>) -> impl std::hash::Hasher + use<> {
        let mut hasher = self.hashes.build_hasher();
        (what, &kind.group, &kind.plural, namespace).hash(&mut hasher);
        hasher
    }
}

impl Pairs {
    fn iter(&self) -> impl Iterator<Item = Pair> {
        let (one, many) = match self {
            Pairs::One(pair) => (Some(*pair), &[][..]),
            Pairs::Many(pairs) => (None, &pairs[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    fn add(&mut self, pair: Pair) {
        match self {
            Pairs::One(first) => *self = Pairs::Many(vec![*first, pair]),
            Pairs::Many(pairs) => pairs.push(pair),
        }
    }

    /// Removes a pair. Returns whether another one is left.
    fn remove(&mut self, pair: Pair) -> bool {
        match self {
            Pairs::One(_) => false,
            Pairs::Many(pairs) => {
                if let Some(place) = pairs.iter().position(|known| *known == pair) {
                    pairs.swap_remove(place);
                }
                !pairs.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests;
