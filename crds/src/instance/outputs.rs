//! What an instance tells others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::{must, object_name};

/// Where findings and decisions are told.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SinksSpec {
    /// Alerts. Unset: none are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alertmanager: Option<AlertmanagerSink>,

    /// Reports as objects of the cluster.
    pub policy_report: PolicyReportSink,

    /// Which decisions of admission are printed by the pods, as lines of JSON: `none` of them, `rules` those in which a rule had something to say or
    /// was passed by, `all` of them.
    pub stdout: DecisionLog,
}

/// Where alerts are sent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertmanagerSink {
    /// The addresses of all replicas of Alertmanager. Each is sent every alert.
    #[schemars(
        length(min = 1, max = 8),
        extend("x-kubernetes-list-type" = "set", "items" = json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "x-kubernetes-validations": must(&[(
                "isURL(self) && url(self).getScheme() in ['http', 'https']",
                "write an address such as `http://alertmanager.monitoring:9093`",
            )]),
        })),
    )]
    pub urls: Vec<String>,

    /// The Secret in the engine's namespace with the credentials, which is mounted: `username` and `password`, or `token`, and `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

/// A Secret in the engine's namespace.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Its name.
    #[schemars(schema_with = "object_name")]
    pub name: String,
}

/// Reports as objects of the cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyReportSink {
    /// Which kind of report is written, by its API group. `None` writes none.
    pub api: ReportApi,

    /// Whether reports also have results of `pass`, one for each object and rule that it meets. They take the room in reports that is left up to
    /// 64 KiB; what goes beyond is in the summaries. Each takes memory in every replica, and storage of the cluster.
    pub passes: bool,
}

/// A kind of report.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum ReportApi {
    #[default]
    #[serde(rename = "wgpolicyk8s.io")]
    PolicyReport,
    #[serde(rename = "openreports.io")]
    OpenReports,
    None,
}

/// Which decisions are printed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum DecisionLog {
    // Not `off`, which YAML takes for a boolean.
    #[serde(rename = "none")]
    Off,
    #[default]
    Rules,
    All,
}

/// What is made for Prometheus. Each needs the definitions of the Prometheus operator.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MonitoringSpec {
    /// Whether there is a ServiceMonitor, by which Prometheus finds the pods.
    pub service_monitor: bool,

    /// Whether there is a PrometheusRule with alerts about Portal itself.
    pub prometheus_rule: bool,

    /// Where your people find what to do about these alerts: a page with a section for each, such as
    /// `https://docs.example.org/portal/operator/alerts/`. Each alert has the annotation `runbook_url` with the address of its section, which ends
    /// with `#` and its name in small letters. Unset: the alerts name the page of Portal's documentation.
    #[schemars(
        length(max = 1024),
        extend("x-kubernetes-validations" = must(&[(
            "isURL(self) && url(self).getScheme() in ['http', 'https'] && !self.contains('#')",
            "write the address of a page without `#`, such as `https://docs.example.org/portal/operator/alerts/`",
        )])),
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runbook_url: Option<String>,
}
