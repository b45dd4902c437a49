//! Values that are meant to take too much: each ends in a value or in an error that names the limit.

use portal_document::{Document, Options};

use super::sample::answer_over;
use crate::limits::Limits;

const OUT_OF_FUEL: &str = "error: out of fuel: an evaluation may take 1000000 steps";
const OUT_OF_MEMORY: &str = "error: out of memory: an evaluation may make 16777216 bytes of text, lists and maps";
const TOO_DEEP: &str = "error: too deep: lists and maps may lie 256 deep in each other here";
const TOO_MANY: &str = "error: too many elements: an evaluation may make fewer than 1000000";

#[track_caller]
fn check(source: &str, expected: &str) {
    check_over("null", source, expected);
}

/// Checks an expression in which each `doc()` is this document.
#[track_caller]
fn check_over(json: &str, source: &str, expected: &str) {
    let parse = |_| Document::parse(json.as_bytes(), &Options::default()).expect("the test's own JSON");
    let documents: Vec<_> = source.matches("doc()").map(parse).collect();
    assert_eq!(answer_over(&documents, source, &Limits::default(), true), expected);
}

#[test]
fn documents_nested_ten_thousand_deep_overflow_no_stack() {
    let lists = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let maps = format!("{}1{}", r#"{"a":"#.repeat(9_999), "}".repeat(9_999));
    for deep in [&lists, &maps] {
        for expression in ["string(doc())", "toJSON(doc())", "doc() == doc()", "uniq([doc(), doc()])"] {
            check_over(deep, expression, TOO_DEEP);
        }
        check_over(deep, "len(doc())", "1");
    }
    for function in ["flatten", "max", "min", "mean", "median"] {
        check_over(&lists, &format!("{function}(doc())"), TOO_DEEP);
    }
    check(r#"fromJSON(repeat("[", 10000))"#, TOO_DEEP);
    check(r#"fromJSON(repeat("{\"a\":", 10000))"#, TOO_DEEP);
}

#[test]
fn work_that_grows_faster_than_its_input_runs_out_of_fuel() {
    check("len(uniq(1..1000))", "1000");
    check("uniq(1..3000)", OUT_OF_FUEL);
    check("sort(1..200000)", OUT_OF_FUEL);
    check(r#"trim(repeat("a", 900000), repeat("b", 900) + "a")"#, OUT_OF_FUEL);
    check(r#"string(1..999999)"#, OUT_OF_FUEL);
    let keys: Vec<String> = (0..20_000).map(|number| format!(r#""key{number}":1"#)).collect();
    let wide = format!("{{{}}}", keys.join(","));
    check_over(&wide, "doc() == doc()", "true");
    check_over(&wide, "doc().key19999", "1");
}

#[test]
fn text_and_lists_that_multiply_run_out_of_memory() {
    check(r#"len(split(repeat("a", 900000), ""))"#, OUT_OF_MEMORY);
    check(r#"replace(repeat("a", 100000), "a", repeat("b", 1000))"#, OUT_OF_MEMORY);
    check(r#"join(split(repeat("a,", 100000), ","), repeat("b", 1000))"#, OUT_OF_MEMORY);
    check(r#"repeat(repeat("a", 1000), 1000)"#, TOO_MANY);
    check("1..1000000", TOO_MANY);
    check("concat(1..400000, 1..400000)", OUT_OF_MEMORY);
    check("reverse(1..600000)", TOO_MANY);
}

#[test]
fn patterns_cost_what_they_take() {
    check(r#"repeat("a", 100000) matches "(a*)*b""#, "false");
    check(r#"repeat("a", 100000) matches "^(a|a)*$""#, "true");
    check(r#"repeat("ab", 50000) matches "([a-z]{0,20}[a-y]{0,20}){25}z""#, OUT_OF_FUEL);
    let too_large = "error: pattern is too large: compiled it may take 524288 bytes";
    check(r#""a" matches "(\\pL{30}){30}""#, too_large);
    check(r#""a" matches repeat("[^a]", 4000)"#, OUT_OF_FUEL);
    check(r#""a" matches repeat("(", 5000)"#, "error: pattern nests too deeply: groups may lie 128 deep in each other");
}
