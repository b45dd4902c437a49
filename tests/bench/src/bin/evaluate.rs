//! How fast rules are evaluated and compiled, against the real expr-lang and the `cel` crate: `evaluate ORACLE [--details]`.
//!
//! Everything that can be done before is done before: documents are parsed, programs are compiled, the environments of the
//! others are built. All three must come to the same verdicts first.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use portal_bench::go::Go;
use portal_bench::measure::{self, Samples};
use portal_bench::objects::{environments, objects};
use portal_bench::portal;
use portal_bench::row::{self, Goal, Row};
use portal_bench::rules::{RULES, Rule};
use portal_core::language::Expression;
use portal_document::{Document, Options};
use portal_expr::{Arena, Limits, Schema};

const ROUNDS: usize = 21;

/// The times of one rule, in nanoseconds per evaluation: a number for each round.
#[derive(Default)]
struct Times {
    portal: Vec<f64>,
    go: Vec<f64>,
    cel: Vec<f64>,
}

/// A rule and what it runs on, in all three forms.
struct Contestant<'a> {
    rule: &'static Rule,
    expression: Box<dyn Expression>,
    contexts: Vec<&'a portal::Context<'a>>,
    cel: ::cel::Program,
    cel_contexts: Vec<&'a ::cel::Context<'static, 'static>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let oracle = arguments.first().ok_or("usage: evaluate ORACLE [--details]")?;
    let details = arguments.iter().any(|argument| argument == "--details");

    let objects = objects();
    let documents: Vec<Document> = objects
        .iter()
        .map(|object| Document::parse(object.as_bytes(), &Options::default()))
        .collect::<Result<_, _>>()?;
    let contexts: Vec<_> = documents.iter().map(portal::contexts).collect();
    let environments: Vec<_> = objects.iter().map(|object| environments(object)).collect();
    let cel_contexts: Vec<_> = environments
        .iter()
        .map(|(own, per_container)| {
            (portal_bench::cel::context(own), per_container.iter().map(portal_bench::cel::context).collect::<Vec<_>>())
        })
        .collect();
    let schema = portal::schema();
    let contestants: Vec<Contestant<'_>> = RULES
        .iter()
        .map(|rule| Contestant {
            rule,
            expression: portal::compile(rule, &schema),
            contexts: contexts.iter().flat_map(|contexts| rule.choose(contexts)).collect(),
            cel: portal_bench::cel::compile(rule),
            cel_contexts: cel_contexts.iter().flat_map(|contexts| rule.choose(contexts)).collect(),
        })
        .collect();
    let rules = RULES.iter().map(|rule| (rule, environments.iter().flat_map(|pair| rule.choose(pair)).collect()));
    let (mut go, verdicts) = Go::start(Path::new(oracle), rules)?;
    for (contestant, verdicts) in contestants.iter().zip(&verdicts) {
        contestant.check(verdicts);
    }

    let times = race(&contestants, &mut go)?;
    drop(go);
    if details {
        print_details(&contestants, &times);
    }
    let ours = |times: &Times| Samples::new(times.portal.clone()).median();
    let slowest =
        times.iter().zip(&RULES).max_by(|(a, _), (b, _)| ours(a).total_cmp(&ours(b))).expect("there are rules");
    let rounds = |round: usize| measure::geometric_mean(times.iter().map(|times| times.portal[round]));
    let per_round = Samples::new((0..ROUNDS).map(rounds).collect());
    row::print(&Row {
        what: "evaluate a rule".to_owned(),
        value: per_round.median(),
        unit: "ns",
        worst: format!("{:.0} ns: {}", ours(slowest.0), slowest.1.name),
        spread: Some(per_round.spread()),
        ..Row::default()
    });
    print_ratio("Go's expr-lang", &times, |times| &times.go, 5.0, 20.0);
    print_ratio("the cel crate", &times, |times| &times.cel, 10.0, 50.0);
    compile(&schema, details);
    Ok(())
}

fn race(contestants: &[Contestant<'_>], go: &mut Go) -> Result<Vec<Times>, Box<dyn Error>> {
    let mut arena = Arena::new();
    let repeats: Vec<(u32, u32)> = contestants
        .iter()
        .map(|contestant| (measure::repeats(|| contestant.run(&mut arena)), measure::repeats(|| contestant.run_cel())))
        .collect();
    let mut times: Vec<Times> = contestants.iter().map(|_| Times::default()).collect();
    for _ in 0..ROUNDS {
        for ((contestant, (repeats, _)), times) in contestants.iter().zip(&repeats).zip(&mut times) {
            let round = measure::nanoseconds(*repeats, || contestant.run(&mut arena));
            times.portal.push(round / contestant.contexts.len() as f64);
        }
        for (round, times) in go.round()?.into_iter().zip(&mut times) {
            times.go.push(round);
        }
        for ((contestant, (_, repeats)), times) in contestants.iter().zip(&repeats).zip(&mut times) {
            let round = measure::nanoseconds(*repeats, || contestant.run_cel());
            times.cel.push(round / contestant.contexts.len() as f64);
        }
    }
    Ok(times)
}

fn print_ratio(against: &str, times: &[Times], other: impl Fn(&Times) -> &Vec<f64>, must: f64, aim: f64) {
    let ratio = |times: &Times, round: usize| other(times)[round] / times.portal[round];
    let per_round = (0..ROUNDS).map(|round| measure::geometric_mean(times.iter().map(|times| ratio(times, round))));
    let per_round = Samples::new(per_round.collect());
    let per_rule =
        times.iter().map(|times| Samples::new((0..ROUNDS).map(|round| ratio(times, round)).collect()).median());
    let (worst, rule) = per_rule.zip(&RULES).min_by(|(a, _), (b, _)| a.total_cmp(b)).expect("there are rules");
    row::print(&Row {
        what: "evaluate a rule".to_owned(),
        against: against.to_owned(),
        value: per_round.median(),
        unit: "× faster",
        worst: format!("{worst:.1} ×: {}", rule.name),
        spread: Some(per_round.spread()),
        must: Some(Goal::AtLeast(must)),
        aim: Some(Goal::AtLeast(aim)),
        ..Row::default()
    });
}

fn print_details(contestants: &[Contestant<'_>], times: &[Times]) {
    eprintln!("{:<22}{:>10}{:>10}{:>10}{:>9}{:>9}", "rule, ns/evaluation", "portal", "Go", "cel", "× Go", "× cel");
    for (contestant, times) in contestants.iter().zip(times) {
        let [portal, go, cel] =
            [&times.portal, &times.go, &times.cel].map(|times| Samples::new(times.clone()).median());
        let name = contestant.rule.name;
        eprintln!("{name:<22}{portal:>10.1}{go:>10.1}{cel:>10.1}{:>9.1}{:>9.1}", go / portal, cel / portal);
    }
}

fn compile(schema: &Schema, details: bool) {
    let mut medians = Vec::new();
    for rule in &RULES {
        let work = || drop(black_box(portal::compile(rule, schema)));
        let repeats = measure::repeats(work);
        let samples = (0..ROUNDS).map(|_| measure::nanoseconds(repeats, work) / 1000.0).collect();
        medians.push((Samples::new(samples).median(), rule.name));
        if details {
            eprintln!("compile {:<22}{:>10.1} µs", rule.name, medians[medians.len() - 1].0);
        }
    }
    let worst = medians.iter().max_by(|(a, _), (b, _)| a.total_cmp(b)).expect("there are rules");
    let all = Samples::new(medians.iter().map(|(median, _)| *median).collect());
    row::print(&Row {
        what: "compile a rule".to_owned(),
        value: all.median(),
        unit: "µs",
        worst: format!("{:.0} µs: {}", worst.0, worst.1),
        must: Some(Goal::AtMost(50.0)),
        aim: Some(Goal::AtMost(20.0)),
        ..Row::default()
    });
}

impl Contestant<'_> {
    /// Panics unless all three languages agree, so that equal things are raced.
    fn check(&self, go: &[bool]) {
        let (mut arena, limits) = (Arena::new(), Limits::default());
        assert_eq!(go.len(), self.contexts.len(), "{}: Go answered for other contexts", self.rule.name);
        for (index, go) in go.iter().enumerate() {
            let portal = portal::evaluate(&*self.expression, self.contexts[index], &mut arena, &limits);
            let cel = portal_bench::cel::evaluate(&self.cel, self.cel_contexts[index]);
            let verdicts = (portal, cel);
            assert_eq!(verdicts, (*go, *go), "{}: Portal and cel disagree with Go on context {index}", self.rule.name);
        }
    }

    fn run(&self, arena: &mut Arena) {
        let limits = Limits::default();
        for context in &self.contexts {
            black_box(portal::evaluate(&*self.expression, black_box(context), arena, &limits));
        }
    }

    fn run_cel(&self) {
        for context in &self.cel_contexts {
            black_box(portal_bench::cel::evaluate(&self.cel, black_box(context)));
        }
    }
}
