//! How Prometheus reads expressions and rules: by its own parser, and its own evaluation of rules. And what Portal tells it: the metrics
//! of the reference page, which is generated from the code.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::{prometheus_oracle, repository};

/// A rule of a file, for alerts or for a series.
#[derive(Clone, Debug, Deserialize)]
pub struct Rule {
    /// The name of the alert or of the series.
    pub name: String,
    /// What it evaluates.
    pub expression: String,
}

/// An alert that fires.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Alert {
    /// Its name.
    pub alert: String,
    /// All its labels, that of its name too.
    pub labels: BTreeMap<String, String>,
    /// What people read, with everything filled in.
    pub annotations: BTreeMap<String, String>,
}

/// What an expression reads.
#[derive(Debug, Deserialize)]
struct Selector {
    metric: String,
    /// The values that its labels are compared with.
    labels: BTreeMap<String, Vec<String>>,
    /// The functions and operators around it.
    around: Vec<String>,
}

/// What the oracle says of an expression or of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    errors: Vec<String>,
    selectors: Vec<Selector>,
    grouped: Vec<String>,
    rules: Vec<Rule>,
    firing: Vec<Vec<Alert>>,
}

/// A row of the reference page.
#[derive(Debug)]
struct Metric {
    kind: String,
    /// Its labels, and the words that each can be. No words: any text.
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// The page of all metrics.
const PAGE: &str = "docs/reference/metrics.md";

/// Labels that whoever collects metrics sets, or that histograms have.
const LABELS_OF_ALL: [&str; 5] = ["job", "pod", "instance", "portal_io_instance", "le"];

/// The label whose words on the page are only some of those that it can be.
const OPEN_LABEL: &str = "watch";

/// The rules of a file, which must be as Prometheus wants it.
pub fn rules(file: &str) -> anyhow::Result<Vec<Rule>> {
    let answer = ask(&[json!({ "rules": file })])?.remove(0);
    match answer.errors.is_empty() {
        true => Ok(answer.rules),
        false => bail!("Prometheus refuses the rules: {}", answer.errors.join("; ")),
    }
}

/// Which alerts of a file fire at some minutes. The samples of series are in the notation of Prometheus' own unit tests, one a minute:
/// `0+1x5 _x3` grows for five minutes and is not there for three.
pub fn firing(file: &str, series: &[(&str, &str)], minutes: &[u32]) -> anyhow::Result<Vec<Vec<Alert>>> {
    let series: BTreeMap<&str, &str> = series.iter().copied().collect();
    let answer = ask(&[json!({ "rules": file, "series": series, "minutes": minutes })])?.remove(0);
    match answer.errors.is_empty() {
        true => Ok(answer.firing),
        false => bail!("the rules cannot be evaluated: {}", answer.errors.join("; ")),
    }
}

/// What is wrong with expressions: what Prometheus cannot read, and metrics, labels and words that no process of Portal serves.
pub fn problems(expressions: &[String]) -> anyhow::Result<Vec<String>> {
    let questions: Vec<Value> = expressions.iter().map(|expression| json!({ "expression": expression })).collect();
    let metrics = metrics()?;
    let mut problems = Vec::new();
    for (expression, answer) in expressions.iter().zip(ask(&questions)?) {
        let mut found = answer.errors.clone();
        if answer.selectors.is_empty() && answer.errors.is_empty() {
            found.push("it reads no metric".to_owned());
        }
        let mut known: BTreeSet<&str> = LABELS_OF_ALL.into();
        for selector in &answer.selectors {
            match find(&metrics, &selector.metric) {
                Some(metric) => {
                    known.extend(metric.labels.keys().map(String::as_str));
                    found.extend(misused(selector, metric));
                }
                None => found.push(format!("nobody serves the metric {}", selector.metric)),
            }
        }
        let strange = answer.grouped.iter().filter(|label| !known.contains(label.as_str()));
        found.extend(strange.map(|label| format!("none of its metrics has the label {label}, by which it groups")));
        problems.extend(found.into_iter().map(|problem| format!("{problem}: {expression}")));
    }
    Ok(problems)
}

/// The metric that a series belongs to: histograms have series with names of their own.
fn find<'a>(metrics: &'a BTreeMap<String, Metric>, series: &str) -> Option<&'a Metric> {
    let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|end| {
        let metric = metrics.get(series.strip_suffix(end)?)?;
        (metric.kind == "histogram").then_some(metric)
    });
    of_histogram.or_else(|| metrics.get(series).filter(|metric| metric.kind != "histogram"))
}

/// What is wrong with the way in which a metric is read.
fn misused(selector: &Selector, metric: &Metric) -> Vec<String> {
    let name = &selector.metric;
    let mut problems = Vec::new();
    for (label, words) in &selector.labels {
        match metric.labels.get(label) {
            None if LABELS_OF_ALL.contains(&label.as_str()) => {}
            None => problems.push(format!("{name} has no label {label}")),
            Some(known) if known.is_empty() || label == OPEN_LABEL => {}
            Some(known) => {
                let strange = words.iter().filter(|word| !known.contains(*word));
                problems.extend(strange.map(|word| format!("{label} of {name} is never {word:?}")));
            }
        }
    }
    let grows = selector.around.iter().any(|around| ["rate", "increase"].contains(&around.as_str()));
    // Whether a counter is there at all can be asked of the counter itself.
    let is_asked_for = selector.around.iter().any(|around| ["absent", "unless"].contains(&around.as_str()));
    match metric.kind.as_str() {
        "gauge" if grows => problems.push(format!("{name} is a gauge, which has no rate")),
        "gauge" => {}
        _ if grows || is_asked_for => {}
        kind => problems.push(format!("{name} is a {kind}: it says something by its rate alone")),
    }
    problems
}

/// The rows of the reference page.
fn metrics() -> anyhow::Result<BTreeMap<String, Metric>> {
    let page = std::fs::read_to_string(repository().join(PAGE))?;
    let mut metrics = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [name, kind, _, labels] = columns[..] else { bail!("{PAGE}: this is no row of metrics: {row}") };
        let unquoted = |text: &str| text.trim().trim_matches('`').to_owned();
        let mut known = BTreeMap::new();
        for label in without_remarks(labels).split(';').filter(|label| !label.trim().is_empty()) {
            let (label, words) = label.split_once(':').unwrap_or((label, ""));
            let words = words.split(',').map(unquoted).filter(|word| !word.is_empty());
            known.insert(unquoted(label), words.collect());
        }
        metrics.insert(unquoted(name), Metric { kind: kind.to_owned(), labels: known });
    }
    if metrics.is_empty() {
        bail!("{PAGE} has no metrics");
    }
    Ok(metrics)
}

/// A text without what stands in brackets.
fn without_remarks(text: &str) -> String {
    let parts = text.split('(').enumerate();
    parts
        .map(|(place, part)| if place == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) })
        .collect()
}

/// Asks the oracle.
fn ask(questions: &[Value]) -> anyhow::Result<Vec<Answer>> {
    let mut command = Command::new(prometheus_oracle().find(&Cache::open()?)?);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let text: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let mut stdin = child.stdin.take().context("it was asked to be piped")?;
    // It answers while it is asked, and would wait for somebody to read.
    let writer = thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the oracle failed: {}", output.status);
    }
    writer.join().ok().context("the writer has panicked")??;
    let answers: Vec<Answer> = String::from_utf8(output.stdout)?
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("the oracle says {line}")))
        .collect::<anyhow::Result<_>>()?;
    if answers.len() != questions.len() {
        bail!("the oracle answers {} of {} questions", answers.len(), questions.len());
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_serves_is_noticed() {
        let problem = |expression: &str| {
            let problems = problems(&[expression.to_owned()]).unwrap();
            problems.join("\n").replace(&format!(": {expression}"), "")
        };
        assert_eq!(problem("sum by (watch) (rate(portal_watch_errors_total{job=\"x\"}[5m])) > 1"), "");
        assert_eq!(problem("rate(portal_alerts_lost_total{reason=~\"no-room|queue\"}[5m])"), "");
        assert_eq!(problem("portal_rule > 1"), "nobody serves the metric portal_rule");
        assert_eq!(problem("portal_rules{state=\"gone\"}"), "state of portal_rules is never \"gone\"");
        assert_eq!(problem("portal_rules{stat=\"active\"}"), "portal_rules has no label stat");
        assert_eq!(
            problem("sum by (kind) (portal_rules)"),
            "none of its metrics has the label kind, by which it groups"
        );
        assert_eq!(problem("rate(portal_rules[5m])"), "portal_rules is a gauge, which has no rate");
        assert_eq!(
            problem("portal_rule_sets_total > 1"),
            "portal_rule_sets_total is a counter: it says something by its rate alone"
        );
        assert_eq!(problem("portal_audit_latency_seconds"), "nobody serves the metric portal_audit_latency_seconds");
        assert_eq!(problem("1 + 1"), "it reads no metric");
        assert_eq!(problem("sum(("), "1:6: parse error: unclosed left parenthesis");
    }

    #[test]
    fn a_file_that_prometheus_refuses_is_an_error() {
        let error = rules("groups: [{name: one, rulez: []}]").unwrap_err().to_string();
        assert!(error.contains("field rulez not found"), "{error}");
    }
}
