//! Every check and every test, in lanes of one suite after the other, and a summary at the end.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::cache::Cache;
use crate::detached;
use crate::prepare::{self, Executable, cargo_executables};
use crate::share;

/// A group of checks that is timed and counted together.
struct Suite {
    name: &'static str,
    work: Work,
}

/// Suites that run one after the other, beside those of other lanes.
struct Lane {
    suites: Vec<Suite>,
    /// Whether the image that users get is to be there.
    needs_image: bool,
}

enum Work {
    /// A command that succeeds or fails as a whole.
    Check(Vec<&'static [&'static str]>),
    /// The unit tests of every crate.
    Unit,
    /// The tests of one program, below one module if it is named, so many at once for each core.
    Program { target: &'static str, module: &'static str, per_core: usize },
}

/// How much of the long tests is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extent {
    /// A share of them, beside all other tests.
    Share,
    /// All of them, and nothing else.
    Whole,
}

/// One run of tests.
struct Run {
    /// Marks the clusters that this run starts, among those of others.
    id: String,
    extent: Extent,
}

/// How a suite went.
struct Outcome {
    name: &'static str,
    tests: Vec<Test>,
    duration: Duration,
}

/// How a test went.
#[derive(Debug)]
struct Test {
    name: String,
    passed: bool,
    seconds: f64,
}

/// A line of libtest's JSON output. What else it says is passed over.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    exec_time: f64,
    #[serde(default)]
    stdout: String,
}

/// No suite takes longer, or something hangs.
const SUITE_TIMEOUT: &str = "1800";

/// Tests that take longer are named while they run, so that a person sees the run move.
const WORTH_NAMING: f64 = 1.0;

/// What starts clusters waits for most of its time, and leaves room for what computes.
fn builtin() -> Vec<Lane> {
    let cluster = |name, module, per_core| Suite { name, work: Work::Program { target: "cluster", module, per_core } };
    let computing = vec![
        Suite {
            name: "format",
            work: Work::Check(vec![
                &["cargo", "fmt", "--all", "--check"],
                &["cargo", "fmt", "--manifest-path", "tests/bench/Cargo.toml", "--check"],
                &["cargo", "fmt", "--manifest-path", "tests/fuzz/libfuzzer/Cargo.toml", "--check"],
                &["tests/check-go.sh", "format"],
            ]),
        },
        Suite {
            name: "lint",
            work: Work::Check(vec![
                &["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "--deny", "warnings"],
                &["tests/check-go.sh", "vet"],
                &["shellcheck", "tests/setup.sh", "tests/check-go.sh", ".ci/run"],
            ]),
        },
        Suite {
            name: "dependencies",
            work: Work::Check(vec![&[
                "cargo",
                "deny",
                "--offline",
                "--log-level",
                "error",
                "check",
                "bans",
                "licenses",
                "sources",
            ]]),
        },
        Suite { name: "site", work: Work::Check(vec![&["mkdocs", "build", "--strict", "--quiet"]]) },
        Suite { name: "go", work: Work::Check(vec![&["tests/check-go.sh", "test"]]) },
        Suite { name: "unit", work: Work::Unit },
        Suite { name: "pure", work: Work::Program { target: "pure", module: "", per_core: 1 } },
    ];
    let without_pods = vec![
        cluster("core", "core::", 1),
        // These wait for Leases that run out, and for watches that are tried again.
        cluster("engine", "engine::", 2),
        cluster("control", "control::", 1),
        cluster("faults", "faults::", 2),
    ];
    let with_pods = vec![
        cluster("full", "full::", 1),
        // Most of what these do is to wait for pods.
        cluster("operator", "operator::", 2),
        cluster("pages", "pages::", 1),
    ];
    vec![
        Lane { suites: computing, needs_image: false },
        Lane { suites: without_pods, needs_image: false },
        Lane { suites: with_pods, needs_image: true },
    ]
}

/// The tests of which `make test` tries a share. They are told apart by what they cost, so nothing runs beside them.
fn faults() -> Vec<Lane> {
    let program = |name, target, module| Suite { name, work: Work::Program { target, module, per_core: 1 } };
    let suites = vec![
        program("properties", "pure", "properties::"),
        program("quantities", "pure", "conformance::quantities::"),
        program("elections", "portal_cluster", "holder::election::histories::"),
        program("certificates", "portal_operator", "certificates::histories::"),
        program("instances", "portal_operator", "simulation::histories::"),
        program("audit", "portal_engine", "histories::once_it_is_quiet"),
        program("permissions", "portal_operator", "simulation::rights::"),
        program("alerts", "portal_engine", "sinks::alertmanager::simulation::"),
        program("fault-points", "cluster", "faults::fault_points::"),
        program("views", "cluster", "faults::histories::"),
        program("fields", "cluster", "faults::fields::"),
        program("rights", "cluster", "faults::rights::"),
        program("storms", "cluster", "core::fault_proxy::storms::"),
        program("histories", "cluster", "engine::histories::"),
        program("caches", "cluster", "engine::caches::"),
        program("day", "cluster", "engine::day::"),
        program("load", "cluster", "engine::admission::load::"),
    ];
    vec![Lane { suites, needs_image: false }]
}

/// Runs the suites whose names contain `only`, all of them if it is not given.
pub fn run(cache: &Cache, extent: Extent, only: Option<&str>) -> anyhow::Result<()> {
    // The folder of built programs is shared by every clone: two runs at once would replace each other's.
    let _lock = cache.lock("test")?;
    let mut lanes = match extent {
        Extent::Share => builtin(),
        Extent::Whole => faults(),
    };
    let names: Vec<&str> = lanes.iter().flat_map(|lane| &lane.suites).map(|suite| suite.name).collect();
    for lane in &mut lanes {
        lane.suites.retain(|suite| only.is_none_or(|only| suite.name.contains(only)));
    }
    lanes.retain(|lane| !lane.suites.is_empty());
    if lanes.is_empty() {
        bail!("no suite is called {:?}: there are {}", only.unwrap_or_default(), names.join(", "));
    }
    let run = Run { id: std::process::id().to_string(), extent };
    let started = Instant::now();
    println!("building the tests");
    let executables = cargo_executables(&crate::repository(), &["test", "--workspace", "--no-run", "--locked"])?;
    if lanes.iter().any(|lane| lane.needs_image) {
        prepare::portal_image(cache)?;
    }
    let mut outcomes = vec![Outcome { name: "build", tests: Vec::new(), duration: started.elapsed() }];
    let ended: Vec<anyhow::Result<Vec<Outcome>>> = std::thread::scope(|scope| {
        let lanes = lanes.iter().map(|lane| scope.spawn(|| run_lane(lane, &executables, &run)));
        // Every lane begins before the first is waited for.
        let lanes: Vec<_> = lanes.collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
    });
    detached::wait_for_run(cache, &run.id)?;
    for lane in ended {
        outcomes.extend(lane?);
    }
    println!("\nin all {:.0} s", started.elapsed().as_secs_f64());
    let (summary, failed) = summarise(&outcomes);
    println!("\n{summary}");
    if failed > 0 {
        bail!("{failed} failed");
    }
    Ok(())
}

fn run_lane(lane: &Lane, executables: &[Executable], run: &Run) -> anyhow::Result<Vec<Outcome>> {
    let outcomes = lane.suites.iter().map(|suite| {
        println!("== {}", suite.name);
        let started = Instant::now();
        let tests = run_suite(suite, executables, run)?;
        let outcome = Outcome { name: suite.name, tests, duration: started.elapsed() };
        println!("-- {}: {} tests in {:.0} s", suite.name, outcome.tests.len(), outcome.duration.as_secs_f64());
        Ok(outcome)
    });
    outcomes.collect()
}

fn run_suite(suite: &Suite, executables: &[Executable], run: &Run) -> anyhow::Result<Vec<Test>> {
    match &suite.work {
        Work::Check(commands) => commands.iter().map(|command| run_check(command)).collect(),
        Work::Unit => {
            let mut tests = Vec::new();
            for executable in executables.iter().filter(|executable| executable.kind != "test") {
                let prefix = format!("{}::", executable.target);
                tests.extend(run_tests(executable, "", 1, &prefix, run)?);
            }
            Ok(tests)
        }
        Work::Program { target, module, per_core } => {
            let executable = executables
                .iter()
                .find(|executable| executable.target == *target)
                .with_context(|| format!("cargo built no test program {target}"))?;
            let tests = run_tests(executable, module, *per_core, "", run)?;
            if tests.is_empty() {
                bail!("the suite {} has no test", suite.name);
            }
            Ok(tests)
        }
    }
}

fn run_check(command: &[&str]) -> anyhow::Result<Test> {
    let started = Instant::now();
    let (program, arguments) = command.split_first().context("a check has a command")?;
    let status = Command::new(program)
        .args(arguments)
        .current_dir(crate::repository())
        .status()
        .with_context(|| format!("could not run {program}: `make` sets up what it needs"))?;
    let name = command.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let test = Test { name, passed: status.success(), seconds: started.elapsed().as_secs_f64() };
    print_test(&test);
    Ok(test)
}

fn run_tests(
    executable: &Executable,
    module: &str,
    per_core: usize,
    prefix: &str,
    run: &Run,
) -> anyhow::Result<Vec<Test>> {
    let cores = std::thread::available_parallelism()?.get();
    let mut child = Command::new("timeout")
        // In the foreground, or Ctrl-C would not reach the tests.
        .args(["--foreground", "--kill-after=10", SUITE_TIMEOUT])
        .arg(&executable.path)
        .args(["-Z", "unstable-options", "--format=json", "--report-time"])
        .arg(format!("--test-threads={}", cores * per_core))
        .args((!module.is_empty()).then_some(module))
        .current_dir(&executable.package)
        // As cargo does: expectations in files are found by it.
        .env("CARGO_MANIFEST_DIR", &executable.package)
        // libtest tells how long a test took only to those who accept that the format may change. This is set for the run
        // alone, never for a compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("PORTAL_TEST_KIT", std::env::current_exe()?)
        .env("PORTAL_TEST_RUN", &run.id)
        .envs((run.extent == Extent::Whole).then_some((share::FAULTS, "1")))
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not run {}", executable.path.display()))?;
    let stdout = child.stdout.take().expect("it was asked to be piped");
    let mut tests = Vec::new();
    let mut started = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        // What a test prints past the harness is not for us.
        let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
        match (line.kind.as_str(), line.event.as_str()) {
            ("test", "started") => started.push(line.name),
            ("test", "ok" | "failed") => {
                started.retain(|name| *name != line.name);
                let test = Test {
                    name: format!("{prefix}{}", line.name),
                    passed: line.event == "ok",
                    seconds: line.exec_time,
                };
                if !test.passed {
                    println!("{}", line.stdout.trim_end());
                }
                if !test.passed || test.seconds >= WORTH_NAMING {
                    print_test(&test);
                }
                tests.push(test);
            }
            _ => {}
        }
    }
    let status = child.wait()?;
    let all_passed = tests.iter().all(|test| test.passed);
    if !status.success() && (all_passed || !started.is_empty()) {
        // The program died, or ran out of time, in the middle of these.
        for name in started {
            tests.push(Test { name: format!("{prefix}{name}"), passed: false, seconds: 0.0 });
        }
        tests.push(Test { name: format!("{} ended with {status}", executable.target), passed: false, seconds: 0.0 });
        tests.iter().filter(|test| !test.passed).for_each(print_test);
    }
    Ok(tests)
}

fn print_test(test: &Test) {
    println!("{:>8.2} s  {:4}  {}", test.seconds, if test.passed { "ok" } else { "FAIL" }, test.name);
}

/// The table at the end, and how many tests failed.
fn summarise(outcomes: &[Outcome]) -> (String, usize) {
    let mut text = format!("{:<14}{:>7}{:>8}{:>10}\n", "suite", "tests", "failed", "seconds");
    for outcome in outcomes {
        let failed = outcome.tests.iter().filter(|test| !test.passed).count();
        let seconds = outcome.duration.as_secs_f64();
        let _ = writeln!(text, "{:<14}{:>7}{failed:>8}{seconds:>10.1}", outcome.name, outcome.tests.len());
    }
    let mut tests: Vec<&Test> = outcomes.iter().flat_map(|outcome| &outcome.tests).collect();
    tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    text.push_str("\nthe slowest ten\n");
    for test in tests.iter().take(10) {
        let _ = writeln!(text, "{:>8.2} s  {}", test.seconds, test.name);
    }
    let failed: Vec<&&Test> = tests.iter().filter(|test| !test.passed).collect();
    if !failed.is_empty() {
        text.push_str("\nfailed\n");
        for test in &failed {
            let _ = writeln!(text, "  {}", test.name);
        }
    }
    let _ = write!(text, "\n{} passed, {} failed", tests.len() - failed.len(), failed.len());
    (text, failed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_times_and_names_what_failed() {
        let test = |name: &str, passed, seconds| Test { name: name.to_owned(), passed, seconds };
        let outcomes = [
            Outcome {
                name: "unit",
                tests: vec![test("a", true, 0.5), test("b", false, 2.0)],
                duration: Duration::from_secs(3),
            },
            Outcome { name: "core", tests: vec![test("c", true, 1.0)], duration: Duration::from_millis(4500) },
        ];
        let (text, failed) = summarise(&outcomes);
        assert_eq!(failed, 1);
        expect_test::expect![[r#"
            suite           tests  failed   seconds
            unit                2       1       3.0
            core                1       0       4.5

            the slowest ten
                2.00 s  b
                1.00 s  c
                0.50 s  a

            failed
              b

            2 passed, 1 failed"#]]
        .assert_eq(&text);
    }
}
