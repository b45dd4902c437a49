//! The conditions of a rule.

use std::fmt;

/// What a condition is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ConditionType {
    /// Of a rule: every instance that serves it runs it as it is.
    Ready,
    /// Of a rule: a change is on its way. There only while true.
    Reconciling,
    /// Of a rule: somebody has to do something. There only while true.
    Stalled,
    /// Of a rule in an instance: it can be understood.
    Accepted,
    /// Of a rule in an instance: what it reads and does is allowed.
    PermissionGranted,
    /// Of a rule in an instance: every ready replica runs it.
    Active,
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
