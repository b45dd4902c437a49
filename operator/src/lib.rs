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
