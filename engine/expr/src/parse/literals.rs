//! Literals: numbers, texts and bytes as they are written, turned into what they mean.

use std::borrow::Cow;

use pest::iterators::Pair;

use super::explain::shown;
use super::{Builder, Rule, start};
use crate::ast::{Id, Kind};
use crate::error::Error;

/// What an escape stands for.
enum Unit {
    Character(char),
    Byte(u8),
}

impl<'s> Builder<'s> {
    pub(super) fn number(&mut self, pair: &Pair<'s, Rule>) -> Result<Id, Error> {
        let at = start(pair);
        let kind =
            number(pair.as_str()).map_err(|problem| self.error(at, format!("{} {problem}", shown(pair.as_str()))))?;
        self.push(kind, at)
    }

    /// A text in quotes or in backticks.
    pub(super) fn text(&mut self, pair: &Pair<'s, Rule>) -> Result<Id, Error> {
        let (quote, body) = split(pair.as_str());
        let text = match quote {
            '`' if body.contains('`') => body.replace("``", "`").into(),
            '`' => body.into(),
            _ if is_plain(body) => body.into(),
            _ => {
                let mut text = String::with_capacity(body.len());
                self.unescape(body, start(pair) + 1, quote, true, |unit| match unit {
                    Unit::Character(character) => text.push(character),
                    Unit::Byte(byte) => text.push(byte.into()),
                })?;
                Cow::Owned(text)
            }
        };
        self.push(Kind::Text(text), start(pair))
    }

    /// A text in quotes after `b`.
    pub(super) fn bytes(&mut self, pair: &Pair<'s, Rule>) -> Result<Id, Error> {
        let (quote, body) = split(&pair.as_str()[1..]);
        let mut bytes = Vec::with_capacity(body.len());
        self.unescape(body, start(pair) + 2, quote, false, |unit| match unit {
            Unit::Character(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => bytes.push(byte),
        })?;
        self.push(Kind::Bytes(bytes), start(pair))
    }

    /// Reads what stands between quotes. `wide` is whether a character can be given by its code.
    fn unescape(&self, body: &str, at: u32, quote: char, wide: bool, mut take: impl FnMut(Unit)) -> Result<(), Error> {
        let mut rest = body;
        while let Some(character) = rest.chars().next() {
            let (unit, length) = match character {
                '\\' => escape(&rest[1..], quote, wide).ok_or_else(|| {
                    let at = at as usize + body.len() - rest.len();
                    self.error(at as u32, wrong_escape(&rest[1..], wide))
                })?,
                // A line break that is not escaped is always `\n`; the other kind cannot stand in quotes.
                '\r' => (Unit::Character('\n'), 1),
                _ => (Unit::Character(character), character.len_utf8()),
            };
            take(unit);
            rest = &rest[length..];
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<Kind<'static>, &'static str> {
    const MALFORMED: &str = "is not a number";
    const TOO_LARGE: &str = "does not fit into 64 bits";
    let digits: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        _ if digits.contains(['.', 'e', 'E']) => {
            let float: f64 = digits.parse().map_err(|_| MALFORMED)?;
            return if float.is_finite() { Ok(Kind::Float(float)) } else { Err(TOO_LARGE) };
        }
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        _ => (10, &*digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(MALFORMED);
    }
    i64::from_str_radix(digits, radix).map(Kind::Integer).map_err(|_| TOO_LARGE)
}

/// The quote and what is between it and its like.
fn split(literal: &str) -> (char, &str) {
    let quote = literal.chars().next().expect("a literal has quotes");
    (quote, &literal[1..literal.len() - 1])
}

fn is_plain(body: &str) -> bool {
    !body.bytes().any(|byte| matches!(byte, b'\\' | b'\r'))
}

/// What the escape after a backslash stands for, and its length with the backslash. Only the quote around it can be
/// escaped.
fn escape(rest: &str, quote: char, wide: bool) -> Option<(Unit, usize)> {
    let first = rest.chars().next()?;
    let simple = match first {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        _ if first == quote => quote,
        '0'..='3' => return Some((Unit::Byte(code(rest.get(..3)?, 8)? as u8), 4)),
        'x' => return Some((Unit::Byte(code(rest.get(1..3)?, 16)? as u8), 4)),
        'u' | 'U' if !wide => return None,
        'u' if rest[1..].starts_with('{') => {
            let end = rest.find('}').filter(|end| (3..=8).contains(end))?;
            return Some((Unit::Character(character(code(&rest[2..end], 16)?)?), end + 2));
        }
        'u' => return Some((Unit::Character(character(code(rest.get(1..5)?, 16)?)?), 6)),
        'U' => return Some((Unit::Character(character(code(rest.get(1..9)?, 16)?)?), 10)),
        _ => return None,
    };
    Some((Unit::Character(simple), 2))
}

/// What is wrong with the escape after a backslash.
fn wrong_escape(rest: &str, wide: bool) -> String {
    match rest.chars().next().unwrap_or_default() {
        '0'..='7' => "an octal escape has three digits, from `\\000` to `\\377`".to_owned(),
        'x' => "`\\x` is followed by two hexadecimal digits".to_owned(),
        other @ ('u' | 'U') if !wide => format!("`\\{other}` has no meaning in bytes"),
        'u' => "`\\u` is followed by four hexadecimal digits, or by the code of a character in braces".to_owned(),
        'U' => "`\\U` is followed by the code of a character in eight hexadecimal digits".to_owned(),
        other => format!("{} is not an escape: a backslash is written `\\\\`", shown(&format!("\\{other}"))),
    }
}

fn code(digits: &str, radix: u32) -> Option<u32> {
    digits.chars().try_fold(0, |code, digit| Some(code * radix + digit.to_digit(radix)?))
}

/// The character of a code. Half of a surrogate pair stands for none, and becomes the mark for that, as in Go.
fn character(code: u32) -> Option<char> {
    match code {
        0xD800..=0xDFFF => Some(char::REPLACEMENT_CHARACTER),
        _ => char::from_u32(code),
    }
}

/// Whether a text is a number.
pub(super) fn is_number(text: &str) -> bool {
    number(text).is_ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::outline::outline;

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        expected.assert_eq(&outline(source));
    }

    #[test]
    fn numbers_are_whole_or_not() {
        check("[0, 007, 1_000, 0x2A, 0X_fF, 0o52, 0b1010]", expect!["([] 0 7 1000 42 255 42 10)"]);
        check("[.5, 1., 1.5, 1e3, 1E-4, 1.e2, 1_0.0_1]", expect!["([] 0.5 1 1.5 1000 0.0001 100 10.01)"]);
        check("1..3", expect!["(.. 1 3)"]);
        check("9223372036854775807", expect!["9223372036854775807"]);
        check("9223372036854775808", expect!["1:1 `9223372036854775808` does not fit into 64 bits"]);
        check("0x8000000000000000", expect!["1:1 `0x8000000000000000` does not fit into 64 bits"]);
        check("1e309", expect!["1:1 `1e309` does not fit into 64 bits"]);
        check("1e", expect!["1:1 `1e` is not a number"]);
        check("0x", expect!["1:1 `0x` is not a number"]);
        check("0x1.8", expect!["1:1 `0x1.8` is not a number"]);
        check("0b1e1", expect!["1:1 `0b1e1` is not a number"]);
        check("1abc", expect!["1:1 `1abc` is not a number"]);
        check("0b12", expect!["1:1 `0b12` is not a number"]);
        check("{1e: 1, 0x1.8: 2}", expect![[r#"({} "1e" 1 "0x1.8" 2)"#]]);
    }

    #[test]
    fn texts_know_escapes() {
        check(r#""\a\b\f\n\r\t\v\\\"""#, expect![[r#""\a\b\f\n\r\t\v\\\"""#]]);
        check(r#"'it\'s'"#, expect![[r#""it's""#]]);
        check(r#""\x41\101\u0041\u{1F600}\U0001F600""#, expect![[r#""AAA😀😀""#]]);
        check(r#""\xff\377""#, expect![[r#""ÿÿ""#]]);
        check(r#""\uD800""#, expect![[r#""�""#]]);
        check("``", expect![[r#""""#]]);
        check("`a``b`", expect![[r#""a`b""#]]);
        check("'a\rb'", expect![[r#""a\nb""#]]);
        check("`a\r\nb`", expect![[r#""a\r\nb""#]]);
    }

    #[test]
    fn a_wrong_escape_is_pointed_at() {
        check(r#""\d""#, expect![[r#"1:2 `\d` is not an escape: a backslash is written `\\`"#]]);
        check(r#"'\"'"#, expect![[r#"1:2 `\"` is not an escape: a backslash is written `\\`"#]]);
        check(r#""é\x4""#, expect![[r#"1:3 `\x` is followed by two hexadecimal digits"#]]);
        check(r#""\400""#, expect![[r#"1:2 an octal escape has three digits, from `\000` to `\377`"#]]);
        check(r#""\18""#, expect![[r#"1:2 an octal escape has three digits, from `\000` to `\377`"#]]);
        check(
            r#""\u12""#,
            expect![[r#"1:2 `\u` is followed by four hexadecimal digits, or by the code of a character in braces"#]],
        );
        check(
            r#""\u{}""#,
            expect![[r#"1:2 `\u` is followed by four hexadecimal digits, or by the code of a character in braces"#]],
        );
        check(
            r#""\u{1234567}""#,
            expect![[r#"1:2 `\u` is followed by four hexadecimal digits, or by the code of a character in braces"#]],
        );
        check(
            r#""\u{110000}""#,
            expect![[r#"1:2 `\u` is followed by four hexadecimal digits, or by the code of a character in braces"#]],
        );
        check(
            r#""\UFFFFFFFF""#,
            expect![[r#"1:2 `\U` is followed by the code of a character in eight hexadecimal digits"#]],
        );
    }

    #[test]
    fn bytes_know_fewer_escapes() {
        check(r#"b"\xff\377é""#, expect![[r#"b"\xff\xffé""#]]);
        check("B'a'", expect![[r#"b"a""#]]);
        check(r#"b"\u0041""#, expect![[r#"1:3 `\u` has no meaning in bytes"#]]);
        check(r#"{b"a": 1}"#, expect![[r#"1:3 expected `:`, found `"a"`"#]]);
    }

    #[test]
    fn a_literal_without_an_end_is_pointed_at() {
        check(r#"a + "b"#, expect![[r#"1:5 this text is not closed: expected " before the end of the line"#]]);
        check("'b", expect!["1:1 this text is not closed: expected ' before the end of the line"]);
        check("`b", expect!["1:1 this text is not closed: expected another backtick"]);
        check("b'", expect!["1:2 this text is not closed: expected ' before the end of the line"]);
        check("'a\nb'", expect!["1:1 this text is not closed: expected ' before the end of the line"]);
    }
}
