//! Documents: every form that YAML and JSON have, in every position, is read as Kubernetes reads it. Kubernetes' own
//! `sigs.k8s.io/yaml` and `sigs.k8s.io/json` answer.

mod bodies;
mod forms;
mod manifests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use portal_document::{Document, Error, Interning, Node, Options, View, from_yaml};
use portal_test_kit::cache::Cache;
use portal_test_kit::yaml_oracle;
use serde_json::{Value, json};

use super::oracle::ask;

/// What a comparison found.
#[derive(Default)]
struct Report {
    /// Texts that both take, with the same value.
    taken: usize,
    /// Texts that both refuse.
    refused: usize,
    /// The rest, by what is different, with the first examples of each.
    different: BTreeMap<String, (usize, Vec<String>)>,
}

/// How many examples of a difference are kept.
const EXAMPLES: usize = 3;

/// What anybody sends us must not fill the interner.
const OPTIONS: Options = Options {
    drop: &[],
    mask: &[],
    interning: Interning::LookUpOnly,
    origin: None,
    well_formed: false,
    limits: portal_document::DocumentLimits { bytes: 7 << 20, depth: 10_000 },
};

/// Compares the first document of each text.
fn compare_yaml(texts: &[String]) -> Report {
    let questions = texts.iter().map(|text| format!("{}\n", Value::from(&**text))).collect();
    let answers = answers("yaml", questions, texts.len());
    let mut report = Report::default();
    for (text, theirs) in texts.iter().zip(answers) {
        let ours = from_yaml(text, &OPTIONS).map(|mut documents| match documents.is_empty() {
            // Nothing at all is null, too.
            true => Value::Null,
            false => encode(documents.swap_remove(0).document.root()),
        });
        report.compare(text, ours, &theirs);
    }
    report
}

/// Compares each body.
fn compare_json(bodies: &[Vec<u8>]) -> Report {
    let questions = bodies.iter().map(|body| format!("{}\n", base64(body))).collect();
    let answers = answers("json", questions, bodies.len());
    let mut report = Report::default();
    for (body, theirs) in bodies.iter().zip(answers) {
        let ours = Document::parse(body, &OPTIONS).map(|document| encode(document.root()));
        report.compare(&String::from_utf8_lossy(body), ours, &theirs);
    }
    report
}

fn answers(form: &str, questions: String, count: usize) -> Vec<Value> {
    let program = yaml_oracle().find(&Cache::open().unwrap()).unwrap();
    let lines = ask(Command::new(program).arg(form), questions);
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), count, "the oracle answers every question");
    answers
}

/// As the oracle encodes it.
fn encode(node: Node) -> Value {
    match node.view() {
        View::Null => Value::Null,
        View::Bool(value) => value.into(),
        View::Int(value) => json!({"i": value.to_string()}),
        View::Float(value) => json!({"f": format!("{:016x}", value.to_bits())}),
        View::Str(text) => text.into(),
        View::Array(array) => array.iter().map(encode).collect(),
        View::Object(object) => {
            let entries: BTreeMap<&str, Value> = object.iter().map(|(key, value)| (key, encode(value))).collect();
            json!({"m": entries.into_iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>()})
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

impl Report {
    fn compare(&mut self, text: &str, ours: Result<Value, Error>, theirs: &Value) {
        match (ours, theirs.get("value"), theirs["error"].as_str()) {
            (Err(_), None, Some(_)) => self.refused += 1,
            (Ok(ours), Some(theirs), _) if ours == *theirs => self.taken += 1,
            (Ok(ours), Some(theirs), _) => {
                self.difference("another value".to_owned(), format!("{text:?}: {ours}, not {theirs}"));
            }
            (Ok(ours), None, Some(error)) => {
                self.difference(format!("only taken by us: {}", reason(error)), format!("{text:?}: {ours}"));
            }
            (Err(error), Some(theirs), _) => {
                let error = error.to_string();
                // Behind the place.
                let reason = error.split_once(": ").map_or(&*error, |(_, reason)| reason);
                self.difference(format!("only refused by us: {reason}"), format!("{text:?}: {theirs}"));
            }
            (_, None, None) => unreachable!("the oracle gives a value or an error"),
        }
    }

    fn difference(&mut self, what: String, example: String) {
        let (count, examples) = self.different.entry(what).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(example);
        }
    }

    fn table(&self) -> String {
        let mut table = format!("both take {}, both refuse {}\n", self.taken, self.refused);
        for (what, (count, examples)) in &self.different {
            writeln!(table, "{what}: {count}").unwrap();
            examples.iter().for_each(|example| writeln!(table, "    {example}").unwrap());
        }
        table
    }
}

/// An error of go-yaml without its place and without what it is about.
fn reason(error: &str) -> &str {
    match error {
        _ if error.ends_with("as a !!timestamp") => "not a !!timestamp",
        _ if error.contains("unsupported map key") => "unsupported map key",
        _ => error.rsplit(": ").next().unwrap_or(error),
    }
}
