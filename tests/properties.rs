//! What holds for all rules and objects, on generated ones: the same seed makes the same case. A case that fails is made
//! smaller for as long as it fails, and shown with its seed.

mod cases;
mod expansion;
mod matching;
mod missing;
mod requirements;

use portal_core::kinds::Kinds;
use portal_core::language::ExprEngine;
use portal_core::rule::{RuleSet, compile::compile, load::load, source::Origin};
use portal_document::{Document, Options};
use portal_test_kit::share;
use serde_json::Value;

use crate::chance::Random;

/// Makes a case from each of so many seeds, twenty times as many in `make test-faults`, and checks it. A check takes what it
/// cannot use for right: a case that was made smaller may be none any more.
#[track_caller]
fn hold(seeds: u64, make: impl Fn(&mut Random) -> Value, mut check: impl FnMut(&Value) -> Result<(), String>) {
    for seed in share::seeds(seeds, 20 * seeds) {
        let case = make(&mut Random::new(seed));
        if let Err(message) = check(&case) {
            let (case, message) = shrink(case, message, &mut check);
            panic!("seed {seed}: {message}\n{case:#}");
        }
    }
}

/// The smallest case that still fails.
fn shrink(case: Value, message: String, check: &mut impl FnMut(&Value) -> Result<(), String>) -> (Value, String) {
    let (mut smallest, mut message) = (case, message);
    let mut find = |case: &Value| {
        smaller(case).into_iter().find_map(|smaller| check(&smaller).err().map(|message| (smaller, message)))
    };
    while let Some(found) = find(&smallest) {
        (smallest, message) = found;
    }
    (smallest, message)
}

/// A value without one of its parts, for each of them.
fn smaller(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(object) => {
            for (key, part) in object {
                let mut without = object.clone();
                without.remove(key);
                found.push(without.into());
                for part in smaller(part) {
                    let mut with = object.clone();
                    with.insert(key.clone(), part);
                    found.push(with.into());
                }
            }
        }
        Value::Array(list) => {
            for (index, part) in list.iter().enumerate() {
                let mut without = list.clone();
                without.remove(index);
                found.push(without.into());
                for part in smaller(part) {
                    let mut with = list.clone();
                    with[index] = part;
                    found.push(with.into());
                }
            }
        }
        _ => {}
    }
    found
}

fn document(value: &Value) -> Document {
    Document::parse(value.to_string().as_bytes(), &Options::default()).unwrap()
}

/// Loads and compiles rules, or says what is wrong with them.
fn rules(list: &Value) -> Result<RuleSet, Vec<String>> {
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for rule in list.as_array().into_iter().flatten() {
        let origin = Origin::File { path: String::new(), line: 1 };
        match load(document(rule).root(), origin, Vec::new()) {
            Ok(source) => sources.push(source),
            Err(found) => problems.extend(found.iter().map(ToString::to_string)),
        }
    }
    let (rules, found) = compile(&sources, Kinds::builtin(), &ExprEngine);
    let errors = found.iter().filter(|diagnostic| diagnostic.level == portal_core::rule::diagnostic::Level::Error);
    problems.extend(errors.map(ToString::to_string));
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}
