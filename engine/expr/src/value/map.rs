//! Maps: those that an expression made, and one view of these and of a document's objects.

use portal_document::{Key, Object};

use super::Value;
use crate::machine::{Failure, Machine};

/// How many keys of a document's object are passed in one step.
const KEYS_PER_STEP: u64 = 16;

/// A key and its value.
pub type Entry<'a> = (Value<'a>, Value<'a>);

/// A map that the expression made. Its entries are in the order of their keys, each key once.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    entries: &'a [Entry<'a>],
    keys: Keys,
}

/// What the keys of a map may be, as in the Go types that these maps have there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keys {
    /// Text: `{…}` and `fromJSON`. Looking for anything else is an error.
    Text,
    /// Anything: `fromPairs`.
    Any,
    /// Anything, and every value is a list: `groupBy`. A missing key has an empty list.
    Groups,
}

/// Which of the entries with the same key stays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Duplicates {
    /// As in `{a: 1, a: 2}`.
    First,
    /// As in `fromPairs` and JSON.
    Last,
}

/// The entries of a map or of a document's object.
#[derive(Clone, Copy)]
pub(crate) enum Fields<'a> {
    Map(Map<'a>),
    Object(Object<'a>),
}

/// What a map said to a key.
pub(crate) enum Found<'a> {
    Value(Value<'a>),
    /// The value that a missing key has.
    Missing(Value<'a>),
    /// Nothing of that kind can be a key here.
    Refused,
}

impl<'a> Map<'a> {
    /// A map without entries.
    pub const EMPTY: Map<'static> = Map { entries: &[], keys: Keys::Text };

    /// A map of entries in any order, which are put in order in place.
    pub(crate) fn new(entries: &'a mut [Entry<'a>], keys: Keys, duplicates: Duplicates) -> Map<'a> {
        if duplicates == Duplicates::First {
            entries.reverse();
        }
        // Most maps are small or in order already; this is stable, so the last of equal keys is the last one given.
        entries.sort_by(|a, b| a.0.compare_keys(b.0));
        let mut kept = 0;
        for index in 0..entries.len() {
            let entry = entries[index];
            if kept > 0 && entries[kept - 1].0.compare_keys(entry.0).is_eq() {
                kept -= 1;
            }
            entries[kept] = entry;
            kept += 1;
        }
        Map { entries: &entries[..kept], keys }
    }

    /// The entries in the order of their keys.
    pub fn entries(self) -> &'a [Entry<'a>] {
        self.entries
    }

    /// What its keys may be.
    pub fn keys(self) -> Keys {
        self.keys
    }

    /// The value of a key.
    pub fn get(self, key: Value<'_>) -> Option<Value<'a>> {
        let place = self.entries.binary_search_by(|(probe, _)| probe.compare_keys(key)).ok()?;
        Some(self.entries[place].1)
    }
}

impl<'a> Value<'a> {
    /// The entries, if it is a map.
    #[inline]
    pub(crate) fn fields(self) -> Option<Fields<'a>> {
        match self {
            Value::Map(map) => Some(Fields::Map(map)),
            Value::Node(node) => node.as_object().map(Fields::Object),
            _ => None,
        }
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Fields::Map(map) => map.entries.len(),
            Fields::Object(object) => object.len(),
        }
    }

    pub(crate) fn keys(self) -> Keys {
        match self {
            Fields::Map(map) => map.keys,
            Fields::Object(_) => Keys::Text,
        }
    }

    /// The value of a name that was prepared.
    #[inline]
    pub(crate) fn get_key(self, machine: &Machine<'a>, key: &Key) -> Result<Option<Value<'a>>, Failure> {
        match self {
            Fields::Map(map) => Ok(map.get(Value::Text(key.text()))),
            Fields::Object(object) => {
                charge(machine, object)?;
                Ok(object.get(key).map(Value::from_node))
            }
        }
    }

    /// The value of a name.
    pub(crate) fn get_text(self, machine: &Machine<'a>, key: &str) -> Result<Option<Value<'a>>, Failure> {
        match self {
            Fields::Map(map) => Ok(map.get(Value::Text(key))),
            Fields::Object(object) => {
                charge(machine, object)?;
                Ok(object.get_str(key).map(Value::from_node))
            }
        }
    }

    /// What the map says to any key. Where keys are text, nil stands for the empty text.
    pub(crate) fn find(self, machine: &Machine<'a>, key: Value<'a>) -> Result<Found<'a>, Failure> {
        let found = match (self.keys(), key) {
            (Keys::Text, Value::Text(text)) => self.get_text(machine, text)?,
            (Keys::Text, Value::Nil) => self.get_text(machine, "")?,
            (Keys::Any | Keys::Groups, key) if key.is_key() => match self {
                Fields::Map(map) => map.get(key),
                Fields::Object(_) => None,
            },
            _ => return Ok(Found::Refused),
        };
        Ok(found.map_or(Found::Missing(self.missing()), Found::Value))
    }

    /// The entries in the order of their keys.
    pub(crate) fn sorted(self, machine: &Machine<'a>) -> Result<&'a [Entry<'a>], Failure> {
        let object = match self {
            Fields::Map(map) => return Ok(map.entries),
            Fields::Object(object) => object,
        };
        let entries = machine.fill(object.len(), (Value::Nil, Value::Nil))?;
        let mut bytes = 0;
        for (entry, (key, value)) in entries.iter_mut().zip(object.iter()) {
            *entry = (Value::Text(key), Value::from_node(value));
            bytes += key.len();
        }
        machine.step_sort(entries.len(), bytes)?;
        entries.sort_unstable_by(|a, b| a.0.compare_keys(b.0));
        Ok(entries)
    }

    /// The value of a key that is not there.
    pub(crate) fn missing(self) -> Value<'a> {
        match self.keys() {
            Keys::Groups => Value::EMPTY,
            Keys::Text | Keys::Any => Value::Nil,
        }
    }
}

/// A document's object is searched from its first key on.
#[inline]
fn charge(machine: &Machine<'_>, object: Object<'_>) -> Result<(), Failure> {
    let steps = object.len() as u64 / KEYS_PER_STEP;
    if steps == 0 { Ok(()) } else { machine.step(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(duplicates: Duplicates, pairs: &[(&str, i64)], expected: &[(&str, i64)]) {
        let mut entries: Vec<_> = pairs.iter().map(|(key, value)| (Value::Text(key), Value::Int(*value))).collect();
        let map = Map::new(&mut entries, Keys::Text, duplicates);
        let found: Vec<_> = map
            .entries()
            .iter()
            .map(|entry| match entry {
                (Value::Text(key), Value::Int(value)) => (*key, *value),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected);
        for (key, value) in expected {
            assert!(matches!(map.get(Value::Text(key)), Some(Value::Int(found)) if found == *value));
        }
    }

    #[test]
    fn entries_are_in_the_order_of_their_keys_and_each_key_is_there_once() {
        check(Duplicates::Last, &[], &[]);
        check(Duplicates::Last, &[("b", 1), ("a", 2), ("b", 3)], &[("a", 2), ("b", 3)]);
        check(Duplicates::First, &[("b", 1), ("a", 2), ("b", 3)], &[("a", 2), ("b", 1)]);
        check(Duplicates::Last, &[("a", 1), ("a", 2), ("a", 3)], &[("a", 3)]);
        check(Duplicates::First, &[("a", 1), ("a", 2), ("a", 3)], &[("a", 1)]);
    }
}
