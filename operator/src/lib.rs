//! The operator: turns a `PortalInstance` and the rules into engines, certificates, webhook configuration and RBAC.
//!
//! ```text
//! watches ─► Observed ─┐
//! rules   ─► Needs ────┼─► desired ─► Plan ─► executor ─► one request per step
//! instance ────────────┘
//! ```

pub mod names;
pub mod object;
pub mod rights;

pub mod install;
pub mod instance;
pub mod needs;
pub mod observed;
pub mod permissions;

pub mod certificates;
pub mod children;
pub mod claims;
pub mod compare;
pub mod conditions;
pub mod desired;
pub mod plan;
pub mod request;

pub mod metrics;
pub mod probe;
pub mod shown;
pub mod store;

pub mod executor;
pub mod rule_status;
pub mod view;
pub mod watches;

mod announce;
mod caretaker;
pub mod run;

#[cfg(test)]
mod simulation;
