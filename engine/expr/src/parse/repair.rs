//! What people of other languages meant by a source that is not in this one. The source is changed where the parser stopped, one
//! sign after the other, until it can be read; what was read is then written as it is written here.

use super::read;
use super::token::{is_reserved, is_word, skip_space, token};
use crate::builtins;
use crate::error::Error;
use crate::habits::{self, SIGNS};

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
    if let Some(text) = without_head(source).and_then(|text| readable(&text)) {
        return Some(text);
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

/// A text as it is written here, if it can be read.
fn readable(text: &str) -> Option<String> {
    let text = habits::written_here(&read(text, LENIENT).ok()?, 0)?;
    read(&text, !LENIENT).is_ok().then_some(text)
}

/// The condition of `if x`, `deny if x`, `for c in list: x` and `some r in list; x`, which other languages have words around.
fn without_head(source: &str) -> Option<String> {
    let source = source.trim();
    let (first, rest) = source.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    match first {
        "some" | "every" => {
            let (variable, rest) = rest.split_once(" in ")?;
            let end =
                rest.find([';', '\n']).map(|at| (at, 1)).or_else(|| rest.find(" satisfies ").map(|at| (at, 11)))?;
            let (list, body) = (rest[..end.0].trim(), rest[end.0 + end.1..].trim());
            let predicate = if first == "some" { "any" } else { "all" };
            Some(format!("{predicate}({list}, {variable}, {})", any_element(body)?))
        }
        "if" if !rest.contains('{') => match rest.split_once(" then ") {
            Some((condition, rest)) => {
                let (yes, no) = rest.split_once(" else ").unwrap_or((rest, "false"));
                Some(format!("({condition}) ? ({yes}) : ({no})"))
            }
            None => Some(rest.to_owned()),
        },
        "for" => {
            let (variable, rest) = rest.split_once(" in ")?;
            let (list, body) = rest.split_once(':')?;
            Some(format!("any({list}, {}, {body})", variable.trim()))
        }
        "typeof" => {
            let (value, rest) = rest.split_once(char::is_whitespace)?;
            let (sign, name) = rest.trim().split_once(char::is_whitespace)?;
            let is_missing = matches!(name.trim().trim_matches(['"', '\'']), "undefined" | "null");
            let sign = match sign {
                "==" | "===" => "==",
                "!=" | "!==" => "!=",
                _ => return None,
            };
            is_missing.then(|| format!("{value} {sign} nil"))
        }
        // `allow` says when nothing is wrong, which is the opposite.
        "deny" | "violation" => Some(rest.strip_prefix("if ").unwrap_or(rest).trim_matches(['{', '}', ' ']).to_owned()),
        _ => None,
    }
}

/// A body in which `x[_] == y` asks whether one of the elements is so. None if it asks that in another way.
fn any_element(body: &str) -> Option<String> {
    let Some((list, value)) = body.split_once("[_] ==") else {
        return (!body.contains("[_]")).then(|| body.to_owned());
    };
    let is_path = list.chars().all(|letter| is_word(letter) || letter == '.');
    let is_value = !value.contains("[_]") && !value.contains([';', '\n', '&', '|', '?']);
    (is_path && is_value).then(|| format!("{} in {list}", value.trim()))
}

/// What is to be written instead of a condition of Rego that asks all elements of one list: `xs[_].name == "a"`.
pub(crate) fn element_meant(source: &str) -> Option<String> {
    let (list, rest) = source.trim().split_once("[_]").filter(|_| source.len() <= MAX_SOURCE)?;
    // Something beside it would become a part of it, and what is negated would be so of each element.
    let is_beside = |word: &str| matches!(word, "and" | "or" | "not" | "let" | "if" | "_");
    let is_alone = !rest.contains(['&', '|', '?', ';']) && !rest.split(|letter| !is_word(letter)).any(is_beside);
    let is_path = list.chars().all(|letter| is_word(letter) || letter == '.');
    if is_path && is_alone { readable(&format!("any({list}, #{rest})")) } else { None }
}

/// `list[?x == 1]`, `list[*].name` and `list[].name`, which begin with the bracket before a place.
fn projected(source: &str, at: usize) -> Option<String> {
    let open = source[..at].rfind('[')?;
    let start = start_of_path(source, start_of_call(source, open)?);
    let list = &source[start..open];
    let close = at + source[at..].find(']')?;
    let (inside, behind) = (source[open + 1..close].trim(), &source[close + 1..]);
    // That is jq, whose pipes are told as a whole.
    if behind.contains("select(") {
        return None;
    }
    if matches!(inside, "*" | "") {
        let end = behind.find(|letter: char| !is_word(letter) && letter != '.').unwrap_or(behind.len());
        let (path, rest) = behind.split_at(end);
        // An index was forgotten.
        if inside.is_empty() && path.is_empty() && start == 0 && rest.trim().is_empty() {
            return None;
        }
        // Only what was made of lists has lists in it.
        let list = if inside.is_empty() && list.ends_with(')') { format!("flatten({list})") } else { list.to_owned() };
        let mut mapped = if path.is_empty() { list } else { format!("map({list}, {path})") };
        let mut rest = rest;
        // A list of lists becomes one.
        while let Some(behind) = rest.strip_prefix("[*]").or_else(|| rest.strip_prefix("[]")) {
            let end = behind.find(|letter: char| !is_word(letter) && letter != '.').unwrap_or(behind.len());
            let (path, behind) = behind.split_at(end);
            mapped = format!("flatten({mapped})");
            if !path.is_empty() {
                mapped = format!("map({mapped}, {path})");
            }
            rest = behind;
        }
        return Some(format!("{}{mapped}{rest}", &source[..start]));
    }
    let condition = without_backticks(inside.strip_prefix('?')?, true).replace("@.", "");
    let field = |part: &str| match part.trim() {
        part if part.starts_with(is_word) && !part.contains('(') => format!(".{part}"),
        part => part.to_owned(),
    };
    let conditions: Vec<String> = condition.split("&&").map(field).collect();
    let conditions = conditions.join(" && ");
    let end = behind.find(|letter: char| !is_word(letter) && letter != '.').unwrap_or(behind.len());
    let [before, rest] = [&source[..start], &behind[end..]].map(|text| without_backticks(text, false));
    let path = if behind.starts_with('.') { &behind[..end] } else { "" };
    Some(match rest.trim() {
        // Whether there is any is all that is asked.
        "" => format!("{before}any({list}, {conditions})"),
        _ if path.is_empty() || rest.starts_with('(') => {
            format!("{before}filter({list}, {conditions}){}{rest}", &behind[..end])
        }
        _ => format!("{before}map(filter({list}, {conditions}), {path}){rest}"),
    })
}

/// A text of JMESPath, where what is in backticks is JSON: `` `0` `` is 0. What is none is text, if all of it is taken for that.
fn without_backticks(source: &str, is_condition: bool) -> String {
    let (mut text, mut rest) = (String::new(), source);
    while let Some((before, inside, behind)) = rest
        .split_once('`')
        .and_then(|(before, rest)| rest.split_once('`').map(|(inside, behind)| (before, inside, behind)))
    {
        let is_number = inside.parse::<f64>().is_ok() && inside.ends_with(|last: char| last.is_ascii_digit());
        text.push_str(before);
        match inside {
            "null" => text.push_str("nil"),
            "true" | "false" => text.push_str(inside),
            _ if is_number || inside.starts_with(['"', '[']) => text.push_str(inside),
            _ if is_condition => text.push_str(&format!("{inside:?}")),
            _ => text.push_str(&format!("`{inside}`")),
        }
        rest = behind;
    }
    text + rest
}

/// `list.?[x == 1]` and `list.![name]` of Spring's language, whose sign is at a place.
fn selected(source: &str, at: usize) -> Option<String> {
    let before = source[..at].strip_suffix('.')?;
    let list = &before[start_of_path(before, before.len())..];
    let close = at + closing_bracket(&source[at..])?;
    let (inside, behind) = (source[at + 2..close].trim(), &source[close + 1..]);
    let field = |part: &str| match part.trim() {
        part if part.starts_with("#this") => part.replacen("#this", "#", 1),
        part if part.starts_with(is_word) && !is_reserved(token(part, 0)) => format!(".{part}"),
        part => part.to_owned(),
    };
    let predicate = match &source[at..=at] {
        "!" => "map",
        _ if behind.trim().is_empty() => "any",
        _ => "filter",
    };
    let conditions: Vec<String> = inside.split("&&").map(field).collect();
    Some(format!("{}{predicate}({list}, {}){behind}", &before[..before.len() - list.len()], conditions.join(" && ")))
}

/// Where the bracket is closed that is open behind the sign at the start of a text.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    text.char_indices().find_map(|(at, letter)| {
        depth += match letter {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        (letter == ']' && depth == 0).then_some(at)
    })
}

/// A text of Python with a letter before it, which ends at a place: `f"a {x}"` is `("a " + x)`, and `r"\d"` is in backticks here.
fn prefixed(source: &str, at: usize, literal: &str) -> Option<(usize, String)> {
    let before = &source[..at];
    let start = before.trim_end_matches(is_word).len();
    let quote = literal.chars().next()?;
    let inside = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    match &before[start..] {
        "r" | "R" if !inside.contains('`') => Some((start, format!("`{inside}`"))),
        "f" | "F" if !inside.contains('\\') => {
            let (mut parts, mut rest) = (Vec::new(), inside);
            while let Some((text, behind)) = rest.split_once('{') {
                let (value, behind) = behind.split_once('}')?;
                // Of braces that are meant as such, and of formats, nothing is said.
                if value.trim().is_empty() || value.contains(['{', '!', ':']) || behind.starts_with('}') {
                    return None;
                }
                parts.extend((!text.is_empty()).then(|| format!("{quote}{text}{quote}")));
                parts.push(value.trim().to_owned());
                rest = behind;
            }
            parts.extend((!rest.is_empty()).then(|| format!("{quote}{rest}{quote}")));
            Some((start, format!("({})", parts.join(" + ")))).filter(|_| !parts.is_empty())
        }
        _ => None,
    }
}

/// Where a path begins that ends at a place.
fn start_of_path(source: &str, end: usize) -> usize {
    source[..end].trim_end_matches(|letter: char| is_word(letter) || letter == '.').len()
}

/// Where the parentheses open that close before a place: there, if none do. None if they are not whole.
fn start_of_call(source: &str, end: usize) -> Option<usize> {
    if !source[..end].ends_with(')') {
        return Some(end);
    }
    let mut depth = 0_i32;
    let open = source[..end].char_indices().rev().find(|(_, letter)| {
        depth += match letter {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    Some(open.0)
}

/// A regular expression of JavaScript, which begins at a place: where it ends, and the text that it is here.
fn regex_literal(source: &str, at: usize) -> Option<(usize, String)> {
    let (mut is_escaped, mut in_class) = (false, false);
    let length = source[at + 1..].find(|letter: char| {
        let is_end = letter == '/' && !is_escaped && !in_class;
        match letter {
            '[' if !is_escaped => in_class = true,
            ']' if !is_escaped => in_class = false,
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    let close = at + 1 + length;
    let flags: &str = source[close + 1..].split(|letter: char| !is_word(letter)).next().unwrap_or_default();
    let pattern = source[at + 1..close].replace("\\/", "/");
    // A backtick closes the text, and nothing stands for one in there.
    if pattern.is_empty() || pattern.contains(['`', '\n']) {
        return None;
    }
    let flag = if flags.contains('i') { "(?i)" } else { "" };
    Some((close + 1 + flags.len(), format!("`{flag}{pattern}`")))
}

/// What SQL's `LIKE` means by a pattern, as a regular expression.
fn like(literal: &str) -> Option<String> {
    let quote = literal.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let inside = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut regex = String::from("^");
    for letter in inside.chars() {
        match letter {
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '.' | '+' | '*' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                regex.push_str(&format!("[{letter}]"))
            }
            letter => regex.push(letter),
        }
    }
    Some(format!("{quote}{regex}${quote}"))
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
        "!" if rest.starts_with("!~") => replace(at, at + 2, " not matches "),
        "!" if is_negated_in(source, at) => replace(at, at + 1, " not "),
        "?" | "!" if before.ends_with('.') && rest[1..].starts_with('[') => selected(source, at),
        "?" if before.ends_with('.') => replace(at, at + 1, ""),
        // A pipe gives it already.
        "@" if is_piped_argument(before) => match rest[1..].trim_start().strip_prefix(',') {
            Some(others) => replace(at, source.len() - others.len(), ""),
            None => replace(at, at + 1, ""),
        },
        "@" => replace(at, at + 1, "#"),
        "*" | "?" | "]" if last.ends_with('[') => projected(source, at),
        ":" if is_arrow(source, at) => replace(at, at + 1, ","),
        "/" if let Some((end, text)) = regex_literal(source, at) => replace(at, end, &text),
        key if key.starts_with(['"', '\'']) && key.len() > 1 && before.ends_with('.') => {
            replace(at - 1, at + key.len(), &format!("[{key}]"))
        }
        literal
            if literal.starts_with(['"', '\''])
                && let Some((start, text)) = prefixed(source, at, literal) =>
        {
            replace(start, at + literal.len(), &text)
        }
        "like" | "LIKE"
            if let Some(regex) = {
                let next = skip_space(source, at + found.len());
                like(token(source, next)).map(|regex| (next + token(source, next).len(), regex))
            } =>
        {
            replace(at, regex.0, &format!("matches {}", regex.1))
        }
        "is" | "IS" => match skip_space(source, at + 2) {
            next if matches!(token(source, next), "not" | "NOT") => replace(at, next + 3, "!="),
            _ => replace(at, at + 2, "=="),
        },
        "AND" | "OR" | "NOT" | "IN" => replace(at, at + found.len(), &found.to_lowercase()),
        "LIKE" | "like" => replace(at, at + found.len(), "matches"),
        word if let Some((_, ours)) = SIGNS.iter().find(|(theirs, _)| *theirs == word) => {
            replace(at, at + found.len(), ours)
        }
        // As a function; the tables of habits have it in this case too.
        "contains" | "startsWith" | "endsWith" | "matches" if is_called(source, at + found.len()) => {
            replace(at, at + 1, &found[..1].to_uppercase())
        }
        // An element of what JMESPath has before the pipe.
        "[" if last.ends_with('|') && !last.ends_with("||") => replace(last.len() - 1, at, ""),
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

/// Whether a place is in `=>` or `->`, or is the colon of `any(list, c: …)`.
pub(super) fn is_arrow(source: &str, at: usize) -> bool {
    let (before, rest) = source.split_at(at);
    if rest.starts_with(':') && !rest.starts_with("::") && !rest.starts_with(":=") {
        let name = before.trim_end().trim_end_matches(is_word);
        return name.len() < before.trim_end().len() && name.trim_end().ends_with(',') && !name.contains('{');
    }
    rest.starts_with("=>") || rest.starts_with('>') && before.ends_with(['=', '-'])
}

/// Whether it is the `!` of `x !in y`.
fn is_negated_in(source: &str, at: usize) -> bool {
    source.get(at + 1..).is_some_and(|rest| rest.starts_with("in") && !rest[2..].starts_with(is_word))
}

/// Whether what follows is the first argument of a call behind a pipe: `… | length(`.
fn is_piped_argument(before: &str) -> bool {
    let Some(call) = before.trim_end().strip_suffix('(') else { return false };
    let pipe = call.trim_end_matches(is_word);
    pipe.len() < call.len() && pipe.trim_end().ends_with('|') && !pipe.trim_end().ends_with("||")
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
