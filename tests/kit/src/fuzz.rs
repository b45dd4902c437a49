//! `make fuzz`: looks for inputs that break what must hold for every input, and for expressions that the real expr-lang
//! takes for something else. It takes as long as one lets it, so it is no part of `make test`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};
use portal_test_kit::cache::Cache;
use portal_test_kit::{prepare, repository};

/// A program for libFuzzer.
struct Target {
    name: &'static str,
    /// Executions, unless `FUZZ_RUNS` says otherwise: some minutes of each.
    executions: u64,
    /// Bytes of the longest input. What takes long for an input of this size would take too long in use.
    longest: usize,
}

/// How a target went.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    executions: u64,
    new_inputs: u64,
    /// The input that broke it.
    crash: Option<PathBuf>,
}

const TARGETS: [Target; 5] = [
    Target { name: "expression_parse", executions: 1_000_000, longest: 512 },
    Target { name: "expression_evaluate", executions: 300_000, longest: 512 },
    Target { name: "document_json", executions: 2_000_000, longest: 4096 },
    Target { name: "document_yaml", executions: 1_500_000, longest: 4096 },
    Target { name: "rules", executions: 1_000_000, longest: 1024 },
];

/// Random expressions that are compared with the real expr-lang, unless `PORTAL_SEEDS` says otherwise.
const SEEDS: &str = "1000000";

/// Runs every target and the comparison, and sums up. With `keep`, what was found becomes part of the committed corpora.
pub(crate) fn run(cache: &Cache, keep: bool) -> anyhow::Result<()> {
    let _lock = cache.lock("fuzz")?;
    prepare::oracles(cache)?;
    let programs = build(cache)?;
    let mut outcomes = Vec::new();
    for target in &TARGETS {
        let folder = cache.folder(&format!("fuzz/{}", target.name))?;
        let outcome = fuzz(target, &programs.join(target.name), &folder)?;
        if keep && outcome.crash.is_none() {
            pack(target, &programs.join(target.name), &folder)?;
        }
        outcomes.push((target.name, outcome));
    }
    let agree = compare()?;
    println!("\n{}", summarise(&outcomes, agree));
    let crashes = outcomes.iter().filter(|(_, outcome)| outcome.crash.is_some()).count();
    if crashes > 0 || !agree {
        bail!("something was found");
    }
    Ok(())
}

/// Builds the programs, and returns their folder. Without a sanitizer: our code has no `unsafe`, and more
/// inputs are tried in the same time.
fn build(cache: &Cache) -> anyhow::Result<PathBuf> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = cache.folder("fuzz/target")?;
    println!("building the programs for libFuzzer");
    run_command(
        Command::new("cargo")
            .args([
                "+nightly",
                "fuzz",
                "build",
                "--fuzz-dir",
                "tests/fuzz/libfuzzer",
                "--sanitizer",
                "none",
                "--target",
            ])
            .arg(&platform)
            .env("CARGO_TARGET_DIR", &output),
    )?;
    Ok(output.join(platform).join("release"))
}

fn fuzz(target: &Target, program: &Path, folder: &Path) -> anyhow::Result<Outcome> {
    let Target { name, longest, .. } = target;
    portal_fuzz(&["unpack", name], folder)?;
    fs::create_dir_all(folder.join("corpus"))?;
    fs::create_dir_all(folder.join("crashes"))?;
    let executions = match std::env::var("FUZZ_RUNS") {
        Ok(runs) => runs.parse().with_context(|| format!("FUZZ_RUNS is {runs:?}, which is no number"))?,
        Err(_) => target.executions,
    };
    let log = folder.join("log");
    println!("{name}: {executions} executions; tail -f {}", log.display());
    let started = Instant::now();
    let status = Command::new(program)
        // New inputs go to the first one.
        .args([folder.join("corpus"), folder.join("inputs")])
        .arg(format!("-dict={}", folder.join("dictionary").display()))
        .arg(format!("-artifact_prefix={}/", folder.join("crashes").display()))
        .arg(format!("-max_len={longest}"))
        .arg(format!("-runs={executions}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .status()
        .with_context(|| format!("could not run {}", program.display()))?;
    let outcome = read_log(&String::from_utf8_lossy(&fs::read(&log)?));
    println!("{name}: {} executions in {} s", outcome.executions, started.elapsed().as_secs());
    if !status.success() && outcome.crash.is_none() {
        bail!("{name} ended with {status}: see {}", log.display());
    }
    if let Some(crash) = &outcome.crash {
        println!("{name}: found an input; see it with");
        println!("  cargo run --package portal-fuzz -- replay {name} {}", crash.display());
    }
    Ok(outcome)
}

/// What libFuzzer says at its end.
fn read_log(log: &str) -> Outcome {
    let number = |name: &str| {
        let line = log.lines().rev().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
    };
    Outcome {
        executions: number("stat::number_of_executed_units:"),
        new_inputs: number("stat::new_units_added:"),
        crash: log.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.into()),
    }
}

/// Chooses from all inputs as few as reach the same code, and writes them where they are committed.
fn pack(target: &Target, program: &Path, folder: &Path) -> anyhow::Result<()> {
    let kept = folder.join("kept");
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::create_dir_all(&kept)?;
    let longest = format!("-max_len={}", target.longest);
    // How often a place is reached makes no difference here.
    let status = Command::new(program)
        .args(["-set_cover_merge=1", "-use_counters=0", &longest])
        .args([&kept, &folder.join("inputs"), &folder.join("corpus")])
        .stderr(fs::File::create(folder.join("merge-log"))?)
        .status()?;
    if !status.success() {
        bail!("the inputs of {} could not be merged: see {}", target.name, folder.join("merge-log").display());
    }
    portal_fuzz(&["pack", target.name], &kept)
}

fn portal_fuzz(arguments: &[&str], folder: &Path) -> anyhow::Result<()> {
    run_command(
        Command::new("cargo")
            .args(["run", "--quiet", "--locked", "--package", "portal-fuzz", "--"])
            .args(arguments)
            .arg(folder),
    )
}

/// Compares random expressions with the real expr-lang.
fn compare() -> anyhow::Result<bool> {
    let seeds = std::env::var("PORTAL_SEEDS").unwrap_or_else(|_| SEEDS.to_owned());
    println!("comparing {seeds} random expressions with the real expr-lang");
    let status = Command::new("cargo")
        .args(["test", "--release", "--locked", "--test", "pure", "--"])
        .args(["conformance::random", "--nocapture"])
        .env("PORTAL_SEEDS", seeds)
        .current_dir(repository())
        .status()
        .context("could not run cargo")?;
    Ok(status.success())
}

fn run_command(command: &mut Command) -> anyhow::Result<()> {
    let status = command.current_dir(repository()).status().context("could not run cargo")?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

fn summarise(outcomes: &[(&str, Outcome)], agree: bool) -> String {
    let mut text = format!("{:<22}{:>12}{:>12}{:>10}\n", "target", "executions", "new inputs", "crashes");
    for (name, Outcome { executions, new_inputs, crash }) in outcomes {
        let _ = writeln!(text, "{name:<22}{executions:>12}{new_inputs:>12}{:>10}", u8::from(crash.is_some()));
    }
    let executions: u64 = outcomes.iter().map(|(_, outcome)| outcome.executions).sum();
    let _ = writeln!(text, "{:<22}{executions:>12}", "all");
    for (name, outcome) in outcomes {
        if let Some(crash) = &outcome.crash {
            let _ = writeln!(text, "cargo run --package portal-fuzz -- replay {name} {}", crash.display());
        }
    }
    let _ = write!(text, "random expressions: {}", if agree { "as in Go" } else { "NOT as in Go, see above" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "#2 INITED cov: 3\n==1== ERROR: libFuzzer: deadly signal\nartifact_prefix='/f/crashes/'; Test unit \
                       written to /f/crashes/crash-1\nstat::number_of_executed_units: 1234\nstat::new_units_added:          5\n";

    #[test]
    fn the_log_tells_how_it_went() {
        assert_eq!(
            read_log(LOG),
            Outcome { executions: 1234, new_inputs: 5, crash: Some("/f/crashes/crash-1".into()) }
        );
        assert_eq!(read_log(""), Outcome::default());
    }

    #[test]
    fn the_summary_says_how_to_see_a_crash() {
        let outcomes = [("one", read_log(LOG)), ("two", Outcome { executions: 10, new_inputs: 0, crash: None })];
        expect_test::expect![[r#"
            target                  executions  new inputs   crashes
            one                           1234           5         1
            two                             10           0         0
            all                           1244
            cargo run --package portal-fuzz -- replay one /f/crashes/crash-1
            random expressions: as in Go"#]]
        .assert_eq(&summarise(&outcomes, true));
    }
}
