//! Names, texts and numbers as Go writes them.

use std::fmt::Write as _;

use pest::unicode::{DECIMAL_NUMBER, LETTER, MARK, NUMBER, PUNCTUATION, SYMBOL};

/// Whether a text can stand after a dot.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |character| matches!(character, '_' | '$') || LETTER(character);
    text.starts_with(is_letter) && text.chars().all(|character| is_letter(character) || DECIMAL_NUMBER(character))
}

/// A number as Go's `%v` prints it.
pub(super) fn float(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Quotes as Go's `%q` does.
pub(super) fn quote(bytes: &[u8], output: &mut String) {
    output.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|character| quote_character(character, output));
        quote_raw(chunk.invalid(), output);
    }
    output.push('"');
}

/// Quotes bytes as they can be read: a byte that is part of nothing printable is written by its number.
pub(super) fn quote_bytes(bytes: &[u8], output: &mut String) {
    output.push_str("b\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_ascii() || is_printable(character) {
                quote_character(character, output);
            } else {
                quote_raw(character.encode_utf8(&mut [0; 4]).as_bytes(), output);
            }
        }
        quote_raw(chunk.invalid(), output);
    }
    output.push('"');
}

fn quote_raw(bytes: &[u8], output: &mut String) {
    for byte in bytes {
        write!(output, "\\x{byte:02x}").expect("writing to a string cannot fail");
    }
}

fn quote_character(character: char, output: &mut String) {
    let code = u32::from(character);
    let written = match character {
        '"' | '\\' => {
            output.push('\\');
            output.push(character);
            return;
        }
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ if is_printable(character) => {
            output.push(character);
            return;
        }
        _ => {
            let result = match code {
                0..=0x1f | 0x7f => write!(output, "\\x{code:02x}"),
                0..=0xffff => write!(output, "\\u{code:04x}"),
                _ => write!(output, "\\U{code:08x}"),
            };
            return result.expect("writing to a string cannot fail");
        }
    };
    output.push_str(written);
}

/// Whether Go's `strconv` prints a character as it is.
fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' => true,
        _ if character.is_ascii() => false,
        _ => LETTER(character) || MARK(character) || NUMBER(character) || PUNCTUATION(character) || SYMBOL(character),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{float, quote};

    #[track_caller]
    fn check(text: &[u8], expected: Expect) {
        let mut output = String::new();
        quote(text, &mut output);
        expected.assert_eq(&output);
    }

    #[test]
    fn texts_are_quoted_as_in_go() {
        check(
            "a\"b\\c\n\0\u{7f}\u{85}é☺\u{ad}\u{E0001}\u{1F600}".as_bytes(),
            expect![[r#""a\"b\\c\n\x00\x7f\u0085é☺\u00ad\U000e0001😀""#]],
        );
        check(b"a\xff\xc3\xa9\0", expect![[r#""a\xffé\x00""#]]);
    }

    #[test]
    fn floats_are_written_as_in_go() {
        let cases = [0.0, 0.5, 100000.0, 1e6, 1234567.5, 1e21, 0.0001, 0.00001, 1.5e-7, f64::MAX];
        expect!["0 0.5 100000 1e+06 1.2345675e+06 1e+21 0.0001 1e-05 1.5e-07 1.7976931348623157e+308"]
            .assert_eq(&cases.map(float).join(" "));
    }
}
