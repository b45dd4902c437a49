//! What must hold for every input of the parsers, the evaluator and the compiler of rules, as plain functions that panic when it does not.
//!
//! libFuzzer looks for inputs that break it (`make fuzz`); the inputs that are worth keeping are committed and tried with
//! every test run. The programs for libFuzzer are in `libfuzzer/`, a workspace of its own because they need nightly Rust.

pub mod corpus;
pub mod dictionary;
mod host;
mod prune;
pub mod targets;
