//! What a rule says. Both kinds of rule, and a rule in a file, have this same text.

pub(crate) mod action;
pub(crate) mod kinds;
pub(crate) mod matching;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::rule::action::Action;
use crate::rule::matching::Match;
use crate::schema::{must, yes};

/// What a rule looks at, what it refuses, and what happens then.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "!has(self.mode) || !has(self.actions) \
         || self.actions.all(a, !has(a.on) || a.on.all(front, front == 'network' || front in self.mode))",
        "an action's `on` names a front that `mode` leaves out: add it to `mode`, or remove it from `on`",
    ),
])))]
pub struct RuleSpec {
    /// Whether the rule is in force. A rule that is switched off stays in the cluster and does nothing.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// How bad a violation is. Reports and alerts carry it.
    #[serde(default)]
    pub severity: Severity,

    /// Where the rule runs: `admission` judges what is about to enter the cluster, `audit` what is in it. Unset means
    /// both, or only `admission` when the rule or its message reads `request`, which exists nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 2),
        extend("x-kubernetes-list-type" = "set", "items" = json!({
            "description": "A loop that a rule runs in.",
            "type": "string",
            "enum": [Front::Admission, Front::Audit],
        })),
    )]
    pub mode: Option<Vec<Front>>,

    /// What admission does about a violation: `deny` refuses the request, `warn` lets it in with a warning, `dryrun` only
    /// records it.
    #[serde(default)]
    pub enforcement_action: EnforcementAction,

    /// Which objects the rule judges.
    #[serde(rename = "match")]
    pub matching: Match,

    /// The expression. It is true for what violates the rule: `container.securityContext.privileged == true`.
    #[schemars(length(min = 1, max = 65536))]
    pub rule: String,

    /// What people are told about a violation. `{{ expression }}` inserts a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub message: Option<String>,

    /// The name of an alert to send: short for an action of type `alertmanager` with this `template`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub alert: Option<String>,

    /// What else is done about a violation. The instance says which types of action it allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub actions: Vec<Action>,

    /// Objects that may violate the rule, everywhere that it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub exceptions: Vec<Exception>,
}

/// How bad a violation is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the rule")]
pub enum Severity {
    Critical,
    High,
    #[default]
    Medium,
    Low,
    Info,
}

/// A loop of the engine. Rules run in `admission` and `audit`; `network` has checks of its own, whose findings can lead to
/// actions too.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "A loop whose findings lead to actions.")]
#[expect(missing_docs, reason = "the words are those of the rule")]
pub enum Front {
    Admission,
    Audit,
    Network,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Severity::Critical => "critical",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
            Severity::Info => "info",
        })
    }
}

impl fmt::Display for Front {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Front::Admission => "admission",
            Front::Audit => "audit",
            Front::Network => "network",
        })
    }
}

/// What admission does about a violation.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the rule")]
pub enum EnforcementAction {
    #[default]
    Deny,
    Warn,
    Dryrun,
}

/// Objects that may violate the rule. An object is excepted when its namespace and its name both fit.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "(has(self.namespaces) && size(self.namespaces) > 0) || (has(self.names) && size(self.names) > 0)",
        "an exception for everything switches the rule off: name `namespaces` or `names`, or set `enabled: false`",
    ),
])))]
pub struct Exception {
    /// Globs for the namespaces of the objects: `*` stands for any characters, `?` for one. None given: any namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,

    /// Globs for the names of the objects. None given: any name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<String>,

    /// When the exception ends: a day such as `2027-01-31`, which is still excepted, in UTC, or a moment such as
    /// `2027-01-31T12:00:00Z`. Unset: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}$') ? !format.date().validate(self).hasValue() : \
         self.matches('^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$') \
         && !format.datetime().validate(self).hasValue()",
        "write a day that exists, such as 2027-01-31, or a moment with its zone, such as 2027-01-31T12:00:00Z",
    )])))]
    pub until: Option<String>,

    /// Why, for whoever finds the exception later.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
}
