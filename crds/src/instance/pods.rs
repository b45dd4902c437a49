//! The pods of an instance: what they ask for, and where they run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::schema::{must, object_name};

/// Labels as Kubernetes takes them.
const LABELS: (&str, &str) = (
    "self.all(key, !format.qualifiedName().validate(key).hasValue() && !format.labelValue().validate(self[key]).hasValue())",
    "write labels that Kubernetes takes, such as `example.com/team: payments`: a key with a domain and a slash if you like, then, as in \
     the value, at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
);

/// What a pod asks for and may take.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[(
    "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits) \
     || !isQuantity(string(self.requests[name])) || !isQuantity(string(self.limits[name])) \
     || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)",
    "a pod cannot ask for more than it may take: make `requests` smaller, or `limits` larger",
)])))]
pub struct Resources {
    /// What it asks for, such as `cpu: 100m` and `memory: 64Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub requests: Option<BTreeMap<String, Amount>>,

    /// What it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub limits: Option<BTreeMap<String, Amount>>,
}

/// An amount as Kubernetes writes them: `100m`, `64Mi`, `1`. A number is taken for its text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Amount(pub String);

/// Where the pods run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingSpec {
    /// Whether pods are kept on different nodes: `Preferred` if that is possible. With `Required` a pod waits for a node of its own, and a
    /// rollout ends one pod before it starts the next.
    pub spread: Spread,

    /// The labels of the nodes that pods may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "maxProperties" = 32,
        "additionalProperties" = json!({ "type": "string", "maxLength": 63 }),
        "x-kubernetes-validations" = must(&[LABELS]),
    ))]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// The taints of nodes that pods may run on in spite of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,

    /// The class by which pods come before others, such as `system-cluster-critical`. Unset: the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_name")]
    pub priority_class_name: Option<String>,
}

/// Whether pods are kept on different nodes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum Spread {
    #[default]
    Preferred,
    Required,
}

/// A taint that pods may have on their node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
        "without `key` every taint is meant, which needs `operator: Exists`: add one of them",
    ),
    (
        "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
        "`Exists` takes no `value`: remove it, or use Equal",
    ),
])))]
pub struct Toleration {
    /// The key of the taint. Unset: every taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub key: Option<String>,

    /// How the taint's value relates to `value`. Unset: Equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Equal", "Exists"]))]
    pub operator: Option<String>,

    /// The value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,

    /// What the taint does. Unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    pub effect: Option<String>,

    /// How many seconds a pod stays on a node that gets the taint `NoExecute`. Unset: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub toleration_seconds: Option<i64>,
}

/// Labels and annotations of the pods, for service meshes, cost reports and the like.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodLabels {
    /// Labels. Those that begin with `portal.io/` or `app.kubernetes.io/` are Portal's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "maxProperties" = 32,
        "additionalProperties" = json!({ "type": "string", "maxLength": 63 }),
        "x-kubernetes-validations" = must(&[
            LABELS,
            (
                "self.all(key, !key.startsWith('portal.io/') && !key.startsWith('app.kubernetes.io/'))",
                "labels that begin with `portal.io/` or `app.kubernetes.io/` are Portal's own: use another prefix",
            ),
        ]),
    ))]
    pub labels: Option<BTreeMap<String, String>>,

    /// Annotations. Those that begin with `portal.io/` are Portal's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "maxProperties" = 32,
        "additionalProperties" = json!({ "type": "string", "maxLength": 4096 }),
        "x-kubernetes-validations" = must(&[
            (
                "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                "write keys that Kubernetes takes, such as `example.com/team`: a domain and a slash if you like, then at most 63 letters, \
                 digits, `-`, `_` and `.`",
            ),
            (
                "self.all(key, !key.startsWith('portal.io/'))",
                "annotations that begin with `portal.io/` are Portal's own: use another prefix",
            ),
        ]),
    ))]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Amounts by the name of what they are of.
fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "maxLength": 32,
            "x-kubernetes-validations": must(&[(
                "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
                "write an amount as for a container: `500m`, `1`, `64Mi` or `1Gi`",
            )]),
        },
    })
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(i64),
            Text(String),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Number(number) => Amount(number.to_string()),
            Written::Text(text) => Amount(text),
        })
    }
}
