//! Steps over a value that nobody wants: all of JSON is checked, nothing is built.

use wide::u8x16;

use super::lex::{self, Result, byte, expected, space};

/// How many bytes are looked at together: a bit of a word for each.
const BLOCK: usize = 64;

/// Where a block has what matters.
#[derive(Default)]
struct Marks {
    quotes: u64,
    backslashes: u64,
    openings: u64,
    closings: u64,
}

/// Takes the value that begins at a position, `depth` containers deep.
pub(super) fn skip(body: &[u8], start: usize, depth: usize, limit: usize) -> Result<usize> {
    // Whether each open container is an object.
    let mut containers: Vec<bool> = Vec::new();
    let mut is_object = false;
    let mut at = start;
    loop {
        // Before a value, or before its key.
        if is_object {
            at = entries(body, at)?;
        }
        at = match byte(body, at) {
            b'"' => lex::string(body, at + 1)?.end + 1,
            opening @ (b'{' | b'[') => {
                if depth + containers.len() >= limit {
                    return Err(lex::too_deep(body, at, limit));
                }
                // Both closing brackets are two after their opening ones.
                let first = space(body, at + 1);
                if byte(body, first) != opening + 2 {
                    containers.push(is_object);
                    is_object = opening == b'{';
                    at = first;
                    continue;
                }
                first + 1
            }
            b't' => lex::literal(body, at, "true")?,
            b'f' => lex::literal(body, at, "false")?,
            b'n' => lex::literal(body, at, "null")?,
            b'-' | b'0'..=b'9' => lex::number(body, at)?.1,
            _ => return Err(expected(body, at, "a value")),
        };
        // After a value: end what ends here, until there is another one.
        loop {
            if containers.is_empty() {
                return Ok(at);
            }
            at = space(body, at);
            match byte(body, at) {
                b',' => {
                    at = space(body, at + 1);
                    break;
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ if is_object => return Err(expected(body, at, "`,` or `}`")),
                _ => return Err(expected(body, at, "`,` or `]`")),
            }
            is_object = containers.pop().unwrap_or_default();
            at += 1;
        }
    }
}

/// Takes a key and its colon, after any number of entries that are empty objects: managed fields are mostly those.
#[inline]
fn entries(body: &[u8], start: usize) -> Result<usize> {
    let mut at = start;
    loop {
        if byte(body, at) != b'"' {
            return Err(expected(body, at, "a key in quotes"));
        }
        let after = lex::string(body, at + 1)?.end + 1;
        if body.get(after..).and_then(|rest| rest.first_chunk()) == Some(b":{},") {
            at = space(body, after + 4);
            continue;
        }
        let colon = space(body, after);
        if byte(body, colon) != b':' {
            return Err(expected(body, colon, "`:`"));
        }
        return Ok(space(body, colon + 1));
    }
}

/// Takes an object or an array of a body that is known to be JSON: only its end is looked for. Nothing for other values, and if there is no
/// end.
pub(super) fn skip_known(body: &[u8], start: usize) -> Option<usize> {
    if !matches!(byte(body, start), b'{' | b'[') {
        return None;
    }
    let (mut depth, mut at) = (0, start);
    // Whether the block before ends in a string, and whether it ends in a backslash that is none itself.
    let (mut in_string, mut is_escaped) = (false, false);
    while at < body.len() {
        let marks = Marks::of(&body[at..]);
        let escaped = escaped(marks.backslashes, &mut is_escaped);
        let strings = between(marks.quotes & !escaped) ^ if in_string { u64::MAX } else { 0 };
        in_string = strings >> (BLOCK - 1) == 1;
        let (openings, closings) = (marks.openings & !strings, marks.closings & !strings);
        if closings.count_ones() < depth {
            depth = depth + openings.count_ones() - closings.count_ones();
            at += BLOCK;
            continue;
        }
        let mut brackets = openings | closings;
        while brackets != 0 {
            let place = brackets.trailing_zeros();
            depth = if openings >> place & 1 == 1 { depth + 1 } else { depth.checked_sub(1)? };
            if depth == 0 {
                return Some(at + place as usize + 1);
            }
            brackets &= brackets - 1;
        }
        at += BLOCK;
    }
    None
}

impl Marks {
    /// Of the first bytes, or of all that are left.
    #[inline]
    fn of(rest: &[u8]) -> Marks {
        let mut padded = [b' '; BLOCK];
        let block = rest.first_chunk().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let mut marks = Marks::default();
        for (part, bytes) in block.as_chunks().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            // With this bit, both kinds of brackets are the same.
            let brackets = bytes | u8x16::splat(0x20);
            let found = |is_it: u8x16| u64::from(is_it.to_bitmask()) << (16 * part);
            marks.quotes |= found(bytes.simd_eq(u8x16::splat(b'"')));
            marks.backslashes |= found(bytes.simd_eq(u8x16::splat(b'\\')));
            marks.openings |= found(brackets.simd_eq(u8x16::splat(b'{')));
            marks.closings |= found(brackets.simd_eq(u8x16::splat(b'}')));
        }
        marks
    }
}

/// The bytes behind a backslash that is not behind one itself. `is_escaped` says so of the first byte, and then of the one behind the last.
#[inline]
fn escaped(mut backslashes: u64, is_escaped: &mut bool) -> u64 {
    let mut escaped = u64::from(std::mem::take(is_escaped));
    backslashes &= !escaped;
    while backslashes != 0 {
        let first = backslashes & backslashes.wrapping_neg();
        let behind = first << 1;
        *is_escaped = behind == 0;
        escaped |= behind;
        backslashes &= !(first | behind);
    }
    escaped
}

/// The bits from each odd one up to the even one behind it.
#[inline]
fn between(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways over a value end at the same place, wherever blocks begin and end.
    #[track_caller]
    fn check(value: &str) {
        for before in 0..70 {
            let body = format!("{}{value},\"}}]\\", " ".repeat(before));
            let end = before + value.len();
            assert_eq!(skip(body.as_bytes(), before, 0, 100).ok(), Some(end), "{value}");
            assert_eq!(skip_known(body.as_bytes(), before), Some(end), "{value}");
            assert_eq!(skip_known(&body.as_bytes()[..end], before), Some(end), "{value}");
            assert_eq!(skip_known(&body.as_bytes()[..end - 1], before), None, "{value}");
        }
    }

    #[test]
    fn the_end_of_what_is_known_to_be_json_is_found() {
        for value in [
            "{}",
            "[]",
            r#"{"a":[1,{"b":"}"}],"c":"]"}"#,
            r#"["\"","\\","\\\"]","{"]"#,
            r#"{"f:a":{},"k:{\"b\":1}":{}}"#,
        ] {
            check(value);
        }
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let mut value = String::new();
            write(&mut random, 0, &mut value);
            check(&value);
        }
    }

    /// Some array or object.
    fn write(random: &mut fastrand::Rng, depth: usize, value: &mut String) {
        let is_object = random.bool();
        value.push(if is_object { '{' } else { '[' });
        for number in 0..random.usize(..5) {
            if number > 0 {
                value.push(',');
            }
            if is_object {
                write_string(random, value);
                value.push(':');
            }
            if depth < 4 && random.bool() { write(random, depth + 1, value) } else { write_string(random, value) }
        }
        value.push(if is_object { '}' } else { ']' });
    }

    fn write_string(random: &mut fastrand::Rng, value: &mut String) {
        value.push('"');
        for _ in 0..random.usize(..12) {
            value.push_str(["a", "\\\\", "\\\"", "{", "}", "[", "]", ",", "\\n"][random.usize(..9)]);
        }
        value.push('"');
    }

    #[test]
    fn what_has_no_end_and_what_is_no_container_is_left_to_others() {
        for body in ["", "1", "\"a\"", "null", "[", "{\"a\":\"}\"", "[\"]\\\"]"] {
            assert_eq!(skip_known(body.as_bytes(), 0), None, "{body}");
        }
    }
}
