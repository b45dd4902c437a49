//! The rule language: expr-lang, parsed, resolved and evaluated over borrowed documents. Knows no Kubernetes.
//!
//! ```text
//! source → parse → Tree → compile (with a Schema) → Program → evaluate (with a Host) → Value
//!                                                      └→ Facts, warnings
//! ```

// pest's generated code asks for it by this name.
extern crate alloc;

mod ast;
mod builtins;
mod compile;
mod error;
mod evaluate;
mod explain;
mod facts;
mod glob;
mod habits;
mod host;
#[cfg(test)]
mod hostile;
mod limits;
mod machine;
mod operators;
mod parse;
mod print;
mod program;
mod reference;
mod regex;
mod render;
mod schema;
mod suggest;
#[cfg(test)]
mod testing;
mod types;
mod value;
mod warning;

pub use bumpalo::Bump as Arena;

pub use compile::{Mode, compile, compile_condition, compile_condition_and, map_meant};
pub use error::{Error, Phase, SourceLine};
pub use explain::{Observation, Seen};
pub use facts::{Absence, ArgumentShape, Compared, Facts, Read, Relation, Segment, Substituted, Unfound};
pub use glob::glob;
pub use host::Host;
pub use limits::{Limits, MAX_NESTING, MAX_NODES, MAX_SOURCE};
pub use machine::{Failure, Limit, Machine};
pub use program::{CallSite, Program, Written};
pub use reference::{FunctionReference, RULES_ONLY, functions};
pub use schema::{
    Among, Calls, ComputedId, Fallback, Field, Fields, Filled, FilledList, Function, FunctionId, Instead, Meant, Nil,
    Object, ObjectId, Parameter, Remainder, Root, Schema, Shape, Siblings, Slot, Sorts, Spelling, Wildcard, Words,
};
pub use suggest::nearest;
pub use value::{Amount, Entry, Keys, Map, Moment, Network, Quantity, Time, Value, Version, Zone};
pub use warning::Warning;

/// The form in which expr-lang prints what it parsed: the same for expressions that differ in nothing but spaces,
/// parentheses and quotes.
pub fn canonical(source: &str) -> Result<String, Error> {
    parse::parse(source).map(|tree| print::canonical(&tree))
}

/// The canonical form, and the place of every node in characters from the start: what is compared with the real expr-lang.
#[doc(hidden)]
pub fn canonical_with_places(source: &str) -> Result<(String, Vec<usize>), Error> {
    parse::parse(source).map(|tree| (print::canonical(&tree), tree.places(source)))
}

/// An expression as people are shown it. It is read back as the same expression.
#[doc(hidden)]
pub fn written(source: &str) -> Result<String, Error> {
    parse::parse(source).map(|tree| print::written(&tree, tree.root))
}

/// Whether two sources are the same expression: they differ in nothing but spaces, brackets and quotes.
#[doc(hidden)]
pub fn is_same(source: &str, other: &str) -> Result<bool, Error> {
    Ok(parse::parse(source)?.is_same(&parse::parse(other)?))
}
