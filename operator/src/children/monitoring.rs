//! What Prometheus is told: where the pods are, and when something is wrong with Portal itself.

use crate::instance::Instance;
use crate::object::Object;

/// A ServiceMonitor and a PrometheusRule, if the instance asks for them.
pub fn monitoring(_: &Instance) -> Vec<Object> {
    Vec::new()
}
