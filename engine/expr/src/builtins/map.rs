//! Functions of maps.

use super::{list_of, text_of, time::has_method};
use crate::{
    machine::{Failure, Machine},
    operators::truncate,
    value::{
        Entry, Keys, Value,
        map::{Duplicates, Found},
        sequence::Sequence,
    },
};

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

pub(super) fn keys<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    each(machine, arguments, |(key, _)| Ok(*key))
}

pub(super) fn values<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    each(machine, arguments, |(_, value)| Ok(*value))
}

pub(super) fn to_pairs<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    each(machine, arguments, |(key, value)| machine.list(&[*key, *value]))
}

/// A list of what there is for each entry, in the order of the keys.
fn each<'a>(
    machine: &Machine<'a>,
    arguments: Arguments<'_, 'a>,
    make: impl Fn(&Entry<'a>) -> Answer<'a>,
) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let fields = value.fields().ok_or_else(|| Failure::expected("a map", *value))?;
    let entries = fields.sorted(machine)?;
    let list = machine.fill(entries.len(), Value::Nil)?;
    for (place, entry) in list.iter_mut().zip(entries) {
        machine.step(1)?;
        *place = make(entry)?;
    }
    Ok(Value::List(list))
}

pub(super) fn from_pairs<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let pairs = list_of(*value)?;
    let entries = machine.fill(pairs.len(), (Value::Nil, Value::Nil))?;
    for (place, pair) in entries.iter_mut().zip(pairs.iter()) {
        machine.step(1)?;
        let items = pair.sequence().ok_or_else(|| Failure::expected("a pair", pair))?;
        if items.len() != 2 {
            return Err(Failure::new(format!("a pair has 2 elements, got {}", items.len())));
        }
        let mut items = items.iter();
        let (Some(key), Some(value)) = (items.next(), items.next()) else { return Err(Failure::arguments()) };
        if !key.is_key() {
            return Err(Failure::new(format!("cannot use {} as a key", key.kind())));
        }
        *place = (key, value);
    }
    machine.sort_map(entries, Keys::Any, Duplicates::Last)
}

/// `get`: an element or a value like `x[y]`, but nil where there is none, and of nil.
pub(super) fn get<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value, property] = arguments else { return Err(Failure::arguments()) };
    if let Some(fields) = value.fields() {
        return match fields.find(machine, *property)? {
            Found::Value(found) => Ok(found),
            Found::Missing(_) => Ok(Value::Nil),
            Found::Refused => Err(Failure::new(format!("cannot use {} as a key of this map", property.kind()))),
        };
    }
    let items = match (value.sequence(), *value) {
        (Some(items), _) => items,
        (None, Value::Text(text)) => Sequence::Bytes(text.as_bytes()),
        (None, Value::Time(_) | Value::Zone(_)) => {
            // These have no fields that can be seen, but methods.
            let name = text_of(*property)?;
            return match has_method(*value, name) {
                true => Err(Failure::new(format!("{name} is a method and no value: call it"))),
                false => Ok(Value::Nil),
            };
        }
        (None, _) => return Ok(Value::Nil),
    };
    let index = truncate(*property)?;
    let index = if index < 0 { index.saturating_add(items.len() as i64) } else { index };
    match usize::try_from(index) {
        Ok(index) => Ok(items.get(machine, index)?.unwrap_or(Value::Nil)),
        Err(_) => Ok(Value::Nil),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn entries_come_in_the_order_of_their_keys() {
        check(
            r#"
            keys({b: 1, a: 2}) => ["a", "b"]
            keys(doc('{"z":1,"a":{}}')) => ["a", "z"]
            keys({}) => []
            keys(fromPairs([[2, "b"], [1, "a"]])) => [1, 2]
            keys([1]) => error: expected a map, got array
            keys(nil) => error: expected a map, got nil
            values({b: 1, a: 2}) => [2, 1]
            values(doc('{"z":1,"a":2.5}')) => [2.5, 1]
            values("a") => error: expected a map, got string
            toPairs({b: 1, a: 2}) => [["a", 2], ["b", 1]]
            toPairs({}) => []
            toPairs(1) => error: expected a map, got int
            fromPairs([["a", 1], ["b", 2], ["a", 3]]) => {"a": 3, "b": 2}
            fromPairs([[1, 2], [1.0, 3], [nil, 4], [true, 5]]) => {nil: 4, true: 5, 1: 2, 1.0: 3}
            fromPairs(toPairs({a: 1})) => {"a": 1}
            fromPairs([["a"]]) => error: a pair has 2 elements, got 1
            fromPairs([1]) => error: expected a pair, got int
            fromPairs([[[], 1]]) => error: cannot use array as a key
            fromPairs(doc('[["a",1],["b",[2]]]')) => {"a": 1, "b": [2]}
            fromPairs(nil) => error: expected an array, got nil
            "#,
        );
    }

    #[test]
    fn get_is_nil_where_an_index_would_be_an_error() {
        check(
            r#"
            get([1, 2], 1) => 2
            get([1, 2], -1) => 2
            get([1, 2], 5) => nil
            get([1, 2], -5) => nil
            get([1, 2], "a") => error: expected a number, got string
            get({a: 1}, "a") => 1
            get({a: 1}, "b") => nil
            get({a: 1}, 1) => error: cannot use int as a key of this map
            get({"": 7}, nil) => 7
            get(doc('{"a":{"b":1}}'), "a") => {"b": 1}
            get(fromPairs([[1, 2]]), 1) => 2
            get(fromPairs([[1, 2]]), 1.0) => nil
            get(fromPairs([[1, 2]]), [1]) => error: cannot use array as a key of this map
            get(nil, "a") => nil
            get("abc", 1) => 98
            get("abc", 9) => nil
            get(5, 0) => nil
            get(date("2026-01-01"), "Foo") => nil
            "#,
        );
    }
}
