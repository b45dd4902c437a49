//! The parser: brackets around what it takes change nothing, what it takes can be written so that it is read back, and what it refuses,
//! it refuses at a place.

use portal_expr::{Error, MAX_SOURCE, Phase, canonical, canonical_with_places, is_same, written};

use super::check_error;

/// Of these Go's expr-lang prints some without the brackets that they need, and so do we.
const PRINTED_WITHOUT_BRACKETS: [&str; 6] = [";", "?", "let", "if", "<", ">"];

/// Parses an expression.
pub fn expression_parse(input: &[u8]) {
    let Ok(source) = str::from_utf8(input) else { return };
    match canonical_with_places(source) {
        Ok((printed, places)) => {
            assert!(source.len() <= MAX_SOURCE);
            let characters = source.chars().count();
            assert!(places.iter().all(|place| *place <= characters), "{places:?} are not within {characters}");
            // Behind the last semicolon there need not be anything, unless there are brackets.
            if !source.contains(';') {
                check_same(&format!("({source}\n)"), &printed);
            }
            if !PRINTED_WITHOUT_BRACKETS.iter().any(|word| source.contains(word)) {
                check_printed(&printed);
            }
            check_written(source);
        }
        Err(error) => check_refused(&error, source),
    }
}

/// Checks that what is printed is printed alike. Some of it is refused: `(-1).a` is printed as `-1.a`.
fn check_printed(printed: &str) {
    match canonical(printed) {
        Ok(again) => assert_eq!(again, printed),
        Err(error) => check_refused(&error, printed),
    }
}

/// Checks that what people are shown is the same expression, if it is not over a limit: it may have more brackets.
fn check_written(source: &str) {
    let text = written(source).expect("it was read before");
    match is_same(source, &text) {
        Ok(same) => assert!(same, "{source:?} is written as {text:?}, which is another expression"),
        Err(error) => assert!(is_limit(&error), "{source:?} is written as {text:?}, which is refused: {error}"),
    }
}

/// Checks that a source is printed so, if it is not over a limit.
fn check_same(source: &str, printed: &str) {
    match canonical(source) {
        Ok(again) => assert_eq!(again, printed),
        Err(error) => {
            check_refused(&error, source);
            assert!(is_limit(&error), "{source:?} is refused: {error}");
        }
    }
}

fn is_limit(error: &Error) -> bool {
    ["nested", "longer than", "more than"].iter().any(|word| error.message.contains(word))
}

fn check_refused(error: &Error, source: &str) {
    assert_eq!(error.phase, Phase::Parse);
    check_error(error, source);
}
