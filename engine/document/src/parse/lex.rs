//! The words of JSON: where strings, numbers and literals end. Each function takes the position where something begins
//! and returns the position after it, so that the position stays in a register.

use super::special::find_special;
use crate::error::{Error, Found, Position};

/// Boxed, because every word is returned through a result and hardly any is an error.
pub(super) type Result<T> = std::result::Result<T, Box<Error>>;

#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

/// A string whose end has been found.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    /// Position of the closing quote.
    pub(super) end: usize,
    pub(super) has_escapes: bool,
}

/// The byte at a position, or zero at the end: zero is no part of JSON outside of strings, and no part of strings.
#[inline(always)]
pub(super) fn byte(body: &[u8], at: usize) -> u8 {
    body.get(at).copied().unwrap_or_default()
}

/// The position of the first byte that is not white space.
#[inline(always)]
pub(super) fn space(body: &[u8], at: usize) -> usize {
    if byte(body, at) > b' ' { at } else { long_space(body, at) }
}

#[cold]
fn long_space(body: &[u8], at: usize) -> usize {
    let rest = body.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(rest.len())
}

/// Takes `null`, `true` or `false`.
#[inline]
pub(super) fn literal(body: &[u8], at: usize, literal: &'static str) -> Result<usize> {
    let rest = &body[at..];
    if rest.starts_with(literal.as_bytes()) {
        return Ok(at + literal.len());
    }
    let common = rest.iter().zip(literal.as_bytes()).take_while(|(left, right)| left == right).count();
    Err(expected(body, at + common, literal))
}

/// Finds the end of the string that begins after an opening quote.
#[inline]
pub(super) fn string(body: &[u8], start: usize) -> Result<Quoted> {
    let end = find_special(body, start);
    if byte(body, end) == b'"' { Ok(Quoted { end, has_escapes: false }) } else { escaped_string(body, end) }
}

/// Finds the end of a string from the first character on that is not plain.
fn escaped_string(body: &[u8], special: usize) -> Result<Quoted> {
    let mut at = special;
    loop {
        at = match body.get(at) {
            Some(b'"') => return Ok(Quoted { end: at, has_escapes: true }),
            Some(b'\\') => find_special(body, escape(body, at + 1)?),
            _ => return Err(expected(body, at, "the closing quote of a string")),
        };
    }
}

/// Takes an escape, from behind its backslash.
fn escape(body: &[u8], at: usize) -> Result<usize> {
    match body.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => match (at + 1..at + 5).find(|at| !byte(body, *at).is_ascii_hexdigit()) {
            Some(at) => Err(expected(body, at, "a hexadecimal digit")),
            None => Ok(at + 5),
        },
        _ => Err(expected(body, at, "the letter of an escape")),
    }
}

/// Takes a number, which begins with a digit or a minus.
#[inline]
pub(super) fn number(body: &[u8], start: usize) -> Result<(Number, usize)> {
    let is_negative = byte(body, start) == b'-';
    let first = start + usize::from(is_negative);
    let mut at = first;
    let mut value = 0u64;
    while let digit @ 0..10 = byte(body, at).wrapping_sub(b'0') {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let digits = at - first;
    let is_integer = !matches!(byte(body, at), b'.' | b'e' | b'E');
    // Eighteen digits always fit; a zero has to be alone.
    if is_integer && (1..=18).contains(&digits) && (byte(body, first) != b'0' || digits == 1) {
        let value = value as i64;
        return Ok((Number::Int(if is_negative { -value } else { value }), at));
    }
    long_number(body, start, first)
}

/// Takes a number that has many digits, a fraction, an exponent or a mistake.
#[cold]
fn long_number(body: &[u8], start: usize, first: usize) -> Result<(Number, usize)> {
    let mut at = if byte(body, first) == b'0' { first + 1 } else { digits(body, first)? };
    let mut is_integer = true;
    if byte(body, at) == b'.' {
        at = digits(body, at + 1)?;
        is_integer = false;
    }
    if matches!(byte(body, at), b'e' | b'E') {
        let sign = usize::from(matches!(byte(body, at + 1), b'+' | b'-'));
        at = digits(body, at + 1 + sign)?;
        is_integer = false;
    }
    let text = std::str::from_utf8(&body[start..at]).unwrap_or_default();
    if is_integer && let Ok(int) = text.parse() {
        return Ok((Number::Int(int), at));
    }
    match text.parse() {
        Ok(float) if f64::is_finite(float) => Ok((Number::Float(float), at)),
        _ => Err(Box::new(Error::NumberOutOfRange { at: Position::of(body, start) })),
    }
}

/// Takes at least one digit.
fn digits(body: &[u8], start: usize) -> Result<usize> {
    let rest = body.get(start..).unwrap_or_default();
    match rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()) {
        0 => Err(expected(body, start, "a digit")),
        count => Ok(start + count),
    }
}

/// The error of finding something else.
#[cold]
pub(super) fn expected(body: &[u8], at: usize, expected: &'static str) -> Box<Error> {
    let at = at.min(body.len());
    Box::new(Error::Json { at: Position::of(body, at), expected, found: Found::at(body, at) })
}

/// The error of one container more than is allowed.
#[cold]
pub(super) fn too_deep(body: &[u8], at: usize, limit: usize) -> Box<Error> {
    Box::new(Error::TooDeep { at: Position::of(body, at), limit })
}
