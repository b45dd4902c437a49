//! Words and signs that stand where others do here: a word between a list and what is in it, or between two lists, a default without parentheses,
//! a dot before a path.

use super::{MAX_CHANGES, Translated, closing, is_before_operand, operand, without_dots};
use crate::parse::token::{is_word, skip_space, token};

/// Words that stand between a list and what is looked for in it.
const HOLDERS: [&str; 4] = ["has", "includes", "include", "contain"];

/// Words that stand between two lists, and functions of them.
const MEMBERS: [&str; 4] = ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn"];

/// Names that stand for the object elsewhere, and have no field of ours.
const WHOLES: [&str; 2] = ["#root.", "$root."];

/// `container.args AnyIn ["-v"]`
pub(super) fn of_members(source: &str) -> Option<Translated> {
    let mut text = source.to_owned();
    for _ in 0..MAX_CHANGES {
        match membered(&text) {
            Some(changed) => text = changed,
            None => break,
        }
    }
    (text != source).then_some(Translated { text, variables: 0 })
}

fn membered(text: &str) -> Option<String> {
    let end_of = |at: usize| if text[at..].starts_with('[') { closing(text, at) } else { operand(text, at) };
    let (mut at, mut is_first) = (skip_space(text, 0), true);
    while at < text.len() {
        if is_first && let Some(end) = end_of(at) {
            let between = skip_space(text, end);
            let word = token(text, between);
            let next = skip_space(text, between + word.len());
            if MEMBERS.contains(&word)
                && let Some(behind) = end_of(next)
            {
                let (one, other) = (&text[at..end], &text[next..behind]);
                return Some(format!("{}{word}({one}, {other}){}", &text[..at], &text[behind..]));
            }
        }
        let word = token(text, at);
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    None
}

/// `{{ x }} == "a"`, of Kyverno.
pub(super) fn of_braces(source: &str) -> Option<Translated> {
    let is_filled = source.contains("{{") && !source.contains(['"', '\'']) || source.trim_start().starts_with("{{");
    let text = source.replace("{{", "").replace("}}", "");
    (is_filled && source.contains("}}")).then(|| Translated { text: text.trim().to_owned(), variables: 0 })
}

/// `x // 1`, of jq, where it is a comment here.
pub(super) fn of_alternatives(source: &str) -> Option<Translated> {
    let text = source.replace(" // ", " ?? ");
    (text != source && !source.trim().contains('\n')).then_some(Translated { text, variables: 0 })
}

/// `.spec.replicas` where no element is, and `#root.spec.replicas`.
pub(super) fn of_dots(source: &str) -> Option<Translated> {
    if let Some(whole) = WHOLES.iter().find(|whole| source.contains(*whole)) {
        return Some(Translated { text: source.replace(whole, ""), variables: 0 });
    }
    let has_element = source.contains('#') || PREDICATES.iter().any(|name| source.contains(&format!("{name}(")));
    let text = without_dots(source);
    (!has_element && text != source).then_some(Translated { text, variables: 0 })
}

const PREDICATES: [&str; 8] = ["any", "all", "none", "one", "filter", "map", "find", "sum"];

/// `labels has "app"`
pub(super) fn of_holders(source: &str) -> Option<Translated> {
    let mut text = source.to_owned();
    for _ in 0..MAX_CHANGES {
        match held(&text) {
            Some(changed) => text = changed,
            None => break,
        }
    }
    (text != source).then_some(Translated { text, variables: 0 })
}

fn held(text: &str) -> Option<String> {
    let (mut at, mut is_first) = (skip_space(text, 0), true);
    while at < text.len() {
        if is_first && let Some(end) = operand(text, at) {
            let holder = skip_space(text, end);
            let word = token(text, holder);
            let next = skip_space(text, holder + word.len());
            if HOLDERS.contains(&word)
                && let Some(behind) = operand(text, next)
            {
                let (whole, part) = (&text[at..end], &text[next..behind]);
                return Some(format!("{}({part} in {whole}){}", &text[..at], &text[behind..]));
            }
        }
        let word = token(text, at);
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    None
}

/// `x ?? "a" == "b"`, of which the default is meant first.
pub(super) fn of_defaults(source: &str) -> Option<Translated> {
    let mut text = String::new();
    let (mut at, mut copied, mut is_first) = (skip_space(source, 0), 0, true);
    while at < source.len() {
        let mut word = token(source, at);
        if is_first && let Some(mut end) = operand(source, at) {
            let start = at;
            let mut next = skip_space(source, end);
            while token(source, next) == "??"
                && let Some(behind) = operand(source, skip_space(source, next + 2))
            {
                end = behind;
                next = skip_space(source, end);
            }
            let is_called = source[at..end].starts_with(is_word) && source[at + word.len()..].starts_with('(');
            if source[start..end].contains("??") && !is_called {
                text.push_str(&format!("{}({})", &source[copied..start], &source[start..end]));
                (at, copied, word) = (next, end, ")");
                is_first = is_before_operand(word);
                continue;
            }
        }
        is_first = is_before_operand(word);
        at = skip_space(source, at + word.len());
    }
    text.push_str(&source[copied..]);
    (text != source).then_some(Translated { text, variables: 0 })
}
