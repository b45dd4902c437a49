//! What the operators of the language do with two values. Each is a plain function: the evaluator knows the operands
//! and where they stand, these know what they mean.

mod access;
mod arithmetic;
mod compare;
mod equal;
mod search;
mod sort;

pub(crate) use self::{
    access::{fetch, fetch_key, part_of_range, range, slice},
    arithmetic::{add, divide, modulo, multiply, negate, power, subtract},
    compare::{Comparison, compare},
    equal::equal,
    search::{contained, contains, ends_with, in_range, matches, matches_regex, starts_with},
    sort::{sort_by_keys, sort_order},
};

use crate::{
    builtins::quoted,
    machine::{Failure, Machine},
    value::{
        Amount, Network, Quantity, Value, Version,
        map::{Duplicates, Keys, Map},
    },
};

/// Values that an operator does not take.
#[cold]
fn mismatch(a: Value<'_>, operator: &str, b: Value<'_>) -> Failure {
    Failure::new(format!("cannot use {operator} with {} and {}", a.kind(), b.kind()))
}

/// The amount that a value says, if it says one.
pub(crate) fn amount_of(value: Value<'_>) -> Option<Amount> {
    match value {
        Value::Quantity(quantity) => Some(quantity.amount),
        Value::Text(text) => Amount::parse(text),
        Value::Int(number) => Some(Amount::of_int(number)),
        Value::Float(number) => Amount::of_float(number),
        _ => None,
    }
}

/// A value of Kubernetes' schema as the quantity that it is. Lists become lists of quantities, and nil stays nil.
pub(crate) fn quantity<'a>(machine: &Machine<'a>, value: Value<'a>) -> Result<Value<'a>, Failure> {
    if let Value::Nil | Value::Quantity(_) = value {
        return Ok(value);
    }
    if let Some(items) = value.sequence() {
        let list = machine.fill(items.len(), Value::Nil)?;
        for (place, item) in list.iter_mut().zip(items.iter()) {
            machine.step(1)?;
            *place = quantity(machine, item)?;
        }
        return Ok(Value::List(list));
    }
    if let Some(fields) = value.fields() {
        let sorted = fields.sorted(machine)?;
        let entries = machine.fill(sorted.len(), (Value::Nil, Value::Nil))?;
        for (entry, (key, value)) in entries.iter_mut().zip(sorted) {
            machine.step(1)?;
            *entry = (*key, quantity(machine, *value)?);
        }
        return Ok(Value::Map(Map::new(entries, Keys::Text, Duplicates::Last)));
    }
    let Some(amount) = amount_of(value) else { return Err(no_quantity(value)) };
    let text = if let Value::Text(text) = value { Some(text) } else { None };
    machine.keep(Quantity { amount, text }).map(Value::Quantity)
}

#[cold]
fn no_quantity(value: Value<'_>) -> Failure {
    match value {
        Value::Text(text) => {
            Failure::new(format!("{} is no quantity such as \"100m\", \"2\" or \"1Gi\"", quoted(text)))
        }
        _ => Failure::expected("a quantity such as \"100m\", \"2\" or \"1Gi\"", value),
    }
}

/// The version that a value says, if it says one.
pub(crate) fn version_of<'a>(machine: &Machine<'a>, value: Value<'a>) -> Result<Option<Version<'a>>, Failure> {
    match value {
        Value::Version(version) => {
            machine.step_bytes(version.len())?;
            Ok(Some(*version))
        }
        Value::Text(text) => {
            machine.step_bytes(text.len())?;
            Ok(Version::parse(text))
        }
        _ => Ok(None),
    }
}

/// A text as the version that it says.
pub(crate) fn version<'a>(machine: &Machine<'a>, value: Value<'a>) -> Result<Value<'a>, Failure> {
    match (version_of(machine, value)?, value) {
        (Some(version), _) => machine.keep(version).map(Value::Version),
        (None, Value::Text(text)) => {
            Err(Failure::new(format!("{} is no version such as \"1.2.3\" or \"v1.27\"", quoted(text))))
        }
        _ => Err(Failure::expected("a version such as \"1.2.3\"", value)),
    }
}

/// The network or the address that a value says, if it says one.
pub(crate) fn network_of(value: Value<'_>) -> Option<Network<'_>> {
    match value {
        Value::Network(network) => Some(*network),
        Value::Text(text) => Network::parse_address(text).or_else(|| Network::parse(text)),
        _ => None,
    }
}

/// The integer that a number is cut to where one is wanted.
pub(crate) fn truncate(value: Value<'_>) -> Result<i64, Failure> {
    match value {
        Value::Int(number) => Ok(number),
        Value::Float(number) => Ok(truncate_float(number)),
        _ => Err(Failure::expected("a number", value)),
    }
}

/// The integer part of a float. What is too large, or no number, is the smallest integer: so do the machines that Go and
/// we run on most.
pub(crate) fn truncate_float(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}
