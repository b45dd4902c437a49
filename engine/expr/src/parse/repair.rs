//! What people of other languages meant by a source that is not in this one. The source is changed where the parser stopped, one
//! sign after the other, until it can be read; what was read is then written as it is written here.

use super::read;
use super::token::{is_word, skip_space, token};
use crate::builtins;
use crate::error::Error;
use crate::habits;

/// How long a source may be that is repaired. What is longer cannot be shown in a message.
const MAX_SOURCE: usize = 1000;

/// How many signs are changed.
const MAX_REPAIRS: usize = 16;

/// A source that is read where others are not, because it will be written differently: the element of a predicate may stand
/// anywhere, and a predicate may have a variable for it.
pub(super) const LENIENT: bool = true;

/// What is to be written instead of a source that cannot be read.
pub(super) fn instead(source: &str, error: &Error) -> Option<String> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let mut repaired = source.to_owned();
    let mut place = offset(source, error);
    let mut arrows = 0;
    for _ in 0..MAX_REPAIRS {
        match read(&repaired, LENIENT) {
            Ok(tree) => {
                let text = habits::written_here(&tree, arrows)?;
                return read(&text, !LENIENT).is_ok().then_some(text);
            }
            Err(error) if repaired != source => place = offset(&repaired, &error),
            Err(_) => {}
        }
        arrows += usize::from(is_arrow(&repaired, place));
        repaired = repair(&repaired, place)?;
    }
    None
}

/// The source with the sign changed that the parser stopped at.
fn repair(source: &str, at: usize) -> Option<String> {
    let (before, rest) = source.split_at_checked(at)?;
    let replace = |start: usize, end: usize, text: &str| Some(format!("{}{text}{}", &source[..start], &source[end..]));
    let found = token(source, at);
    let last = before.trim_end();
    match found {
        "=" if is_arrow(source, at) => replace(at, at + 2, ","),
        ">" if is_arrow(source, at) => replace(at - 1, at + 1, ","),
        "=" if before.ends_with("==") || before.ends_with("!=") => replace(at, at + 1, ""),
        "=" if rest.starts_with("=~") => replace(at, at + 2, " matches "),
        "~" if rest.starts_with("~=") => replace(at, at + 2, " matches "),
        "~" if before.ends_with('=') => replace(at - 1, at + 1, " matches "),
        "~" => replace(at, at + 1, " matches "),
        "=" => replace(at, at + 1, "=="),
        "&" => replace(at, at + 1, "&&"),
        ">" if before.ends_with('<') => replace(at - 1, at + 1, "!="),
        "!" if is_negated_in(source, at) => replace(at, at + 1, " not "),
        "?" if before.ends_with('.') => replace(at, at + 1, ""),
        "@" => replace(at, at + 1, "#"),
        "is" => match skip_space(source, at + 2) {
            next if token(source, next) == "not" => replace(at, next + 3, "!="),
            _ => replace(at, at + 2, "=="),
        },
        "AND" | "OR" | "NOT" | "IN" => replace(at, at + found.len(), &found.to_lowercase()),
        "LIKE" => replace(at, at + found.len(), "matches"),
        "eq" => replace(at, at + found.len(), "=="),
        "ne" => replace(at, at + found.len(), "!="),
        // As a function; the tables of habits have it in this case too.
        "contains" | "startsWith" | "endsWith" | "matches" if is_called(source, at + found.len()) => {
            replace(at, at + 1, &found[..1].to_uppercase())
        }
        // Only a call can follow a pipe, so that `or` is meant by what stands before anything else.
        _ => {
            let without_name = last.trim_end_matches(is_word);
            let name = &last[without_name.len()..];
            let ends_with_pipe = |text: &&str| text.ends_with('|') && !text.ends_with("||");
            let pipe = [last, without_name.trim_end()].into_iter().find(ends_with_pipe)?;
            if builtins::find(name).is_some() {
                return replace(last.len(), last.len(), "()");
            }
            replace(pipe.len() - 1, pipe.len(), "||")
        }
    }
}

/// Whether a place is in `=>` or `->`.
pub(super) fn is_arrow(source: &str, at: usize) -> bool {
    let (before, rest) = source.split_at(at);
    rest.starts_with("=>") || rest.starts_with('>') && before.ends_with(['=', '-'])
}

/// Whether it is the `!` of `x !in y`.
fn is_negated_in(source: &str, at: usize) -> bool {
    source.get(at + 1..).is_some_and(|rest| rest.starts_with("in") && !rest[2..].starts_with(is_word))
}

fn is_called(source: &str, at: usize) -> bool {
    source[skip_space(source, at)..].starts_with('(')
}

/// The place of an error in bytes.
fn offset(source: &str, error: &Error) -> usize {
    let line = error.line as usize - 1;
    let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let column = error.column as usize - 1;
    source[start..].char_indices().nth(column).map_or(source.len(), |(at, _)| start + at)
}
