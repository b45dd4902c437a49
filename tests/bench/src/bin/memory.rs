//! What rules and documents ask the allocator for: `memory rules|hostile|compile [--details]`.

use std::error::Error;
use std::hint::black_box;

use portal_bench::counting::{self, Counting};
use portal_bench::library;
use portal_bench::objects::objects;
use portal_bench::portal;
use portal_bench::row::{self, Goal, Row};
use portal_bench::rules::RULES;
use portal_document::{Document, DocumentLimits, Interning, Options};
use portal_expr::{Arena, Limits};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest body that the API server takes.
const BODY: usize = 3 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let details = arguments.iter().any(|argument| argument == "--details");
    match arguments.first().map(String::as_str) {
        Some("rules") => rules(details),
        Some("hostile") => hostile(details),
        Some("compile") => compile(),
        _ => return Err("usage: memory rules|hostile|compile [--details]".into()),
    }
    Ok(())
}

/// Allocations per evaluation, once every rule has run.
fn rules(details: bool) {
    let objects = objects();
    let parse = |object: &String| Document::parse(object.as_bytes(), &Options::default()).expect("they are JSON");
    let documents: Vec<Document> = objects.iter().map(parse).collect();
    let contexts: Vec<_> = documents.iter().map(portal::contexts).collect();
    let (schema, mut arena, limits) = (portal::schema(), Arena::new(), Limits::default());
    let (mut worst, mut total, mut evaluations) = ((0, "none"), 0, 0);
    for rule in &RULES {
        let expression = portal::compile(rule, &schema);
        let mut run = || {
            for context in contexts.iter().flat_map(|contexts| rule.choose(contexts)) {
                black_box(portal::evaluate(&*expression, context, &mut arena, &limits));
                evaluations += 1;
            }
        };
        run();
        let allocations = counting::allocations(run);
        total += allocations;
        if allocations > worst.0 {
            worst = (allocations, rule.name);
        }
        if details && allocations > 0 {
            eprintln!("{}: {allocations} allocations", rule.name);
        }
    }
    row::print(&Row {
        what: "allocations of an evaluation".to_owned(),
        // Every rule ran twice.
        value: total as f64 / (evaluations as f64 / 2.0),
        unit: "",
        worst: if worst.0 == 0 { String::new() } else { format!("{} in all: {}", worst.0, worst.1) },
        must: Some(Goal::AtMost(0.0)),
        aim: Some(Goal::AtMost(0.0)),
        exact: true,
        ..Row::default()
    });
}

/// The most that is held while a body is parsed that somebody made for that.
fn hostile(details: bool) {
    let bodies = [
        ("small objects", r#"{"a":1}"#),
        ("small objects with text", r#"{"name":"a"}"#),
        ("numbers", "1"),
        ("floats", "0.1"),
        ("texts", r#""x""#),
        ("empty lists", "[]"),
        ("nested lists", "[[[[[[[[[[]]]]]]]]]]"),
    ];
    let options = Options {
        interning: Interning::LookUpOnly,
        limits: DocumentLimits { bytes: 2 * BODY, ..DocumentLimits::default() },
        ..Options::default()
    };
    let mut worst = (0.0, "");
    for (name, element) in bodies {
        let body = format!("[{}0]", format!("{element},").repeat(BODY / (element.len() + 1)));
        let peak = counting::peak(|| Document::parse(body.as_bytes(), &options).expect("it is JSON"));
        let ratio = peak as f64 / body.len() as f64;
        if details {
            eprintln!("{name:<28}{:>10} bytes, peak {ratio:.2} ×", body.len());
        }
        if ratio > worst.0 {
            worst = (ratio, name);
        }
    }
    row::print(&Row {
        what: "peak memory of a hostile 3 MB body".to_owned(),
        against: "its size".to_owned(),
        value: worst.0,
        unit: "×",
        worst: worst.1.to_owned(),
        must: Some(Goal::AtMost(8.0)),
        aim: Some(Goal::AtMost(4.0)),
        exact: true,
        ..Row::default()
    });
}

/// What the first rule of a process costs more than others, and the most that is held while ten thousand are compiled, the rules
/// included.
fn compile() {
    let typed = library::sources(&[library::typed()]);
    let [first, other] = [(); 2].map(|()| counting::peak(|| library::compiled(&typed)));
    row::print(&Row {
        what: "types of all kinds: memory".to_owned(),
        value: first.saturating_sub(other) as f64 / 1e6,
        unit: "MB",
        must: Some(Goal::AtMost(2.0)),
        exact: true,
        ..Row::default()
    });
    let documents = library::documents(10_000);
    // What is there once, however many rules there are.
    drop(library::rule_set(&documents[..20]));
    let peak = counting::peak(|| library::rule_set(&documents));
    row::print(&Row {
        what: "load and compile 10,000 rules: peak memory".to_owned(),
        value: peak as f64 / 1e6,
        unit: "MB",
        must: Some(Goal::AtMost(200.0)),
        exact: true,
        ..Row::default()
    });
}
