//! What the engine counts, beside what every process does.

use portal_cluster::{metrics::Counters, metrics_label, metrics_table};

metrics_table! {
    /// What the engine counts.
    EngineMetrics, METRICS {
        status_writes: Counters<StatusWrite> = "portal_status_writes_total", "Writes of rule status.";
    }
}

metrics_label! {
    /// What came of writing the status of a rule.
    pub enum StatusWrite in "result" {
        Written = "written", "";
        Conflict = "conflict", "somebody wrote in between; tried again";
        Failed = "failed", "";
    }
}
