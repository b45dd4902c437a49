//! Why input is not a document.

use std::fmt;

/// Why input could not be read as a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input is larger than the caller allows.
    #[error("{bytes} bytes are over the limit of {limit} bytes")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit in force.
        limit: usize,
    },
    /// There are more arrays and objects within each other than the caller allows.
    #[error("{at}: nesting is over the limit of {limit} levels")]
    TooDeep {
        /// The first one too many.
        at: Position,
        /// The limit in force.
        limit: usize,
    },
    /// The input is not JSON.
    #[error("{at}: expected {expected}, found {found}")]
    Json {
        /// The first byte that does not fit.
        at: Position,
        /// What would have fitted.
        expected: &'static str,
        /// What is there.
        found: Found,
    },
    /// A number is larger than any number of 64 bits, infinite or not a number.
    #[error("{at}: number is out of range")]
    NumberOutOfRange {
        /// Where it begins.
        at: Position,
    },
    /// The input is not YAML.
    #[error("{at}: {problem}")]
    Yaml {
        /// The first place that is not YAML.
        at: Position,
        /// What the parser of YAML says.
        problem: String,
    },
    /// A scalar of YAML is not what its tag says.
    #[error("{at}: value is not of the type `{tag}` that its tag says")]
    Tag {
        /// Where it begins.
        at: Position,
        /// The name of the tag.
        tag: &'static str,
    },
    /// A key of YAML cannot be turned into a string.
    #[error("{at}: only a string, a number or a boolean can be a key")]
    Key {
        /// Where it begins.
        at: Position,
    },
    /// The value of a merge key is something else than mappings.
    #[error("{at}: only a mapping or a list of mappings can be merged")]
    Merge {
        /// Where it begins.
        at: Position,
    },
    /// An alias is within what it stands for.
    #[error("{at}: alias stands for a value that it is part of")]
    AliasWithin {
        /// Where it begins.
        at: Position,
    },
    /// Aliases and merge keys stand for much more than is written.
    #[error("{at}: aliases and merge keys expand to too much")]
    Expansion {
        /// The first one too many.
        at: Position,
    },
}

/// A place in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1, in characters.
    pub column: usize,
}

/// What is at a place where something else was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A character.
    Char(char),
    /// A byte that is no character.
    Byte(u8),
    /// Nothing more.
    End,
}

impl Error {
    /// Where the input is wrong, if it is one place.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::TooLarge { .. } => None,
            Error::TooDeep { at, .. }
            | Error::Json { at, .. }
            | Error::NumberOutOfRange { at }
            | Error::Yaml { at, .. }
            | Error::Tag { at, .. }
            | Error::Key { at }
            | Error::Merge { at }
            | Error::AliasWithin { at }
            | Error::Expansion { at } => Some(*at),
        }
    }

    /// What is wrong, without the place.
    pub fn reason(&self) -> String {
        let text = self.to_string();
        let place = self.position().map(|at| format!("{at}: "));
        place.and_then(|place| text.strip_prefix(&place).map(str::to_owned)).unwrap_or(text)
    }
}

impl Position {
    /// The place of a byte of the input.
    pub(crate) fn of(input: &[u8], offset: usize) -> Position {
        let before = &input[..offset.min(input.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        Position {
            offset,
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + String::from_utf8_lossy(&before[line_start..]).chars().count(),
        }
    }
}

impl Found {
    /// What is at a place of the input.
    pub(crate) fn at(input: &[u8], offset: usize) -> Found {
        let rest = input.get(offset..).unwrap_or_default();
        let Some(first) = rest.first() else { return Found::End };
        // A character has at most four bytes.
        let chunk = rest[..rest.len().min(4)].utf8_chunks().next();
        chunk.and_then(|chunk| chunk.valid().chars().next()).map_or(Found::Byte(*first), Found::Char)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Char(char) if char.is_control() => write!(f, "the control character U+{:04X}", *char as u32),
            Found::Char(char) => write!(f, "`{char}`"),
            Found::Byte(byte) => write!(f, "the byte 0x{byte:02X}"),
            Found::End => f.write_str("the end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_position(input: &[u8], offset: usize, expected: &str) {
        assert_eq!(Position::of(input, offset).to_string(), expected);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        check_position(b"", 0, "1:1");
        check_position(b"ab\ncd", 1, "1:2");
        check_position(b"ab\ncd", 2, "1:3");
        check_position(b"ab\ncd", 3, "2:1");
        check_position(b"ab\ncd", 5, "2:3");
    }

    #[test]
    fn columns_count_characters() {
        check_position("\"äöü\" x".as_bytes(), 9, "1:7");
        check_position(b"\"\xff\xff\" x", 5, "1:6");
    }

    #[track_caller]
    fn check_found(input: &[u8], offset: usize, expected: &str) {
        assert_eq!(Found::at(input, offset).to_string(), expected);
    }

    #[test]
    fn what_was_found_can_be_read() {
        check_found(b"a", 0, "`a`");
        check_found("aä€".as_bytes(), 1, "`ä`");
        check_found(b"a", 1, "the end");
        check_found(b"\xffabc", 0, "the byte 0xFF");
        check_found(b"\n", 0, "the control character U+000A");
    }
}
