//! The two that judge pods: `portal check` with the library, and Kubernetes' own evaluator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use portal_test_kit::cache::Cache;
use portal_test_kit::{pod_security_oracle, repository};
use serde_json::{Value, json};

use super::super::oracle::ask;

/// How many objects go into one file.
const BATCH: usize = 1000;

/// The names of the rules that an object violates.
pub(super) type Violated = BTreeSet<String>;

/// A pod that comes with Kubernetes, and whether it passes.
pub(super) struct Fixture {
    pub(super) level: String,
    pub(super) name: String,
    pub(super) passes: bool,
    pub(super) pod: Value,
}

/// Kubernetes' own evaluator.
pub(super) struct Oracle {
    program: PathBuf,
    /// Where Kubernetes' source lies, with the pods that come with it.
    modules: PathBuf,
}

/// The folder of the library.
pub(super) fn library() -> PathBuf {
    repository().join("docs/library/pod-security")
}

/// What `portal check` says of objects in files or folders: by name, for those that violate something.
pub(super) fn check_files(level: &str, path: &Path) -> BTreeMap<String, Violated> {
    let output = Command::new(env!("CARGO_BIN_EXE_portal"))
        .args(["check", "--output=json", "--rules"])
        .arg(library().join(level))
        .arg(path)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failures"], json!([]), "everything can be judged");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut violated: BTreeMap<String, Violated> = BTreeMap::new();
    for result in report["results"].as_array().unwrap() {
        violated.entry(text(&result["name"])).or_default().insert(text(&result["rule"]));
    }
    violated
}

/// What `portal check` says of each of these objects.
pub(super) fn check(level: &str, objects: &[Value]) -> Vec<Violated> {
    let folder = tempfile::tempdir().unwrap();
    let name = |number: usize| format!("object-{number}");
    for (batch, objects) in objects.chunks(BATCH).enumerate() {
        let named = objects.iter().cloned().enumerate().map(|(number, mut object)| {
            object["metadata"]["name"] = name(batch * BATCH + number).into();
            object
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": named.collect::<Vec<Value>>()});
        std::fs::write(folder.path().join(format!("{batch}.json")), list.to_string()).unwrap();
    }
    let mut violated = check_files(level, folder.path());
    (0..objects.len()).map(|number| violated.remove(&name(number)).unwrap_or_default()).collect()
}

impl Oracle {
    pub(super) fn find() -> Self {
        let cache = Cache::open().unwrap();
        Self { program: pod_security_oracle().find(&cache).unwrap(), modules: cache.folder("go/mod").unwrap() }
    }

    /// The rules that a level must have.
    pub(super) fn rules(&self, level: &str) -> Violated {
        let answer = self.ask("checks", String::new());
        rules_of(level, &serde_json::from_str(&answer).unwrap())
    }

    /// What Kubernetes says of each of these pods: the rules that each must violate, for each of the levels.
    pub(super) fn judge<const N: usize>(&self, levels: [&str; N], pods: &[Value]) -> Vec<[Violated; N]> {
        let lines: String = pods.iter().map(|pod| format!("{pod}\n")).collect();
        let answers = self.ask("judge", lines);
        let judged = answers.lines().map(|line| {
            let answer = serde_json::from_str(line).unwrap();
            levels.map(|level| rules_of(level, &answer))
        });
        let judged: Vec<_> = judged.collect();
        assert_eq!(judged.len(), pods.len(), "the oracle answers every question");
        judged
    }

    pub(super) fn fixtures(&self) -> Vec<Fixture> {
        let lines = self.ask("fixtures", String::new());
        let fixture = |line: &str| {
            let mut fixture: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| fixture[name].as_str().unwrap().to_owned();
            let (level, name) = (text("level"), text("name"));
            Fixture { level, name, passes: fixture["passes"].as_bool().unwrap(), pod: fixture["pod"].take() }
        };
        lines.lines().map(fixture).collect()
    }

    fn ask(&self, what: &str, input: String) -> String {
        ask(Command::new(&self.program).arg(what).env("GOMODCACHE", &self.modules), input)
    }
}

/// The names of our rules for Kubernetes' checks.
fn rules_of(level: &str, answer: &Value) -> Violated {
    let checks = answer[level].as_array().unwrap().iter().map(|check| check.as_str().unwrap());
    checks.map(|check| format!("pss-{level}-{}", control(check))).collect()
}

/// What we call a check of Kubernetes: `seccompProfile_restricted` is `seccomp-profile`.
fn control(check: &str) -> String {
    let name = check.split('_').next().unwrap_or_default();
    name.chars().fold(String::new(), |mut control, character| {
        if character.is_uppercase() {
            control.push('-');
        }
        control.push(character.to_ascii_lowercase());
        control
    })
}
