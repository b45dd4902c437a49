//! Tests against real clusters, a module per size or promise. `docs/contributing/testing.md` tells how to write one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helper functions too")]

mod control;
mod core;
mod engine;
mod faults;
mod full;
mod operator;
mod pages;
