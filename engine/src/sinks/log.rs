//! What audit finds, as lines of JSON on standard output: what appears, what changes and what is gone.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use portal_cluster::holder::Holder;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::findings::{Change, Finding, Offender, OffenderId, Outlet};

/// Prints what audit finds.
pub struct FindingLog {
    outlet: Outlet,
    holder: Holder,
    /// What was told last, also by whoever held before: who takes over repeats nothing.
    told: HashMap<OffenderId, Arc<Offender>>,
    /// Lines that nobody has printed, because nobody held the Lease yet.
    waiting: Vec<String>,
}

/// How many lines wait for the first holder.
const MAX_WAITING: usize = 10_000;

/// A line of the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: String,
    /// What has become of it: `appeared`, `changed` or `cleared`.
    finding: &'static str,
    rule: String,
    severity: String,
    api_version: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'a str>,
    /// Whether the rule could not be evaluated.
    failed: bool,
    message: &'a str,
}

impl FindingLog {
    /// Prints what comes out there while the Lease is held.
    pub fn new(outlet: Outlet, holder: Holder) -> FindingLog {
        FindingLog { outlet, holder, told: HashMap::new(), waiting: Vec::new() }
    }

    /// Prints until the end.
    pub async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                changes = self.outlet.changes() => {
                    let now = Timestamp::now();
                    let lines: Vec<String> = changes.into_iter().flat_map(|change| self.take(change, now)).collect();
                    self.waiting.extend(lines);
                }
                () = self.holder.changed() => {}
                () = shutdown.cancelled() => return,
            }
            if self.holder.is_held() {
                // Whoever reads the log may be gone, and audit goes on.
                let _ = io::stdout().lock().write_all(std::mem::take(&mut self.waiting).concat().as_bytes());
            } else if self.holder.observed().is_some() || self.waiting.len() > MAX_WAITING {
                // Another replica tells.
                self.waiting.clear();
            }
        }
    }

    /// The lines that tell of a change.
    fn take(&mut self, (id, offender): Change, now: Timestamp) -> Vec<String> {
        let before = match &offender {
            Some(offender) => self.told.insert(id, Arc::clone(offender)),
            None => self.told.remove(&id),
        };
        let key = |finding: &Finding| (finding.rule.id.clone(), finding.container.clone());
        let findings = |offender: &Option<Arc<Offender>>| {
            offender.as_ref().map_or(Vec::new(), |offender| offender.findings.clone())
        };
        let (was, is) = (findings(&before), findings(&offender));
        let mut lines = Vec::new();
        for finding in &is {
            let known = was.iter().find(|known| key(known) == key(finding));
            let what = match known {
                None => "appeared",
                Some(known) if (&known.message, known.is_failure) != (&finding.message, finding.is_failure) => {
                    "changed"
                }
                Some(_) => continue,
            };
            lines.extend(offender.as_ref().map(|offender| line(what, offender, finding, now)));
        }
        for finding in was.iter().filter(|known| !is.iter().any(|finding| key(finding) == key(known))) {
            lines.extend(before.as_ref().map(|offender| line("cleared", offender, finding, now)));
        }
        lines
    }
}

fn line(what: &'static str, offender: &Offender, finding: &Finding, now: Timestamp) -> String {
    let line = Line {
        time: now.to_string(),
        finding: what,
        rule: finding.rule.id.to_string(),
        severity: finding.rule.severity.to_string(),
        api_version: &offender.api_version,
        kind: &offender.kind,
        namespace: offender.namespace.as_deref(),
        name: &offender.name,
        container: finding.container.as_deref(),
        failed: finding.is_failure,
        message: &finding.message,
    };
    let mut text = serde_json::to_string(&line).expect("texts can be written");
    text.push('\n');
    text
}
