//! Where the time of a decision goes, without a server around it: `judge REVIEW`.

use std::error::Error;
use std::hint::black_box;

use portal_bench::library;
use portal_bench::measure::{Samples, nanoseconds, repeats};
use portal_bench::row::{self, Row};
use portal_core::decide::{Decision, Policy};
use portal_core::evaluate::evaluate;
use portal_core::kinds::Kinds;
use portal_core::lookup::{Answer, Lookup, Query};
use portal_core::review::Review;
use portal_crds::EnforcementAction;
use portal_document::{Document, Interning, Options};
use portal_expr::{Limits, Moment};

const ROUNDS: usize = 21;

/// Nobody is asked anything.
struct Nobody;

impl Lookup for Nobody {
    fn answer(&self, _: &Query) -> Answer {
        Answer::NotSynced
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let body = std::fs::read(std::env::args_os().nth(1).ok_or("usage: judge REVIEW")?)?;
    let rules = library::rule_set(&library::documents(library::files().len()));
    // As the engine reads what anybody may send.
    let options = Options { drop: Review::unseen(), interning: Interning::LookUpOnly, ..Options::default() };
    let parse = || Document::parse(&body, &options).expect("it was read before");
    let document = Document::parse(&body, &options)?;
    let review = Review::of(document.root(), Kinds::builtin())?;
    let (event, limits) = (review.event(Moment::default()), Limits::default());
    let policy = Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true };
    let judge = || {
        let evaluation = evaluate(&rules, &Nobody, &event, &limits);
        Decision::of(&evaluation, &rules, &Nobody, &event, &limits, policy, &|| false)
    };
    let decision = judge();
    if !decision.is_allowed() {
        return Err(format!("it is refused: {}", decision.message()).into());
    }
    let answer = || decision.response("0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9").to_string();
    let phases: [(&str, &dyn Fn()); 3] = [
        ("read", &|| drop(black_box(parse()))),
        ("evaluate and decide", &|| drop(black_box(judge()))),
        ("answer", &|| drop(black_box(answer()))),
    ];
    let phases = phases.map(|(name, work)| (name, work, repeats(work)));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for ((_, work, repeats), times) in phases.iter().zip(&mut times) {
            times.push(nanoseconds(*repeats, work) / 1000.0);
        }
    }
    for ((name, ..), times) in phases.iter().zip(times) {
        let samples = Samples::new(times);
        row::print(&Row {
            what: format!("judge a pod of 10 KB by 15 rules: {name}"),
            value: samples.median(),
            unit: "µs",
            spread: Some(samples.spread()),
            ..Row::default()
        });
    }
    Ok(())
}
