//! The same work in every run, for counting its instructions: `replay parse|compile|evaluate TIMES`. Prints how many pieces of work
//! were done. With no times only the set-up is left, which is the same for all three.

use std::hint::black_box;

use portal_bench::objects::{cache_drops, objects, pods};
use portal_bench::portal;
use portal_bench::rules::RULES;
use portal_document::{Document, Options};
use portal_expr::{Arena, Limits};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [phase, times] = arguments.as_slice() else { return Err("usage: replay parse|compile|evaluate TIMES".into()) };
    let times: usize = times.parse()?;

    let drops = cache_drops();
    let options = Options { drop: &drops, ..Options::default() };
    let pods: Vec<String> = pods(20).collect();
    let parse = |body: &String| Document::parse(body.as_bytes(), &options).map(black_box);
    // Twice, so that the interner knows what it will ever know.
    for body in pods.iter().chain(&pods) {
        parse(body)?;
    }
    let documents: Vec<Document> = objects().iter().map(parse).collect::<Result<_, _>>()?;
    let contexts: Vec<_> = documents.iter().map(portal::contexts).collect();
    let schema = portal::schema();
    let expressions = RULES.each_ref().map(|rule| portal::compile(rule, &schema));
    let (mut arena, limits) = (Arena::new(), Limits::default());
    let mut evaluate_all = || {
        let mut count = 0;
        for (rule, expression) in RULES.iter().zip(&expressions) {
            for context in contexts.iter().flat_map(|contexts| rule.choose(contexts)) {
                black_box(portal::evaluate(&**expression, black_box(context), &mut arena, &limits));
                count += 1;
            }
        }
        count
    };
    evaluate_all();

    let mut done = 0;
    for _ in 0..times {
        done += match phase.as_str() {
            "parse" => {
                for body in &pods {
                    parse(body)?;
                }
                pods.len()
            }
            "compile" => RULES.each_ref().map(|rule| drop(black_box(portal::compile(rule, &schema)))).len(),
            "evaluate" => evaluate_all(),
            other => return Err(format!("no phase is called {other}").into()),
        };
    }
    println!("{done}");
    Ok(())
}
