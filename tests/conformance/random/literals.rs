//! Literals of every sort, in all the ways in which they can be written.

use super::sorts::Sort;
use crate::chance::Random;

const LETTERS: [&str; 18] =
    ["a", "b", "A", "web", "0", " ", "-", ".", ":", "/", "é", "日", "😀", "ß", "'", "\"", "`", "\\"];

/// Escapes of the language.
const ESCAPES: [&str; 12] =
    [r"\n", r"\t", r"\r", r"\\", r"\a", r"\0", r"\x41", r"\u00e9", r"\U0001F600", r"\u{1F600}", r"\101", r"\v"];

const PATTERNS: [&str; 14] = [
    "^a",
    "b$",
    "[a-z]+",
    "a|b",
    r"\d",
    r"^\w+$",
    "(web|api)",
    ".*",
    r"\s",
    "é",
    "(?i)WEB",
    "a{1,3}",
    r"\bweb\b",
    "[^/]*$",
];

/// A literal of this sort.
pub(super) fn literal(sort: Sort, random: &mut Random) -> String {
    match sort {
        Sort::Nil => "nil".to_owned(),
        Sort::Bool => (*random.pick(&["true", "false"])).to_owned(),
        Sort::Int => int(random),
        Sort::Float => float(random),
        Sort::Number if random.percent(60) => int(random),
        Sort::Number => float(random),
        Sort::Small => random.below(6).to_string(),
        Sort::Text => text(random),
        Sort::Bytes => format!("b{}", *random.pick(&["\"abc\"", "'x'", r#""\xff\x00""#, "\"\"", r#""é""#])),
        Sort::Json => {
            pick(random, &["`{\"a\": [1, 2.5, null]}`", "'[true, \"x\"]'", "'1e3'", "'\"\\\\u00e9\"'", "'{'"])
        }
        Sort::Base64 => pick(random, &["'YWJj'", "''", "'8J+YgA=='", "'YQ'", "'w6k='"]),
        Sort::NumberText => pick(
            random,
            &[
                "'42'",
                "'-7'",
                "'1.5'",
                "'0x1F'",
                "' 1'",
                "'1e3'",
                "'1_0'",
                "'9223372036854775807'",
                "42",
                "-7.9",
                "1e3",
            ],
        ),
        Sort::DurationText => pick(
            random,
            &["'1h30m'", "'-5s'", "'100ms'", "'1.5h'", "'0'", "'1us'", "'3ns'", "'24h'", "'90'", "'1m1ns'"],
        ),
        Sort::DateText => pick(
            random,
            &[
                "'2026-03-01'",
                "'2026-03-01T12:30:15Z'",
                "'2024-02-29T23:59:59.123456789+02:00'",
                "'12:30:00'",
                "'Sun, 01 Mar 2026 12:30:15 GMT'",
                "'1969-12-31'",
                "'0001-01-01'",
                "'2026-02-30'",
                "'9999-12-31 23:59:59'",
            ],
        ),
        Sort::Layout => pick(
            random,
            &[
                "'2006-01-02'",
                "'Mon Jan _2 15:04:05 2006'",
                "'3:04PM'",
                "'2006-01-02T15:04:05.999999999Z07:00'",
                "'002 06 .000'",
                "'Monday, January 2 MST -0700'",
                "'x'",
            ],
        ),
        Sort::ZoneName => pick(
            random,
            &["'UTC'", "'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'Nowhere'", "''", "'Pacific/Apia'"],
        ),
        Sort::Pattern => format!("`{}`", random.pick(&PATTERNS)),
        Sort::Order => pick(random, &["'asc'", "'desc'", "'asc'", "'desc'", "'up'"]),
        Sort::Time => format!("date({})", literal(Sort::DateText, random)),
        Sort::Duration => format!("duration({})", literal(Sort::DurationText, random)),
        Sort::Zone => format!("timezone({})", literal(Sort::ZoneName, random)),
        Sort::Ints if random.percent(30) => {
            let start = random.below(9) as i64 - 4;
            format!("({start}..{})", start + random.below(8) as i64 - 1)
        }
        // More than an evaluation may make.
        Sort::Ints if random.percent(1) => "(1..2_000_000)".to_owned(),
        Sort::Ints => list(Sort::Int, random),
        Sort::Numbers => list(Sort::Number, random),
        Sort::Texts => list(Sort::Text, random),
        Sort::Maps => list(Sort::Map, random),
        Sort::Lists => list(*random.pick(&[Sort::Ints, Sort::Texts, Sort::List]), random),
        Sort::Pairs => {
            let pairs = (0..random.below(3)).map(|_| format!("[{}, {}]", text(random), int(random)));
            format!("[{}]", pairs.collect::<Vec<_>>().join(", "))
        }
        Sort::List => list(Sort::Any, random),
        Sort::OneEntry if random.percent(10) => "{}".to_owned(),
        Sort::OneEntry => format!("{{{}: {}}}", key(random), literal(Sort::Any, random)),
        Sort::Map => {
            let entries = (0..random.below(4)).map(|_| format!("{}: {}", key(random), literal(Sort::Any, random)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Sort::Any | Sort::Body => {
            let sorts = [Sort::Nil, Sort::Bool, Sort::Int, Sort::Float, Sort::Text, Sort::Ints, Sort::Bytes];
            let sort = *random.pick(&sorts);
            literal(sort, random)
        }
    }
}

fn pick(random: &mut Random, texts: &[&str]) -> String {
    (*random.pick(texts)).to_owned()
}

fn list(sort: Sort, random: &mut Random) -> String {
    let elements: Vec<String> = (0..random.below(5)).map(|_| literal(sort, random)).collect();
    format!("[{}{}]", elements.join(", "), if random.percent(5) && !elements.is_empty() { "," } else { "" })
}

fn key(random: &mut Random) -> String {
    pick(random, &["a", "b", "name", "'x y'", "(\"a\" + \"b\")", "1", "\"é\"", "in"])
}

fn int(random: &mut Random) -> String {
    let small = random.below(20);
    match random.below(12) {
        0 => format!("0x{small:X}"),
        1 => format!("0o{small:o}"),
        2 => format!("0b{small:b}"),
        3 => pick(random, &["1_000", "0x7fff_ffff", "00", "007", "1_0"]),
        4 => pick(random, &["9223372036854775807", "(-9223372036854775807)", "9007199254740993", "4294967296"]),
        5 | 6 => format!("(-{small})"),
        _ => small.to_string(),
    }
}

fn float(random: &mut Random) -> String {
    let plain = [
        "0.5", ".5", "1e3", "1.5e-3", "2.0", "1_0.5", "1E+2", "1e21", "1e-7", "(-0.0)", "0.1", "(-1.5)", "1e308",
        "3.25",
    ];
    pick(random, &plain)
}

fn text(random: &mut Random) -> String {
    let quote = *random.pick(&["\"", "'", "\"", "`"]);
    let mut text = quote.to_owned();
    for _ in 0..random.below(5) {
        let letter = *random.pick(&LETTERS);
        match letter {
            _ if quote == "`" && letter == "`" => text += "``",
            _ if quote == "`" => text += letter,
            _ if random.percent(15) => text += *random.pick(&ESCAPES),
            "\\" => text += "\\\\",
            _ if letter == quote => text += &format!("\\{quote}"),
            _ => text += letter,
        }
    }
    text + quote
}
