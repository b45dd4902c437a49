//! Python's `any(… for x in xs)` and lists of the like.

use super::{MAX_CHANGES, MAX_TRANSLATED, Translated, closing, operand};
use crate::parse::token::{is_word, skip_space, token};

/// Maps of Kubernetes, through whose keys Python goes.
const MAPS: [&str; 7] = ["labels", "annotations", "data", "stringData", "matchLabels", "nodeSelector", "binaryData"];

/// `any(c.tty for c in spec.containers)`
pub(super) fn translate(source: &str) -> Option<Translated> {
    let mut translated = Translated { text: source.to_owned(), variables: 0 };
    for _ in 0..MAX_CHANGES {
        let Some(place) = place_of(&translated.text, "for", 0, translated.text.len()) else { break };
        let (text, variables) = generated(&translated.text, place)?;
        // What stands for a value may be long, and have values in it.
        if text.len() > MAX_TRANSLATED {
            return None;
        }
        translated = Translated { text, variables: translated.variables + variables };
    }
    (translated.variables > 0).then_some(translated)
}

/// A source with the predicate that stands around a `for`, and how many have a variable in it.
fn generated(source: &str, place: usize) -> Option<(String, usize)> {
    let open = opening(source, place)?;
    let close = closing(source, open)?;
    let before = &source[..open];
    let name = &before[before.trim_end_matches(is_word).len()..];
    let is_list = source[open..].starts_with('[');
    let body = source[open + 1..place].trim();
    let behind_in = place_of(source, "in", place, close)?;
    let variable = source[place + "for".len()..behind_in].trim();
    let end = place_of(source, "if", behind_in, close).unwrap_or(close - 1);
    let list = source[behind_in + "in".len()..end].trim();
    let condition = (end < close - 1).then(|| source[end + "if".len()..close - 1].trim());
    let mut condition = condition.map(str::to_owned);
    let mut body = body.to_owned();
    let last = list.rsplit('.').next().unwrap_or_default();
    let is_one = |name: &str| !name.is_empty() && name.chars().all(is_word);
    let (list, variable, is_text) = match (variable.split_once(','), list.strip_suffix(".items()")) {
        (Some((key, value)), Some(map)) => {
            let (key, value) = (key.trim(), value.trim());
            if !is_one(key) || !is_one(value) {
                return None;
            }
            let used = |name: &str| names(&body, name) || condition.as_deref().is_some_and(|text| names(text, name));
            match (used(key), used(value)) {
                (false, true) => {
                    (format!("values({map})"), value.to_owned(), MAPS.iter().any(|name| map.ends_with(name)))
                }
                (true, false) => (format!("keys({map})"), key.to_owned(), true),
                _ => {
                    let element = format!("{map}[{key}]");
                    body = replaced(&body, value, &element);
                    condition = condition.map(|text| replaced(&text, value, &element));
                    (format!("keys({map})"), key.to_owned(), false)
                }
            }
        }
        (None, _) if !is_one(variable) => return None,
        (None, None) if MAPS.contains(&last) => (format!("keys({list})"), variable.to_owned(), true),
        (None, _) => (list.to_owned(), variable.to_owned(), list.ends_with(".keys()")),
        (Some(_), None) => return None,
    };
    let contained = |text: String| in_text(&text, &variable, is_text);
    let (body, condition) = (contained(body), condition.map(contained));
    let variables = 1 + usize::from(condition.is_some());
    let chosen = match &condition {
        Some(condition) => format!("filter({list}, {variable}, {condition})"),
        None => list,
    };
    let (start, written, variables) = match name {
        "any" | "all" | "sum" if !is_list => {
            (open - name.len(), format!("{name}({chosen}, {variable}, {body})"), variables)
        }
        _ if is_list && body == variable => (open, chosen, variables - 1),
        _ if is_list => (open, format!("map({chosen}, {variable}, {body})"), variables),
        _ => return None,
    };
    Some((format!("{}{written}{}", &source[..start], &source[close..]), variables))
}

/// The bracket that is open at a place.
fn opening(source: &str, place: usize) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = skip_space(source, 0);
    while at < place {
        let word = token(source, at);
        match word {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => {
                open.pop()?;
            }
            _ => {}
        }
        at = skip_space(source, at + word.len());
    }
    open.pop()
}

/// Where a word stands between two places, with nothing open before it that is not closed.
fn place_of(source: &str, wanted: &str, from: usize, to: usize) -> Option<usize> {
    let (mut at, mut depth) = (skip_space(source, from), 0_i32);
    let is_anywhere = from == 0;
    while at < to {
        let word = token(source, at);
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ if word == wanted && (depth == 0 || is_anywhere) && !source[..at].ends_with('.') => return Some(at),
            _ => {}
        }
        at = skip_space(source, at + word.len());
    }
    None
}

/// Whether a text has a name in it.
fn names(text: &str, name: &str) -> bool {
    replaced(text, name, "") != text
}

/// A text with something else in the place of a name.
fn replaced(text: &str, name: &str, other: &str) -> String {
    let mut written = String::new();
    let (mut at, mut copied) = (skip_space(text, 0), 0);
    while at < text.len() {
        let word = token(text, at);
        if word == name && !text[..at].ends_with('.') {
            written.push_str(&text[copied..at]);
            written.push_str(other);
            copied = at + word.len();
        }
        at = skip_space(text, at + word.len());
    }
    written + &text[copied..]
}

/// `"a" in x`, where `x` is known to be text, as we ask it.
fn in_text(text: &str, variable: &str, is_text: bool) -> String {
    let mut at = skip_space(text, 0);
    while at < text.len() {
        let part = token(text, at);
        let behind = at + part.len();
        if part.starts_with(['"', '\'']) && part.len() > 1 {
            let mut next = skip_space(text, behind);
            let is_negated = token(text, next) == "not";
            next = if is_negated { skip_space(text, next + "not".len()) } else { next };
            let is_in = token(text, next) == "in";
            let whole = if is_in { skip_space(text, next + "in".len()) } else { next };
            if is_in
                && token(text, whole) == variable
                && let Some(end) = operand(text, whole)
            {
                let fields = &text[whole + variable.len()..end];
                let is_method = [".lower()", ".upper()", ".strip()"].contains(&fields);
                if is_method || is_text && fields.is_empty() {
                    let not = if is_negated { "not " } else { "" };
                    let asked = format!("{} {not}contains {part}", &text[whole..end]);
                    let rest = in_text(&text[end..], variable, is_text);
                    return format!("{}{asked}{rest}", &text[..at]);
                }
            }
        }
        at = skip_space(text, behind);
    }
    text.to_owned()
}
