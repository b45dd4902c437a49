//! The layers of an instance beside admission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::instance::pods::Resources;
use crate::rule::{
    Severity,
    action::{Action, ActionType},
};
use crate::schema::{must, yes};

/// Judges what is in the cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditSpec {
    /// Whether the layer is on.
    pub enabled: bool,

    /// How many pods it has in split mode, or without admission. One of them writes; the others are ready to take over.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: u32,

    /// How many objects are judged at a time.
    #[schemars(range(min = 1, max = 64))]
    pub workers: u32,

    /// After how long every object is judged again although nothing has changed, such as `10m`.
    #[schemars(length(min = 2, max = 18), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$') && duration(self) >= duration('30s')",
        "write a duration of 30s or more, such as `10m` or `1h30m`",
    )])))]
    pub resync: String,

    /// What each pod asks for and may take in split mode. Unset: `resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// Judges what NetworkPolicies allow.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSpec {
    /// Whether the layer is on.
    pub enabled: bool,

    /// How many pods it has in split mode, or without admission and audit.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: u32,

    /// What differs from the defaults of the checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
    )]
    pub checks: Vec<NetworkCheck>,

    /// What each pod asks for and may take in split mode. Unset: `resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// What differs from the defaults of a check.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkCheck {
    /// Which check.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// Whether it is on.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// How bad a finding is. Unset: what the check itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,

    /// The name of an alert to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub alert: Option<String>,

    /// What else is done about a finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub actions: Vec<Action>,

    /// Namespaces whose findings are not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub exclude_namespaces: Vec<String>,
}

/// How rules that look other objects up are judged again when those change.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LookupsSpec {
    /// How many lookups are remembered. Objects whose lookups are forgotten are judged again when the next resync comes.
    #[schemars(range(min = 1000, max = 10000000))]
    pub max_dependencies: u32,

    /// How often a rule may judge an object again within the window. What is beyond that waits.
    #[schemars(range(min = 1, max = 1000))]
    pub reevaluations: u32,

    /// How many seconds the window has.
    #[schemars(range(min = 1, max = 3600))]
    pub window_seconds: u32,
}

/// What rules may do about violations. Alerts are sinks, and are not meant here.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "!self.enabled || (has(self.allowed) && size(self.allowed) > 0)",
        "actions are switched on and none is allowed: name them in `allowed`, or set `enabled: false`",
    ),
])))]
pub struct ActionsSpec {
    /// Whether the layer is on.
    pub enabled: bool,

    /// The actions that rules may have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        extend("x-kubernetes-list-type" = "set", "items" = json!({
            "description": "An action that changes the cluster.",
            "type": "string",
            "enum": [
                ActionType::Label,
                ActionType::Annotate,
                ActionType::Evict,
                ActionType::PatchNetworkPolicy,
                ActionType::RevokeSaToken,
            ],
        })),
    )]
    pub allowed: Vec<ActionType>,

    /// Whether PortalRules may have actions too, in their own namespaces.
    pub namespaced: bool,

    /// Whether actions are only told and not done.
    pub dry_run: bool,

    /// How many actions are remembered, so that none is done twice.
    #[schemars(range(min = 1000, max = 10000000))]
    pub idempotency_entries: u32,
}

impl Default for AuditSpec {
    fn default() -> Self {
        AuditSpec { enabled: false, replicas: 2, workers: 2, resync: "10m".to_owned(), resources: None }
    }
}

impl Default for NetworkSpec {
    fn default() -> Self {
        NetworkSpec { enabled: false, replicas: 2, checks: Vec::new(), resources: None }
    }
}

impl Default for LookupsSpec {
    fn default() -> Self {
        LookupsSpec { max_dependencies: 500_000, reevaluations: 3, window_seconds: 10 }
    }
}

impl Default for ActionsSpec {
    fn default() -> Self {
        ActionsSpec {
            enabled: false,
            allowed: Vec::new(),
            namespaced: false,
            dry_run: false,
            idempotency_entries: 100_000,
        }
    }
}
