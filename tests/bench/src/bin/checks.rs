//! Rules by the thousand, and `portal check` on pods by the thousand: `checks PORTAL [--details]`. Reading the same files and nothing
//! else is `checks drain PATH`, and with the general parser of YAML `checks drain-generally PATH`. Compiling the first rule of a
//! process and others after it is `checks first`.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use portal_bench::library;
use portal_bench::measure::{Samples, nanoseconds, repeats};
use portal_bench::objects::manifest;
use portal_bench::process::{Run, run};
use portal_bench::row::{self, Goal, Row};
use portal_core::layers::Layers;
use portal_core::requirements::Requirements;
use portal_document::{Interning, Options, YamlDocument, from_yaml, from_yaml_generally};

const RULES: usize = 10_000;
const PODS: usize = 10_000;

/// How many rules are asked for what they need.
const NEEDING: usize = 5_000;

/// How many rules of the library judge the pods.
const JUDGES: usize = 10;

const ROUNDS: usize = 7;

/// What a reader of YAML gives.
type Read = Result<Vec<YamlDocument>, portal_document::Error>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["drain", path] => drain(Path::new(path), from_yaml),
        ["drain-generally", path] => drain(Path::new(path), from_yaml_generally),
        ["first"] => {
            first();
            Ok(())
        }
        [portal, rest @ ..] => {
            compile();
            requirements();
            types()?;
            check(Path::new(portal), rest.contains(&"--details"))
        }
        [] => Err("usage: checks PORTAL [--details]".into()),
    }
}

/// Loads and compiles rules.
fn compile() {
    let documents = library::documents(RULES);
    let work = || nanoseconds(1, || drop(black_box(library::rule_set(&documents)))) / 1e9;
    let samples = Samples::new((0..ROUNDS).map(|_| work()).collect());
    row::print(&Row {
        what: "load and compile 10,000 rules".to_owned(),
        value: samples.median(),
        unit: "s",
        spread: Some(samples.spread()),
        must: Some(Goal::AtMost(1.0)),
        ..Row::default()
    });
}

/// Works out what rules need: what is sent to the webhook, what is watched, and what has to be granted.
fn requirements() {
    let half = NEEDING / 2;
    let documents = [library::documents(half), library::lookups(half)].concat();
    let rules = library::compiled(&library::sources(&documents));
    let layers = Layers { admission: true, ..Layers::default() };
    let work = || Requirements::of(&rules, layers).grants();
    assert!(work().len() > 1000, "these rules need something");
    let samples = Samples::new((0..ROUNDS).map(|_| nanoseconds(1, || drop(black_box(work()))) / 1e6).collect());
    row::print(&Row {
        what: "what 5,000 rules need".to_owned(),
        value: samples.median(),
        unit: "ms",
        against: "half of them look up, in 100 namespaces".to_owned(),
        spread: Some(samples.spread()),
        must: Some(Goal::AtMost(50.0)),
        ..Row::default()
    });
}

/// Prints how many nanoseconds it takes to compile a rule that reads a typed object: the first one, for which the types are read, and
/// one after it.
fn first() {
    let sources = library::sources(&[library::typed()]);
    let mut work = || drop(black_box(library::compiled(&sources)));
    let first = nanoseconds(1, &mut work);
    println!("{first} {}", nanoseconds(repeats(&mut work), work));
}

/// What the types of all kinds cost. A process reads them once, so that each measurement is a process.
fn types() -> Result<(), Box<dyn Error>> {
    row::print(&Row {
        what: "table of Kubernetes' types".to_owned(),
        value: library::table_of_types() as f64 / 1e3,
        unit: "KB",
        must: Some(Goal::AtMost(400.0)),
        exact: true,
        ..Row::default()
    });
    let (mut firsts, mut others) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let told = Command::new(std::env::current_exe()?).arg("first").output()?.stdout;
        let told = String::from_utf8(told)?;
        let (first, other) =
            told.trim().split_once(' ').ok_or("`checks first` says something else than two numbers")?;
        firsts.push(first.parse::<f64>()? / 1e6);
        others.push(other.parse::<f64>()? / 1e3);
    }
    let print = |what: &str, unit, samples: Samples, must| {
        row::print(&Row {
            what: what.to_owned(),
            value: samples.median(),
            unit,
            spread: Some(samples.spread()),
            must: Some(Goal::AtMost(must)),
            ..Row::default()
        });
    };
    print("compile the first rule of a process", "ms", Samples::new(firsts), 5.0);
    print("compile a rule that reads a typed object", "µs", Samples::new(others), 100.0);
    Ok(())
}

/// `portal check` on the same pods in one file and in many, against reading them.
fn check(portal: &Path, details: bool) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("portal-checks-{}", std::process::id()));
    fs::create_dir_all(folder.join("rules"))?;
    fs::create_dir_all(folder.join("many"))?;
    for file in library::files().iter().take(JUDGES) {
        fs::copy(file, folder.join("rules").join(file.file_name().unwrap_or_default()))?;
    }
    let mut whole = String::new();
    for number in 0..PODS {
        let pod = manifest(number);
        fs::write(folder.join(format!("many/{number}.yaml")), &pod)?;
        whole.push_str("---\n");
        whole.push_str(&pod);
    }
    fs::write(folder.join("one.yaml"), &whole)?;
    for (name, path) in [("in one file", "one.yaml"), ("in 10,000 files", "many")] {
        measure(portal, &folder, name, &folder.join(path), details)?;
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn measure(portal: &Path, folder: &Path, name: &str, path: &Path, details: bool) -> Result<(), Box<dyn Error>> {
    let (mut checks, mut drains, mut general) = (Vec::new(), Vec::new(), Vec::new());
    let mut check = Command::new(portal);
    check.args(["check", "--rules"]).arg(folder.join("rules")).arg(path);
    let told = String::from_utf8(check.output()?.stdout)?;
    if !told.ends_with(&format!("(200 deny) in {PODS} objects, {JUDGES} rules\n")) {
        return Err(format!("{check:?} says {}", told.lines().last().unwrap_or_default()).into());
    }
    for _ in 0..ROUNDS {
        checks.push(run(&mut check)?);
        drains.push(run(Command::new(std::env::current_exe()?).arg("drain").arg(path))?);
        general.push(run(Command::new(std::env::current_exe()?).arg("drain-generally").arg(path))?);
    }
    let samples = |runs: &[Run], value: fn(&Run) -> f64| Samples::new(runs.iter().map(value).collect());
    if details {
        let drain = [samples(&drains, |run| run.wall), samples(&drains, |run| run.processor)];
        eprintln!("{name}: reading takes {:.2} s, {:.2} s of processors", drain[0].median(), drain[1].median());
    }
    let print = |what: &str, unit, samples: Samples, aim: Option<f64>| {
        row::print(&Row {
            what: format!("check 10,000 pods {name}: {what}"),
            value: samples.median(),
            unit,
            spread: Some(samples.spread()),
            aim: aim.map(Goal::AtMost),
            ..Row::default()
        });
    };
    print("wall", "s", samples(&checks, |run| run.wall), Some(0.5));
    print("processors", "s", samples(&checks, |run| run.processor), None);
    print("peak memory", "MB", samples(&checks, |run| run.resident), Some(90.0));
    // To judge must cost less than the parser alone that others use.
    for (against, reading, must) in
        [("reading them", &drains, None), ("the general parser of YAML", &general, Some(Goal::AtMost(1.0)))]
    {
        let ratios = checks.iter().zip(reading).map(|(check, reading)| check.processor / reading.processor);
        let samples = Samples::new(ratios.collect());
        row::print(&Row {
            what: format!("check 10,000 pods {name}: processors"),
            against: against.to_owned(),
            value: samples.median(),
            unit: "×",
            spread: Some(samples.spread()),
            must,
            ..Row::default()
        });
    }
    Ok(())
}

/// Reads files, and does nothing with them.
fn drain(path: &Path, read: fn(&str, &Options<'_>) -> Read) -> Result<(), Box<dyn Error>> {
    let options = Options { interning: Interning::Add, ..Options::default() };
    let files: Vec<PathBuf> = if path.is_dir() {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?
    } else {
        vec![path.to_owned()]
    };
    let mut count = 0;
    for file in files {
        let text = fs::read_to_string(file)?;
        // A document at a time, as memory is for whoever reads a stream.
        for document in text.split("---\n").filter(|document| !document.is_empty()) {
            count += black_box(read(document, &options)?).len();
        }
    }
    if count == PODS { Ok(()) } else { Err(format!("{count} documents").into()) }
}
