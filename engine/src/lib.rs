//! The engine: what is done with the rules in force. It reports what has become of each, and holds the layers `admission`,
//! `audit`, `network` and `actions`, which never import each other.

pub mod admission;
pub mod audit;
pub mod cache;
mod client;
pub mod findings;
#[cfg(test)]
mod histories;
pub mod metrics;
pub mod outcomes;
pub mod replicas;
pub mod run;
pub mod sinks;
pub mod status;
pub mod tally;
#[cfg(test)]
mod testing;
