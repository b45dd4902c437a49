//! The table of functions, in the order of the reference page. A function of plain values is a row here and what it runs; one with a
//! predicate is in the grammar and in the evaluator, too.

mod collections;
mod conversions;
mod numbers;
mod predicates;
mod texts;

use super::Builtin;

/// Every function of the language, by their groups.
static ROWS: [&[Builtin]; 5] = [predicates::ROWS, texts::ROWS, numbers::ROWS, collections::ROWS, conversions::ROWS];

/// Every function of the language.
pub(crate) fn builtins() -> impl Iterator<Item = &'static Builtin> {
    ROWS.into_iter().flatten()
}
