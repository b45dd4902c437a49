//! The operator: turns a `PortalInstance` and the rules into engines, certificates, webhook configuration and RBAC.

pub mod certificates;
