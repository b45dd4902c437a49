//! Random manifests, whole and damaged: what is read here is what the general parser reads, down to the last word.

use std::ops::Range;

use fastrand::Rng;

use super::{documents, load::load as generally};
use crate::{Document, DocumentLimits, Interning, Options, Path, YamlDocument, from_yaml};

const KEYS: [&str; 20] = [
    "name",
    "kind",
    "spec",
    "metadata",
    "image",
    "app.kubernetes.io/name",
    "a",
    "b",
    "data",
    "1",
    "yes",
    "1.5",
    "'q'",
    "\"q\\n\"",
    "-x",
    "a b",
    "ä",
    "<<",
    "\"<<\"",
    "key:x",
];

const SCALARS: [&str; 65] = [
    "v1",
    "Pod",
    "nginx:1.25",
    "100m",
    "1Gi",
    "true",
    "no",
    "on",
    "~",
    "null",
    "80",
    "-1",
    "0777",
    "0x1f",
    "1_000",
    "1.0",
    "1e3",
    ".5",
    ".inf",
    "2001-01-01T00:00:00Z",
    "http://x/y#z",
    "a b  c",
    "it's",
    "a #b",
    "a# b",
    "a, b",
    "a]",
    "a:b",
    "x: y",
    "- a",
    "-a",
    "--- a",
    "---",
    "...",
    "'it''s'",
    "''",
    "\"\"",
    "\"a\\tb\\\"\"",
    "\"\\u00e4\\x41\"",
    "\"\\q\"",
    "'a: b'",
    "\"a #b\"",
    "'a' # b",
    "'a'b",
    "[]",
    "{}",
    "[a, b]",
    "[ a , 'b', 1 ]",
    "{a: b, c: [1]}",
    "{\"a\":1, b: -1}",
    "[a: b]",
    "{a}",
    "[a, ]",
    "[-a, - b]",
    "{- a: b}",
    "{-a: -b, c: [-]}",
    "{? a: b}",
    "[a#b, c]",
    "&x a",
    "*x",
    "!!str 1",
    "? a",
    "%a",
    "@a",
    "äöü 😀",
];

/// What YAML is made of.
const ALPHABET: &str = ":-#&*!|>'\"%@`,?[]{}\t \n~<=.\\0a\r\u{85}ä";

/// The seeds that are tried. `PORTAL_SEEDS` says how many and `PORTAL_SEED` which is the first, as in the tests that have
/// the kit: here it would bring a client of Kubernetes along.
fn seeds(count: u64) -> Range<u64> {
    let setting = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (count, first) = (setting("PORTAL_SEEDS").unwrap_or(count), setting("PORTAL_SEED").unwrap_or(0));
    first..first + count
}

fn pick<'t>(random: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[random.usize(..texts.len())]
}

/// True once in so many times.
fn once_in(random: &mut Rng, times: usize) -> bool {
    random.usize(..times) == 0
}

/// Mostly something harmless, of which the first ones are.
fn mostly<'t>(random: &mut Rng, texts: &[&'t str], harmless: usize) -> &'t str {
    let count = if once_in(random, 12) { texts.len() } else { harmless };
    pick(random, &texts[..count])
}

struct Writer {
    random: Rng,
    text: String,
    /// Spaces that a level has more than the one around it.
    step: usize,
}

impl Writer {
    fn documents(&mut self) {
        for number in 0..=self.random.usize(..3) {
            if number > 0 || self.random.bool() {
                self.text.push_str(mostly(
                    &mut self.random,
                    &["---\n", "--- # c\n", "---\n\n", "--- ", "...\n", "---\t\n", "----\n"],
                    3,
                ));
            }
            match self.random.usize(..8) {
                0 => {}
                1 => self.sequence(0),
                _ => self.mapping(0),
            }
        }
        if once_in(&mut self.random, 4) {
            self.text.truncate(self.text.trim_end_matches('\n').len());
        }
    }

    fn indent(&mut self, column: usize) {
        self.text.extend(std::iter::repeat_n(' ', column));
    }

    fn mapping(&mut self, column: usize) {
        for number in 0..1 + self.random.usize(..5) {
            if number > 0 || column == 0 {
                self.between();
                self.indent(column);
            }
            self.entry(column);
        }
    }

    /// Writes an entry, of whose line the indentation is there.
    fn entry(&mut self, column: usize) {
        self.text.push_str(mostly(&mut self.random, &KEYS, 14));
        self.text.push(':');
        let deeper = column + self.step;
        match self.random.usize(..if column < 12 { 9 } else { 5 }) {
            0 => self.end_of_line(),
            1 => self.block(column),
            2..=4 => {
                self.text.push(' ');
                self.scalar();
            }
            5 => {
                self.end_of_line();
                self.indent(deeper);
                self.scalar();
            }
            6 => {
                self.end_of_line();
                let column = if self.random.bool() { column } else { deeper };
                self.sequence(column);
            }
            _ => {
                self.end_of_line();
                self.indent(deeper);
                self.mapping(deeper);
            }
        }
    }

    fn sequence(&mut self, column: usize) {
        for _ in 0..1 + self.random.usize(..3) {
            self.between();
            self.indent(column);
            self.element(column);
        }
    }

    fn element(&mut self, column: usize) {
        self.text.push('-');
        let spaces = if once_in(&mut self.random, 6) { 3 } else { 1 };
        match self.random.usize(..8) {
            0 => self.end_of_line(),
            1 => self.block(column),
            2 if column < 12 => {
                self.indent(spaces);
                self.element(column + 1 + spaces);
            }
            2..=4 => {
                self.text.push(' ');
                self.scalar();
            }
            _ => {
                self.indent(spaces);
                self.mapping(column + 1 + spaces);
            }
        }
    }

    fn scalar(&mut self) {
        self.text.push_str(mostly(&mut self.random, &SCALARS, 27));
        self.end_of_line();
    }

    fn block(&mut self, column: usize) {
        self.text.push(' ');
        self.text.push_str(mostly(&mut self.random, &["|", "|-", "|+", ">", ">-", ">+", "|2", "|1-", ">x"], 6));
        self.end_of_line();
        for _ in 0..self.random.usize(..5) {
            let deeper = column + mostly(&mut self.random, &["xx", "xxxx", "x", ""], 1).len();
            self.indent(deeper);
            self.text
                .push_str(pick(&mut self.random, &["echo 1", "a: b", "# c", "- d", "", "", " e", "\tf", "---", "ä"]));
            self.text.push('\n');
        }
    }

    fn end_of_line(&mut self) {
        self.text.push_str(mostly(&mut self.random, &["", "", " # c", "  ", "\t", "#c", "\r"], 4));
        self.text.push('\n');
    }

    fn between(&mut self) {
        if once_in(&mut self.random, 8) {
            self.text.push_str(mostly(&mut self.random, &["\n", "# c\n", "   # c\n", "   \n", "\t\n", "%a\n"], 4));
        }
    }
}

fn manifest(seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let step = [2, 2, 2, 4, 1, 3][random.usize(..6)];
    let mut writer = Writer { random, text: String::new(), step };
    writer.documents();
    writer.text
}

/// Changes characters and lines.
fn damage(random: &mut Rng, text: &str) -> String {
    let alphabet: Vec<char> = ALPHABET.chars().collect();
    let mut text = text.to_owned();
    for _ in 0..1 + random.usize(..3) {
        let mut chars: Vec<char> = text.chars().collect();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let at = random.usize(..=chars.len());
        let line = random.usize(..lines.len().max(1));
        let other = alphabet[random.usize(..alphabet.len())];
        let kind = random.usize(..8);
        match kind {
            0 | 1 => chars.insert(at, other),
            2 if at < chars.len() => chars[at] = other,
            3 if at < chars.len() => drop(chars.remove(at)),
            _ if lines.is_empty() => {}
            4 => lines.insert(line, lines[line].clone()),
            5 => drop(lines.remove(line)),
            6 => lines[line].insert_str(0, [" ", "  ", "- ", "a: "][random.usize(..4)]),
            _ => lines[line] = lines[line].strip_prefix([' ', '-']).unwrap_or(&lines[line]).to_owned(),
        }
        text = if kind < 4 { chars.into_iter().collect() } else { lines.concat() };
    }
    text
}

/// Compares what both readers have of a text, and says whether nothing of it was declined.
#[track_caller]
fn check(text: &str, options: &Options) -> bool {
    let (found, expected) = (from_yaml(text, options), generally(text, options));
    assert_eq!(found, expected, "{text:?}");
    let json = |documents: &[YamlDocument]| documents.iter().map(|found| found.document.to_json()).collect::<Vec<_>>();
    assert_eq!(found.as_deref().map(json), expected.as_deref().map(json), "{text:?}");
    // Another test may have made a symbol in between.
    let is_same_tape = (0..3).any(|_| tapes(from_yaml(text, options)) == tapes(generally(text, options)));
    assert!(is_same_tape, "the tapes of {text:?} differ");
    documents(text, options).is_some_and(|(_, declined)| declined == 0)
}

type Tape = (Vec<u32>, String);

fn tapes(documents: Result<Vec<YamlDocument>, crate::Error>) -> Option<Vec<Tape>> {
    let tape = |document: Document| (document.words().to_vec(), document.text().to_owned());
    Some(documents.ok()?.into_iter().map(|found| tape(found.document)).collect())
}

/// Compares what both readers have of manifests, and says how many of a hundred were read without the general parser.
fn share_of(count: u64, prepare: impl Fn(&mut Rng, String) -> String) -> u64 {
    let paths = |texts: &[&str]| -> Vec<Path> { texts.iter().map(|text| Path::parse(text).unwrap()).collect() };
    let (drop, mask) = (paths(&["spec.name", "a[*]"]), paths(&["data", "metadata.*"]));
    let limits = DocumentLimits { depth: 4, ..DocumentLimits::default() };
    let looking = Options { interning: Interning::LookUpOnly, ..Options::default() };
    let filtered = Options { drop: &drop, mask: &mask, ..looking };
    let shallow = Options { limits, ..looking };
    let seeds = seeds(count);
    let total = seeds.end - seeds.start;
    let quick = seeds.filter(|seed| {
        let mut random = Rng::with_seed(!seed);
        let text = prepare(&mut random, manifest(*seed));
        let options = match random.usize(..8) {
            0 => &filtered,
            1 => &shallow,
            2 => &Options::default(),
            _ => &looking,
        };
        // Adding makes the next document another one.
        if options.interning == Interning::Add {
            assert_eq!(from_yaml(&text, options), generally(&text, options), "{text:?}");
        }
        check(&text, &Options { interning: Interning::LookUpOnly, ..*options })
    });
    quick.count() as u64 * 100 / total.max(1)
}

#[test]
fn manifests_are_read_as_by_the_general_parser() {
    let share = share_of(2_000, |_, text| text);
    assert!(share >= 20, "only {share} % are read at once");
}

#[test]
fn damaged_manifests_are_read_or_refused_as_by_the_general_parser() {
    let share = share_of(4_000, |random, text| damage(random, &text));
    assert!(share >= 10, "only {share} % are read at once");
}
