//! Tests that need no cluster, a module per promise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helper functions too")]

mod chance;
mod children;
mod conformance;
mod custom_sink;
mod expressions;
mod generated;
mod layering;
mod observability;
mod properties;
mod rules;
mod setup;
