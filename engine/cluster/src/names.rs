//! Names of objects that several parts must agree on.

pub use portal_core::names::is_name;

/// The name of the Lease of an instance's engine.
pub fn engine_lease(instance: &str) -> String {
    format!("portal-engine-{instance}")
}

/// The name of the Lease of the operator.
pub const OPERATOR_LEASE: &str = "portal-operator";
