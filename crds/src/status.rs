//! What has become of a rule. Engines and the operator write it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What has become of a rule. The upper fields sum up `instances`; one of the instances that serve the rule writes them.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
// A new rule was seen by nobody. Without the default, tools that wait for readiness would take it for ready.
#[schemars(extend("default" = json!({ "observedGeneration": -1 })))]
pub struct RuleStatus {
    /// The generation of the rule that the status is about. -1: nobody has seen the rule yet.
    pub observed_generation: i64,

    /// What holds: `Ready`, and `Reconciling` or `Stalled` while something is under way or in the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// Where the rule runs, such as `admission,audit`, worked out from its text when `spec.mode` is unset.
    // A text, because kubectl shows it in a column, where a list is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub mode: Option<String>,

    /// How many objects violate the rule, in all instances that count them. Unset: none of them does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation_count: Option<i64>,

    /// What has become of the rule in each instance that serves it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["instance"]))]
    pub instances: Vec<InstanceStatus>,
}

/// What has become of a rule in one instance.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// The name of the PortalInstance.
    #[schemars(length(min = 1, max = 253))]
    pub instance: String,

    /// The namespace of its engine. Others see by the Lease there whether the instance lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,

    /// What holds in this instance: `Accepted`, `PermissionGranted`, and `Active` when every ready replica runs the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The mistake in the expression, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<ParseError>,

    /// How often the rule was evaluated.
    #[serde(default)]
    pub eval_count: i64,

    /// How many objects violate the rule. Unset: nobody counts them, because audit is off or has not seen all of them yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation_count: Option<i64>,

    /// When the instance last loaded a version of the rule, or switched it on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied: Option<Time>,

    /// The kinds that the rule is active on, such as `v1/Pod` and `apps/v1/Deployment`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub active_on: Vec<String>,
}

/// A mistake in an expression, and where it is.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ParseError {
    /// The line, from 1.
    pub line: i64,

    /// The column, from 1.
    pub column: i64,

    /// What is wrong.
    pub message: String,

    /// The line with a caret below the mistake.
    #[serde(default)]
    pub caret: String,
}

impl Default for RuleStatus {
    fn default() -> Self {
        Self {
            observed_generation: -1,
            conditions: Vec::new(),
            mode: None,
            violation_count: None,
            instances: Vec::new(),
        }
    }
}
