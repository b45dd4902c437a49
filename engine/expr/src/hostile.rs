//! Expressions that mean harm. Each ends in a value or an error, within its fuel and on a small stack.

use crate::{Arena, Limits, MAX_SOURCE, Mode, Moment, compile, testing::Pod};

const OPERATORS: [&str; 26] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "^",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "&&",
    "||",
    "and",
    "or",
    "in",
    "not in",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "..",
    "??",
    ";",
];

const OUT_OF_MEMORY: [&str; 2] = ["out of memory: an evaluation may make 16777216 bytes of text, lists and maps"; 2];

/// What an expression gives, in both modes, without the place and the source.
fn outcomes(source: &str) -> Vec<String> {
    let run = || {
        let pod = Pod::new();
        let outcome = |mode| {
            let program = compile(source, &pod.schema, mode)?;
            let arena = Arena::new();
            program.evaluate(&pod, &arena, &Limits::default(), Moment::default()).map(|value| value.to_string())
        };
        [Mode::Rules, Mode::Strict].map(|mode| outcome(mode).unwrap_or_else(|error| error.message)).to_vec()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, run);
        thread.unwrap().join().unwrap()
    })
}

#[track_caller]
fn check(source: &str, expected: [&str; 2]) {
    assert_eq!(outcomes(source), expected);
}

/// Repeats to the largest size that is taken.
fn fill(start: &str, part: &str) -> String {
    start.to_owned() + &part.repeat((MAX_SOURCE - start.len()) / part.len())
}

#[test]
fn the_longest_chain_of_each_operator_is_refused() {
    for operator in OPERATORS {
        let source = fill("1", &format!(" {operator} 1"));
        for outcome in outcomes(&source) {
            let is_limit = outcome.contains("more than 10000 nodes") || outcome.contains("nested");
            assert!(is_limit, "{operator}: {outcome}");
        }
    }
}

#[test]
fn a_chain_of_each_operator_that_is_taken_ends() {
    for operator in OPERATORS {
        for operand in ["1", "object.kind"] {
            let source = operand.to_owned() + &format!(" {operator} {operand}").repeat(1_200);
            assert!(outcomes(&source).iter().all(|outcome| !outcome.contains("nodes")), "{operator} with {operand}");
        }
    }
}

#[test]
fn prefixes_brackets_and_members_to_the_end_are_refused() {
    let too_deep = ["the expression is nested deeper than 100 levels"; 2];
    for part in ["(", "[", "{a:", "a ? ", "f(", "len(", "any(a, ", "let a = 1; ", "if a {", "a ? b : "] {
        let source = fill("", part);
        check(&source, too_deep);
    }
    for prefix in ["-", "!", "not "] {
        check(&(prefix.repeat(10_000) + "a"), too_deep);
    }
    for link in [".a", "?.a", "[0]", "?.[0]", "[1:]", ".a()"] {
        check(&fill("a", link), ["the expression has more than 10000 nodes"; 2]);
    }
}

#[test]
fn nested_predicates_over_many_elements_run_out() {
    let out_of_fuel = ["out of fuel: an evaluation may take 1000000 steps"; 2];
    check("any(1..10000, any(1..10000, any(1..10000, # < 0)))", out_of_fuel);
    check("reduce(1..10000, #acc + count(1..10000, # > 1), 0)", out_of_fuel);
    check("sortBy(1..10000, count(1..10000, # > 1))", out_of_fuel);
    check("map(1..10000, map(1..10000, #))", OUT_OF_MEMORY);
    check("count(1..10000, # > 0)", ["10000"; 2]);
}

#[test]
fn large_texts_are_paid_for() {
    check(r#"len(repeat("a", 900000) + "b")"#, ["900001"; 2]);
    check(r#"let a = repeat("a", 900000); len(a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a)"#, OUT_OF_MEMORY);
}

#[test]
fn numbers_that_fit_nothing_are_refused_or_wrap_around_as_in_go() {
    for number in ["9223372036854775808", "0xffffffffffffffffff", &"9".repeat(60_000)] {
        for outcome in outcomes(number) {
            assert!(outcome.ends_with("does not fit into 64 bits"), "{outcome}");
        }
    }
    check("9223372036854775807 + 1", ["-9223372036854775808"; 2]);
    check("-9223372036854775807 - 2", ["9223372036854775807"; 2]);
    check("1e308 * 10", ["+Inf"; 2]);
}

#[test]
fn characters_that_mean_nothing_are_refused() {
    for source in ["\0", "a\0b", "\u{feff}a", "\u{202e}a", "\u{ffff}", "a\u{301}"] {
        for outcome in outcomes(source) {
            assert!(outcome.starts_with("unexpected character"), "{source:?}: {outcome}");
        }
    }
    check("'a\0b' == \"a\\x00b\"", ["true"; 2]);
}
