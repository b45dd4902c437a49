//! The pipes of jq: `.spec.containers[] | select(.tty)`.

use super::{Translated, closing, is_before_operand};
use crate::parse::token::{is_word, skip_space, token};

/// A source that goes through a list.
pub(super) fn translate(source: &str) -> Option<Translated> {
    if !source.contains("[]") && !source.contains("select(") {
        return None;
    }
    // Here it begins a comment.
    let source = &*source.trim().replace(" // ", " ?? ");
    let text = generated(source).or_else(|| collected(source)).or_else(|| piped(source))?;
    Some(Translated { text, variables: 0 })
}

/// `any(.spec.containers[]; .tty)`
fn generated(source: &str) -> Option<String> {
    let name = ["any", "all"].into_iter().find(|name| source.starts_with(&format!("{name}(")))?;
    let close = closing(source, name.len())?;
    let inside = &source[name.len() + 1..close - 1];
    let [list, condition] = parts(inside, ";")[..] else { return None };
    Some(format!("{name}({}, {}){}", path(list.trim())?, condition_of(condition)?, &source[close..]))
}

/// `[.spec.containers[] | select(.tty)] | length > 0`
fn collected(source: &str) -> Option<String> {
    let close = source.starts_with('[').then(|| closing(source, 0))??;
    let inside = parts(&source[1..close - 1], "|");
    let list = listed(&inside)?;
    let rest = source[close..].trim().strip_prefix('|')?.trim().strip_prefix("length")?;
    Some(format!("len({list}){rest}"))
}

/// `.spec.containers[] | select(.tty)`
fn piped(source: &str) -> Option<String> {
    let segments = parts(source, "|");
    let (last, before) = segments.split_last().filter(|(_, before)| !before.is_empty())?;
    let last = last.trim();
    let list = listed(before)?;
    if let Some(rest) = last.strip_prefix("length") {
        return Some(format!("len({list}){rest}"));
    }
    let condition = match argument(last, "select") {
        Some(condition) => condition_of(condition)?,
        None if last.starts_with('.') => condition_of(last)?,
        None => condition_of(&format!("# | {last}"))?,
    };
    Some(format!("any({list}, {condition})"))
}

/// The list that segments of a pipe give.
fn listed(segments: &[&str]) -> Option<String> {
    let (first, rest) = segments.split_first()?;
    let mut list = path(first.trim())?;
    for segment in rest {
        let segment = segment.trim();
        let mapped = argument(segment, "map");
        let selected = argument(segment, "select").or_else(|| argument(mapped?, "select"));
        list = match (selected, mapped) {
            (Some(condition), _) => format!("filter({list}, {})", condition_of(condition)?),
            (None, Some(body)) => format!("map({list}, {})", condition_of(body)?),
            (None, None) => below(&list, segment)?,
        };
    }
    Some(list)
}

/// What a call of this name has between its parentheses, if it is all there is.
fn argument<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name).filter(|rest| rest.starts_with('('))?;
    (closing(rest, 0)? == rest.len()).then(|| &rest[1..rest.len() - 1])
}

/// `.spec.containers[].ports[]`, and a list without brackets.
fn path(text: &str) -> Option<String> {
    let text = text.strip_prefix('.').unwrap_or(text);
    let (list, rest) = text.split_once("[]").unwrap_or((text, ""));
    let is_path = !list.is_empty() && list.chars().all(|letter| is_word(letter) || letter == '.');
    if !is_path {
        return None;
    }
    if rest.is_empty() { Some(list.to_owned()) } else { below(list, rest) }
}

/// What is below each element of a list: `.ports[].name`.
fn below(list: &str, fields: &str) -> Option<String> {
    let mut list = list.to_owned();
    let pieces: Vec<&str> = fields.split("[]").collect();
    let count = pieces.len();
    for (index, piece) in pieces.into_iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
        let is_path = piece.starts_with('.') && piece.chars().all(|letter| is_word(letter) || letter == '.');
        if !is_path {
            return None;
        }
        list =
            if index + 1 < count { format!("flatten(map({list}, {piece}))") } else { format!("map({list}, {piece})") };
    }
    Some(list)
}

/// A condition, with its own pipes: `.image | test("x") | not`.
fn condition_of(text: &str) -> Option<String> {
    let text = inner(text.trim())?;
    let segments = parts(&text, "|");
    let (first, rest) = segments.split_first()?;
    let mut value = first.trim().to_owned();
    if let Some(key) = argument(&value, "has") {
        value = format!("has(#, {key})");
    }
    for segment in rest {
        let segment = segment.trim();
        value = match segment {
            "not" => format!("not ({value})"),
            _ if segment.starts_with('.') => format!("{value}{segment}"),
            _ if segment.starts_with("length") => format!("len({value}){}", &segment["length".len()..]),
            _ => {
                let (name, _) = segment.split_once('(')?;
                let argument = argument(segment, name)?;
                match name {
                    "any" | "all" => format!("{name}({value}, {})", condition_of(argument)?),
                    // As a word it is an operator.
                    "contains" => format!("Contains({value}, {argument})"),
                    _ => format!("{name}({value}, {argument})"),
                }
            }
        };
    }
    Some(value)
}

/// A condition in which what is in parentheses has no pipes any more.
fn inner(text: &str) -> Option<String> {
    let mut written = String::new();
    let (mut at, mut copied, mut is_first) = (skip_space(text, 0), 0, true);
    while at < text.len() {
        let word = token(text, at);
        if word == "("
            && is_first
            && let Some(end) = closing(text, at)
            && parts(&text[at + 1..end - 1], "|").len() > 1
        {
            written.push_str(&format!("{}({})", &text[copied..at], condition_of(&text[at + 1..end - 1])?));
            (at, copied, is_first) = (skip_space(text, end), end, false);
            continue;
        }
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    Some(written + &text[copied..])
}

/// The parts of a text between signs that stand in no brackets and no quotes.
fn parts<'t>(text: &'t str, sign: &str) -> Vec<&'t str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    let mut at = skip_space(text, 0);
    while at < text.len() {
        let word = token(text, at);
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ if word == sign && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
        at = skip_space(text, at + word.len());
    }
    parts.push(&text[start..]);
    parts
}
