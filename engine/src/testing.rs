//! What tests of several rooms need: an API server that says what a test wants, and rules in force.

pub(crate) mod api;
pub(crate) mod rules;
