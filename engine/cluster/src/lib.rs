//! What the engine and the operator have in common, and neither may take from the other: the way to the API server, watches,
//! the kinds that are served, the Lease, the rules in force, and what a process says about itself.

pub mod health;
pub mod metrics;
pub mod runtime;
pub mod server;

pub mod access;
pub mod client;
pub mod names;
pub mod watch;

pub mod holder;
pub mod kinds;
pub mod rules;
