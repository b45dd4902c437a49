//! Where the time of a decision goes, without a server around it: `judge [--details]`.

use std::hint::black_box;

use portal_bench::library;
use portal_bench::measure::{nanoseconds, repeats};
use portal_bench::reviews::review;
use portal_core::decide::{Decision, Policy};
use portal_core::evaluate::evaluate;
use portal_core::kinds::Kinds;
use portal_core::lookup::{Answer, Lookup, Query};
use portal_core::review::Review;
use portal_document::{Document, Interning, Options};
use portal_expr::{Limits, Moment};

struct Nothing;

impl Lookup for Nothing {
    fn answer(&self, _: &Query) -> Answer {
        Answer::NotSynced
    }
}

fn main() {
    let rules = library::rule_set(&library::documents(library::files().len()));
    let body = review().to_string();
    let options = Options { drop: Review::unseen(), interning: Interning::LookUpOnly, ..Options::default() };
    if std::env::args().any(|argument| argument == "--warm") {
        for _ in 0..3 {
            drop(Document::parse(body.as_bytes(), &Options::default()));
        }
    }
    if std::env::args().any(|argument| argument == "--keys") {
        let table = include_str!("../../../../engine/core/src/context/fields.txt");
        let begin = std::time::Instant::now();
        let mut count = 0;
        for line in table.lines() {
            if let Some(field) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) {
                portal_document::Interner::global().intern(field.trim_end_matches('!'));
                count += 1;
            }
        }
        println!(
            "{count} fields, {} texts, {:?}, {} bytes",
            portal_document::Interner::global().len(),
            begin.elapsed(),
            portal_document::Interner::global().size_bytes()
        );
    }
    let parse = || Document::parse(body.as_bytes(), &options).expect("it is JSON");
    let document = parse();
    let read = || Review::of(document.root(), Kinds::builtin()).expect("it is a review");
    let review = read();
    let limits = Limits::default();
    let event = review.event(Moment::default());
    let evaluate = || evaluate(&rules, &Nothing, &event, &limits);
    let evaluation = evaluate();
    let policy =
        Policy { fail_open: false, max_enforcement: portal_crds::EnforcementAction::Deny, admit_existing: true };
    let decide = || Decision::of(&evaluation, &rules, &Nothing, &event, &limits, policy);
    let decision = decide();
    assert!(decision.is_allowed(), "{}", decision.message());
    let answer = || decision.response("0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9").to_string();
    if let Some(phase) = std::env::args().find_map(|argument| argument.strip_prefix("--only=").map(str::to_owned)) {
        for _ in 0..2000 {
            match &*phase {
                "evaluate" => drop(black_box(evaluate())),
                "parse" => drop(black_box(parse())),
                _ => {}
            }
        }
        return;
    }
    let time = |name: &str, work: &dyn Fn()| {
        let count = repeats(work);
        let least = (0..50).map(|_| nanoseconds(count, work)).fold(f64::MAX, f64::min);
        println!("{name:<10}{:>8.2} µs", least / 1000.0);
    };
    let documents = library::documents(library::files().len());
    for (document, file) in documents.iter().zip(library::files()) {
        let rules = library::rule_set(std::slice::from_ref(document));
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        time(&name, &|| drop(black_box(portal_core::evaluate::evaluate(&rules, &Nothing, &event, &limits))));
    }
    time("parse", &|| drop(black_box(parse())));
    time("read", &|| drop(black_box(read())));
    time("evaluate", &|| drop(black_box(evaluate())));
    time("decide", &|| drop(black_box(decide())));
    time("answer", &|| drop(black_box(answer())));
    time("Value", &|| drop(black_box(serde_json::from_str::<serde_json::Value>(&body))));
}
