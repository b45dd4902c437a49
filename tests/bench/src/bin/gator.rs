//! `portal check` and Gatekeeper's `gator test` with ten equal checks on the same 10,000 pods: `gator PORTAL GATOR CHECKS`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portal_bench::library;
use portal_bench::measure::Samples;
use portal_bench::objects::manifest;
use portal_bench::process::{Run, run};
use portal_bench::row::{self, Goal, Row};
use serde_json::Value;

const PODS: usize = 10_000;

/// How many rules of the library judge the pods. The checks of the other side are these.
const JUDGES: usize = 10;

/// A round of the other side takes half a minute.
const ROUNDS: usize = 3;

/// Which rules which pods violate.
type Verdicts = BTreeSet<(String, String)>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).take(3).map(PathBuf::from).collect();
    let [portal, gator, checks] = &arguments[..] else { return Err("usage: gator PORTAL GATOR CHECKS".into()) };
    let folder = std::env::temp_dir().join(format!("portal-gator-{}", std::process::id()));
    fs::create_dir_all(folder.join("rules"))?;
    for file in library::files().iter().take(JUDGES) {
        fs::copy(file, folder.join("rules").join(file.file_name().unwrap_or_default()))?;
    }
    let pods: String = (0..PODS).map(|number| format!("---\n{}", manifest(number))).collect();
    fs::write(folder.join("pods.yaml"), pods)?;
    let raced = race(portal, gator, checks, &folder);
    fs::remove_dir_all(folder)?;
    raced
}

fn race(portal: &Path, gator: &Path, checks: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let pods = folder.join("pods.yaml");
    let mut ours = Command::new(portal);
    ours.arg("check").arg("--rules").arg(folder.join("rules")).arg(&pods).args(["--output", "json"]);
    let mut theirs = Command::new(gator);
    theirs.args(["test", "--output", "json", "--filename"]).arg(checks).arg("--filename").arg(&pods);
    compare(&mut ours, &mut theirs)?;
    let (mut portals, mut gators) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Twice, because what lies between two runs of one program is what the ratio cannot be trusted beyond.
        portals.push([run(&mut ours)?, run(&mut ours)?]);
        gators.push(run(&mut theirs)?);
    }
    let print = |what: &str, value: fn(&Run) -> f64, must: Option<f64>, aim: Option<f64>| {
        let ratios = portals
            .iter()
            .zip(&gators)
            .flat_map(|(ours, theirs)| ours.iter().map(move |run| value(theirs) / value(run)));
        let samples = Samples::new(ratios.collect());
        let same = Samples::new(portals.iter().map(|[one, other]| value(one) / value(other)).collect()).spread();
        let middle = |runs: Vec<f64>| Samples::new(runs).median();
        let ours = middle(portals.iter().flatten().map(value).collect());
        let theirs = middle(gators.iter().map(value).collect());
        row::print(&Row {
            what: format!("check 10,000 pods by 10 rules: {what}"),
            against: "gator test (CEL)".to_owned(),
            value: samples.median(),
            unit: "×",
            worst: format!("{ours:.2} to {theirs:.2}; with itself {:.2}–{:.2}", same.0, same.1),
            spread: Some(samples.spread()),
            must: must.map(Goal::AtLeast),
            aim: aim.map(Goal::AtLeast),
            ..Row::default()
        });
    };
    print("seconds", |run| run.wall, Some(50.0), Some(100.0));
    print("seconds of processors", |run| run.processor, Some(50.0), Some(100.0));
    print("MB", |run| run.resident, Some(10.0), None);
    Ok(())
}

/// Fails if the two do not find the same.
fn compare(ours: &mut Command, theirs: &mut Command) -> Result<(), Box<dyn Error>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answer: Value = serde_json::from_slice(&ours.output()?.stdout)?;
    let results = answer["results"].as_array().ok_or("portal lists no results")?;
    let ours: Verdicts = results.iter().map(|result| (text(&result["rule"]), text(&result["name"]))).collect();
    let answer: Value = serde_json::from_slice(&theirs.output()?.stdout)?;
    let results = answer.as_array().ok_or("gator lists no results")?;
    let name = |object: &Value| text(&object["metadata"]["name"]);
    let theirs: Verdicts =
        results.iter().map(|result| (name(&result["constraint"]), name(&result["violatingObject"]))).collect();
    if ours.is_empty() || ours != theirs {
        let first = ours.symmetric_difference(&theirs).next();
        return Err(format!("portal finds {}, gator {}; first difference {first:?}", ours.len(), theirs.len()).into());
    }
    Ok(())
}
