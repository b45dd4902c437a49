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
    search::{contained, contains, ends_with, matches, matches_regex, starts_with},
    sort::{sort_by_keys, sort_order},
};

use crate::{machine::Failure, value::Value};

/// Values that an operator does not take.
#[cold]
fn mismatch(a: Value<'_>, operator: &str, b: Value<'_>) -> Failure {
    Failure::new(format!("cannot use {operator} with {} and {}", a.kind(), b.kind()))
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
