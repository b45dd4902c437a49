//! The compiler and the evaluator: an expression, a zero byte, and the JSON that it is evaluated on.

use std::sync::LazyLock;

use portal_document::{Document, DocumentLimits, Options};
use portal_expr::{Arena, Limits, Mode, Moment, Phase, Program, Schema, Value, compile};

use super::check_error;
use crate::host::{Cluster, schema};

/// What an evaluation came to, as text.
type Outcome = Result<String, String>;

static SCHEMA: LazyLock<Schema> = LazyLock::new(schema);

/// The document of inputs that bring none.
const DOCUMENT: &str = r#"{"image": "ghcr.io/team/web:1.2", "privileged": true, "args": ["-v", "web:latest"],
    "ports": null, "labels": {"app": "web"}, "user": 1000, "weight": 0.5,
    "list": [{"name": "a", "n": 1}, {"name": "b", "n": 2.5}, {}], "time": "2026-01-02T03:04:05Z"}"#;

/// Small, so that an input takes little time whatever it asks for.
const LIMITS: Limits = Limits { fuel: 20_000, elements: 10_000, bytes: 1 << 20 };

/// What an arena takes beyond what is asked of it: it doubles, and what grows in it is copied.
const ARENA_FACTOR: usize = 4;

/// Compiles an expression and evaluates it, in both modes.
pub fn expression_evaluate(input: &[u8]) {
    let (source, json) = match input.iter().position(|byte| *byte == 0) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, DOCUMENT.as_bytes()),
    };
    let options = Options { limits: DocumentLimits { bytes: 1 << 20, depth: 300 }, ..Options::default() };
    let (Ok(source), Ok(document)) = (str::from_utf8(source), Document::parse(json, &options)) else { return };
    let cluster = Cluster::new(&document);
    for mode in [Mode::Rules, Mode::Strict] {
        match compile(source, &SCHEMA, mode) {
            Ok(program) => check(&program, &cluster),
            Err(error) => {
                assert_ne!(error.phase, Phase::Run);
                check_error(&error, source);
            }
        }
    }
}

fn check(program: &Program, cluster: &Cluster) {
    let outcome = evaluate(program, cluster);
    assert_eq!(evaluate(program, cluster), outcome, "an evaluation gives the same each time");
    cluster.check_roots(program.facts());
    let pruned = evaluate(program, &cluster.pruned(program.facts()));
    assert_eq!(pruned, outcome, "{:?} is all that is read", program.facts().reads);
    explain(program, cluster, &outcome);
    for warning in program.warnings() {
        assert!(!warning.message.is_empty());
    }
}

fn evaluate(program: &Program, cluster: &Cluster) -> Outcome {
    let arena = Arena::new();
    let outcome = program.evaluate(cluster, &arena, &LIMITS, Moment::default());
    let taken = arena.allocated_bytes();
    assert!(taken <= ARENA_FACTOR * LIMITS.bytes, "{taken} bytes are more than an evaluation may take");
    match outcome {
        Ok(value) => Ok(show(value)),
        Err(error) => {
            assert_eq!(error.phase, Phase::Run);
            check_error(&error, program.source());
            Err(error.to_string())
        }
    }
}

/// The kind of a value, and its text.
fn show(value: Value<'_>) -> String {
    let elements = value.elements().map(Iterator::count);
    let entries = value.entries().map(|entries| entries.len());
    format!("{elements:?} {entries:?} {value}")
}

/// Checks that there is an explanation for what is true alone, and that it can be shown.
fn explain(program: &Program, cluster: &Cluster, outcome: &Outcome) {
    let arena = Arena::new();
    let observations = program.explain(cluster, &arena, &LIMITS, Moment::default());
    let is_true = outcome.as_ref().is_ok_and(|text| *text == show(Value::Bool(true)));
    assert!(is_true || observations.is_empty(), "what is not true is explained");
    assert!(arena.allocated_bytes() <= ARENA_FACTOR * LIMITS.bytes);
    for observation in observations {
        assert!(!observation.subject.is_empty());
        let _ = observation.value.to_string();
    }
}
