//! The functions that are called: those of the reference, so that one more is called as well.

use super::sorts::Sort;

/// A function, or a method of a time, a duration or a timezone.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// What it is a method of.
    pub(super) base: Option<Sort>,
    pub(super) parameters: Vec<Sort>,
    /// How many arguments it needs.
    pub(super) least: usize,
    /// Whether the last parameter may come again.
    pub(super) many: bool,
    pub(super) result: Sort,
}

/// Left out: `now`, whose value is another one each time.
const LEFT_OUT: [&str; 1] = ["now"];

/// Where the signature and the example say too little: the parameters, how many are needed, and the result.
const KNOWN: &[(&str, &[Sort], usize, Sort)] = &[
    ("len", &[Sort::Any], 1, Sort::Int),
    ("get", &[Sort::Map, Sort::Text], 2, Sort::Any),
    ("date", &[Sort::DateText], 1, Sort::Time),
    ("duration", &[Sort::DurationText], 1, Sort::Duration),
    ("timezone", &[Sort::ZoneName], 1, Sort::Zone),
    ("join", &[Sort::Texts, Sort::Text], 1, Sort::Text),
    ("fromPairs", &[Sort::Pairs], 1, Sort::Map),
    ("toPairs", &[Sort::OneEntry], 1, Sort::Pairs),
    ("keys", &[Sort::OneEntry], 1, Sort::Texts),
    ("values", &[Sort::OneEntry], 1, Sort::List),
    ("flatten", &[Sort::Lists], 1, Sort::List),
    ("concat", &[Sort::List, Sort::List], 1, Sort::List),
    ("reverse", &[Sort::Ints], 1, Sort::Ints),
    ("uniq", &[Sort::List], 1, Sort::List),
    ("sort", &[Sort::Ints, Sort::Order], 1, Sort::Ints),
    ("first", &[Sort::List], 1, Sort::Any),
    ("last", &[Sort::List], 1, Sort::Any),
    ("take", &[Sort::List, Sort::Small], 2, Sort::List),
    ("max", &[Sort::Number, Sort::Numbers], 1, Sort::Number),
    ("min", &[Sort::Number, Sort::Numbers], 1, Sort::Number),
    ("abs", &[Sort::Number], 1, Sort::Number),
    ("repeat", &[Sort::Text, Sort::Small], 2, Sort::Text),
    ("split", &[Sort::Text, Sort::Text, Sort::Small], 2, Sort::Texts),
    ("splitAfter", &[Sort::Text, Sort::Text, Sort::Small], 2, Sort::Texts),
    ("replace", &[Sort::Text, Sort::Text, Sort::Text, Sort::Small], 3, Sort::Text),
    ("bitshl", &[Sort::Int, Sort::Small], 2, Sort::Int),
    ("bitshr", &[Sort::Int, Sort::Small], 2, Sort::Int),
    ("bitushr", &[Sort::Int, Sort::Small], 2, Sort::Int),
    ("int", &[Sort::NumberText], 1, Sort::Int),
    ("float", &[Sort::NumberText], 1, Sort::Float),
    ("fromJSON", &[Sort::Json], 1, Sort::Any),
    ("fromBase64", &[Sort::Base64], 1, Sort::Text),
    ("find", &[Sort::List, Sort::Body], 2, Sort::Any),
    ("findLast", &[Sort::List, Sort::Body], 2, Sort::Any),
    ("map", &[Sort::List, Sort::Body], 2, Sort::List),
    ("filter", &[Sort::List, Sort::Body], 2, Sort::List),
    ("sum", &[Sort::Numbers, Sort::Body], 1, Sort::Number),
    ("count", &[Sort::List, Sort::Body], 2, Sort::Int),
    ("groupBy", &[Sort::List, Sort::Body], 2, Sort::Map),
    ("sortBy", &[Sort::List, Sort::Body, Sort::Order], 2, Sort::List),
    ("reduce", &[Sort::List, Sort::Body, Sort::Any], 3, Sort::Any),
    ("Add", &[Sort::Duration], 1, Sort::Time),
    ("AddDate", &[Sort::Small, Sort::Small, Sort::Small], 3, Sort::Time),
    ("UTC", &[], 0, Sort::Time),
    ("In", &[Sort::Zone], 1, Sort::Time),
    ("Sub", &[Sort::Time], 1, Sort::Duration),
    ("Abs", &[], 0, Sort::Duration),
    ("Format", &[Sort::Layout], 1, Sort::Text),
    ("String", &[], 0, Sort::Text),
    ("Hours", &[], 0, Sort::Float),
    ("Minutes", &[], 0, Sort::Float),
    ("Seconds", &[], 0, Sort::Float),
];

/// Every function of the reference that expr-lang has.
pub(super) fn functions() -> Vec<Function> {
    let mut all = portal_expr::functions();
    all.retain(|row| row.group != portal_expr::RULES_ONLY);
    let functions = all.iter().map(|row| function(&row.signature, row.example.map(|(_, value)| value)));
    functions.filter(|function| !LEFT_OUT.contains(&&*function.name)).collect()
}

fn function(signature: &str, example: Option<&str>) -> Function {
    let (name, parameters) = signature.trim_end_matches(')').split_once('(').unwrap();
    let (base, name) = name.split_once('.').map_or((None, name), |(base, name)| (Some(sort(base)), name));
    let many = parameters.ends_with('…');
    if let Some((_, parameters, least, result)) = KNOWN.iter().find(|(known, ..)| *known == name) {
        return Function {
            name: name.to_owned(),
            base,
            parameters: parameters.to_vec(),
            least: *least,
            many,
            result: *result,
        };
    }
    let needed = parameters.split('[').next().unwrap_or_default();
    let words = |text: &str| -> Vec<Sort> {
        text.split([',', '[', ']']).map(str::trim).filter(|word| !word.is_empty()).map(sort).collect()
    };
    let (parameters, least) = (words(parameters), words(needed).len());
    Function { name: name.to_owned(), base, parameters, least, many, result: example.map_or(Sort::Int, result) }
}

/// The sort that the reference has this word for.
fn sort(word: &str) -> Sort {
    match word.trim_end_matches('…') {
        "string" | "characters" | "prefix" | "suffix" | "separator" | "old" | "new" | "part" => Sort::Text,
        "int" => Sort::Int,
        "n" | "count" => Sort::Small,
        "number" => Sort::Number,
        "numbers or arrays" => Sort::Numbers,
        "array" | "arrays" => Sort::List,
        "map" => Sort::Map,
        "predicate" => Sort::Body,
        "order" => Sort::Order,
        "time" => Sort::Time,
        "duration" => Sort::Duration,
        "timezone" => Sort::Zone,
        _ => Sort::Any,
    }
}

/// The sort of an example's value.
fn result(example: &str) -> Sort {
    match example {
        "true" | "false" => Sort::Bool,
        _ if example.starts_with('"') => Sort::Text,
        _ if example.starts_with('[') => Sort::List,
        _ if example.parse::<i64>().is_ok() => Sort::Int,
        _ if example.parse::<f64>().is_ok() => Sort::Float,
        _ => Sort::Any,
    }
}
