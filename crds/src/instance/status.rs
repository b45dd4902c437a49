//! What has become of an instance. The operator writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::conditions;

/// What has become of an instance.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
// A new instance was seen by nobody. Without the default, tools that wait for readiness would take it for ready.
#[schemars(extend("default" = json!({ "observedGeneration": -1 })))]
pub struct PortalInstanceStatus {
    /// The generation of the instance that the status is about. -1: the operator has not seen the instance yet.
    pub observed_generation: i64,

    /// What holds: `Ready`, `Reconciling` or `Stalled` while something is under way or in the way, and one for each part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,

    /// How many pods are ready of those that there should be, such as `2/2`.
    // A text, because kubectl shows it in a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub replicas: Option<String>,

    /// What happens to requests that violate a rule: `deny`, `warn`, `dryrun`, or `no` while nothing is sent to the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub enforcing: Option<String>,

    /// The version of the operator that looks after the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub operator_version: Option<String>,

    /// The Deployments of the engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub engines: Vec<EngineStatus>,

    /// How many rules the instance serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<RuleCounts>,

    /// The exceptions of the rules that are loaded. Unset: they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<ExceptionCounts>,

    /// What is sent to the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,

    /// The certificates of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<CertificatesStatus>,
}

/// A Deployment of the engine.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineStatus {
    /// The name of the Deployment.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The layers that it runs, with commas between.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub layers: String,

    /// The image of its pods.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub image: String,

    /// The version of the pod that last answered through the API server. Unset: none has answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub version: Option<String>,

    /// How many pods there should be.
    #[serde(default)]
    pub replicas: i32,

    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,

    /// How many of them are as the instance says.
    #[serde(default)]
    pub updated_replicas: i32,
}

/// How many rules an instance serves.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleCounts {
    /// All of them.
    pub total: i64,

    /// Those that can be understood and are switched on.
    pub loaded: i64,

    /// Those that cannot be used as they are.
    pub refused: i64,
}

/// The exceptions of rules.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionCounts {
    /// Those that hold now.
    pub open: i64,

    /// Those of them that have no end.
    pub without_end: i64,

    /// Those that have ended, and except nothing any more.
    pub ended: i64,

    /// When the next one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_end: Option<Time>,

    /// The rule whose exception ends next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub next_rule: Option<String>,
}

/// What is sent to the engine.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookStatus {
    /// The name of the webhook configuration.
    #[schemars(length(max = 253))]
    pub configuration: String,

    /// How many entries it has for rules.
    pub entries: i64,

    /// How many resources they name.
    pub resources: i64,
}

/// The certificates of the webhook.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificatesStatus {
    /// When the authority ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority_not_after: Option<Time>,

    /// When the certificate ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
}

impl Default for PortalInstanceStatus {
    fn default() -> Self {
        PortalInstanceStatus {
            observed_generation: -1,
            conditions: Vec::new(),
            replicas: None,
            enforcing: None,
            operator_version: None,
            engines: Vec::new(),
            rules: None,
            exceptions: None,
            webhook: None,
            certificates: None,
        }
    }
}
