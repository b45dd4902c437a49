//! How tools that show policy reports read ours: by the types that they are compiled with.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::cache::Cache;
use crate::reports_oracle;

/// A report as such a tool sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct SeenReport {
    /// `NAMESPACE/NAME`
    pub report: String,
    /// Who wrote it, if the report says so as a whole.
    #[serde(default)]
    pub source: String,
    /// What the whole report is about, if it is about one object.
    #[serde(default)]
    pub scope: String,
    /// How many results there are of each outcome.
    pub summary: Summary,
    /// The results.
    pub results: Vec<SeenResult>,
}

/// How many results there are of each outcome.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Summary {
    /// Objects that are as the rule wants them.
    pub pass: usize,
    /// Objects that violate a rule.
    pub fail: usize,
    /// The same, of rules that only warn.
    pub warn: usize,
    /// Objects that a rule could not say anything about.
    pub error: usize,
    /// Objects that were left out.
    pub skip: usize,
}

/// A result as such a tool sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct SeenResult {
    /// What tells it from others.
    pub id: String,
    /// Who says so.
    pub source: String,
    /// The rule.
    pub policy: String,
    /// `fail`, `warn` …
    pub result: String,
    /// How bad it is.
    #[serde(default)]
    pub severity: String,
    /// The heading that it is shown under.
    #[serde(default)]
    pub category: String,
    /// Whether it counts.
    pub scored: bool,
    /// The object: `VERSION KIND NAMESPACE/NAME UID`.
    pub resource: String,
    /// What people read.
    pub message: String,
    /// Since when, in seconds since 1970.
    pub seconds: i64,
}

impl SeenReport {
    /// How many results there are of each outcome, counted.
    pub fn counted(&self) -> Summary {
        let count = |outcome: &str| self.results.iter().filter(|result| result.result == outcome).count();
        Summary {
            pass: count("pass"),
            fail: count("fail"),
            warn: count("warn"),
            error: count("error"),
            skip: count("skip"),
        }
    }
}

/// How these reports are seen, in their order. A field that no tool knows is an error.
pub fn see(reports: &[Value]) -> anyhow::Result<Vec<SeenReport>> {
    let mut command = Command::new(reports_oracle().find(&Cache::open()?)?);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let text: String = reports.iter().map(|report| format!("{report}\n")).collect();
    let mut stdin = child.stdin.take().context("it was asked to be piped")?;
    // It answers while it is asked, and would wait for somebody to read.
    let writer = thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the reports cannot be read: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    writer.join().ok().context("the writer has panicked")??;
    let text = String::from_utf8(output.stdout)?;
    let seen: Vec<SeenReport> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    if seen.len() != reports.len() {
        bail!("the oracle answers {} of {} questions", seen.len(), reports.len());
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_tool_would_see_is_an_error() {
        let report = |extra: Value| {
            let mut report = json!({
                "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": { "name": "one", "namespace": "shop" },
                "summary": { "fail": 1 },
                "results": [{ "policy": "team", "result": "fail", "resources": [{ "kind": "Pod", "name": "web" }] }],
            });
            report["results"][0].as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            see(&[report])
        };
        let seen = report(json!({ "severity": "high" })).unwrap().remove(0);
        assert_eq!((seen.results[0].severity.as_str(), seen.counted()), ("high", seen.summary));
        let error = report(json!({ "severness": "high" })).unwrap_err().to_string();
        assert!(error.contains("unknown field \"results[0].severness\""), "{error}");
    }
}
