//! Go templates, with or without their braces.

use super::{MAX_CHANGES, Translated, is_before_operand, operand, without_dots};
use crate::parse::token::{skip_space, token};

/// Functions of templates, which stand before their arguments without parentheses.
const COMMANDS: [&str; 16] = [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "hasKey",
    "default",
    "index",
    "contains",
    "hasPrefix",
    "hasSuffix",
    "has",
    "len",
];

/// `{{ eq .spec.hostNetwork true }}`, with or without the braces.
pub(super) fn translate(source: &str) -> Option<Translated> {
    let whole = source.trim();
    let inside = whole.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let inside = inside.filter(|inside| !inside.contains("{{")).map(|inside| inside.trim_matches('-'));
    let text = match inside {
        // An `if` has the condition behind it, and what it guards is not here.
        Some(inside) => {
            let inside = inside.trim();
            let condition = inside.strip_prefix("if ").unwrap_or(inside);
            commands(condition, true).unwrap_or_else(|| without_dots(condition))
        }
        None => commands(whole, false)?,
    };
    Some(Translated { text, variables: 0 })
}

/// A text with the commands of a template as operations. None if there is none.
fn commands(text: &str, is_template: bool) -> Option<String> {
    let mut written = String::new();
    let (mut at, mut copied, mut changes) = (skip_space(text, 0), 0, 0);
    let mut is_first = true;
    while at < text.len() {
        let word = token(text, at);
        let behind = at + word.len();
        let is_command =
            is_first && COMMANDS.contains(&word) && text[behind..].starts_with(|next: char| next.is_whitespace());
        if is_command && let Some((operands, end)) = operands(text, behind) {
            written.push_str(&text[copied..at]);
            written.push_str(&command(word, &operands)?);
            (at, copied) = (skip_space(text, end), end);
            changes += 1;
            if changes > MAX_CHANGES {
                return None;
            }
            is_first = false;
            continue;
        }
        is_first = is_before_operand(word);
        at = skip_space(text, behind);
    }
    written.push_str(&text[copied..]);
    (changes > 0).then(|| if is_template { without_dots(&written) } else { written })
}

/// What a command says. A template has what is looked at last, where we have it first.
fn command(name: &str, operands: &[String]) -> Option<String> {
    let sign = |sign: &str| match operands {
        [one, other] => Some(format!("({one} {sign} {other})")),
        _ => None,
    };
    let flipped = |sign: &str| match operands {
        [one, other] => Some(format!("({other} {sign} {one})")),
        _ => None,
    };
    // Templates have the text that is looked for first, and Go has it last.
    let asked = |sign: &str| match operands {
        [one, other] if is_text(other) && !is_text(one) => Some(format!("({one} {sign} {other})")),
        _ => flipped(sign),
    };
    match (name, operands) {
        ("eq", [one, others @ ..]) if others.len() > 1 => Some(format!("({one} in [{}])", others.join(", "))),
        ("eq", _) => sign("=="),
        ("ne", _) => sign("!="),
        ("lt", _) => sign("<"),
        ("le", _) => sign("<="),
        ("gt", _) => sign(">"),
        ("ge", _) => sign(">="),
        ("and", [_, _, ..]) => Some(format!("({})", operands.join(" && "))),
        ("or", [_, _, ..]) => Some(format!("({})", operands.join(" || "))),
        ("len", [list]) => Some(format!("len({list})")),
        ("hasKey", _) => flipped("in"),
        ("has", _) => sign("in"),
        ("default", _) => flipped("??"),
        ("contains", _) => asked("contains"),
        ("hasPrefix", _) => asked("startsWith"),
        ("hasSuffix", _) => asked("endsWith"),
        ("index", [map, keys @ ..]) if !keys.is_empty() => Some(format!("{map}[{}]", keys.join("]["))),
        _ => None,
    }
}

fn is_text(operand: &str) -> bool {
    operand.starts_with(['"', '\'', '`'])
}

/// The operands that stand beside each other, and where they end.
fn operands(text: &str, at: usize) -> Option<(Vec<String>, usize)> {
    let (mut found, mut end) = (Vec::new(), at);
    let mut next = skip_space(text, at);
    while let Some(behind) = operand(text, next) {
        let operand = &text[next..behind];
        let inside = operand.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        found.push(match inside.and_then(|inside| commands(inside, true)) {
            Some(inside) => format!("({inside})"),
            None => without_dots(operand),
        });
        (end, next) = (behind, skip_space(text, behind));
    }
    (!found.is_empty()).then_some((found, end))
}
