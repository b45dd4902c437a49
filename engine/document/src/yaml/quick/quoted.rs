//! Scalars in quotes that end on their line.

use super::lex::{Declined, Result, byte};
use crate::parse::find_special;

/// A scalar in quotes whose end has been found.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    /// Position behind the opening quote.
    pub(super) start: usize,
    /// Position of the closing quote.
    pub(super) end: usize,
    /// Whether it is something else than what stands between the quotes.
    has_escapes: bool,
    is_double: bool,
}

/// Finds the end of a scalar, from its opening quote on.
#[inline]
pub(super) fn find_end(bytes: &[u8], quote: usize) -> Result<Quoted> {
    if byte(bytes, quote) == b'"' { double(bytes, quote + 1) } else { single(bytes, quote + 1) }
}

fn double(bytes: &[u8], start: usize) -> Result<Quoted> {
    let mut at = start;
    let mut has_escapes = false;
    loop {
        at = find_special(bytes, at);
        match byte(bytes, at) {
            b'"' => return Ok(Quoted { start, end: at, has_escapes, is_double: true }),
            // A tab.
            b'\t' => at += 1,
            // What is escaped is looked at when it is decoded; here it is enough that it cannot end the scalar.
            b'\\' if !matches!(byte(bytes, at + 1), b'\n' | 0) => {
                has_escapes = true;
                at += 2;
            }
            _ => return Err(Declined),
        }
    }
}

fn single(bytes: &[u8], start: usize) -> Result<Quoted> {
    let mut at = start;
    let mut has_escapes = false;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        at += rest.iter().position(|byte| matches!(byte, b'\'' | b'\n')).ok_or(Declined)?;
        match (bytes[at], byte(bytes, at + 1)) {
            (b'\'', b'\'') => {
                has_escapes = true;
                at += 2;
            }
            (b'\'', _) => return Ok(Quoted { start, end: at, has_escapes, is_double: false }),
            _ => return Err(Declined),
        }
    }
}

impl Quoted {
    /// The characters of a scalar: straight from the text when they stand there as they are, otherwise decoded.
    #[inline]
    pub(super) fn decode<'t>(self, text: &'t str, decoded: &'t mut String) -> Result<&'t str> {
        let written = &text[self.start..self.end];
        if !self.has_escapes {
            return Ok(written);
        }
        decoded.clear();
        if self.is_double {
            unescape(written, decoded)?
        } else {
            undouble(written, decoded)
        }
        Ok(decoded)
    }
}

fn undouble(written: &str, decoded: &mut String) {
    let mut parts = written.split("''");
    decoded.push_str(parts.next().unwrap_or_default());
    for part in parts {
        decoded.push('\'');
        decoded.push_str(part);
    }
}

fn unescape(written: &str, decoded: &mut String) -> Result<()> {
    let mut rest = written;
    while let Some((plain, escape)) = rest.split_once('\\') {
        decoded.push_str(plain);
        let mut chars = escape.chars();
        let letter = chars.next().ok_or(Declined)?;
        rest = chars.as_str();
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        decoded.push(match letter {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            't' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'e' => '\x1b',
            ' ' | '"' | '/' | '\\' => letter,
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' | 'u' | 'U' => {
                let (code, after) = rest.split_at_checked(digits).ok_or(Declined)?;
                rest = after;
                hexadecimal(code)?
            }
            _ => return Err(Declined),
        });
    }
    decoded.push_str(rest);
    Ok(())
}

/// The character of a code. Halves of a surrogate pair have none.
fn hexadecimal(code: &str) -> Result<char> {
    // The parser of numbers would take a sign.
    if !code.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Declined);
    }
    u32::from_str_radix(code, 16).ok().and_then(char::from_u32).ok_or(Declined)
}
