//! What the engine of an instance may be granted because of its rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::must;

/// What the engine may be granted because of its rules.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RbacSpec {
    /// `Auto` grants what rules need, within the bounds. `Manual` says what it would grant, and waits for somebody who does.
    /// `Audit` grants nothing and reports what rules need.
    pub mode: RbacMode,

    /// What may be granted although it is refused by default: Secrets, `serviceaccounts/token`, and what runs in pods or reaches into them. The
    /// operator has to hold it too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub allowed_resources: Vec<GrantedResource>,

    /// What is never granted, beside what is refused by default. It wins over `allowedResources`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub denied_resources: Vec<GrantedResource>,

    /// What happens if whoever writes a rule may not read what the rule reads, or do what it does: `Warn` warns them, `Enforce` refuses
    /// the rule, and then no rule can be written while no engine answers, `None` asks nobody.
    pub author_check: AuthorCheck,
}

/// How permissions come.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum RbacMode {
    #[default]
    Auto,
    Manual,
    Audit,
}

/// What happens if the author of a rule has fewer rights than the rule.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum AuthorCheck {
    #[default]
    Warn,
    Enforce,
    // Not `Off`, which YAML takes for a boolean.
    #[serde(rename = "None")]
    Off,
}

/// A resource that may be granted, or not.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantedResource {
    /// The API group, such as `apps`. The core group is empty.
    #[serde(default)]
    #[schemars(length(max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",
        "write the group alone, without the version: `apps`, not `apps/v1`; the core group is empty, and `*` is never granted",
    )])))]
    pub group: String,

    /// The plural, with a subresource behind a slash: `configmaps`, `pods/log`.
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)?$')",
        "write the plural as in a role: `configmaps` or `pods/log`; `*` is never granted",
    )])))]
    pub resource: String,
}
