//! Order: `<`, `>`, `<=` and `>=`.

use std::cmp::Ordering;

use super::{amount_of, mismatch, version_of};
use crate::{
    machine::{Failure, Machine},
    value::Value,
};

/// An operator of order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Comparison {
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

impl Comparison {
    fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::Greater => ">",
            Comparison::LessOrEqual => "<=",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Whether the order is one that the operator says. Without an order, as with a float that is no number, it is not.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Comparison::Less => order.is_some_and(Ordering::is_lt),
            Comparison::Greater => order.is_some_and(Ordering::is_gt),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// Compares numbers, texts by their bytes, times, durations, amounts and versions. Anything else has no order. In rules nil is neither more
/// nor less than anything.
#[inline]
pub(crate) fn compare<'a>(
    machine: &Machine<'a>,
    operator: Comparison,
    a: Value<'a>,
    b: Value<'a>,
) -> Result<bool, Failure> {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        (Value::Int(a), Value::Float(b)) => (a as f64).partial_cmp(&b),
        (Value::Float(a), Value::Int(b)) => a.partial_cmp(&(b as f64)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
        (Value::Text(a), Value::Text(b)) => {
            machine.step_bytes(a.len().min(b.len()))?;
            Some(a.cmp(b))
        }
        (Value::Time(a), Value::Time(b)) => Some(a.moment.cmp(&b.moment)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(&b)),
        (Value::Nil, _) | (_, Value::Nil) if !machine.is_strict() => None,
        (Value::Quantity(_), _) | (_, Value::Quantity(_)) => match (amount_of(a), amount_of(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => return Err(mismatch(a, operator.sign(), b)),
        },
        (Value::Version(_), _) | (_, Value::Version(_)) => match (version_of(machine, a)?, version_of(machine, b)?) {
            (Some(a), Some(b)) => Some(a.order(&b)),
            _ => return Err(mismatch(a, operator.sign(), b)),
        },
        _ => return Err(mismatch(a, operator.sign(), b)),
    };
    Ok(operator.holds(order))
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn numbers_text_times_and_durations_have_an_order() {
        check(
            r#"
            1 < 2 => true
            1 < 1.5 => true
            2.0 <= 2 => true
            3 > 2.5 => true
            2 >= 3 => false
            "a" < "b" => true
            "Z" < "a" => true
            "a" < "aa" => true
            "é" > "z" => true
            date("2026-03-01") < date("2026-03-02") => true
            date("2026-03-01T01:00:00+01:00") <= date("2026-03-01") => true
            duration("1h") > duration("59m") => true
            float("NaN") < 1 => false
            float("NaN") >= 1 => false
            nil < 1 => error: cannot use < with nil and int
            1 < nil => error: cannot use < with int and nil
            "1" < 2 => error: cannot use < with string and int
            true < false => error: cannot use < with bool and bool
            [1] < [2] => error: cannot use < with array and array
            duration("1h") < 5 => error: cannot use < with duration and int
            "#,
        );
    }
}
