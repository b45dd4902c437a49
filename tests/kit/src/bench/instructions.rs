//! How many instructions the same work takes. Times tell how fast it is; instructions tell whether the code got slower, on any
//! machine and under any load.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::Measuring;
use super::table::Row;

/// The phases of the replay, how often each is repeated, and what one piece of its work is called.
const PHASES: [(&str, u32, &str); 3] =
    [("parse", 5, "parse a pod of 11 KB"), ("compile", 5, "compile a rule"), ("evaluate", 50, "evaluate a rule")];

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let replay = measuring.programs.build("replay", &[])?;
    let (set_up, _) = count(&replay, "parse", 0)?;
    let mut rows = Vec::new();
    for (phase, times, what) in PHASES {
        let (instructions, pieces) = count(&replay, phase, times)?;
        rows.push(Row {
            what: format!("{what}: instructions"),
            value: instructions.saturating_sub(set_up) as f64 / pieces as f64,
            exact: true,
            ..Row::default()
        });
    }
    Ok(rows)
}

/// Instructions of a run, and the pieces of work that it did.
fn count(replay: &Path, phase: &str, times: u32) -> anyhow::Result<(u64, u64)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(replay)
        .args([phase, &times.to_string()])
        .output()
        .context("could not run valgrind")?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("the replay failed:\n{}", log.trim());
    }
    let instructions = log.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    let pieces = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    Ok((instructions.context("callgrind did not say what it counted")?, pieces))
}
