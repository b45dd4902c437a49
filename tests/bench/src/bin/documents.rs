//! How fast a pod becomes a document: from JSON, against `serde_json::Value` and sonic-rs, and from YAML, against the general
//! parser alone: `documents [--details]`.

use std::hint::black_box;

use portal_bench::measure::{self, Samples};
use portal_bench::objects::{cache_drops, pods};
use portal_bench::row::{self, Goal, Row};
use portal_document::{Document, Error, Interning, Options, YamlDocument, from_yaml, from_yaml_generally};

const ROUNDS: usize = 21;
const PODS: usize = 100;

/// Reads a pod.
type Read<'a> = dyn Fn(&[u8]) + 'a;

/// Reads a file.
type ReadYaml = fn(&str, &Options<'_>) -> Result<Vec<YamlDocument>, Error>;

/// A way to read a pod.
struct Contestant<'a> {
    name: &'static str,
    read: Box<Read<'a>>,
}

fn main() {
    let details = std::env::args().any(|argument| argument == "--details");
    let bodies: Vec<String> = pods(PODS).collect();
    let drops = cache_drops();
    let cached = Options { drop: &drops, ..Options::default() };
    let reviewed = Options { interning: Interning::LookUpOnly, ..cached };
    let whole = Options { interning: Interning::LookUpOnly, ..Options::default() };
    // What a cache has seen before is in the interner.
    for body in &bodies {
        document(body.as_bytes(), &cached);
    }
    let contestants = [
        contestant("document, as in a review", |body| document(body, &reviewed)),
        contestant("document, as in a cache", |body| document(body, &cached)),
        contestant("document, nothing dropped", |body| document(body, &whole)),
        contestant("serde_json::Value", |body| {
            black_box(serde_json::from_slice::<serde_json::Value>(body).expect("it is JSON"));
        }),
        contestant("sonic_rs::Value", |body| {
            black_box(sonic_rs::from_slice::<sonic_rs::Value>(body).expect("it is JSON"));
        }),
        contestant("sonic_rs::LazyValue", |body| {
            black_box(sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(body).expect("it is JSON"));
        }),
    ];
    let times = race(&contestants, &bodies);
    if details {
        let size: usize = bodies.iter().map(String::len).sum();
        eprintln!("read a pod of {} bytes, µs", size / bodies.len());
        for (contestant, times) in contestants.iter().zip(&times) {
            let samples = Samples::new(times.clone());
            let (least, most) = samples.spread();
            eprintln!("{:<28}{:>8.2}{least:>10.2} – {most:.2}", contestant.name, samples.median());
        }
    }
    let ratio =
        |other: usize| Samples::new(times[other].iter().zip(&times[0]).map(|(other, own)| other / own).collect());
    let own = Samples::new(times[0].clone());
    let what = || "parse a pod of 11 KB".to_owned();
    row::print(&Row { what: what(), value: own.median(), unit: "µs", spread: Some(own.spread()), ..Row::default() });
    for (other, must, aim) in [(3, Some(2.0), None), (5, None, Some(1.0))] {
        let samples = ratio(other);
        row::print(&Row {
            what: what(),
            against: contestants[other].name.to_owned(),
            value: samples.median(),
            unit: "× faster",
            spread: Some(samples.spread()),
            must: must.map(Goal::AtLeast),
            aim: aim.map(Goal::AtLeast),
            ..Row::default()
        });
    }
    yaml(details);
}

/// Pods as people write them, many in a file.
fn yaml(details: bool) {
    let pod = |number| include_str!("../../objects/api.yaml").replacen("x2x7q", &format!("{number:05}"), 1);
    let text = (0..PODS).map(pod).collect::<Vec<_>>().join("---\n");
    let options = Options::default();
    let readers: [ReadYaml; 2] = [from_yaml, from_yaml_generally];
    let work = |read: ReadYaml| {
        let documents = black_box(read(&text, &options).expect("the bench's own pods are YAML"));
        assert_eq!(documents.len(), PODS);
    };
    let repeats = readers.map(|read| measure::repeats(|| work(read)));
    let mut speeds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((read, repeats), speeds) in readers.into_iter().zip(repeats).zip(&mut speeds) {
            // Bytes per microsecond.
            speeds.push(text.len() as f64 / (measure::nanoseconds(repeats, || work(read)) / 1000.0));
        }
    }
    let ratios = speeds[0].iter().zip(&speeds[1]).map(|(own, general)| own / general).collect();
    let [own, general] = speeds.map(Samples::new);
    if details {
        eprintln!(
            "read {PODS} pods in {} KB of YAML by the general parser: {:.1} MB/s",
            text.len() / 1000,
            general.median()
        );
    }
    let what = || "parse pods of 3 KB in YAML".to_owned();
    row::print(&Row {
        what: what(),
        value: own.median(),
        unit: "MB/s",
        spread: Some(own.spread()),
        aim: Some(Goal::AtLeast(200.0)),
        ..Row::default()
    });
    let ratio = Samples::new(ratios);
    row::print(&Row {
        what: what(),
        against: "the general parser".to_owned(),
        value: ratio.median(),
        unit: "× faster",
        spread: Some(ratio.spread()),
        must: Some(Goal::AtLeast(5.0)),
        ..Row::default()
    });
}

fn contestant<'a>(name: &'static str, read: impl Fn(&[u8]) + 'a) -> Contestant<'a> {
    Contestant { name, read: Box::new(read) }
}

fn document(body: &[u8], options: &Options<'_>) {
    black_box(Document::parse(body, options).expect("the bench's own pods are JSON"));
}

/// Microseconds per pod, for each contestant and round.
fn race(contestants: &[Contestant<'_>], bodies: &[String]) -> Vec<Vec<f64>> {
    let read = |contestant: &Contestant<'_>| bodies.iter().for_each(|body| (contestant.read)(body.as_bytes()));
    let repeats: Vec<u32> = contestants.iter().map(|contestant| measure::repeats(|| read(contestant))).collect();
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..ROUNDS {
        for ((contestant, repeats), times) in contestants.iter().zip(&repeats).zip(&mut times) {
            times.push(measure::nanoseconds(*repeats, || read(contestant)) / 1000.0 / bodies.len() as f64);
        }
    }
    times
}
