//! A folder of rules that may not be read for a while.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portal_test_kit::{Cluster, Size};

use super::GOOD;
use super::process::Engine;
use crate::core::eventually;

/// An engine with three rules, each in a folder below the one of the rule before.
struct Rules {
    engine: Engine,
    folder: tempfile::TempDir,
    /// How many rules there are.
    count: i64,
}

impl Rules {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("rules").join(name)
    }

    /// Adds a rule to a file.
    fn add(&mut self, file: &str) {
        self.count += 1;
        let before = fs::read_to_string(self.path(file)).unwrap_or_default();
        let rule = format!("---\nname: rule-{}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: {GOOD}\n", self.count);
        fs::write(self.path(file), before + &rule).unwrap();
    }

    fn active(&self) -> i64 {
        self.engine.metric(r#"portal_rules{state="active"}"#)
    }

    /// Takes permissions away from a path. `is_told` says whether the engine tells, from its `/readyz` and its newest log.
    fn lose(&mut self, path: &str, mode: u32, is_told: impl Fn(&str, &str) -> bool) {
        let (count, logged) = (self.count, self.engine.log().len());
        let owned = self.path(path);
        let before = fs::metadata(&owned).unwrap().permissions();
        fs::set_permissions(&owned, Permissions::from_mode(mode)).unwrap();
        eventually(&format!("{path} with {mode:o} is told"), || {
            is_told(&self.engine.part("folder"), &self.engine.log()[logged..])
        });
        // It has looked again by then.
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(self.active(), count, "rules stay as they were: {path} with {mode:o}");
        assert_eq!(self.engine.get("/readyz").unwrap().0, 200, "rules are in force");

        fs::set_permissions(&owned, before).unwrap();
        eventually(&format!("{path} is well again after {mode:o}"), || {
            self.engine.part("folder") == "[+]folder ok" && self.engine.metric("portal_rule_files_with_problems") == 0
        });
        assert_eq!(self.active(), count);
        for file in ["one.yaml", "deep/two.yaml", "deep/deeper/three.yaml"] {
            self.add(file);
            let count = self.count;
            eventually(&format!("{file} is followed after {path} had {mode:o}"), || self.active() == count);
        }
    }
}

/// Whether a text says that a path may not be read.
fn says(text: &str, path: &Path) -> bool {
    let path = path.to_str().unwrap();
    // Not one that is longer.
    let is_named = |line: &str| [" ", "\""].iter().any(|end| line.contains(&format!("{path}{end}")));
    text.lines().any(|line| line.contains("Permission denied") && is_named(line))
}

#[test]
fn what_may_not_be_read_keeps_its_rules_and_is_followed_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("rules");
    fs::create_dir_all(root.join("deep/deeper")).unwrap();
    fs::write(root.join("deep/notes.txt"), "no rules").unwrap();
    let flags = ["--rules-folder", root.to_str().unwrap()];
    let engine = Engine::start_bound_by_permissions(&Cluster::shared(Size::Core).kubeconfig(), &flags);
    let mut rules = Rules { engine, folder, count: 0 };
    for file in ["one.yaml", "deep/two.yaml", "deep/deeper/three.yaml"] {
        rules.add(file);
    }
    eventually("all rules are in force", || rules.active() == 3);

    let (one, two, three) = (root.join("one.yaml"), root.join("deep/two.yaml"), root.join("deep/deeper/three.yaml"));
    rules.lose("one.yaml", 0o000, |_, log| says(log, &one));
    rules.lose("deep/deeper/three.yaml", 0o000, |_, log| says(log, &three));
    rules.lose("deep", 0o000, |health, _| says(health, &root.join("deep")));
    // Names can be read, and nothing behind them.
    rules.lose("deep", 0o444, |health, log| says(health, &root.join("deep/deeper")) && says(log, &two));
    rules.lose("", 0o000, |health, log| says(health, &root) && says(log, &root));
    rules.lose("", 0o444, |health, log| says(health, &root.join("deep")) && says(log, &one));
}
