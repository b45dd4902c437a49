//! Random values: read from JSON, written back and read again, they agree with `serde_json`.

use fastrand::Rng;
use serde_json::{Map, Number, Value, json};

use crate::{Document, Interning, Key, Node, Options, Path, Segment, View};

fn pick<'t>(random: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[random.usize(..texts.len())]
}

fn text(random: &mut Rng) -> String {
    match random.usize(..4) {
        0 => pick(random, &["name", "spec", "containers", "image", "", "app.kubernetes.io/name", "***"]).to_owned(),
        1 => format!("unique-{:x}", random.u64(..)),
        _ => {
            let parts = ["a", "ä", "\"", "\\", "\n", "\0", "😀", "\u{2028}", "/", "long text that goes on and on "];
            (0..random.usize(..6)).map(|_| pick(random, &parts)).collect()
        }
    }
}

fn number(random: &mut Rng) -> Number {
    let (bits, shift) = (random.u64(..), random.u32(..64));
    match random.usize(..3) {
        0 => Number::from((bits as i64) >> shift),
        1 => Number::from(-((bits >> 1 >> shift) as i64)),
        _ => Number::from_f64(f64::from_bits(bits)).unwrap_or_else(|| Number::from_f64(0.5).unwrap()),
    }
}

fn value(random: &mut Rng, depth: usize) -> Value {
    match random.usize(..if depth < 5 { 9 } else { 6 }) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 | 3 => Value::Number(number(random)),
        4 | 5 => Value::String(text(random)),
        6 => (0..random.usize(..6)).map(|_| value(random, depth + 1)).collect(),
        _ => {
            let entries = 0..random.usize(..if depth == 1 { 90 } else { 6 });
            entries.map(|_| (text(random), value(random, depth + 1))).collect::<Map<_, _>>().into()
        }
    }
}

/// Whether a node is what `serde_json` has, by every way of reading it.
fn agrees(node: Node, value: &Value) -> bool {
    match (node.view(), value) {
        (View::Null, Value::Null) => true,
        (View::Bool(left), Value::Bool(right)) => left == *right,
        // A zero with a sign is a float there.
        (View::Int(0), Value::Number(right)) => right.as_f64() == Some(0.0),
        (View::Int(left), Value::Number(right)) => right.as_i64() == Some(left),
        (View::Float(left), Value::Number(right)) => !right.is_i64() && right.as_f64() == Some(left),
        (View::Str(left), Value::String(right)) => left == right,
        (View::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| agrees(left, right))
        }
        (View::Object(left), Value::Object(right)) => {
            let found = |key: &str| [left.get_str(key), left.get(&Key::without_symbol(key))];
            left.len() == right.len()
                && left.iter().all(|(key, node)| right.get(key).is_some_and(|value| agrees(node, value)))
                && right.iter().all(|(key, value)| found(key).into_iter().flatten().all(|node| agrees(node, value)))
        }
        _ => false,
    }
}

#[test]
fn random_values_survive_being_read_and_written() {
    let mut random = Rng::with_seed(1);
    for round in 0..3_000 {
        let value = value(&mut random, 0);
        let body = serde_json::to_string(&value).unwrap();
        let interning = if round % 2 == 0 { Interning::Add } else { Interning::LookUpOnly };
        let options = Options { interning, ..Options::default() };
        let document = Document::parse(body.as_bytes(), &options).unwrap();
        assert!(agrees(document.root(), &value), "{body}");

        let written = document.to_json();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        let again = Document::parse(written.as_bytes(), &Options::default()).unwrap();
        assert_eq!(again.to_json(), written);
        assert_eq!(again, document);
    }
}

#[test]
fn what_is_dropped_and_masked_while_reading_is_what_would_be_afterwards() {
    let mut random = Rng::with_seed(2);
    let paths = |random: &mut Rng, count| -> Vec<Path> {
        let segment = |random: &mut Rng| match random.usize(..4) {
            0 => Segment::AnyIndex,
            1 => Segment::AnyKey,
            _ => Segment::Field(Key::new(pick(random, &["name", "spec", "containers", "image", ""]))),
        };
        (0..count).map(|_| Path::new((0..1 + random.usize(..3)).map(|_| segment(random)).collect::<Vec<_>>())).collect()
    };
    for _ in 0..2_000 {
        let body = serde_json::to_string(&value(&mut random, 0)).unwrap();
        let (drop, mask) = (paths(&mut random, 2), paths(&mut random, 2));
        let whole = Document::parse(body.as_bytes(), &Options::default()).unwrap();
        let options = Options { drop: &drop, mask: &mask, ..Options::default() };
        let read = Document::parse(body.as_bytes(), &options).unwrap();
        assert_eq!(read.to_json(), Document::copy_of(whole.root(), &options).to_json());
    }
}

#[test]
fn threads_share_the_interner_without_harm() {
    let mut random = Rng::with_seed(3);
    let bodies: Vec<_> = (0..200).map(|_| serde_json::to_string(&value(&mut random, 1)).unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for body in &bodies {
                    let document = Document::parse(body.as_bytes(), &Options::default()).unwrap();
                    assert!(agrees(document.root(), &serde_json::from_str(body).unwrap()));
                }
            });
        }
    });
}

#[test]
fn random_damage_is_refused_exactly_when_serde_json_refuses_it() {
    let mut random = Rng::with_seed(4);
    for _ in 0..20_000 {
        let mut body = serde_json::to_vec(&value(&mut random, 2)).unwrap();
        for _ in 0..1 + random.usize(..3) {
            let at = random.usize(..body.len());
            match random.usize(..3) {
                0 => body[at] = b"\"\\{}[],:0.eE+-tfn u\x01"[random.usize(..20)],
                1 => drop(body.remove(at)),
                _ => body.insert(at, b"\"\\{}[],:0.eE+-tfn u\x01"[random.usize(..20)]),
            }
            if body.is_empty() {
                body.push(b' ');
            }
        }
        // Bytes that are not UTF-8 and halves of surrogate pairs are errors there and none here.
        let Ok(text) = str::from_utf8(&body) else { continue };
        if text.contains("\\ud") {
            continue;
        }
        let expected = serde_json::from_str::<Value>(text);
        let found = Document::parse(&body, &Options::default());
        match (&expected, &found) {
            (Ok(value), Ok(document)) => assert!(agrees(document.root(), value), "{text}"),
            (Err(_), Err(_)) => {}
            _ => panic!("{text}: {expected:?}, {:?}", found.map(|document| document.to_json())),
        }
    }
}
