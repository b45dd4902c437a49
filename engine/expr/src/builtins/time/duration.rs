//! Lengths of time as text, in Go's form: `1h30m`, `1.5s`, `-300ms`.

use crate::machine::{Failure, Text};

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    // The sign for micro, and the Greek letter that looks the same.
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
];

/// The largest distance from zero. Only a negative duration can be this long.
const MOST: u64 = 1 << 63;

/// Nanoseconds of a sign and numbers with units. Nothing if it is not of that form or too long.
pub(super) fn parse(text: &str) -> Option<i64> {
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split(rest, |byte| byte.is_ascii_digit());
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split(after, |byte| byte.is_ascii_digit()),
            None => ("", after),
        };
        if number.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, after) = split(after, |byte| byte != b'.' && !byte.is_ascii_digit());
        let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let whole: u64 =
            if number.is_empty() { 0 } else { number.parse().ok().filter(|whole| *whole <= MOST / unit)? };
        let part = whole * unit + nanoseconds(fraction, unit);
        sum = sum.checked_add(part).filter(|sum| part <= MOST && *sum <= MOST)?;
        rest = after;
    }
    match (is_negative, sum) {
        (true, MOST) => Some(i64::MIN),
        (true, sum) => Some(-(sum as i64)),
        (false, MOST) => None,
        (false, sum) => Some(sum as i64),
    }
}

/// Splits after the bytes that fit. They are whole characters: what is asked for is ASCII, or everything but ASCII.
fn split(text: &str, fits: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !fits(byte)).unwrap_or(text.len()))
}

/// Nanoseconds of a fraction of a unit, in the arithmetic that Go does it in. Digits that no number can hold are left out.
fn nanoseconds(digits: &str, unit: u64) -> u64 {
    let mut number: u64 = 0;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        let longer = (number <= (MOST - 1) / 10).then(|| number * 10 + u64::from(digit - b'0'));
        let Some(longer) = longer.filter(|longer| *longer <= MOST) else { break };
        number = longer;
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

/// Writes a duration: hours, minutes and seconds, or the one smaller unit that is enough.
pub(super) fn write(text: &mut Text<'_, '_>, nanoseconds: i64) -> Result<(), Failure> {
    if nanoseconds < 0 {
        text.push("-")?;
    }
    let all = nanoseconds.unsigned_abs();
    match all {
        0 => return text.push("0s"),
        1..1_000 => return text.format(format_args!("{all}ns")),
        1_000..1_000_000 => return decimal(text, all, 1_000, "µs"),
        1_000_000..1_000_000_000 => return decimal(text, all, 1_000_000, "ms"),
        _ => {}
    }
    let minutes = all / 60_000_000_000;
    if minutes >= 60 {
        text.format(format_args!("{}h", minutes / 60))?;
    }
    if minutes > 0 {
        text.format(format_args!("{}m", minutes % 60))?;
    }
    decimal(text, all % 60_000_000_000, 1_000_000_000, "s")
}

/// Writes a number of units, with as many digits after the point as it has.
fn decimal(text: &mut Text<'_, '_>, nanoseconds: u64, unit: u64, name: &str) -> Result<(), Failure> {
    text.format(format_args!("{}", nanoseconds / unit))?;
    let mut rest = nanoseconds % unit;
    if rest > 0 {
        let mut digits = unit.ilog10() as usize;
        while rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        text.format(format_args!(".{rest:0digits$}"))?;
    }
    text.push(name)
}
