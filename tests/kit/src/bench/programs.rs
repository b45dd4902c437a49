//! The programs of `tests/bench`, each of which prints rows of the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portal_test_kit::prepare::cargo_executables;
use portal_test_kit::{expr_oracle, repository};

use super::Measuring;
use super::table::Row;

/// The programs by name.
pub(super) struct Programs {
    paths: BTreeMap<String, PathBuf>,
    details: bool,
}

impl Programs {
    /// Builds them as the release program is built.
    pub(super) fn build(details: bool) -> anyhow::Result<Self> {
        let built = cargo_executables(&repository().join("tests/bench"), &["build", "--release", "--locked"])?;
        Ok(Self { paths: built.into_iter().map(|program| (program.target, program.path)).collect(), details })
    }

    /// Runs one and returns its rows.
    fn run(&self, name: &str, arguments: &[&Path]) -> anyhow::Result<Vec<Row>> {
        let path = self.paths.get(name).with_context(|| format!("tests/bench has no program {name}"))?;
        let output = Command::new(path)
            .args(arguments)
            .args(self.details.then_some("--details"))
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("could not run {}", path.display()))?;
        if !output.status.success() {
            bail!("{name} failed ({})", output.status);
        }
        let text = String::from_utf8(output.stdout)?;
        let rows = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        rows.with_context(|| format!("{name} printed something else than rows"))
    }
}

pub(super) fn language(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let oracle = expr_oracle().build(measuring.cache)?;
    measuring.programs.run("evaluate", &[&oracle])
}
