//! The programs of `tests/bench`, each of which prints rows of the table.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portal_test_kit::prepare::{self, cargo_executables};
use portal_test_kit::program::Program;
use portal_test_kit::{expr_oracle, repository};

use super::Measuring;
use super::table::Row;

/// The programs. Each is built when it is needed, as the release program is built.
pub(super) struct Programs {
    /// Whether they show what is behind their rows.
    pub(super) details: bool,
}

/// What `make test` checks for the other crates, and not for these: that would compile all that they are raced against.
pub(super) fn check() -> anyhow::Result<()> {
    let checks: [&[&str]; 2] = [
        &["clippy", "--all-targets", "--features", "lookups", "--locked", "--quiet", "--", "--deny", "warnings"],
        &["deny", "--log-level", "error", "--config", "../../deny.toml", "check", "bans", "licenses", "sources"],
    ];
    for arguments in checks {
        let status = Command::new("cargo").args(arguments).current_dir(repository().join("tests/bench")).status()?;
        if !status.success() {
            bail!("`cargo {}` found something in tests/bench", arguments[0]);
        }
    }
    Ok(())
}

impl Programs {
    /// Builds one.
    pub(super) fn build(&self, name: &str, arguments: &[&str]) -> anyhow::Result<PathBuf> {
        let build = ["build", "--release", "--locked", "--bin", name];
        let built = cargo_executables(&repository().join("tests/bench"), &[&build, arguments].concat())?;
        built.into_iter().next().map(|program| program.path).context("cargo built no program")
    }

    /// Runs one and returns its rows.
    pub(super) fn run(&self, name: &str, arguments: &[&Path]) -> anyhow::Result<Vec<Row>> {
        self.rows(&self.build(name, &[])?, arguments)
    }

    /// Runs one that was built, and returns its rows.
    pub(super) fn rows(&self, path: &Path, arguments: &[&Path]) -> anyhow::Result<Vec<Row>> {
        let output = Command::new(path)
            .args(arguments)
            .args(self.details.then_some("--details"))
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("could not run {}", path.display()))?;
        if !output.status.success() {
            bail!("{} failed ({})", path.display(), output.status);
        }
        let text = String::from_utf8(output.stdout)?;
        let rows = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        rows.with_context(|| format!("{} printed something else than rows", path.display()))
    }
}

pub(super) fn language(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let oracle = expr_oracle().build(measuring.cache)?;
    let mut rows = measuring.programs.run("evaluate", &[&oracle])?;
    rows.extend(measuring.programs.run("memory", &[Path::new("rules")])?);
    Ok(rows)
}

pub(super) fn rules(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let portal = cargo_executables(&repository(), &["build", "--release", "--locked", "--bin", "portal"])?;
    let portal = portal.into_iter().next().context("cargo built no program")?;
    let mut rows = measuring.programs.run("checks", &[&portal.path])?;
    rows.extend(measuring.programs.run("memory", &[Path::new("compile")])?);
    Ok(rows)
}

/// The race against Gatekeeper's command line, with the program that users get.
pub(super) fn gator(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let module = repository().join("tests/bench/gator");
    let gator = Program {
        package: "github.com/open-policy-agent/gatekeeper/v3/cmd/gator".to_owned(),
        ..Program::new("gator", &module)
    };
    let arguments = [prepare::static_program()?, gator.build(measuring.cache)?, module.join("checks.yaml")];
    measuring.programs.run("gator", &arguments.each_ref().map(PathBuf::as_path))
}

pub(super) fn documents(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = measuring.programs.run("documents", &[])?;
    rows.extend(measuring.programs.run("caches", &[])?);
    rows.extend(measuring.programs.run("memory", &[Path::new("hostile")])?);
    Ok(rows)
}
