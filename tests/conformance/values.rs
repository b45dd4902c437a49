//! Values: both come to the same value or the same mistake at the same place, in strict mode and with one environment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use expect_test::{Expect, expect};
use portal_test_kit::repository;
use serde_json::Value;

use super::oracle::{Oracle, ours};

/// Why an answer may differ, and the sign of it in an expression or in the real answer.
type Difference = (&'static str, fn(&str, &Value) -> bool);

/// The differences that have a reason. The first that fits counts.
const DIFFERENCES: [Difference; 7] = [
    ("Go's optimised and plain runs differ from each other", |_, real| real["quirk"] == true),
    ("findLast, which leaves a value on Go's stack", |expression, _| expression.contains("findLast")),
    ("predicates over a map, which Go takes as long as no element is looked at", |expression, _| {
        expression.contains("$env") && has_call(expression, &PREDICATES)
    }),
    (
        "a group that is missing, which is nil in a chain there, and groups by ints, of which Go has several",
        |expression, _| expression.contains("groupBy") || expression.contains("sort($env)"),
    ),
    ("the last digit of a power", |expression, _| expression.contains("**") || expression.contains('^')),
    ("bytes that are no text", |expression, _| expression.contains("fromBase64")),
    ("what Go does not check below `$env`, and bytes, which are ints here", |expression, _| {
        expression.contains("$env")
    }),
];

const PREDICATES: [&str; 15] = [
    "all",
    "none",
    "any",
    "one",
    "filter",
    "map",
    "count",
    "sum",
    "find",
    "findIndex",
    "groupBy",
    "sortBy",
    "reduce",
    "findLast",
    "findLastIndex",
];

#[derive(Default)]
struct Report {
    same: usize,
    /// Not compared: these give the keys of a map in an order that is random in Go.
    random: usize,
    different: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

fn has_call(expression: &str, names: &[&str]) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    expression.split(|character| !is_word(character)).any(|word| names.contains(&word))
}

/// Whether both come to the same value, or fail alike: when it runs, at the same place.
pub(super) fn same(real: &Value, ours: &Value) -> bool {
    ["ast", "phase"].iter().all(|field| real[field] == ours[field])
        && (real["val"] == ours["val"] || in_order(&real["val"]) == in_order(&ours["val"]))
        && (real["phase"] != "run" || real["line"] == ours["line"] && real["col"] == ours["col"])
}

/// A value with its maps in one order: the programs escape keys differently before they sort them.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(in_order).collect(),
        Value::Object(tagged) => {
            let mut tagged: serde_json::Map<_, _> =
                tagged.iter().map(|(tag, value)| (tag.clone(), in_order(value))).collect();
            if let Some(Value::Array(pairs)) = tagged.get_mut("m") {
                pairs.sort_by_cached_key(|pair| pair[0].to_string());
            }
            tagged.into()
        }
        _ => value.clone(),
    }
}

fn compare(expressions: &[String]) -> Report {
    let oracle = Oracle::find();
    let environment = repository().join("tests/conformance/environment.json");
    let (real, half) = (oracle.answer(&environment, expressions), expressions.len() / 2);
    let ask = |expressions: &[String]| ours(environment.to_str().unwrap(), expressions.join("\n") + "\n");
    let ours = thread::scope(|scope| {
        let first = scope.spawn(|| ask(&expressions[..half]));
        let second = ask(&expressions[half..]);
        [first.join().unwrap(), second].concat()
    });
    assert_eq!((real.len(), ours.len()), (expressions.len(), expressions.len()), "every question has an answer");
    let mut report = Report::default();
    for (expression, (real, ours)) in expressions.iter().zip(real.iter().zip(&ours)) {
        if has_call(expression, &["keys", "values", "toPairs"]) {
            report.random += 1;
            continue;
        }
        let reason = DIFFERENCES.iter().find(|(_, fits)| fits(expression, real));
        match reason {
            _ if same(real, ours) => report.same += 1,
            Some((reason, _)) => *report.different.entry(reason).or_default() += 1,
            None => report.unexplained.push(format!("{expression}\n  there {real}\n  here  {ours}")),
        }
    }
    report
}

#[track_caller]
fn check(corpora: &[&str], expected: Expect) {
    let oracle = Oracle::find();
    let mut expressions: Vec<String> = corpora.iter().flat_map(|corpus| oracle.corpus(corpus)).collect();
    // A line is a question, so that one with a line break cannot be asked here.
    expressions.retain(|expression| !expression.contains('\n') && !expression.is_empty());
    let report = compare(&expressions);
    assert!(
        report.unexplained.is_empty(),
        "{} are unexplained:\n{}",
        report.unexplained.len(),
        report.unexplained[..report.unexplained.len().min(10)].join("\n")
    );
    let mut text = format!("{} the same\n{} in random order\n", report.same, report.random);
    for (reason, count) in &report.different {
        let _ = writeln!(text, "{count} differ: {reason}");
    }
    expected.assert_eq(&text);
}

#[test]
fn expressions_of_the_real_project_have_the_values_that_they_have_there() {
    check(
        &["generated", "fuzz", "docs"],
        expect![[r#"
            60738 the same
            486 in random order
            12 differ: Go's optimised and plain runs differ from each other
            743 differ: a group that is missing, which is nil in a chain there, and groups by ints, of which Go has several
            13 differ: bytes that are no text
            125 differ: findLast, which leaves a value on Go's stack
            1207 differ: predicates over a map, which Go takes as long as no element is looked at
            29 differ: the last digit of a power
            23 differ: what Go does not check below `$env`, and bytes, which are ints here
        "#]],
    );
}
