//! Quantities: every text is the amount that Kubernetes' own parser takes it for, and amounts are in the same order.

use std::process::Command;

use fastrand::Rng;
use portal_expr::Amount;
use portal_test_kit::cache::Cache;
use portal_test_kit::{quantity_oracle, share};
use serde_json::Value;

use super::oracle::ask;

const SUFFIXES: [&str; 16] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// What people write and Kubernetes does not take.
const MISTAKES: [&str; 8] = ["GB", "gi", "K", "mi", " Gi", "i", "Ke", "e"];

fn digits(random: &mut Rng, most: usize) -> String {
    (0..random.usize(..=most)).map(|_| char::from(b'0' + random.u8(..10))).collect()
}

fn text(random: &mut Rng) -> String {
    let sign = ["", "", "", "-", "+"][random.usize(..5)];
    let most = [3, 3, 3, 9, 19, 27][random.usize(..6)];
    let whole = digits(random, most);
    let fraction = if random.u8(..3) == 0 { format!(".{}", digits(random, most)) } else { String::new() };
    let suffix = match random.u8(..20) {
        0 => MISTAKES[random.usize(..MISTAKES.len())].to_owned(),
        1 | 2 => format!("{}{}", ["e", "E", "e+", "E-", "e-"][random.usize(..5)], random.u8(..12)),
        _ => SUFFIXES[random.usize(..SUFFIXES.len())].to_owned(),
    };
    format!("{sign}{whole}{fraction}{suffix}")
}

#[test]
fn every_text_is_the_amount_that_kubernetes_takes_it_for() {
    let seeds = share::seeds(100_000, 2_000_000);
    let texts: Vec<String> = seeds.map(|seed| text(&mut Rng::with_seed(seed))).collect();
    let program = quantity_oracle().find(&Cache::open().unwrap()).unwrap();
    let questions = texts.iter().map(|text| format!("{}\n", Value::from(&**text))).collect();
    let answers = ask(&mut Command::new(program), questions);
    let mut last = Some(Amount::default());
    let mut count = 0;
    for (text, answer) in texts.iter().zip(answers.lines()) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let theirs = answer["amount"].as_str();
        count += 1;
        // Amounts of more digits are all the largest to us.
        if theirs.is_some_and(|amount| amount.split('.').next().is_some_and(|whole| whole.len() > 29)) {
            last = None;
            continue;
        }
        let ours = Amount::parse(text);
        assert_eq!(ours.map(|amount| amount.to_string()).as_deref(), theirs, "{text:?}: {answer}");
        let Some(amount) = ours else { continue };
        if let Some(last) = last {
            assert_eq!(amount.cmp(&last) as i64, answer["order"].as_i64().unwrap(), "{text:?} after {last}");
        }
        last = Some(amount);
    }
    assert_eq!(count, texts.len(), "the oracle answers every question");
}
