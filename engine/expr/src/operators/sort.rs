//! Putting values in order, for `sort` and `sortBy`.

use std::cmp::Ordering;

use crate::{
    machine::{Failure, Machine},
    value::{Entry, Value},
};

/// Whether an order is `desc`. Without one it is `asc`.
pub(crate) fn sort_order(order: Option<Value<'_>>) -> Result<bool, Failure> {
    match order {
        None | Some(Value::Text("asc")) => Ok(false),
        Some(Value::Text("desc")) => Ok(true),
        Some(Value::Text(other)) => Err(Failure::new(format!("unknown order {other:?}, use \"asc\" or \"desc\""))),
        Some(other) => Err(Failure::expected("a string for the order", other)),
    }
}

/// The values that belong to the keys, in the order of the keys. Where keys are equal, the order stays as it is.
pub(crate) fn sort_by_keys<'a>(
    machine: &Machine<'a>,
    keyed: &mut [Entry<'a>],
    descending: bool,
) -> Result<&'a [Value<'a>], Failure> {
    let mut bytes = 0;
    // In rules what is missing comes first.
    let has_order = |key: &Value<'a>| machine.is_strict() || !key.is_nil();
    if let [_, _, ..] = &*keyed
        && let Some(first) = keyed.iter().map(|(key, _)| key).find(|key| has_order(key))
    {
        for key in keyed.iter().map(|(key, _)| key).filter(|key| has_order(key)) {
            match (rank(*first), rank(*key)) {
                (Some(rank), Some(other)) if rank == other => {}
                (Some(_), Some(_)) => {
                    return Err(Failure::new(format!("cannot put {} and {} in order", first.kind(), key.kind())));
                }
                (None, _) => return Err(Failure::new(format!("{} has no order", first.kind()))),
                (_, None) => return Err(Failure::new(format!("{} has no order", key.kind()))),
            }
            bytes += match key {
                Value::Text(text) => text.len(),
                Value::Version(version) => version.len(),
                _ => 0,
            };
        }
    }
    machine.step_sort(keyed.len(), bytes)?;
    keyed.sort_by(|(a, _), (b, _)| if descending { order(*b, *a) } else { order(*a, *b) });
    let sorted = machine.fill(keyed.len(), Value::Nil)?;
    for (place, (_, item)) in sorted.iter_mut().zip(&*keyed) {
        *place = *item;
    }
    Ok(sorted)
}

/// Which values have an order among each other: those with the same rank. Nothing for values without one.
fn rank(value: Value<'_>) -> Option<u8> {
    match value {
        Value::Int(_) | Value::Float(_) => Some(0),
        Value::Text(_) => Some(1),
        Value::Time(_) => Some(2),
        Value::Duration(_) => Some(3),
        Value::Quantity(_) => Some(4),
        Value::Version(_) => Some(5),
        _ => None,
    }
}

/// A total order of values of one rank, which sorting must have and `<` does not: what is no number comes first, and an
/// int is compared with a float exactly.
fn order(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())),
        (Value::Int(a), Value::Float(b)) => int_float_order(a, b),
        (Value::Float(a), Value::Int(b)) => int_float_order(b, a).reverse(),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.moment.cmp(&b.moment),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(&b),
        (Value::Quantity(a), Value::Quantity(b)) => a.amount.cmp(&b.amount),
        (Value::Version(a), Value::Version(b)) => a.order(b),
        (one, other) => other.is_nil().cmp(&one.is_nil()),
    }
}

fn int_float_order(a: i64, b: f64) -> Ordering {
    if b.is_nan() {
        return Ordering::Greater;
    }
    // Rounding keeps the order of different numbers, and when it makes them the same, the float is a whole number.
    (a as f64).partial_cmp(&b).filter(|order| order.is_ne()).unwrap_or_else(|| i128::from(a).cmp(&(b as i128)))
}
