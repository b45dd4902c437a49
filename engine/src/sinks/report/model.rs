//! Reports as the API server stores them. The two APIs differ in their names and in one field, so one form is written for both.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A word of a fixed list, when we write it. What is read may be any text: others can edit reports.
pub(super) type Word = Cow<'static, str>;

/// Which kind of report is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Api {
    /// `wgpolicyk8s.io/v1alpha2`
    #[default]
    PolicyReport,
    /// `openreports.io/v1alpha1`
    OpenReports,
}

impl Api {
    /// The group.
    pub fn group(self) -> &'static str {
        match self {
            Api::PolicyReport => "wgpolicyk8s.io",
            Api::OpenReports => "openreports.io",
        }
    }

    /// The version.
    pub fn version(self) -> &'static str {
        match self {
            Api::PolicyReport => "v1alpha2",
            Api::OpenReports => "v1alpha1",
        }
    }

    /// The kind of the reports of namespaces, or of the one of the cluster.
    pub fn kind(self, is_namespaced: bool) -> &'static str {
        match (self, is_namespaced) {
            (Api::PolicyReport, true) => "PolicyReport",
            (Api::PolicyReport, false) => "ClusterPolicyReport",
            (Api::OpenReports, true) => "Report",
            (Api::OpenReports, false) => "ClusterReport",
        }
    }

    /// The resource of that kind.
    pub fn plural(self, is_namespaced: bool) -> &'static str {
        match (self, is_namespaced) {
            (Api::PolicyReport, true) => "policyreports",
            (Api::PolicyReport, false) => "clusterpolicyreports",
            (Api::OpenReports, true) => "reports",
            (Api::OpenReports, false) => "clusterreports",
        }
    }
}

/// A report.
#[derive(Clone, Debug, Default, Deserialize, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Report {
    pub(super) api_version: Word,
    pub(super) kind: Word,
    pub(super) metadata: Metadata,
    /// The tool that wrote all results. OpenReports alone has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Word>,
    pub(super) summary: Summary,
    pub(super) results: Vec<ReportResult>,
}

/// The part of the metadata that we write or go by.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) owner_references: Vec<Owner>,
}

/// What a report goes with.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// How many results there are of each outcome.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) pass: i64,
    pub(super) fail: i64,
    pub(super) warn: i64,
    pub(super) error: i64,
    pub(super) skip: i64,
}

/// What a rule says of an object, or of a container of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportResult {
    pub(super) source: Word,
    pub(super) policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<String>,
    pub(super) severity: Word,
    pub(super) timestamp: Time,
    pub(super) result: Word,
    pub(super) scored: bool,
    pub(super) resources: Vec<Reference>,
    pub(super) message: String,
    pub(super) properties: BTreeMap<Word, String>,
}

/// When something was found.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) nanos: i32,
}

/// An object.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
}

/// The property that tells results apart. Readers take it for the identity of a result.
pub(super) const RESULT_ID: &str = "resultID";

impl ReportResult {
    /// What tells it from other results, if it says so as we do.
    pub(super) fn id(&self) -> Option<ResultId> {
        u128::from_str_radix(self.properties.get(RESULT_ID)?, 16).ok()
    }
}

/// What tells a result from others: made of the instance, the rule, the object and the container.
pub(super) type ResultId = u128;

impl Summary {
    /// Counts a result.
    pub(super) fn count(&mut self, result: &str) {
        match result {
            "pass" => self.pass += 1,
            "fail" => self.fail += 1,
            "warn" => self.warn += 1,
            "error" => self.error += 1,
            _ => self.skip += 1,
        }
    }
}

/// The metadata of an object, whatever else it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Object {
    pub(super) metadata: Metadata,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<T> {
    pub(super) metadata: PageMetadata,
    /// Null if there are none and only metadata is asked for.
    pub(super) items: Option<Vec<T>>,
}

/// Where the next page is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageMetadata {
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
}
