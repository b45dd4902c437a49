//! Random expressions on random objects have the values that the real expr-lang gives them.
//! What people are shown of them is read back as the same expression.
//!
//! A seed is a question: an environment as clusters have them, and an expression that is made for it. What is answered
//! wrongly is made smaller until nothing can be left out, and shown with both answers.

mod compare;
mod differences;
mod environments;
mod expressions;
mod functions;
mod literals;
mod operators;
mod shrink;
mod sorts;
mod trees;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect;

use self::compare::{Report, ask};
use self::expressions::question;
use self::functions::functions;
use self::operators::{BINARY, FORMS};
use self::shrink::shrink;
use super::oracle::Oracle;

/// How many questions are asked at a time, so that a million need no more memory than these.
const BATCH: u64 = 4_000;

/// How many wrong answers are enough to stop, and how many of them are made smaller and shown.
const ENOUGH: usize = 100;
const SHOWN: usize = 20;

/// Asks the questions of these seeds, until too many answers are wrong.
fn run(start: u64, count: u64, progress: impl Fn(&Report)) -> Report {
    let (oracle, functions) = (Oracle::find(), functions());
    let mut report = Report::default();
    let mut seed = start;
    while seed != start.wrapping_add(count) && report.wrong.len() < ENOUGH {
        let batch = BATCH.min(start.wrapping_add(count).wrapping_sub(seed));
        let questions: Vec<_> = (0..batch).map(|offset| question(seed.wrapping_add(offset), &functions)).collect();
        let answers = ask(&oracle, &questions);
        report.add(questions, &answers);
        seed = seed.wrapping_add(batch);
        progress(&report);
    }
    report
}

/// Fails with what is wrong, as small as it gets.
#[track_caller]
fn check(report: &Report) {
    let mut text = String::new();
    for question in report.wrong.iter().take(SHOWN) {
        let (question, answers) = shrink(&Oracle::find(), question.clone());
        let environment = serde_json::Value::from(question.environment);
        writeln!(
            text,
            "{}\n  with  {environment}\n  there {}\n  here  {}\n  seed  {}",
            question.expression, answers.real, answers.ours, question.seed
        )
        .unwrap();
    }
    assert!(text.is_empty(), "{} of {} are wrong:\n{text}", report.wrong.len(), report.asked);
}

#[test]
fn random_expressions_have_the_values_that_the_real_one_gives_them() {
    if let Some(count) = setting("PORTAL_SEEDS") {
        return roll(count);
    }
    let report = run(1, 20_000, |_| {});
    check(&report);
    expect![[r#"
        20000 asked, 15511 with a value, 19950 the same
        6 differ: a part of a text that cuts a character in two
        4 differ: a timezone behind an operator, which is no timezone any more in Go
        1 differ: arguments too many, which Go does not count where it checks nothing
        1 differ: findLast within an expression, which leaves a value on Go's stack
        32 differ: lists that are nil in Go and empty here
        5 differ: months and days of the week, which are ints here
        1 differ: nil as an argument of a method, which is a zero in Go
    "#]]
    .assert_eq(&report.table());
    // Most must be evaluated, or little would be compared.
    assert!(report.evaluated * 10 > report.asked * 6, "{} of {} have a value", report.evaluated, report.asked);
    let functions = functions().into_iter().map(|function| format!("{}()", function.name));
    let operators = BINARY.iter().map(|operator| operator.name.to_owned());
    let forms = FORMS.iter().map(|(form, ..)| (*form).to_owned());
    let all: BTreeSet<String> = functions.chain(operators).chain(forms).collect();
    let missing: Vec<_> = all.difference(&report.heads).collect();
    assert!(missing.is_empty(), "none of these came to a value: {missing:?}");
}

#[test]
fn random_expressions_are_written_so_that_they_are_read_back() {
    let functions = functions();
    for seed in 1..=5_000 {
        let source = question(seed, &functions).expression.to_string();
        let Ok(text) = portal_expr::written(&source) else { continue };
        match portal_expr::is_same(&source, &text) {
            Ok(true) => {}
            Ok(false) => panic!("seed {seed}: {source}\nis written as another expression: {text}"),
            Err(error) => panic!("seed {seed}: {source}\nis written as {text}\nwhich is refused: {error}"),
        }
    }
}

/// Asks other seeds, as many as `make fuzz` wants.
fn roll(count: u64) {
    let start = setting("PORTAL_SEED").unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs() << 24
    });
    println!("{count} seeds from PORTAL_SEED={start} on");
    let report = run(start, count, |report| {
        if (report.asked as u64).is_multiple_of(BATCH * 10) {
            let wrong: Vec<u64> = report.wrong.iter().map(|question| question.seed).collect();
            println!("{} asked, wrong: {wrong:?}", report.asked);
        }
    });
    println!("PORTAL_SEED={start}: {}", report.table());
    check(&report);
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}
