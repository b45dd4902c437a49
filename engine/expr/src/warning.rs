//! What may be a mistake although it compiles.

/// A warning about a program, with its place in the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// What may be wrong, and the way out. Lower case, no full stop.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}
