//! What pest could not read, in words. pest knows the place that it never got beyond, and the rules that it tried there.

use pest::error::{Error as PestError, ErrorVariant, InputLocation};

use super::Rule;
use super::literals::is_number;
use super::repair::is_arrow;
use super::token::{is_reserved, is_word, token};
use crate::error::{Error, Phase};
use crate::habits::SIGNS;
use crate::value::Amount;

pub(super) fn explain(source: &str, error: &PestError<Rule>) -> Error {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let tried: &[Rule] = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => &[],
    };
    let (at, message) = unfinished(source, at).unwrap_or_else(|| {
        let (expected, found) = (expected(tried), found(source, at));
        (at, format!("expected {expected}, found {found}{}", hint(source, at, tried)))
    });
    Error::at(Phase::Parse, source, at as u32, message)
}

/// A literal or a comment that has no end, a number that is none, a character that has no meaning.
fn unfinished(source: &str, at: usize) -> Option<(usize, String)> {
    let rest = &source[at..];
    // A comment without an end was read as a division.
    let slash = if rest.starts_with("/*") { Some(at) } else { at.checked_sub(1) };
    if let Some(slash) = slash.filter(|slash| source.as_bytes()[*slash..].starts_with(b"/*")) {
        return Some((slash, "this comment is not closed: expected `*/`".to_owned()));
    }
    match token(source, at) {
        quote @ ("\"" | "'") => {
            return Some((at, format!("this text is not closed: expected {quote} before the end of the line")));
        }
        "`" => return Some((at, "this text is not closed: expected another backtick".to_owned())),
        _ => {}
    }
    let first = rest.chars().next()?;
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit())) {
        let end = rest.find(|character| !is_word(character) && character != '.').unwrap_or(rest.len());
        // A good one stands where none is expected.
        if !is_number(&rest[..end]) {
            let hint = match &rest[..end] {
                _ if source[..at].ends_with('.') => "; an element of a list is `[0]`".to_owned(),
                amount if Amount::parse(amount).is_some() => {
                    format!("; an amount is written as text: write `\"{amount}\"`")
                }
                _ => String::new(),
            };
            return Some((at, format!("{} is not a number{hint}", shown(&rest[..end]))));
        }
    }
    let has_meaning = is_word(first) || "\"'`#()[]{},;:.?!=<>&|+-*/%^".contains(first);
    let hint = match first {
        '@' => "; the element that a predicate looks at is `#`, and anything else begins with a name",
        '~' => "; use `matches`",
        _ => "",
    };
    (!has_meaning).then(|| (at, format!("unexpected character `{}`{hint}", first.escape_debug())))
}

/// What could have stood there, in few words.
fn expected(tried: &[Rule]) -> String {
    let tries = |rules: &[Rule]| rules.iter().any(|rule| tried.contains(rule));
    let mut words: Vec<&str> = Vec::new();
    let key = tries(&[Rule::text]) && !tries(&[Rule::group, Rule::operation]);
    if key {
        words.push("a key");
    } else if tries(&[Rule::operation, Rule::sequence, Rule::call, Rule::group, Rule::array, Rule::predicate]) {
        words.push("a value");
    } else if tries(&[Rule::operator]) {
        words.push("an operator");
    } else if tries(&[Rule::property, Rule::identifier, Rule::piped_predicate_call]) {
        words.push("a name");
    }
    // After an element of an array, or after an argument, where a `=` was tried because it could have been the argument's name.
    if tries(&[Rule::operator]) && tries(&[Rule::assign, Rule::close_bracket]) {
        words.push("`,`");
    }
    for (rule, word) in [
        (Rule::colon, "`:`"),
        (Rule::semicolon, "`;`"),
        (Rule::open_brace, "`{`"),
        (Rule::word_else, "`else`"),
        (Rule::close_paren, "`)`"),
        (Rule::close_bracket, "`]`"),
        (Rule::close_index, "`]`"),
        (Rule::close_brace, "`}`"),
        (Rule::EOI, "the end"),
    ] {
        // A sequence ends with `;` only at the end, which is seldom what is missing.
        if tried.contains(&rule) && (rule != Rule::EOI || words != ["a value"]) {
            words.push(word);
        }
    }
    if words.is_empty() && tried.contains(&Rule::assign) {
        words.push("`=`");
    }
    match words.split_last() {
        None => "something else".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

fn found(source: &str, at: usize) -> String {
    match token(source, at) {
        "" => "the end".to_owned(),
        token => shown(token),
    }
}

/// A part of the source in a message, which it must not flood.
pub(super) fn shown(text: &str) -> String {
    let (end, mark) = text.char_indices().nth(30).map_or((text.len(), ""), |(end, _)| (end, "…"));
    format!("`{}{mark}`", text[..end].replace(char::is_control, "\u{fffd}"))
}

/// What may have been meant.
fn hint(source: &str, at: usize, tried: &[Rule]) -> String {
    let (found, before) = (token(source, at), &source[..at]);
    let last = before.trim_end();
    let word = &last[last.trim_end_matches(is_word).len()..];
    let after = &source[at + found.len()..];
    let hint = match found {
        _ if is_behind_hash(source, at) => "; a comment begins with `//`: write that instead of `#`",
        "=" | ">" | ":" if is_arrow(source, at) => {
            "; the body of a predicate has no parameter, `#` is the element and `.name` its field"
        }
        "=" if before.ends_with("==") || before.ends_with("!=") => "; two signs are enough",
        ":" if after.starts_with('=') && after.lines().next().is_some_and(|line| line.trim_end().ends_with("[_]")) => {
            "; a list is asked by `any(list, …)`, where `#` is the element and `.name` its field"
        }
        ":" if after.starts_with('=') => "; a value gets a name by `let name = …;`",
        "=" if after.starts_with('~') => "; use `matches`",
        "=" if tried.contains(&Rule::operator) => "; use `==` to compare",
        ">" if before.ends_with('<') => "; use `!=`",
        "&" => "; use `&&`",
        "?" if before.ends_with('.') => "; a field that is missing is nil without it",
        "*" | "]" if last.ends_with('[') => "; for all elements there are `any(list, .name …)` and `map(list, .name)`",
        "?" if last.ends_with('[') => "; for some elements there are `any(list, …)` and `filter(list, …)`",
        "{" if last.ends_with('{') => "; a name stands alone, without braces",
        "," if tried.contains(&Rule::close_paren) && tried.contains(&Rule::operator) => {
            "; a list is written in brackets, `[a, b]`"
        }
        ";" if tried.contains(&Rule::close_paren) => "; put several expressions in braces or parentheses",
        "|" if in_braces(last) => {
            "; a list is made by `map(list, …)` and `filter(list, …)`, and the keys of a map are `keys(map)`"
        }
        "," | "}" if in_braces(last) && tried.contains(&Rule::colon) => "; a list is written in brackets, `[a, b]`",
        _ if COMMANDS.contains(&word) && before.len() > last.len() && is_operand(found) => {
            "; a function has its arguments in parentheses, and this one is an operator here"
        }
        "for" => "; a list is asked by `any(list, …)`, where `#` is the element and `.name` its field",
        _ if matches!(word, "some" | "every" | "forall") && found.starts_with(is_word) => {
            "; write `any(list, …)` or `all(list, …)`, where `#` is the element and `.name` its field"
        }
        _ if word == "return" => "; the last expression is the value, without `return`",
        _ if tried.contains(&Rule::EOI) && begins_line(source, at) && !found.is_empty() => {
            "; write `&&` between the lines if both must be true, or `||` if one is enough"
        }
        "not" if tried.contains(&Rule::operator) => "; between values it goes with `in`, `contains` and their like",
        "if" if is_headed(source, at) => "; a rule is its condition alone",
        "let" | "if" => "; put it in parentheses",
        word if is_reserved(word) && !tried.contains(&Rule::operator) => {
            return format!("; `{word}` is an operator");
        }
        word => {
            let sign = SIGNS.iter().find(|(theirs, _)| *theirs == word);
            return sign.map(|(_, ours)| format!("; use `{ours}`")).unwrap_or_default();
        }
    };
    hint.to_owned()
}

/// Functions of templates that stand before their arguments, and are operators here.
const COMMANDS: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "hasKey", "default"];

fn is_operand(found: &str) -> bool {
    found.starts_with(|first: char| is_word(first) || matches!(first, '"' | '\'' | '(' | '.')) && !is_reserved(found)
}

/// Whether one thing stands behind a brace: `{x`.
fn in_braces(last: &str) -> bool {
    let inside = last.trim_end_matches(|letter: char| is_word(letter) || matches!(letter, '"' | '\'' | '-'));
    inside.len() < last.len() && inside.trim_end().ends_with('{')
}

/// Whether a place is in a line that was meant as a comment. In brackets it may begin with the element.
fn is_behind_hash(source: &str, at: usize) -> bool {
    let (before, line) = source[..at].rsplit_once('\n').unwrap_or(("", &source[..at]));
    let count = |signs: [char; 2]| before.matches(signs).count();
    let is_open = count(['(', '[']) > count([')', ']']);
    !is_open && line.trim_start().strip_prefix('#').is_some_and(|rest| rest.starts_with(' '))
}

/// Whether something is the first of a line that is not the first.
fn begins_line(source: &str, at: usize) -> bool {
    source[..at].rsplit_once('\n').is_some_and(|(before, line)| line.trim().is_empty() && !before.trim().is_empty())
}

/// Whether one word stands before, as in `deny if …`.
fn is_headed(source: &str, at: usize) -> bool {
    let before = source[..at].trim();
    !before.is_empty() && before.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::parse;

    #[track_caller]
    fn check(sources: &[&str], expected: Expect) {
        let mut table = String::new();
        for source in sources {
            let error = parse(source).expect_err("these are wrong");
            let source: String = source.chars().take(20).collect();
            table += &format!("{source:24}{}:{} {}\n", error.line, error.column, error.message);
        }
        expected.assert_eq(&table);
    }

    #[test]
    fn a_missing_value_is_named() {
        check(
            &["a +", "", "()", "a;;b", "a ==", "in", "a and or b", "1 + if a {1} else {2}", "a === b", "f(,)", "a[]"],
            expect![[r#"
                a +                     1:4 expected a value, found the end
                                        1:1 expected a value, found the end
                ()                      1:2 expected a value, found `)`
                a;;b                    1:3 expected a value, found `;`
                a ==                    1:5 expected a value, found the end
                in                      1:1 expected a value, found `in`; `in` is an operator
                a and or b              1:7 expected a value, found `or`; `or` is an operator
                1 + if a {1} else {2    1:5 expected a value, found `if`; put it in parentheses
                a === b                 1:5 expected a value, found `=`; two signs are enough: write `a == b`
                f(,)                    1:3 expected a value or `)`, found `,`
                a[]                     1:3 expected a value or `:`, found `]`; for all elements there are `any(list, .name …)` and `map(list, .name)`
            "#]],
        );
    }

    #[test]
    fn a_missing_operator_is_named() {
        check(
            &[
                "a b",
                "(a",
                "f(a b)",
                "[1 2]",
                "{a: 1",
                "a ? b",
                "a[b",
                "a = b",
                "a & b",
                "a not b",
                "f(a; b)",
                "\"a\" 'b'",
                "a)",
            ],
            expect![[r#"
                a b                     1:3 expected an operator or the end, found `b`
                (a                      1:3 expected an operator or `)`, found the end
                f(a b)                  1:5 expected an operator, `,` or `)`, found `b`
                [1 2]                   1:4 expected an operator, `,` or `]`, found `2`
                {a: 1                   1:6 expected an operator or `}`, found the end
                a ? b                   1:6 expected an operator or `:`, found the end
                a[b                     1:4 expected an operator, `:` or `]`, found the end
                a = b                   1:3 expected an operator or the end, found `=`: write `a == b`
                a & b                   1:3 expected an operator or the end, found `&`: write `a && b`
                a not b                 1:3 expected an operator or the end, found `not`; between values it goes with `in`, `contains` and their like
                f(a; b)                 1:4 expected an operator, `,` or `)`, found `;`; put several expressions in braces or parentheses
                "a" 'b'                 1:5 expected an operator or the end, found `'b'`
                a)                      1:2 expected an operator or the end, found `)`
            "#]],
        );
    }

    #[test]
    fn a_missing_name_or_word_is_named() {
        check(
            &[
                "a.",
                "a.)",
                "a | 1",
                "let in = 1; 2",
                "let x 1",
                "let x = 1",
                "if a",
                "if a {1}",
                "if a {1} else 2",
                "{-}",
                "{a 1}",
            ],
            expect![[r#"
                a.                      1:3 expected a name, found the end
                a.)                     1:3 expected a name, found `)`
                a | 1                   1:5 expected a name, found `1`: write `a ?? 1`
                let in = 1; 2           1:5 expected a name, found `in`; `in` is an operator
                let x 1                 1:7 expected `=`, found `1`
                let x = 1               1:10 expected an operator or `;`, found the end
                if a                    1:5 expected an operator or `{`, found the end: write `a`
                if a {1}                1:9 expected `else`, found the end
                if a {1} else 2         1:15 expected `{`, found `2`
                {-}                     1:2 expected a key or `}`, found `-`
                {a 1}                   1:4 expected `:`, found `1`
            "#]],
        );
    }

    #[test]
    fn what_has_no_end_or_no_meaning_is_pointed_at() {
        check(
            &["'abc", "a + `b", "1 /* b", "/*", "1abc", "a + 1.b", "@a", "a ~ b", "é ♥"],
            expect![[r#"
                'abc                    1:1 this text is not closed: expected ' before the end of the line
                a + `b                  1:5 this text is not closed: expected another backtick
                1 /* b                  1:3 this comment is not closed: expected `*/`
                /*                      1:1 this comment is not closed: expected `*/`
                1abc                    1:1 `1abc` is not a number
                a + 1.b                 1:5 `1.b` is not a number
                @a                      1:1 unexpected character `@`; the element that a predicate looks at is `#`, and anything else begins with a name
                a ~ b                   1:3 unexpected character `~`: write `a matches b`
                é ♥                     1:3 unexpected character `♥`
            "#]],
        );
    }

    #[test]
    fn a_message_stays_short() {
        check(
            &[&format!("a {}", "b".repeat(1000)), &format!("1{}", "a".repeat(1000))],
            expect![[r#"
            a bbbbbbbbbbbbbbbbbb    1:3 expected an operator or the end, found `bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…`
            1aaaaaaaaaaaaaaaaaaa    1:1 `1aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a number
        "#]],
        );
    }
}
