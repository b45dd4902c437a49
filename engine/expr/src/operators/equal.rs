//! Equality. Numbers are equal across int and float, also inside lists; inside maps they are not, because Go compares
//! maps by identity of types.

use super::{amount_of, network_of, version_of};
use crate::{
    machine::{Failure, Machine, deeper},
    value::{Entry, Value, map::Fields, sequence::Sequence},
};

/// Up to so many keys of a map are looked for one by one.
const FEW_KEYS: usize = 16;

/// Whether two values are equal. Values of different kinds are not, and that is no error.
#[inline]
pub(crate) fn equal<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>) -> Result<bool, Failure> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => {
            if a.len() == b.len() {
                machine.step_bytes(a.len())?;
            }
            Ok(a == b)
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        _ => compare(machine, a, b, false, 0),
    }
}

/// Compares anything. `exact` is how the values of a map are compared.
fn compare<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>, exact: bool, depth: u32) -> Result<bool, Failure> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => !exact && a as f64 == b,
        (Value::Text(a), Value::Text(b)) => {
            machine.step_bytes(a.len().min(b.len()))?;
            a == b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            machine.step_bytes(a.len().min(b.len()))?;
            a == b
        }
        (Value::Time(a), Value::Time(b)) => a.moment == b.moment,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Zone(a), Value::Zone(b)) => a.name() == b.name(),
        // What nothing was known of may turn out to be an amount.
        (Value::Quantity(a), other) | (other, Value::Quantity(a)) => amount_of(other) == Some(a.amount),
        (Value::Version(a), other) | (other, Value::Version(a)) => {
            version_of(machine, other)?.is_some_and(|b| a.order(&b).is_eq())
        }
        (Value::Network(a), other) | (other, Value::Network(a)) => {
            network_of(other).is_some_and(|b| a.order(&b).is_eq())
        }
        _ => match (a.sequence(), b.sequence()) {
            (Some(a), Some(b)) => lists(machine, a, b, exact, depth)?,
            (None, None) => match (a.fields(), b.fields()) {
                (Some(a), Some(b)) => maps(machine, a, b, depth)?,
                _ => false,
            },
            _ => false,
        },
    })
}

fn lists<'a>(
    machine: &Machine<'a>,
    a: Sequence<'a>,
    b: Sequence<'a>,
    exact: bool,
    depth: u32,
) -> Result<bool, Failure> {
    let is_typed = |list| matches!(list, Sequence::Range { .. } | Sequence::Bytes(_));
    if is_typed(a) && is_typed(b) || exact && (is_typed(a) || is_typed(b)) {
        // Ranges and bytes have types of their own in Go.
        return Ok(match (a, b) {
            (Sequence::Range { first, .. }, Sequence::Range { first: other, .. }) => {
                a.len() == b.len() && (first == other || a.len() == 0)
            }
            (Sequence::Bytes(a), Sequence::Bytes(b)) => a == b,
            _ => false,
        });
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    let depth = deeper(depth)?;
    for (a, b) in a.iter().zip(b.iter()) {
        machine.step(1)?;
        if !compare(machine, a, b, exact, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps<'a>(machine: &Machine<'a>, a: Fields<'a>, b: Fields<'a>, depth: u32) -> Result<bool, Failure> {
    if a.keys() != b.keys() || a.len() != b.len() {
        return Ok(false);
    }
    let depth = deeper(depth)?;
    // In the order of their keys both are walked once. Few keys are rather looked for.
    if a.len() > FEW_KEYS {
        for ((key, value), (other_key, other)) in a.sorted(machine)?.iter().zip(b.sorted(machine)?) {
            machine.step(1)?;
            if key.compare_keys(*other_key).is_ne() || !compare(machine, *value, *other, true, depth)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let same = |key: Value<'a>, value: Value<'a>| {
        machine.step(1)?;
        let other = match (b, key) {
            (Fields::Map(map), _) => map.get(key),
            (Fields::Object(_), Value::Text(key)) => b.get_text(machine, key)?,
            (Fields::Object(_), _) => None,
        };
        match other {
            Some(other) => compare(machine, value, other, true, depth),
            None => Ok(false),
        }
    };
    match a {
        Fields::Map(map) => all(map.entries().iter().copied(), same),
        Fields::Object(object) => {
            all(object.iter().map(|(key, value)| (Value::Text(key), Value::from_node(value))), same)
        }
    }
}

fn all<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    same: impl Fn(Value<'a>, Value<'a>) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    for (key, value) in entries {
        if !same(key, value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn numbers_are_equal_across_kinds_but_not_inside_maps() {
        check(
            r#"
            1 == 1.0 => true
            1 == 2 => false
            "a" == "a" => true
            "a" == "b" => false
            "1" == 1 => false
            nil == nil => true
            nil == false => false
            nil == "" => false
            [] == nil => false
            true == true => true
            float("NaN") == float("NaN") => false
            [1, 2] == [1.0, 2] => true
            [1, [2]] == [1, [2.0]] => true
            [1] == [1, 2] => false
            [nil] == [nil] => true
            (1..3) == [1, 2, 3] => true
            (1..3) == (1..3) => true
            (1..0) == (5..2) => true
            b"ab" == b"ab" => true
            b"ab" == [97, 98] => true
            b"a" == "a" => false
            (97..98) == b"ab" => false
            {a: 1} == {a: 1} => true
            {a: 1} == {a: 1.0} => false
            {a: 1} == {b: 1} => false
            {a: [1]} == {a: [1]} => true
            {a: [1]} == {a: [1.0]} => false
            {a: (1..2)} == {a: [1, 2]} => false
            [{a: 1}] == [{a: 1}] => true
            {} == [] => false
            {} == fromPairs([]) => false
            fromPairs([["a", 1]]) == fromPairs([["a", 1]]) => true
            fromPairs([["a", 1]]) == {a: 1} => false
            doc('{"a":{"b":[1]}}') == doc('{"a":{"b":[1]}}') => true
            doc('{"a":1,"b":2}') == doc('{"b":2,"a":1}') => true
            doc('[1,2.0]') == [1, 2] => true
            doc('["a"]') == ["a"] => true
            date("2026-03-01T01:00:00+01:00") == date("2026-03-01") => true
            duration("60s") == duration("1m") => true
            duration("1ns") == 1 => false
            1 != 2 => true
            nil != nil => false
            "#,
        );
    }
}
