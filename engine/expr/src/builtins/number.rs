//! Functions of numbers.

use super::integer_of;
use crate::{
    machine::{Buffer, Failure, Machine, deeper},
    operators::{Comparison, compare},
    value::{Value, sequence::Sequence},
};

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

pub(super) fn abs<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    match arguments {
        [Value::Int(number)] => Ok(Value::Int(number.wrapping_abs())),
        // Zero keeps its sign, as it does where numbers are compared with it.
        [Value::Float(number)] if *number < 0.0 => Ok(Value::Float(-number)),
        [Value::Float(number)] => Ok(Value::Float(*number)),
        _ => Err(not_a_number(arguments)),
    }
}

pub(super) fn ceil<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    rounded(arguments, f64::ceil)
}

pub(super) fn floor<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    rounded(arguments, f64::floor)
}

pub(super) fn round<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    rounded(arguments, f64::round)
}

fn rounded<'a>(arguments: Arguments<'_, 'a>, round: fn(f64) -> f64) -> Answer<'a> {
    match arguments {
        [Value::Int(number)] => Ok(Value::Float(*number as f64)),
        [Value::Float(number)] => Ok(Value::Float(round(*number))),
        _ => Err(not_a_number(arguments)),
    }
}

fn not_a_number(arguments: Arguments<'_, '_>) -> Failure {
    match arguments {
        [argument] => Failure::expected("a number", *argument),
        _ => Failure::arguments(),
    }
}

pub(super) fn max<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    best(machine, arguments, Comparison::Less)
}

pub(super) fn min<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    best(machine, arguments, Comparison::Greater)
}

/// The number that no other beats, among arguments and in arrays of any depth. One argument that is neither comes back as
/// it is, as in Go.
fn best<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>, loses: Comparison) -> Answer<'a> {
    let mut best = Best { machine, loses, found: Value::Nil };
    for argument in arguments {
        match (argument.sequence(), argument) {
            (Some(items), _) => best.look(items, 0)?,
            (None, Value::Int(_) | Value::Float(_) | Value::Duration(_) | Value::Quantity(_)) => {
                best.take(*argument)?
            }
            (None, _) if arguments.len() == 1 => return Ok(*argument),
            (None, _) => return Err(Failure::expected("a number", *argument)),
        }
    }
    Ok(best.found)
}

struct Best<'m, 'a> {
    machine: &'m Machine<'a>,
    /// How the best number so far compares with one that replaces it.
    loses: Comparison,
    found: Value<'a>,
}

impl<'a> Best<'_, 'a> {
    fn take(&mut self, number: Value<'a>) -> Result<(), Failure> {
        if self.found.is_nil() || compare(self.machine, self.loses, self.found, number)? {
            self.found = number;
        }
        Ok(())
    }

    fn look(&mut self, items: Sequence<'a>, depth: u32) -> Result<(), Failure> {
        let depth = deeper(depth)?;
        for item in items.iter() {
            self.machine.step(1)?;
            match (item.sequence(), item) {
                (Some(items), _) => self.look(items, depth)?,
                (None, Value::Int(_) | Value::Float(_) | Value::Quantity(_) | Value::Version(_)) => self.take(item)?,
                (None, _) => return Err(Failure::expected("a number", item)),
            }
        }
        Ok(())
    }
}

pub(super) fn mean<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let mut total = Total::default();
    for argument in arguments {
        total.add(machine, *argument, 0)?;
    }
    Ok(Value::Float(if total.count == 0 { 0.0 } else { total.sum / total.count as f64 }))
}

/// How many numbers there are, and their sum.
#[derive(Default)]
struct Total {
    count: u64,
    sum: f64,
}

impl Total {
    /// Adds a number, or those of an array. Arrays in it are summed by themselves, which decides the last digit.
    fn add(&mut self, machine: &Machine<'_>, value: Value<'_>, depth: u32) -> Result<(), Failure> {
        machine.step(1)?;
        let Some(items) = value.sequence() else {
            self.count += 1;
            self.sum += number(value)?;
            return Ok(());
        };
        let depth = deeper(depth)?;
        for item in items.iter() {
            if item.sequence().is_none() {
                self.add(machine, item, depth)?;
                continue;
            }
            let mut inner = Self::default();
            inner.add(machine, item, depth)?;
            self.count += inner.count;
            self.sum += inner.sum;
        }
        Ok(())
    }
}

pub(super) fn median<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let mut numbers = machine.buffer();
    for argument in arguments {
        gather(machine, *argument, &mut numbers, 0)?;
    }
    let numbers = numbers.finish();
    machine.step_sort(numbers.len(), 0)?;
    // What is no number comes first in Go.
    numbers.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())));
    let middle = numbers.len() / 2;
    Ok(Value::Float(match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => numbers[middle],
        _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
    }))
}

fn gather(
    machine: &Machine<'_>,
    value: Value<'_>,
    numbers: &mut Buffer<'_, '_, f64>,
    depth: u32,
) -> Result<(), Failure> {
    machine.step(1)?;
    let Some(items) = value.sequence() else { return numbers.push(number(value)?) };
    let depth = deeper(depth)?;
    for item in items.iter() {
        gather(machine, item, numbers, depth)?;
    }
    Ok(())
}

fn number(value: Value<'_>) -> Result<f64, Failure> {
    match value {
        // A duration is its nanoseconds here, as in Go.
        Value::Int(number) | Value::Duration(number) => Ok(number as f64),
        Value::Float(number) => Ok(number),
        _ => Err(Failure::expected("a number", value)),
    }
}

pub(super) fn bitand<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    bits(arguments, |a, b| a & b)
}

pub(super) fn bitor<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    bits(arguments, |a, b| a | b)
}

pub(super) fn bitxor<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    bits(arguments, |a, b| a ^ b)
}

/// The bits of the first that the second does not have, whatever the name says.
pub(super) fn bitnand<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    bits(arguments, |a, b| a & !b)
}

pub(super) fn bitnot<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [number] = arguments else { return Err(Failure::arguments()) };
    Ok(Value::Int(!integer_of(*number)?))
}

pub(super) fn bitshl<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    shift(arguments, |number, count| number.checked_shl(count).unwrap_or(0))
}

pub(super) fn bitshr<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    shift(arguments, |number, count| number >> count.min(63))
}

/// Shifts zeros in from above, also for a negative number.
pub(super) fn bitushr<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    shift(arguments, |number, count| (number as u64).checked_shr(count).unwrap_or(0) as i64)
}

fn bits<'a>(arguments: Arguments<'_, 'a>, combine: fn(i64, i64) -> i64) -> Answer<'a> {
    let [a, b] = arguments else { return Err(Failure::arguments()) };
    Ok(Value::Int(combine(integer_of(*a)?, integer_of(*b)?)))
}

fn shift<'a>(arguments: Arguments<'_, 'a>, shift: fn(i64, u32) -> i64) -> Answer<'a> {
    let [number, count] = arguments else { return Err(Failure::arguments()) };
    let (number, count) = (integer_of(*number)?, integer_of(*count)?);
    if count < 0 {
        return Err(Failure::new(format!("cannot shift by {count} bits")));
    }
    Ok(Value::Int(shift(number, u32::try_from(count).unwrap_or(u32::MAX))))
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn numbers_are_rounded_to_floats() {
        check(
            r#"
            abs(-5) => 5
            abs(5) => 5
            abs(-1.5) => 1.5
            abs(-9223372036854775807 - 1) => -9223372036854775808
            abs("5") => error: expected a number, got string
            abs(nil) => error: expected a number, got nil
            abs(duration("1h")) => error: expected a number, got duration
            ceil(1.2) => 2.0
            ceil(-1.2) => -1.0
            ceil(3) => 3.0
            floor(1.8) => 1.0
            floor(-1.2) => -2.0
            floor(nil) => error: expected a number, got nil
            round(1.5) => 2.0
            round(-1.5) => -2.0
            round(2.5) => 3.0
            round(0.49999999999999994) => 0.0
            round("1") => error: expected a number, got string
            "#,
        );
    }

    #[test]
    fn the_best_number_is_found_in_arrays_too() {
        check(
            r#"
            max(1, 2, 3) => 3
            max([1, 5], 3) => 5
            max([1, [7, [3]]], 5.5) => 7
            max([]) => nil
            max(1, 1.0) => 1
            max(1.0, 1) => 1.0
            max("a") => "a"
            max("a", 1) => error: expected a number, got string
            max([1, "a"]) => error: expected a number, got string
            max([nil]) => error: expected a number, got nil
            max(duration("1h"), duration("2h")) => 7200000000000ns
            max([duration("1h")]) => error: expected a number, got duration
            max(doc('[3,9,4]')) => 9
            max(b"az") => 122
            min(1, 2, 3) => 1
            min([4, [2.5]], 3) => 2.5
            min(1..3) => 1
            min(nil) => nil
            min([], []) => nil
            mean(1, 2, 6) => 3.0
            mean([1, 2, [6]]) => 3.0
            mean([]) => 0.0
            mean(1, [1e-7, -17], 0) => -3.999999975
            mean(1, "a") => error: expected a number, got string
            mean([nil]) => error: expected a number, got nil
            median(1, 9, 2) => 2.0
            median([1, 2, 3, 4]) => 2.5
            median([]) => 0.0
            median([1, [5]], 3) => 3.0
            median("a") => error: expected a number, got string
            "#,
        );
    }

    #[test]
    fn bits_are_those_of_64_bit_integers() {
        check(
            r#"
            bitand(12, 10) => 8
            bitor(12, 10) => 14
            bitxor(12, 10) => 6
            bitnand(12, 10) => 4
            bitnot(0) => -1
            bitnot(5) => -6
            bitshl(1, 3) => 8
            bitshl(1, 63) => -9223372036854775808
            bitshl(1, 64) => 0
            bitshl(1, -1) => error: cannot shift by -1 bits
            bitshr(-8, 1) => -4
            bitshr(-8, 99) => -1
            bitushr(-8, 1) => 9223372036854775804
            bitushr(8, 64) => 0
            bitushr(8, -1) => error: cannot shift by -1 bits
            bitand(1.0, 1) => error: expected an int, got float
            bitor(nil, 1) => error: expected an int, got nil
            bitnot("1") => error: expected an int, got string
            "#,
        );
    }
}
