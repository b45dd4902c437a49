//! The conditions of rules and instances.

use std::fmt;

/// What a condition is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ConditionType {
    /// Of a rule: every instance that serves it runs it as it is. Of an instance: everything that it asks for runs.
    Ready,
    /// A change is on its way. There only while true.
    Reconciling,
    /// Somebody has to do something. There only while true.
    Stalled,
    /// Of a rule in an instance: it can be understood.
    Accepted,
    /// Of a rule in an instance: what it reads and does is allowed.
    PermissionGranted,
    /// Of a rule in an instance: every ready replica runs it.
    Active,
    /// Of an instance: its webhook has a certificate that the API server trusts.
    CertificatesReady,
    /// Of an instance: its engine may do what it has to.
    RBACReady,
    /// Of an instance: what its rules judge is sent to the engine.
    WebhookConfigured,
    /// Of an instance: a request through the API server was answered by the engine.
    AdmissionAvailable,
    /// Of an instance: what is in the cluster is judged. There only if that is asked for.
    AuditAvailable,
    /// Of an instance: what NetworkPolicies allow is judged. There only if that is asked for.
    NetworkAvailable,
    /// Of an instance: actions are done. There only if that is asked for.
    ActionsAvailable,
    /// Of an instance: reports are written.
    ReportsAvailable,
    /// Of an instance: what Prometheus needs is there. There only if that is asked for.
    MonitoringReady,
    /// Of an instance: somebody told the operator to leave it alone. There only while true.
    Paused,
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
