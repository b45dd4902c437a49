//! The operator as a program on a real API server between which things go wrong: it is cut off at any write, its answers are lost, its views
//! are old. The API server asks real engines, through their Services. See `faults/node.rs` for what stands for nodes.

mod fault_points;
mod fields;
mod histories;
mod invariants;
mod network;
mod node;
mod rights;
mod stage;

/// The namespace of all engines.
const NAMESPACE: &str = "portal-system";
