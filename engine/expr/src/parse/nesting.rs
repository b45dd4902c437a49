//! How deep brackets and what acts like them are nested, found out before pest runs: it recurses with them, and a source
//! of opening brackets alone must not cost more than a look at it.

use super::token::{skip_space, token};
use crate::error::{Error, Phase};
use crate::limits::MAX_NESTING;

/// What is open between two brackets.
#[derive(Default)]
struct Open {
    /// `let`, which reaches to the end of its list element.
    lets: usize,
    /// `? :` and `if`, which reach to the end of their statement.
    branches: usize,
}

/// Refuses what is nested too deep. It stops at the first thing that no expression can hold, as pest will.
pub(super) fn check(source: &str) -> Result<(), Error> {
    if !may_be_too_deep(source) {
        return Ok(());
    }
    let mut outer: Vec<Open> = Vec::new();
    let mut open = Open::default();
    let mut depth = 0;
    let mut at = skip_space(source, 0);
    let mut previous = "";
    while at < source.len() {
        let token = token(source, at);
        match token {
            "(" | "[" | "{" => {
                depth += 1;
                outer.push(std::mem::take(&mut open));
            }
            ")" | "]" | "}" => {
                depth -= open.lets + open.branches;
                let Some(around) = outer.pop() else { return Ok(()) };
                depth -= 1;
                open = around;
            }
            "," => {
                depth -= open.lets + open.branches;
                open = Open::default();
            }
            ";" => {
                depth -= open.branches;
                open.branches = 0;
            }
            "let" if !is_dot(previous) => {
                depth += 1;
                open.lets += 1;
            }
            "?" => {
                depth += 1;
                open.branches += 1;
            }
            "if" if !is_dot(previous) => {
                depth += 1;
                open.branches += 1;
            }
            "\"" | "'" | "`" => return Ok(()),
            "/" if source[at..].starts_with("/*") => return Ok(()),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(too_deep(source, at as u32));
        }
        previous = token;
        at = skip_space(source, at + token.len());
    }
    Ok(())
}

/// Whether there are enough signs that open something, and enough ends of `let` and `if`. Few sources have as many.
fn may_be_too_deep(source: &str) -> bool {
    source.bytes().map(|byte| usize::from(OPENS[usize::from(byte)])).sum::<usize>() > MAX_NESTING
}

/// The signs that are counted. A table, because whoever asks of each byte which one it is guesses wrong too often.
static OPENS: [bool; 256] = {
    let mut opens = [false; 256];
    let mut signs: &[u8] = b"([{?tf";
    while let [sign, rest @ ..] = signs {
        opens[*sign as usize] = true;
        signs = rest;
    }
    opens
};

pub(super) fn too_deep(source: &str, at: u32) -> Error {
    Error::at(Phase::Parse, source, at, format!("the expression is nested deeper than {MAX_NESTING} levels"))
}

/// After a dot every word is a name.
fn is_dot(token: &str) -> bool {
    matches!(token, "." | "?.")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::check as check_nesting;

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        let result = check_nesting(source).err();
        expected.assert_eq(&result.map_or("fine".to_owned(), |error| format!("{}: {}", error.column, error.message)));
    }

    #[test]
    fn brackets_nest() {
        check(&"(".repeat(65536), expect!["101: the expression is nested deeper than 100 levels"]);
        check(&("(".repeat(100) + &")(".repeat(9)), expect!["fine"]);
        check(&"f([{".repeat(34), expect!["135: the expression is nested deeper than 100 levels"]);
    }

    #[test]
    fn branches_nest_to_the_end_of_their_statement() {
        check(&"a ? ".repeat(101), expect!["403: the expression is nested deeper than 100 levels"]);
        check(&"a ? b : c; ".repeat(101), expect!["fine"]);
        check(&"if a {1} else {2}, ".repeat(101), expect!["fine"]);
    }

    #[test]
    fn let_nests_to_the_end_of_its_element() {
        check(&"let a = 1; ".repeat(101), expect!["1101: the expression is nested deeper than 100 levels"]);
        check(&"let a = 1; a, ".repeat(101), expect!["fine"]);
        check(&"(let a = 1; a); ".repeat(101), expect!["fine"]);
    }

    #[test]
    fn what_only_looks_like_nesting_does_not_count() {
        for text in ["a.let.if ", "a?.b ", "a ?? b ", "'(' ", "`(` ", "/* ( */ ", "// (\n", "leta ", "xif "] {
            check(&text.repeat(101), expect!["fine"]);
        }
    }

    #[test]
    fn it_ends_at_what_no_expression_can_hold() {
        for text in ["\"", "'", "`", "/*", ")"] {
            check(&(text.to_owned() + &"(\n".repeat(101)), expect!["fine"]);
        }
    }
}
