//! Functions of text. Indexes and lengths of parts are in bytes, as in Go; what is a part is always whole characters.

use super::{list_of, text_of};
use crate::{
    machine::{Failure, Machine},
    operators::truncate,
    value::{Value, sequence::Sequence},
};

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

/// How often `repeat` may repeat.
const MAX_REPEAT: i64 = 1_000_000;

pub(super) fn trim<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text, rest @ ..] = arguments else { return Err(Failure::arguments()) };
    let text = text_of(*text)?;
    machine.step_bytes(text.len())?;
    match rest {
        [] => Ok(Value::Text(text.trim())),
        [characters] => trim_characters(machine, text, text_of(*characters)?).map(Value::Text),
        _ => Err(Failure::arguments()),
    }
}

fn trim_characters<'a>(machine: &Machine<'a>, text: &'a str, characters: &str) -> Result<&'a str, Failure> {
    // Each character at an end is looked for in all of them.
    let steps = 1 + characters.len() as u64 / 64;
    let mut text = text;
    while let Some(rest) = text.strip_prefix(|first| characters.contains(first)) {
        machine.step(steps)?;
        text = rest;
    }
    while let Some(rest) = text.strip_suffix(|last| characters.contains(last)) {
        machine.step(steps)?;
        text = rest;
    }
    Ok(text)
}

pub(super) fn trim_prefix<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, prefix) = text_and_part(machine, arguments)?;
    Ok(Value::Text(text.strip_prefix(prefix).unwrap_or(text)))
}

pub(super) fn trim_suffix<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, suffix) = text_and_part(machine, arguments)?;
    Ok(Value::Text(text.strip_suffix(suffix).unwrap_or(text)))
}

fn text_and_part<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Result<(&'a str, &'a str), Failure> {
    let (text, part) = match arguments {
        [text] => (text_of(*text)?, " "),
        [text, part] => (text_of(*text)?, text_of(*part)?),
        _ => return Err(Failure::arguments()),
    };
    machine.step_bytes(part.len())?;
    Ok((text, part))
}

pub(super) fn upper<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    change_case(machine, arguments, |byte| byte.is_ascii_lowercase(), capital)
}

pub(super) fn lower<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    change_case(
        machine,
        arguments,
        |byte| byte.is_ascii_uppercase(),
        |character| {
            // The first of several is the one that Go takes. They are several only for a Turkish capital.
            character.to_lowercase().next().unwrap_or(character)
        },
    )
}

/// One capital for one character. Where Rust takes several, Go takes none, but for Greek letters with an iota below.
fn capital(character: char) -> char {
    let offset = match character {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => 0,
    };
    let mut capitals = character.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => char::from_u32(u32::from(character) + offset).unwrap_or(character),
    }
}

/// Changes each character by itself. Text that stays as it is, is not copied.
fn change_case<'a>(
    machine: &Machine<'a>,
    arguments: Arguments<'_, 'a>,
    changes: impl Fn(u8) -> bool,
    change: impl Fn(char) -> char,
) -> Answer<'a> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    let text = text_of(*text)?;
    machine.step_bytes(text.len())?;
    if !text.bytes().any(|byte| !byte.is_ascii() || changes(byte)) {
        return Ok(Value::Text(text));
    }
    let mut changed = machine.writer();
    changed.reserve(text.len())?;
    for character in text.chars() {
        changed.push_char(change(character))?;
    }
    changed.finish().map(Value::Text)
}

pub(super) fn split<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    pieces(machine, arguments, false)
}

pub(super) fn split_after<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    pieces(machine, arguments, true)
}

/// The parts of text between separators; with `keep`, each with the separator that ends it. Without a separator, its
/// characters. The last of a limited number of parts is all that is left.
fn pieces<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>, keep: bool) -> Answer<'a> {
    let [text, separator, rest @ ..] = arguments else { return Err(Failure::arguments()) };
    let (mut text, separator) = (text_of(*text)?, text_of(*separator)?);
    let most = match rest {
        [] => -1,
        [most] => truncate(*most)?,
        _ => return Err(Failure::arguments()),
    };
    let mut pieces = machine.buffer();
    machine.step_bytes(text.len())?;
    if most == 0 || separator.is_empty() && text.is_empty() {
        return Ok(Value::EMPTY);
    }
    while most < 0 || (pieces.len() as i64) < most - 1 {
        let (end, after) = if separator.is_empty() {
            // The last character is a part like the others, and nothing comes after it.
            match text.chars().next().map(char::len_utf8) {
                Some(length) if length < text.len() => (length, length),
                _ => break,
            }
        } else {
            match text.find(separator) {
                Some(found) => (if keep { found + separator.len() } else { found }, found + separator.len()),
                None => break,
            }
        };
        machine.step(1)?;
        pieces.push(Value::Text(&text[..end]))?;
        text = &text[after..];
    }
    pieces.push(Value::Text(text))?;
    Ok(Value::List(pieces.finish()))
}

pub(super) fn replace<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text, old, new, rest @ ..] = arguments else { return Err(Failure::arguments()) };
    let (text, old, new) = (text_of(*text)?, text_of(*old)?, text_of(*new)?);
    let most = match rest {
        [] => -1,
        [most] => truncate(*most)?,
        _ => return Err(Failure::arguments()),
    };
    machine.step_bytes(text.len())?;
    if most == 0 || old == new || !text.contains(old) {
        return Ok(Value::Text(text));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut replaced = machine.writer();
    let mut start = 0;
    // The empty text is before each character and at the end.
    for (found, _) in text.match_indices(old).take(most) {
        machine.step(1)?;
        replaced.push(&text[start..found])?;
        replaced.push(new)?;
        start = found + old.len();
    }
    replaced.push(&text[start..])?;
    replaced.finish().map(Value::Text)
}

pub(super) fn repeat<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text, times] = arguments else { return Err(Failure::arguments()) };
    let (text, times) = (text_of(*text)?, truncate(*times)?);
    if times < 0 {
        return Err(Failure::new(format!("cannot repeat {times} times")));
    }
    if times > MAX_REPEAT {
        return Err(Failure::new(format!("cannot repeat {times} times: the limit is {MAX_REPEAT}")));
    }
    // Go counts the bytes as elements.
    machine.count_elements(times as u64 * text.len() as u64)?;
    let mut repeated = machine.writer();
    repeated.reserve(text.len() * times as usize)?;
    if !text.is_empty() {
        for _ in 0..times {
            repeated.push(text)?;
        }
    }
    repeated.finish().map(Value::Text)
}

pub(super) fn join<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (list, glue) = match arguments {
        [list] => (*list, ""),
        [list, glue] => (*list, text_of(*glue)?),
        _ => return Err(Failure::arguments()),
    };
    let items = match list_of(list)? {
        // Their elements are numbers. Ranges and bytes without any element are refused too.
        Sequence::Range { .. } | Sequence::Bytes(_) => return Err(Failure::new("cannot join what is not text")),
        items => items,
    };
    let mut joined = machine.writer();
    for (index, item) in items.iter().enumerate() {
        machine.step(1)?;
        if index > 0 {
            joined.push(glue)?;
        }
        joined.push(text_of(item)?)?;
    }
    joined.finish().map(Value::Text)
}

pub(super) fn index_of<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, part) = two(machine, arguments)?;
    Ok(index(text.find(part)))
}

pub(super) fn last_index_of<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, part) = two(machine, arguments)?;
    Ok(index(text.rfind(part)))
}

pub(super) fn has_prefix<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, part) = two(machine, arguments)?;
    Ok(Value::Bool(text.starts_with(part)))
}

pub(super) fn has_suffix<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (text, part) = two(machine, arguments)?;
    Ok(Value::Bool(text.ends_with(part)))
}

fn two<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Result<(&'a str, &'a str), Failure> {
    let [text, part] = arguments else { return Err(Failure::arguments()) };
    let (text, part) = (text_of(*text)?, text_of(*part)?);
    machine.step_bytes(text.len())?;
    Ok((text, part))
}

fn index<'a>(found: Option<usize>) -> Value<'a> {
    Value::Int(found.map_or(-1, |found| found as i64))
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn text_is_trimmed_by_whole_characters() {
        check(
            r#"
            trim("  a b \t\n") => "a b"
            trim("\u00a0x\u2028") => "x"
            trim("xxaxx", "x") => "a"
            trim("éaß", "ßé") => "a"
            trim("abc", "") => "abc"
            trim("", "x") => ""
            trim(1) => error: expected a string, got int
            trim("a", nil) => error: expected a string, got nil
            trimPrefix("  a") => " a"
            trimPrefix("v1", "v") => "1"
            trimPrefix("v1", "x") => "v1"
            trimSuffix("a  ") => "a "
            trimSuffix("a.txt", ".txt") => "a"
            trimSuffix(nil, "x") => error: expected a string, got nil
            "#,
        );
    }

    #[test]
    fn each_character_changes_its_case_by_itself() {
        check(
            r#"
            upper("abc1") => "ABC1"
            upper("straße") => "STRAßE"
            upper("ǆ") => "Ǆ"
            upper("ᾳ") => "ᾼ"
            upper("ﬁ") => "ﬁ"
            upper("ABC") => "ABC"
            lower("ABC") => "abc"
            lower("ΑΣ") => "ασ"
            lower("İ") => "i"
            lower("K") => "k"
            upper(nil) => error: expected a string, got nil
            lower(1) => error: expected a string, got int
            "#,
        );
    }

    #[test]
    fn text_is_split_at_separators() {
        check(
            r#"
            split("a,b,,c", ",") => ["a", "b", "", "c"]
            split("", ",") => [""]
            split("", "") => []
            split("aé", "") => ["a", "é"]
            split("abc", "", 2) => ["a", "bc"]
            split("a,b,c", ",", 2) => ["a", "b,c"]
            split("a,b,c", ",", 1) => ["a,b,c"]
            split("a,b,c", ",", 0) => []
            split("a,b,c", ",", -1) => ["a", "b", "c"]
            split("a,b,c", ",", 9) => ["a", "b", "c"]
            split("aaa", "aa") => ["", "a"]
            split(nil, ",") => error: expected a string, got nil
            split("a", 1) => error: expected a string, got int
            splitAfter("a,b,", ",") => ["a,", "b,", ""]
            splitAfter("a,b,c", ",", 2) => ["a,", "b,c"]
            splitAfter("ab", "") => ["a", "b"]
            join(["a", "b", "c"], "-") => "a-b-c"
            join(["a", "b"]) => "ab"
            join([], "-") => ""
            join(split("a b", " "), "+") => "a+b"
            join(["a", 1]) => error: expected a string, got int
            join(1..2, "-") => error: cannot join what is not text
            join("a") => error: expected an array, got string
            join(doc('["x","y"]'), "/") => "x/y"
            "#,
        );
    }

    #[test]
    fn text_is_searched_and_replaced() {
        check(
            r#"
            replace("aaa", "a", "b") => "bbb"
            replace("aaa", "a", "b", 2) => "bba"
            replace("aaa", "a", "b", 0) => "aaa"
            replace("aaa", "x", "b") => "aaa"
            replace("ab", "", "-") => "-a-b-"
            replace("aé", "", "-", 2) => "-a-é"
            replace("a", "a", "") => ""
            replace("a", 1, "b") => error: expected a string, got int
            repeat("ab", 3) => "ababab"
            repeat("ab", 0) => ""
            repeat("", 1000000) => ""
            repeat("a", -1) => error: cannot repeat -1 times
            repeat("a", 1000001) => error: cannot repeat 1000001 times: the limit is 1000000
            repeat("a", 1000000) => error: too many elements: an evaluation may make fewer than 1000000
            indexOf("éab", "b") => 3
            indexOf("ab", "x") => -1
            indexOf("ab", "") => 0
            lastIndexOf("abab", "b") => 3
            lastIndexOf("ab", "") => 2
            lastIndexOf("ab", "x") => -1
            hasPrefix("abc", "ab") => true
            hasPrefix("abc", "b") => false
            hasPrefix(nil, "a") => error: expected a string, got nil
            hasSuffix("abc", "bc") => true
            hasSuffix("abc", 1) => error: expected a string, got int
            "#,
        );
    }
}
