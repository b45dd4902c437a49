//! Sums, products and the like. Integers wrap around, as in Go.

use super::{amount_of, mismatch};
use crate::{
    machine::{Failure, Machine},
    value::{Amount, Quantity, Time, Value},
};

/// `+`: numbers, texts, times and durations.
#[inline]
pub(crate) fn add<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_add(b))),
        (Value::Text(a), Value::Text(b)) => join(machine, a, b),
        (Value::Time(time), Value::Duration(nanoseconds)) | (Value::Duration(nanoseconds), Value::Time(time)) => {
            later(machine, time, nanoseconds)
        }
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.wrapping_add(b))),
        (Value::Quantity(_), _) | (_, Value::Quantity(_)) => {
            computed(machine, a, "+", b, |a, b| Some(Amount::plus(a, b)))
        }
        _ => match floats(a, b) {
            Some((a, b)) => Ok(Value::Float(a + b)),
            None => Err(mismatch(a, "+", b)),
        },
    }
}

/// `-`: numbers, times and durations.
#[inline]
pub(crate) fn subtract<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_sub(b))),
        (Value::Time(a), Value::Time(b)) => Ok(Value::Duration(a.moment.since(b.moment))),
        (Value::Time(time), Value::Duration(nanoseconds)) => later(machine, time, nanoseconds.wrapping_neg()),
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.wrapping_sub(b))),
        (Value::Quantity(_), _) | (_, Value::Quantity(_)) => {
            computed(machine, a, "-", b, |a, b| Some(Amount::minus(a, b)))
        }
        _ => match floats(a, b) {
            Some((a, b)) => Ok(Value::Float(a - b)),
            None => Err(mismatch(a, "-", b)),
        },
    }
}

/// `*`: numbers and durations. A duration times a float is a number of nanoseconds, as in Go.
#[inline]
pub(crate) fn multiply<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_mul(b))),
        (Value::Int(a) | Value::Duration(a), Value::Int(b) | Value::Duration(b)) => {
            Ok(Value::Duration(a.wrapping_mul(b)))
        }
        (Value::Duration(a), Value::Float(b)) | (Value::Float(b), Value::Duration(a)) => Ok(Value::Float(a as f64 * b)),
        (Value::Quantity(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Quantity(_)) => {
            computed(machine, a, "*", b, |a, b| Some(Amount::times(a, b)))
        }
        _ => match floats(a, b) {
            Some((a, b)) => Ok(Value::Float(a * b)),
            None => Err(mismatch(a, "*", b)),
        },
    }
}

/// `/`: always a float, also of two integers and of two amounts; a number divided by zero is infinite. A part of an amount is one.
#[inline]
pub(crate) fn divide<'a>(machine: &Machine<'a>, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match (a, b) {
        (Value::Quantity(a), Value::Quantity(b)) => return Ok(Value::Float(a.amount.ratio(b.amount))),
        (Value::Quantity(_), Value::Int(_) | Value::Float(_)) => return computed(machine, a, "/", b, Amount::part),
        _ => {}
    }
    match floats(a, b) {
        Some((a, b)) => Ok(Value::Float(a / b)),
        None => Err(mismatch(a, "/", b)),
    }
}

/// `%`: integers only, with the sign of the first.
#[inline]
pub(crate) fn modulo<'a>(a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match (a, b) {
        (Value::Int(_), Value::Int(0)) => Err(Failure::new("integer division by zero")),
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_rem(b))),
        _ => Err(mismatch(a, "%", b)),
    }
}

/// `**`: always a float.
pub(crate) fn power<'a>(a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Failure> {
    match floats(a, b) {
        Some((a, b)) => Ok(Value::Float(raise(a, b))),
        None => Err(mismatch(a, "**", b)),
    }
}

/// `-x`: numbers only.
#[inline]
pub(crate) fn negate<'a>(value: Value<'a>) -> Result<Value<'a>, Failure> {
    match value {
        Value::Int(number) => Ok(Value::Int(number.wrapping_neg())),
        Value::Float(number) => Ok(Value::Float(-number)),
        _ => Err(Failure::new(format!("cannot use - with {}", value.kind()))),
    }
}

/// An amount made of two.
fn computed<'a>(
    machine: &Machine<'a>,
    a: Value<'a>,
    operator: &str,
    b: Value<'a>,
    compute: fn(Amount, Amount) -> Option<Amount>,
) -> Result<Value<'a>, Failure> {
    let (Some(one), Some(other)) = (amount_of(a), amount_of(b)) else { return Err(mismatch(a, operator, b)) };
    let amount = compute(one, other).ok_or_else(|| Failure::new("a quantity cannot be divided by zero"))?;
    machine.keep(Quantity { amount, text: None }).map(Value::Quantity)
}

fn floats(a: Value<'_>, b: Value<'_>) -> Option<(f64, f64)> {
    let float = |value| match value {
        Value::Int(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    };
    Some((float(a)?, float(b)?))
}

fn join<'a>(machine: &Machine<'a>, a: &'a str, b: &'a str) -> Result<Value<'a>, Failure> {
    match (a, b) {
        ("", text) | (text, "") => Ok(Value::Text(text)),
        _ => {
            let mut text = machine.writer();
            text.reserve(a.len() + b.len())?;
            text.push(a)?;
            text.push(b)?;
            text.finish().map(Value::Text)
        }
    }
}

fn later<'a>(machine: &Machine<'a>, time: &Time<'a>, nanoseconds: i64) -> Result<Value<'a>, Failure> {
    machine.keep(Time { moment: time.moment.add(nanoseconds), zone: time.zone }).map(Value::Time)
}

/// A power, computed as Go does it, so that the last digit is the same: by squaring a number between a half and one, with
/// its exponent kept apart.
fn raise(base: f64, exponent: f64) -> f64 {
    let is_plain = base.is_finite() && exponent.is_finite() && base != 0.0;
    let whole = exponent.abs().trunc();
    let part = exponent.abs() - whole;
    if !is_plain || exponent == 0.0 || base == 1.0 || part != 0.0 && base < 0.0 || whole >= 9_223_372_036_854_775_808.0
    {
        return base.powf(exponent);
    }
    if exponent.abs() == 0.5 {
        return if exponent > 0.0 { base.sqrt() } else { 1.0 / base.sqrt() };
    }
    let (mut result, mut scale) = (1.0_f64, 0_i64);
    let mut times = whole as i64;
    if part != 0.0 {
        let part = if part > 0.5 { part - 1.0 } else { part };
        times += i64::from(part < 0.0);
        result = (part * base.ln()).exp();
    }
    let (mut square, mut square_scale) = split(base);
    while times != 0 {
        if !(-4096..=4096).contains(&square_scale) {
            // The result is zero or infinite whatever follows.
            scale += square_scale;
            break;
        }
        if times & 1 == 1 {
            result *= square;
            scale += square_scale;
        }
        square *= square;
        square_scale *= 2;
        if square < 0.5 {
            square += square;
            square_scale -= 1;
        }
        times >>= 1;
    }
    if exponent < 0.0 { scaled(1.0 / result, -scale) } else { scaled(result, scale) }
}

const EXPONENT: u64 = 0x7ff << 52;

/// A number as one between a half and one, and a power of two.
fn split(number: f64) -> (f64, i64) {
    // A number too small to be normal is made so first.
    let (number, shift) = if number.is_normal() { (number, 0) } else { (number * with_exponent(0.5, 65), 64) };
    let exponent = ((number.to_bits() & EXPONENT) >> 52) as i64 - 1022;
    (with_exponent(number, 0), exponent - shift)
}

/// A number times a power of two, rounded once.
fn scaled(number: f64, scale: i64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let (fraction, exponent) = split(number);
    match exponent + scale {
        1025.. => f64::INFINITY.copysign(number),
        exponent @ -1021..=1024 => with_exponent(fraction, exponent),
        // Too small to be normal: the multiplication rounds.
        exponent @ -1074..=-1022 => with_exponent(fraction, exponent + 53) * with_exponent(0.5, -52),
        _ => 0.0_f64.copysign(number),
    }
}

/// The number between a half and one with the same digits, times a power of two.
fn with_exponent(number: f64, exponent: i64) -> f64 {
    f64::from_bits(number.to_bits() & !EXPONENT | ((exponent + 1022) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn numbers_are_promoted_and_integers_wrap() {
        check(
            r#"
            1 + 2 => 3
            1 + 2.5 => 3.5
            1.5 + 1.5 => 3.0
            9223372036854775807 + 1 => -9223372036854775808
            "a" + "é" => "aé"
            "" + "a" => "a"
            "a" + 1 => error: cannot use + with string and int
            nil + 1 => error: cannot use + with nil and int
            [1] + [2] => error: cannot use + with array and array
            5 - 7 => -2
            5 - 0.5 => 4.5
            "a" - "a" => error: cannot use - with string and string
            6 * 7 => 42
            6 * 0.5 => 3.0
            9223372036854775807 * 2 => -2
            "a" * 2 => error: cannot use * with string and int
            1 / 2 => 0.5
            6 / 3 => 2.0
            1 / 0 => inf
            -1 / 0 => -inf
            0 / 0 => NaN
            "a" / 2 => error: cannot use / with string and int
            7 % 3 => 1
            (-7) % 3 => -1
            7 % -3 => 1
            7 % 0 => error: integer division by zero
            7 % 2.0 => error: cannot use % with int and float
            2 ** 10 => 1024.0
            2 ** -1 => 0.5
            2 ** 0.5 => 1.4142135623730951
            (-2) ** 2 => 4.0
            7 ** 30 => 2.2539340290692256e25
            0 ** 0 => 1.0
            (-8) ** 0.5 => NaN
            10 ** 400 => inf
            2 ** -1074 => 5e-324
            2 ** nil => error: cannot use ** with int and nil
            -(5) => -5
            -(1.5) => -1.5
            -(nil) => error: cannot use - with nil
            -(duration("1h")) => error: cannot use - with duration
            "#,
        );
    }

    #[test]
    fn times_and_durations_add_up() {
        check(
            r#"
            date("2026-03-01") + duration("24h") => 2026-03-02T00:00:00Z
            duration("24h") + date("2026-03-01") => 2026-03-02T00:00:00Z
            duration("1h") + duration("30m") => 5400000000000ns
            date("2026-03-02") - date("2026-03-01") => 86400000000000ns
            date("2026-03-02") - duration("24h") => 2026-03-01T00:00:00Z
            duration("1h") - duration("90m") => -1800000000000ns
            duration("1h") * 2 => 7200000000000ns
            2 * duration("1h") => 7200000000000ns
            duration("1ns") * duration("3ns") => 3ns
            duration("1h") * 1.5 => 5400000000000.0
            date("2026-03-01") + 1 => error: cannot use + with time and int
            date("2026-03-01") + date("2026-03-01") => error: cannot use + with time and time
            duration("1h") / 2 => error: cannot use / with duration and int
            duration("1h") - date("2026-03-01") => error: cannot use - with duration and time
            date("9999-01-01") - date("0001-01-01") => 9223372036854775807ns
            "#,
        );
    }
}
