//! What can be wrong with an expression, and where.

use std::fmt;

/// An error with its place in the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    /// When it was found.
    pub phase: Phase,
    /// What is wrong. Lower case, no full stop.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The line of the source that it is on, or what is around the place in a long one.
    pub source_line: SourceLine,
}

/// A line of a source with a place in it, as it is shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceLine {
    /// The line, or a part of it.
    pub text: String,
    /// How many characters of it stand before the place.
    pub before: u32,
}

/// When an error was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The text is not in the language.
    Parse,
    /// The text is in the language but can never work: an unknown name, types that do not fit.
    Compile,
    /// The expression met values that it cannot work with.
    Run,
}

/// How many characters of a line are shown.
const SHOWN: usize = 160;

impl Error {
    /// An error at a byte offset of the source.
    pub(crate) fn at(phase: Phase, source: &str, offset: u32, message: impl Into<String>) -> Self {
        let mut offset = (offset as usize).min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
        let column = source[start..offset].chars().count() as u32 + 1;
        let source_line = SourceLine::of(source[start..].lines().next().unwrap_or_default(), column);
        Self { phase, message: message.into(), line, column, source_line }
    }
}

impl SourceLine {
    /// What is shown of a line with a place at a column. The rest of a long line is left out: errors are kept by the hundred.
    pub fn of(line: &str, column: u32) -> Self {
        let before = column as usize - 1;
        let skipped = before.saturating_sub(SHOWN / 2);
        let mut rest = line.chars().skip(skipped);
        let start = mark(skipped > 0);
        let mut text: String = start.chars().chain(rest.by_ref().take(SHOWN).map(harmless)).collect();
        text.push_str(mark(rest.next().is_some()));
        Self { text, before: (before - skipped + start.chars().count()) as u32 }
    }
}

impl fmt::Display for Error {
    /// The message, and below it the line of the source with a caret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, line, column, source_line: SourceLine { text, before }, .. } = self;
        let tab_or_space = |character| if character == '\t' { '\t' } else { ' ' };
        let indent: String = text.chars().take(*before as usize).map(tab_or_space).collect();
        write!(formatter, "{line}:{column}: {message}\n | {text}\n | {indent}^")
    }
}

/// Terminals obey control characters, and the source is anybody's.
fn harmless(character: char) -> char {
    if character.is_control() && character != '\t' { char::REPLACEMENT_CHARACTER } else { character }
}

/// Stands for what is left out of a line.
fn mark(left_out: bool) -> &'static str {
    if left_out { "…" } else { "" }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Error, Phase, SHOWN};

    #[track_caller]
    fn check(source: &str, offset: u32, expected: Expect) {
        expected.assert_eq(&Error::at(Phase::Parse, source, offset, "something is wrong").to_string());
    }

    #[test]
    fn a_place_is_given_in_lines_and_characters() {
        check(
            "é +\n\tö b",
            8,
            expect![[r#"
            2:3: something is wrong
             | 	ö b
             | 	 ^"#]],
        );
        check(
            "a",
            1,
            expect![[r#"
            1:2: something is wrong
             | a
             |  ^"#]],
        );
        check(
            "a\u{1b}[31m",
            1,
            expect![[r#"
            1:2: something is wrong
             | a�[31m
             |  ^"#]],
        );
        check(
            "é",
            1,
            expect![[r#"
            1:1: something is wrong
             | é
             | ^"#]],
        );
    }

    #[test]
    fn of_a_long_line_only_the_part_around_the_place_is_shown() {
        check(
            &("a".repeat(500) + "b" + &"c".repeat(500)),
            500,
            expect![[r#"
            1:501: something is wrong
             | …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc…
             |                                                                                  ^"#]],
        );
    }

    #[test]
    fn of_a_long_line_nothing_is_kept_that_is_not_shown() {
        for source in ["a".repeat(1 << 20), "😀".repeat(1 << 18)] {
            for offset in [0, 1 << 19, 1 << 20] {
                let error = Error::at(Phase::Run, &source, offset, "something is wrong");
                let text = error.source_line.text;
                assert!(text.chars().count() <= SHOWN + 2 && text.capacity() < 2048, "{}", text.capacity());
            }
        }
    }
}
