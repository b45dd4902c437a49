//! `portal test`: cases of rules, each a folder, compared exactly.

mod place;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use portal_document::{Options, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use crate::check::{self, Failed, Found, Judgement, Location};
use crate::output;

/// Run cases of rules, and compare what comes out with what is expected
///
/// A case is a folder with `rules.yaml`, `input.yaml` (objects, or AdmissionReviews), `expected.yaml`, and `cluster.yaml` for
/// what rules look up. Folders are searched for cases.
///
/// Exit code 0: every case is as expected. 1: one is not. 2: something could not be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  portal test rules/tests\n  portal test rules/tests --update")]
pub(crate) struct Arguments {
    /// Folders with cases
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Write what comes out to `expected.yaml`, to be read in the diff
    #[arg(long)]
    update: bool,
}

/// What is expected of a case. A list that is missing is expected to be empty.
#[derive(Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Expected {
    /// What violates which rule, in the order of the objects and of the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    violations: Vec<ExpectedViolation>,
    /// What could not be judged, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<ExpectedFailure>,
    /// What may be wrong with the rules although they can be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Which objects are of kinds that are not known, and what rules name although nothing defines it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A violation.
#[derive(Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectedViolation {
    /// The name of the rule.
    rule: String,
    /// The object: kind, namespace if it is in one, and name, with slashes between.
    object: String,
    /// The container, for rules that run per container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// What admission does about it: deny, warn or dryrun.
    action: String,
    /// What people are told.
    message: String,
}

/// A failure.
#[derive(Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectedFailure {
    /// The name of the rule, if it is one rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The object, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    /// Why.
    error: String,
}

/// How a case went.
enum Outcome {
    AsExpected,
    Updated,
    Differs(String),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut cases = Vec::new();
    let (mut differing, mut unread) = (0, 0);
    for folder in &arguments.folders {
        let before = cases.len();
        let problem = match find(folder, 0, &mut cases) {
            Err(error) => format!("{} cannot be read: {error}", folder.display()),
            Ok(()) if cases.len() > before => continue,
            Ok(()) => format!("{} has no case: a case is a folder with rules.yaml and input.yaml", folder.display()),
        };
        unread += 1;
        eprintln!("error: {problem}");
    }
    let mut printed = Ok(());
    let mut print = |text: String| {
        // The other cases are still run: how they go is the exit code.
        if printed.is_ok() {
            printed = output::print(text);
        }
    };
    for case in &cases {
        match run_case(case, arguments.update) {
            Ok(Outcome::AsExpected) => {}
            Ok(Outcome::Updated) => print(format!("{}: updated\n", case.display())),
            Ok(Outcome::Differs(diff)) => {
                differing += 1;
                print(format!("{}: not as expected\n{diff}\n", case.display()));
            }
            Err(error) => {
                unread += 1;
                eprintln!("error: {error:#}");
            }
        }
    }
    let count = if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
    print(format!("{count}, {differing} not as expected, {unread} could not be run\n"));
    if let Err(unwritten) = printed
        && !unwritten.is_closed()
    {
        return Err(unwritten.into());
    }
    Ok(match (unread, differing) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}

/// Folders with rules, in order. Bounded, because links may lead around in a circle.
fn find(folder: &Path, depth: usize, cases: &mut Vec<PathBuf>) -> std::io::Result<()> {
    const MAX_DEPTH: usize = 32;
    if folder.join("rules.yaml").exists() {
        cases.push(folder.to_owned());
    }
    if depth == MAX_DEPTH {
        return Ok(());
    }
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().filter(|entry| entry.is_dir()).try_for_each(|entry| find(entry, depth + 1, cases))
}

fn run_case(case: &Path, update: bool) -> anyhow::Result<Outcome> {
    let input = case.join("input.yaml");
    anyhow::ensure!(input.exists(), "{} is missing: it holds what the case judges", input.display());
    let cluster = Some(case.join("cluster.yaml")).filter(|cluster| cluster.exists());
    let judgement = check::Arguments::of_case(case.join("rules.yaml"), input, cluster).judge();
    let found = Expected::of(&judgement, case);
    let path = case.join("expected.yaml");
    let text = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let expected = match &text {
        Some(text) if !update => {
            Expected::from_yaml(text).map_err(|mistake| anyhow::anyhow!("{}:{mistake}", path.display()))?
        }
        None if !update => anyhow::bail!("{} is missing: write it, or run with --update", path.display()),
        _ => Expected::default(),
    };
    if !update && expected == found {
        return Ok(Outcome::AsExpected);
    }
    let shown = found.to_yaml()?;
    if update {
        if text.as_deref() == Some(&shown) {
            return Ok(Outcome::AsExpected);
        }
        fs::write(&path, shown).with_context(|| format!("{} cannot be written", path.display()))?;
        return Ok(Outcome::Updated);
    }
    Ok(Outcome::Differs(diff(&expected.to_yaml()?, &shown)))
}

impl Expected {
    fn of(judgement: &Judgement, case: &Path) -> Expected {
        let violation = |found: &Found| ExpectedViolation {
            rule: found.violation.rule.to_string(),
            object: object_name(&found.location).unwrap_or_default(),
            container: found.violation.container.clone(),
            action: check::action_name(found.violation.enforcement).to_owned(),
            message: found.violation.message.clone(),
        };
        let failure = |failed: &Failed| ExpectedFailure {
            rule: failed.rule.clone(),
            object: object_name(&failed.location),
            error: place(failed, case) + &failed.error,
        };
        Expected {
            violations: judgement.violations.iter().map(violation).collect(),
            failures: judgement.failures.iter().map(failure).collect(),
            warnings: judgement.warnings.iter().map(|warning| warning.message.clone()).collect(),
            notes: judgement.notes(),
        }
    }

    /// Reads what is expected, or says what is wrong with it and where.
    fn from_yaml(text: &str) -> Result<Expected, String> {
        let shown = |place: Option<Position>, message: String| match place {
            Some(Position { line, column, .. }) => format!("{line}:{column}: {message}"),
            None => format!(" {message}"),
        };
        let documents = portal_document::from_yaml(text, &Options::default())
            .map_err(|error| shown(error.position(), error.reason()))?;
        let json = documents.first().map(|found| found.document.to_json()).filter(|json| json != "null");
        let json = json.as_deref().unwrap_or("{}");
        serde_json::from_str(json).map_err(|error| {
            let message = error.to_string();
            // The place in the JSON means nothing to the user, who wrote YAML.
            let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
            shown(place::place(text, json, error.column()), message.to_owned())
        })
    }

    fn to_yaml(&self) -> anyhow::Result<String> {
        Ok(serde_saphyr::to_string(self)?)
    }
}

/// The file of the case and the line, for what is about no object.
fn place(failed: &Failed, case: &Path) -> String {
    if !failed.location.kind.is_empty() {
        return String::new();
    }
    let file = Path::new(&failed.location.file);
    let mut place = file.strip_prefix(case).unwrap_or(file).display().to_string();
    for number in [failed.location.line, failed.column].into_iter().flatten() {
        let _ = write!(place, ":{number}");
    }
    place + ": "
}

fn object_name(location: &Location) -> Option<String> {
    let Location { kind, namespace, name, .. } = location;
    let name = match namespace {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    };
    (!kind.is_empty()).then_some(name)
}

/// What is expected and missing begins with `-`, what is there and not expected with `+`.
fn diff(expected: &str, found: &str) -> String {
    let diff = TextDiff::from_lines(expected, found);
    let mut text = String::new();
    for change in diff.grouped_ops(2).iter().flatten().flat_map(|op| diff.iter_changes(op)) {
        let sign = match change.tag() {
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
            ChangeTag::Equal => " ",
        };
        let _ = write!(text, "  {sign} {change}");
    }
    text
}
