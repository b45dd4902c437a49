//! `in`, `matches`, `contains`, `startsWith` and `endsWith`.

use super::{equal, network_of, version_of};
use crate::{
    builtins::quoted,
    machine::{Failure, Machine},
    regex::Regex,
    value::{Network, Value, map::Found, version::Range},
};

/// How much of a range that was not known before is read in one step.
const BYTES_OF_RANGE: u64 = 4;

/// `needle in haystack`: an element of a list, a key of a map, an address of a network, or a version of a range. Nothing is in nil.
pub(crate) fn contained<'a>(machine: &Machine<'a>, needle: Value<'a>, haystack: Value<'a>) -> Result<bool, Failure> {
    if let (Value::Int(number), Value::Range { first, last }) = (needle, haystack) {
        return Ok((first..=last).contains(&number));
    }
    if let Some(sequence) = haystack.sequence() {
        for item in sequence.iter() {
            machine.step(1)?;
            let is_found = match item {
                Value::Network(network) => in_network(needle, network)?,
                _ => equal(machine, item, needle)?,
            };
            if is_found {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    if let Some(fields) = haystack.fields() {
        return match fields.find(machine, needle)? {
            Found::Value(_) => Ok(true),
            Found::Missing(_) => Ok(false),
            Found::Refused => Err(Failure::new(format!("cannot use {} as a key of this map", needle.kind()))),
        };
    }
    match (haystack, needle) {
        (Value::Nil, _) => Ok(false),
        (Value::Network(network), _) => in_network(needle, network),
        (Value::Text(range), Value::Version(_)) => {
            machine.step(range.len() as u64 / BYTES_OF_RANGE)?;
            let range = Range::parse(range).map_err(Failure::new)?;
            in_range(machine, needle, &range)
        }
        // A time has fields in Go, none of which can be seen.
        (Value::Time(_) | Value::Zone(_), Value::Text(_)) => Ok(false),
        _ => Err(Failure::new(format!("cannot use in with {}", haystack.kind()))),
    }
}

/// Whether an address or a network is in a network. nil is in none.
fn in_network<'a>(needle: Value<'a>, network: &Network<'a>) -> Result<bool, Failure> {
    match (network_of(needle), needle) {
        (Some(inner), _) => Ok(network.contains(&inner)),
        (None, Value::Nil) => Ok(false),
        (None, Value::Text(text)) => Err(Failure::new(format!(
            "{} is no address such as \"10.0.0.1\" and no network such as \"10.0.0.0/8\"",
            quoted(text)
        ))),
        (None, _) => Err(Failure::expected("an address such as \"10.0.0.1\"", needle)),
    }
}

/// Whether a version is in a range. nil is in none.
pub(crate) fn in_range<'a>(machine: &Machine<'a>, needle: Value<'a>, range: &Range) -> Result<bool, Failure> {
    match (version_of(machine, needle)?, needle) {
        (Some(version), _) => Ok(range.contains(&version)),
        (None, Value::Nil) => Ok(false),
        (None, _) => Err(Failure::expected("a version", needle)),
    }
}

/// `text matches pattern`, with a pattern that was not known before.
pub(crate) fn matches<'a>(machine: &Machine<'a>, text: Value<'a>, pattern: Value<'a>) -> Result<bool, Failure> {
    if text.is_nil() || pattern.is_nil() {
        return Ok(false);
    }
    let Value::Text(pattern) = pattern else { return Err(Failure::expected("a string for a pattern", pattern)) };
    machine.with_pattern(pattern, |regex| matches_regex(machine, text, regex))?
}

/// `text matches pattern`, with a pattern that the program holds.
pub(crate) fn matches_regex<'a>(machine: &Machine<'a>, text: Value<'a>, regex: &Regex) -> Result<bool, Failure> {
    let bytes = match text {
        Value::Nil => return Ok(false),
        Value::Text(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => return Err(Failure::expected("a string", text)),
    };
    regex.is_match(machine, bytes)
}

/// `text contains part`. Nil contains nothing, and nothing contains nil.
pub(crate) fn contains<'a>(machine: &Machine<'a>, text: Value<'a>, part: Value<'a>) -> Result<bool, Failure> {
    let Some((text, part)) = texts(text, part)? else { return Ok(false) };
    machine.step_bytes(text.len())?;
    Ok(text.contains(part))
}

pub(crate) fn starts_with<'a>(machine: &Machine<'a>, text: Value<'a>, start: Value<'a>) -> Result<bool, Failure> {
    let Some((text, start)) = texts(text, start)? else { return Ok(false) };
    machine.step_bytes(start.len())?;
    Ok(text.starts_with(start))
}

pub(crate) fn ends_with<'a>(machine: &Machine<'a>, text: Value<'a>, end: Value<'a>) -> Result<bool, Failure> {
    let Some((text, end)) = texts(text, end)? else { return Ok(false) };
    machine.step_bytes(end.len())?;
    Ok(text.ends_with(end))
}

/// Two texts, or nothing if one of them is nil.
#[inline]
fn texts<'a>(a: Value<'a>, b: Value<'a>) -> Result<Option<(&'a str, &'a str)>, Failure> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(Some((a, b))),
        (Value::Nil, _) | (_, Value::Nil) => Ok(None),
        (Value::Text(_), other) | (other, _) => Err(Failure::expected("a string", other)),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn in_looks_for_elements_and_keys() {
        check(
            r#"
            1 in [1, 2] => true
            1 in [1.0] => true
            "a" in ["b", "a"] => true
            nil in [nil] => true
            nil in [""] => false
            [1] in [[1.0]] => true
            2 in (1..3) => true
            97 in b"ab" => true
            "a" in {a: nil} => true
            "b" in {a: 1} => false
            nil in {"": 1} => true
            1 in {a: 1} => error: cannot use int as a key of this map
            1 in fromPairs([[1, 2]]) => true
            1.0 in fromPairs([[1, 2]]) => false
            [1] in fromPairs([[1, 2]]) => error: cannot use array as a key of this map
            "a" in doc('{"a":1}') => true
            "x" in doc('["x"]') => true
            1 in nil => false
            "a" in "abc" => error: cannot use in with string
            1 in 1 => error: cannot use in with int
            "x" in date("2026-03-01") => false
            "#,
        );
    }

    #[test]
    fn text_is_searched_and_nil_is_nowhere() {
        check(
            r#"
            "abc" contains "b" => true
            "abc" contains "" => true
            "abc" contains "x" => false
            nil contains "a" => false
            "a" contains nil => false
            "a" contains 1 => error: expected a string, got int
            [1] contains 1 => error: expected a string, got array
            "abc" startsWith "ab" => true
            nil startsWith "a" => false
            "abc" startsWith nil => false
            1 startsWith "1" => error: expected a string, got int
            "abc" endsWith "bc" => true
            nil endsWith nil => false
            "abc" matches "^a.c$" => true
            "xabcx" matches "abc" => true
            nil matches "a" => false
            "a" matches nil => false
            b"abc" matches "b" => true
            1 matches "1" => error: expected a string, got int
            "a" matches 1 => error: expected a string for a pattern, got int
            "a" matches "(" => error: missing closing ) in pattern
            "#,
        );
    }
}
