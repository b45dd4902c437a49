//! Our expr-lang against the real one, which the oracle asks. Where they disagree is counted and named, so that a new
//! disagreement fails.

mod chance;
mod mutants;
mod oracle;
mod parse;
mod random;
mod values;
