//! What the escapes of a string stand for. Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, as
//! they do when the API server reads them.

use std::char::REPLACEMENT_CHARACTER;

/// Adds the characters of a well-formed string without its quotes.
pub(super) fn decode(raw: &[u8], decoded: &mut String) {
    // Escapes are longer than what they stand for, but a byte that is replaced grows to three.
    let broken: usize = raw.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    decoded.reserve_exact(raw.len() + 2 * broken);
    let mut rest = raw;
    while !rest.is_empty() {
        let plain = rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len());
        push_bytes(&rest[..plain], decoded);
        rest = &rest[plain..];
        if !rest.is_empty() {
            let (char, length) = escape(rest);
            decoded.push(char);
            rest = &rest[length..];
        }
    }
}

/// Adds bytes, with a replacement character for each one that is not UTF-8: one per byte as in Go, where Rust would
/// have one per broken sequence.
fn push_bytes(bytes: &[u8], decoded: &mut String) {
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| REPLACEMENT_CHARACTER));
    }
}

/// The character of the escape at the start, and the number of bytes that it takes.
fn escape(raw: &[u8]) -> (char, usize) {
    let char = match raw.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(raw),
        Some(byte) => char::from(*byte),
        None => REPLACEMENT_CHARACTER,
    };
    (char, 2)
}

fn unicode(raw: &[u8]) -> (char, usize) {
    let first = unit(raw).unwrap_or_default();
    if let Some(char) = char::from_u32(first) {
        return (char, 6);
    }
    match unit(&raw[6..]) {
        Some(second @ 0xDC00..=0xDFFF) if first < 0xDC00 => {
            let char = char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            (char.unwrap_or(REPLACEMENT_CHARACTER), 12)
        }
        _ => (REPLACEMENT_CHARACTER, 6),
    }
}

/// The number in `\uXXXX` at the start.
fn unit(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &[u8], expected: &str) {
        let mut decoded = String::new();
        decode(raw, &mut decoded);
        assert_eq!(decoded, expected);
    }

    #[test]
    fn escapes_become_characters() {
        check(br#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t");
        check(br"a\u0041\u00e4\u20AC\u0000z", "aAä€\0z");
        check(br"\\u0041", "\\u0041");
    }

    #[test]
    fn surrogate_pairs_become_one_character() {
        check(br"\ud83d\ude00", "😀");
        check(br"\ud83d\ude00\ud83d\ude00", "😀😀");
        check(br"\udbff\udfff", "\u{10ffff}");
    }

    #[test]
    fn halves_of_surrogate_pairs_become_replacement_characters() {
        check(br"\ud83d", "\u{fffd}");
        check(br"\ude00", "\u{fffd}");
        check(br"\ud83dx", "\u{fffd}x");
        check(br"\ud83d\n", "\u{fffd}\n");
        check(br"\ud83d\u0041", "\u{fffd}A");
        check(br"\ud83d\ud83d\ude00", "\u{fffd}😀");
        check(br"\ude00\ud83d", "\u{fffd}\u{fffd}");
    }

    #[test]
    fn each_byte_that_is_not_utf8_becomes_a_replacement_character() {
        check(b"a\xffb", "a\u{fffd}b");
        // A character that is cut off: Go replaces both bytes, not the pair.
        check(b"\xe2\x82z", "\u{fffd}\u{fffd}z");
        check(b"\xe2\x82", "\u{fffd}\u{fffd}");
        check(b"\xf0\x80\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
        // An encoded surrogate.
        check(b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\xff\\n\xff", "\u{fffd}\n\u{fffd}");
    }
}
