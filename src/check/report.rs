//! Results for people and for programs.

use std::io::{IsTerminal as _, Write};

use portal_core::{kinds::Assumed, manifest::Problem, rule::message::harmless};
use portal_crds::EnforcementAction;
use serde_json::{Value, json};

use crate::check::judge::{Failed, Found, Judgement, Location};
use crate::check::unknown::UnknownKind;
use crate::output::Unwritten;

/// What a terminal shows in colour.
struct Paint {
    is_on: bool,
}

const RED: &str = "31";
const YELLOW: &str = "33";
const GREEN: &str = "32";
const BOLD: &str = "1";
const FAINT: &str = "2";

pub(crate) fn print_text(judgement: &Judgement) -> Result<(), Unwritten> {
    let out = std::io::stdout();
    let paint = Paint { is_on: out.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = std::io::BufWriter::new(out.lock());
    for warning in &judgement.warnings {
        writeln!(out, "{} {warning}", paint.show(YELLOW, "warning:"))?;
    }
    let mut last: Option<&Location> = None;
    for found in &judgement.violations {
        if last != Some(&found.location) {
            writeln!(out, "{}", paint.show(BOLD, &title(&found.location)))?;
            last = Some(&found.location);
        }
        print_violation(&mut out, found, &paint)?;
    }
    for failed in &judgement.failures {
        writeln!(out, "{} {}", paint.show(RED, "error:"), describe(failed))?;
    }
    for note in judgement.notes() {
        writeln!(out, "{} {}", paint.show(BOLD, "note:"), harmless(&note))?;
    }
    writeln!(out, "{}", summary(judgement, &paint))?;
    Ok(out.flush()?)
}

fn print_violation(out: &mut impl Write, found: &Found, paint: &Paint) -> std::io::Result<()> {
    let violation = &found.violation;
    let color = if violation.enforcement == EnforcementAction::Deny { RED } else { YELLOW };
    let action = paint.show(color, &format!("{:<6}", action_name(violation.enforcement)));
    let severity = violation.severity.to_string();
    writeln!(out, "  {action} {} ({severity}): {}", violation.rule, violation.message)?;
    match &violation.saw {
        Some(saw) if *saw != violation.message => writeln!(out, "         {}", paint.show(FAINT, saw)),
        _ => Ok(()),
    }
}

fn title(location: &Location) -> String {
    let place = match location.line {
        Some(line) => format!("{}:{line}", location.file),
        None => location.file.clone(),
    };
    let name = match &location.namespace {
        Some(namespace) => format!("{namespace}/{}", location.name),
        None => location.name.clone(),
    };
    harmless(&format!("{place} {} {name}", location.kind))
}

pub(crate) fn describe(failed: &Failed) -> String {
    let Location { file, line, kind, namespace, name, .. } = &failed.location;
    let mut text = file.clone();
    for number in [*line, failed.column].into_iter().flatten() {
        text.push_str(&format!(":{number}"));
    }
    if !kind.is_empty() {
        let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        text.push_str(&format!(": {kind} {namespace}{name}"));
    }
    match &failed.rule {
        // What is wrong with a rule itself names the rule already.
        Some(rule) if !kind.is_empty() => format!("{text}: rule {rule}: {}", failed.error),
        _ => format!("{text}: {}", failed.error),
    }
}

fn summary(judgement: &Judgement, paint: &Paint) -> String {
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let (deny, warn, dryrun) = counts(judgement);
    let violations = count(judgement.violations.len(), "violation");
    let parts: Vec<String> = [("deny", deny), ("warn", warn), ("dryrun", dryrun)]
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{number} {name}"))
        .collect();
    let color = if deny > 0 || !judgement.failures.is_empty() { RED } else { GREEN };
    let mut text = paint.show(color, &violations);
    if !parts.is_empty() {
        text.push_str(&format!(" ({})", parts.join(", ")));
    }
    text.push_str(&format!(" in {}, {}", count(judgement.objects, "object"), count(judgement.rules, "rule")));
    if !judgement.failures.is_empty() {
        text.push_str(&format!(", {}", count(judgement.failures.len(), "error")));
    }
    if judgement.count_unknown() > 0 {
        text.push_str(&format!(", {} of unknown kinds", count(judgement.count_unknown(), "object")));
    }
    if !judgement.skipped_files.is_empty() {
        text.push_str(&format!(", {} skipped", count(judgement.skipped_files.len(), "file")));
    }
    if judgement.skipped > 0 {
        text.push_str(&format!(", {} skipped that need a request (--request)", count(judgement.skipped, "rule")));
    }
    text
}

pub(crate) fn print_json(judgement: &Judgement) -> Result<(), Unwritten> {
    let (deny, warn, dryrun) = counts(judgement);
    let report = json!({
        "summary": {
            "objects": judgement.objects,
            "rules": judgement.rules,
            "violations": { "deny": deny, "warn": warn, "dryrun": dryrun },
            "failures": judgement.failures.len(),
            "warnings": judgement.warnings.len(),
            "skipped": judgement.skipped,
            "unknown": judgement.count_unknown(),
            "skippedFiles": judgement.skipped_files.len(),
        },
        "results": judgement.violations.iter().map(result).collect::<Vec<_>>(),
        "failures": judgement.failures.iter().map(failure).collect::<Vec<_>>(),
        "warnings": judgement.warnings.iter().map(warning).collect::<Vec<_>>(),
        "unknown": judgement.unknown.iter().map(unknown).collect::<Vec<_>>(),
        "skippedFiles": judgement.skipped_files.iter().map(skipped_file).collect::<Vec<_>>(),
        "assumed": judgement.assumed.iter().map(assumed).collect::<Vec<_>>(),
    });
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &report)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

fn result(found: &Found) -> Value {
    let Found { location, violation } = found;
    json!({
        "rule": violation.rule.to_string(),
        "severity": violation.severity.to_string(),
        "action": action_name(violation.enforcement),
        "apiVersion": location.api_version,
        "kind": location.kind,
        "namespace": location.namespace,
        "name": location.name,
        "container": violation.container,
        "message": violation.message,
        "file": location.file,
        "line": location.line,
    })
}

fn failure(failed: &Failed) -> Value {
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "rule": failed.rule,
        "kind": filled(&failed.location.kind),
        "namespace": failed.location.namespace,
        "name": filled(&failed.location.name),
        "error": failed.error,
        "file": failed.location.file,
        "line": failed.location.line,
    })
}

fn warning(problem: &Problem) -> Value {
    json!({
        "rule": problem.rule.as_ref().map(ToString::to_string),
        "message": problem.message,
        "file": &*problem.file,
        "line": problem.line,
    })
}

fn unknown(UnknownKind { objects, first }: &UnknownKind) -> Value {
    json!({
        "apiVersion": first.api_version,
        "kind": first.kind,
        "objects": objects,
        "file": first.file,
        "line": first.line,
    })
}

fn skipped_file(failed: &Failed) -> Value {
    json!({ "file": failed.location.file, "line": failed.location.line, "reason": failed.error })
}

fn assumed(Assumed { group, version, kind }: &Assumed) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn counts(judgement: &Judgement) -> (usize, usize, usize) {
    let count = |action| judgement.count(action);
    (count(EnforcementAction::Deny), count(EnforcementAction::Warn), count(EnforcementAction::Dryrun))
}

pub(crate) fn action_name(action: EnforcementAction) -> &'static str {
    match action {
        EnforcementAction::Deny => "deny",
        EnforcementAction::Warn => "warn",
        EnforcementAction::Dryrun => "dryrun",
    }
}

impl Paint {
    fn show(&self, color: &str, text: &str) -> String {
        if self.is_on { format!("\u{1b}[{color}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
