//! What the operator counts, beside what every process does.

use portal_cluster::metrics::{Counter, Counters, Gauge, Gauges, Label, Word};
use portal_cluster::{metrics_label, metrics_table};

metrics_table! {
    /// What the operator counts.
    OperatorMetrics, METRICS {
        plans: Counter = "portal_operator_plans_total", "Plans that were made for instances, those with nothing to do too.";
        steps: Counters<StepResult> =
            "portal_operator_steps_total", "Steps of plans: each is one request to the API server.";
        instances: Gauge = "portal_instances", "Instances that the operator looks after.";
        ready: Gauges<InstanceName> = "portal_instance_ready", "1 while everything that an instance asks for runs.";
        paused: Gauges<InstanceName> =
            "portal_instance_paused", "1 while somebody has told the operator to leave an instance alone.";
        expiry: Gauges<InstanceName> =
            "portal_certificate_expiry_seconds", "Seconds until the certificate of an instance's webhook ends.";
    }
}

metrics_label! {
    /// What came of a step.
    pub enum StepResult in "result" {
        Done = "done", "";
        Failed = "failed", "and is tried again";
    }
}

/// The name of an instance.
#[derive(Clone, Debug)]
pub struct InstanceName(pub String);

impl Label for InstanceName {
    const NAME: &'static str = "instance";
    const WORDS: &'static [Word] = &[];
    const IS_OPEN: bool = true;

    fn word(&self) -> &str {
        &self.0
    }
}
