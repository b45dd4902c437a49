//! Random values: read from JSON, written back and read again, they agree with `serde_json`.

use serde_json::{Map, Number, Value, json};

use crate::{Document, Interning, Key, Node, Options, Path, Segment, View};

/// A generator of random numbers that needs no crate: the same seed is the same test.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn text(&mut self) -> String {
        match self.below(4) {
            0 => self.pick(&["name", "spec", "containers", "image", "", "app.kubernetes.io/name", "***"]).to_owned(),
            1 => format!("unique-{:x}", self.next()),
            _ => {
                let parts = ["a", "ä", "\"", "\\", "\n", "\0", "😀", "\u{2028}", "/", "long text that goes on and on "];
                (0..self.below(6)).map(|_| self.pick(&parts)).collect()
            }
        }
    }

    fn number(&mut self) -> Number {
        let bits = self.next();
        let shift = self.below(64) as u32;
        match self.below(3) {
            0 => Number::from((bits as i64) >> shift),
            1 => Number::from(-((bits >> 1 >> shift) as i64)),
            _ => Number::from_f64(f64::from_bits(bits)).unwrap_or_else(|| Number::from_f64(0.5).unwrap()),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth < 5 { 9 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 | 3 => Value::Number(self.number()),
            4 | 5 => Value::String(self.text()),
            6 => (0..self.below(6)).map(|_| self.value(depth + 1)).collect(),
            _ => {
                let entries = 0..self.below(if depth == 1 { 90 } else { 6 });
                entries.map(|_| (self.text(), self.value(depth + 1))).collect::<Map<_, _>>().into()
            }
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
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..3_000 {
        let value = random.value(0);
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
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let paths = |random: &mut Random, count| -> Vec<Path> {
        let segment = |random: &mut Random| match random.below(4) {
            0 => Segment::AnyIndex,
            1 => Segment::AnyKey,
            _ => Segment::Field(Key::new(random.pick(&["name", "spec", "containers", "image", ""]))),
        };
        (0..count).map(|_| Path::new((0..1 + random.below(3)).map(|_| segment(random)).collect::<Vec<_>>())).collect()
    };
    for _ in 0..2_000 {
        let body = serde_json::to_string(&random.value(0)).unwrap();
        let (drop, mask) = (paths(&mut random, 2), paths(&mut random, 2));
        let whole = Document::parse(body.as_bytes(), &Options::default()).unwrap();
        let options = Options { drop: &drop, mask: &mask, ..Options::default() };
        let read = Document::parse(body.as_bytes(), &options).unwrap();
        assert_eq!(read.to_json(), Document::copy_of(whole.root(), &options).to_json());
    }
}

#[test]
fn threads_share_the_interner_without_harm() {
    let mut random = Random(0x94D0_49BB_1331_11EB);
    let bodies: Vec<_> = (0..200).map(|_| serde_json::to_string(&random.value(1)).unwrap()).collect();
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
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for _ in 0..20_000 {
        let mut body = serde_json::to_vec(&random.value(2)).unwrap();
        for _ in 0..1 + random.below(3) {
            let at = random.below(body.len());
            match random.below(3) {
                0 => body[at] = b"\"\\{}[],:0.eE+-tfn u\x01"[random.below(20)],
                1 => drop(body.remove(at)),
                _ => body.insert(at, b"\"\\{}[],:0.eE+-tfn u\x01"[random.below(20)]),
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
