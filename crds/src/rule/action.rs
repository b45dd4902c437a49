//! What is done about a violation.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::rule::Front;
use crate::schema::{label_selector, must};

/// Something to do about a violation. Which parameters an action takes depends on its type.
///
/// One struct for all types, because the schema of a custom resource cannot have a shape per type.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "Something to do about a violation. Which parameters it takes depends on its type.")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "self.type == 'alertmanager' || (!has(self.template) && !has(self.labels) && !has(self.annotations))",
        "`template`, `labels` and `annotations` belong to alertmanager: remove them, or change `type`",
    ),
    (
        "self.type in ['label', 'annotate'] || (!has(self.key) && !has(self.value))",
        "`key` and `value` belong to label and annotate: remove them, or change `type`",
    ),
    (
        "!(self.type in ['label', 'annotate']) || (has(self.key) && has(self.value))",
        "label and annotate need `key` and `value`: add them",
    ),
    (
        "self.type != 'label' || !has(self.value) || self.value.matches('^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$')",
        "the value of a label is at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends: \
         shorten it, or use annotate",
    ),
    (
        "self.type == 'evict' || (!has(self.gracePeriodSeconds) && !has(self.deadline))",
        "`gracePeriodSeconds` and `deadline` belong to evict: remove them, or change `type`",
    ),
    (
        "self.type == 'patch-networkpolicy' || (!has(self.allowDns) && !has(self.allow))",
        "`allowDns` and `allow` belong to patch-networkpolicy: remove them, or change `type`",
    ),
    (
        "!has(self.undo) || !self.undo || self.type in ['label', 'annotate', 'patch-networkpolicy']",
        "only label, annotate and patch-networkpolicy can be undone: remove `undo`",
    ),
])))]
pub struct Action {
    /// What to do. `alertmanager` sends an alert; `label` and `annotate` mark the object; `evict` evicts the pod;
    /// `patch-networkpolicy` isolates the pod by a NetworkPolicy of Portal's own; `revoke-sa-token` makes tokens of the pod's
    /// ServiceAccount useless.
    #[serde(rename = "type")]
    pub action_type: ActionType,

    /// The loops whose findings lead to the action. None given: every loop that the rule runs in. YAML reads `on` as a boolean:
    /// write it in quotes, `"on": [audit]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub on: Vec<Front>,

    /// How often the action may be taken for the same object, such as `5/min`: a number, and `s`, `min` or `h`. For evict, pods of
    /// the same owner count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[1-9][0-9]{0,4}/(s|min|h)$')",
        "write a number and a unit, such as `5/min`; the units are s, min and h",
    )])))]
    pub rate_limit: Option<String>,

    /// Whether to take the action back when the violation is gone. For label, annotate and patch-networkpolicy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,

    /// For alertmanager: the name of the alert. Unset: the name of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub template: Option<String>,

    /// For alertmanager: labels to add to the alert, such as `team: "{{ namespace }}"`. They are part of its identity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = json!({ "type": "string", "maxLength": 1024 })))]
    pub labels: BTreeMap<String, String>,

    /// For alertmanager: annotations to add to the alert, such as `runbook: "https://example.com/{{ rule }}"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = json!({ "type": "string", "maxLength": 4096 })))]
    pub annotations: BTreeMap<String, String>,

    /// For label and annotate: the key to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$')",
        "write a key that Kubernetes takes, such as `example.com/quarantine`: a domain and a slash if you like, then at \
         most 63 letters, digits, `-`, `_` and `.`",
    )])))]
    pub key: Option<String>,

    /// For label and annotate: the value to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub value: Option<String>,

    /// For evict: how long the pod may take to end. Unset: what the pod says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub grace_period_seconds: Option<i64>,

    /// For evict: how long to go on trying while a PodDisruptionBudget is in the way, such as `10m` or `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 18), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$')",
        "write a duration such as `30s`, `10m` or `1h30m`",
    )])))]
    pub deadline: Option<String>,

    /// For patch-networkpolicy: whether the pod may still ask the cluster's DNS. Unset: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_dns: Option<bool>,

    /// For patch-networkpolicy: traffic that the pod may still have. None given: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub allow: Vec<Allow>,
}

/// What can be done about a violation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words are those of the rule")]
pub enum ActionType {
    Alertmanager,
    Label,
    Annotate,
    Evict,
    #[serde(rename = "patch-networkpolicy")]
    PatchNetworkPolicy,
    RevokeSaToken,
}

/// Traffic that an isolated pod may still have.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "has(self.namespaceSelector) || has(self.podSelector)",
        "say with whom: add `namespaceSelector`, `podSelector` or both; `podSelector: {}` is every pod of the namespace",
    ),
])))]
pub struct Allow {
    /// Whether the traffic comes to the pod, `ingress`, or goes out from it, `egress`.
    pub direction: Direction,

    /// The namespaces of the pods at the other end, by their labels. Unset: the namespace of the isolated pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub namespace_selector: Option<LabelSelector>,

    /// The pods at the other end, by their labels. Unset: every pod of those namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub pod_selector: Option<LabelSelector>,

    /// The ports, at whichever end listens. None given: every port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<Port>,
}

/// Which way traffic goes, as seen from the isolated pod.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the rule")]
pub enum Direction {
    Ingress,
    Egress,
}

/// A port that something listens on.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Its number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,

    /// Its protocol.
    #[serde(default)]
    pub protocol: Protocol,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the words are those of Kubernetes")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Action {
    /// An action of this type without parameters.
    pub fn new(action_type: ActionType) -> Action {
        Action {
            action_type,
            on: Vec::new(),
            rate_limit: None,
            undo: false,
            template: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            key: None,
            value: None,
            grace_period_seconds: None,
            deadline: None,
            allow_dns: None,
            allow: Vec::new(),
        }
    }
}
