//! Input that means harm. Each ends in a document or an error, in little time and memory.

use std::time::{Duration, Instant};

use expect_test::{Expect, expect};

use crate::{Document, DocumentLimits, Error, Interning, Key, Options, from_yaml, parse};

/// Generous: a debug build on a busy machine. What these tests are about would take minutes.
const LITTLE_TIME: Duration = Duration::from_secs(20);

const OPTIONS: Options = Options {
    well_formed: false,
    drop: &[],
    mask: &[],
    interning: Interning::LookUpOnly,
    origin: None,
    limits: DocumentLimits { bytes: 7 << 20, depth: 10_000 },
};

/// Runs on a thread with the stack that a worker of the runtime has.
fn on_small_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, run);
        thread.unwrap().join().unwrap()
    })
}

/// A body of 3 MB that repeats a value.
fn bomb(value: &str) -> String {
    format!("[{}{value}]", format!("{value},").repeat((3 << 20) / (value.len() + 1)))
}

/// Checks that reading a body needs at most so many times its size, with everything that grows on the way.
#[track_caller]
fn check_memory(body: &str, times: f64) {
    let started = Instant::now();
    let (document, peak) = parse::parse_and_measure(body.as_bytes(), &OPTIONS).unwrap();
    assert!(started.elapsed() < LITTLE_TIME);
    let needed = peak.max(document.size_bytes()) as f64 / body.len() as f64;
    assert!(needed <= times, "{needed:.2} times the size of the body");
}

#[test]
fn small_values_need_at_most_four_times_the_body() {
    check_memory(&bomb(r#"{"a":1}"#), 4.0);
    check_memory(&bomb(r#"{"name":"a"}"#), 4.0);
    check_memory(&bomb("[]"), 4.0);
    check_memory(&bomb("{}"), 4.0);
    check_memory(&bomb(r#""x""#), 4.0);
    check_memory(&bomb("[[[[[[[[[[]]]]]]]]]]"), 4.0);
}

#[test]
fn no_value_needs_more_than_eight_times_the_body() {
    check_memory(&bomb("1"), 8.0);
    check_memory(&bomb("0.1"), 8.0);
    check_memory(&bomb("1e1"), 8.0);
    check_memory(&bomb("134217728"), 8.0);
    let unique: Vec<_> = (0..400_000).map(|n| format!(r#""{n:x}""#)).collect();
    check_memory(&format!("[{}]", unique.join(",")), 8.0);
    let keys: Vec<_> = (0..300_000).map(|n| format!(r#""{n:x}":0"#)).collect();
    check_memory(&format!("{{{}}}", keys.join(",")), 8.0);
    // All small at first, so that what is expected is wrong.
    check_memory(&format!("[{}\"{}\"]", "0,".repeat(100_000), "x".repeat(3 << 20)), 8.0);
}

#[test]
fn bytes_that_are_not_utf8_need_at_most_eight_times_the_body() {
    let body = [b"[\"", vec![0xff; 3 << 20].as_slice(), b"\"]"].concat();
    let (document, peak) = parse::parse_and_measure(&body, &OPTIONS).unwrap();
    assert!(peak.max(document.size_bytes()) <= 8 * body.len());
}

#[test]
fn ten_thousand_levels_are_read_on_a_small_stack() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let levels = 10_000 / (open.matches(['[', '{']).count());
        let body = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        on_small_stack(|| {
            let document = Document::parse(body.as_bytes(), &OPTIONS).unwrap();
            assert_eq!(document.to_json(), body);
            assert!(document.root().same(document.clone().root()));
            let path = crate::Path::new(vec![crate::Segment::Field(Key::new("a")); 9_999]);
            assert!(document.root().same_at(document.clone().root(), &path));
        });
    }
}

#[test]
fn one_level_more_is_refused() {
    on_small_stack(|| {
        for (open, rest) in [("[", "1"), (r#"{"a":"#, "1"), ("[", "")] {
            let body = format!("{}{rest}", open.repeat(10_001));
            let error = Document::parse(body.as_bytes(), &OPTIONS).unwrap_err();
            assert!(matches!(error, Error::TooDeep { limit: 10_000, .. }), "{error}");
        }
    });
}

#[test]
fn a_million_levels_are_refused_where_they_would_be_dropped_too() {
    on_small_stack(|| {
        let drop = [crate::Path::parse("a").unwrap()];
        let body = format!(r#"{{"a":{}"#, "[".repeat(1_000_000));
        let error = Document::parse(body.as_bytes(), &Options { drop: &drop, ..OPTIONS }).unwrap_err();
        assert_eq!(error.to_string(), "1:10005: nesting is over the limit of 10000 levels");
    });
}

#[test]
fn nested_wide_containers_do_not_move_each_other() {
    let started = Instant::now();
    let body = format!("{}{}{}", "[".repeat(9_999), bomb("1"), "]".repeat(9_999));
    let document = Document::parse(body.as_bytes(), &OPTIONS).unwrap();
    assert_eq!(document.to_json(), body);
    assert!(started.elapsed() < LITTLE_TIME);
}

#[test]
fn nested_repeated_keys_do_not_move_each_other() {
    let started = Instant::now();
    let body = format!("{}{}{}", r#"{"a":1,"a":"#.repeat(9_999), bomb("1"), "}".repeat(9_999));
    let document = Document::parse(body.as_bytes(), &OPTIONS).unwrap();
    assert_eq!(document.root().len(), 1);
    assert!(started.elapsed() < LITTLE_TIME);
}

#[test]
fn a_hundred_thousand_keys_take_little_time() {
    let started = Instant::now();
    let same = vec![r#""key":1"#; 100_000].join(",");
    let document = Document::parse(format!("{{{same},\"key\":2}}").as_bytes(), &OPTIONS).unwrap();
    assert_eq!(document.to_json(), r#"{"key":2}"#);

    let twice: Vec<_> = (0..100_000).map(|n| format!(r#""key {}":{n}"#, n % 50_000)).collect();
    let document = Document::parse(format!("{{{}}}", twice.join(",")).as_bytes(), &OPTIONS).unwrap();
    assert_eq!(document.root().len(), 50_000);
    assert_eq!(document.root().get_str("key 0").unwrap().to_json(), "50000");
    assert!(started.elapsed() < LITTLE_TIME);
}

#[test]
fn long_strings_and_keys_are_kept() {
    let long = "x".repeat(1 << 20);
    let document = Document::parse(format!(r#"{{"{long}":["{long}","\n{long}"]}}"#).as_bytes(), &OPTIONS).unwrap();
    let value = document.root().get(&Key::new(&long)).unwrap();
    assert_eq!(value.index(0).unwrap().as_str(), Some(long.as_str()));
    assert_eq!(value.index(1).unwrap().as_str().map(str::len), Some(long.len() + 1));
}

#[track_caller]
fn check_yaml(text: &str, expected: Expect) {
    let started = Instant::now();
    let found = on_small_stack(|| match from_yaml(text, &OPTIONS) {
        Ok(documents) => format!("{} bytes", documents[0].document.size_bytes()),
        Err(error) => error.to_string(),
    });
    assert!(started.elapsed() < LITTLE_TIME);
    expected.assert_eq(&found);
}

#[test]
fn a_billion_laughs_are_refused() {
    let levels: Vec<_> =
        (1..10).map(|n| format!("l{n}: &l{n} [{}]", vec![format!("*l{}", n - 1); 10].join(", "))).collect();
    check_yaml(
        &format!("l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n{}", levels.join("\n")),
        expect!["4:20: aliases and merge keys expand to too much"],
    );
}

#[test]
fn merges_of_merges_are_refused() {
    let entries: Vec<_> = (0..1000).map(|n| format!("k{n}: 1")).collect();
    check_yaml(
        &format!("{}{}{}", "{<<: ".repeat(9_000), format_args!("{{{}}}", entries.join(", ")), "}".repeat(9_000)),
        expect!["1:43001: aliases and merge keys expand to too much"],
    );
}

#[test]
fn deep_yaml_is_read_or_refused() {
    check_yaml(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)), expect!["40000 bytes"]);
    check_yaml(&"[".repeat(10_001), expect!["1:10001: nesting is over the limit of 10000 levels"]);
    check_yaml(&"- ".repeat(10_001), expect!["1:20001: nesting is over the limit of 10000 levels"]);
    check_yaml("a: &a [*a]", expect!["1:8: alias stands for a value that it is part of"]);
    let chain: Vec<_> = (1..10_002).map(|n| format!("- &a{n} [*a{}]", n - 1)).collect();
    check_yaml(
        &format!("- &a0 []\n{}", chain.join("\n")),
        expect!["201:10: aliases and merge keys expand to too much"],
    );
}
