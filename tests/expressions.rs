//! The documentation says what expressions give: every `expr` block marked `runnable` is evaluated.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::expect;
use portal_test_kit::pages::{self, Language};
use portal_test_kit::repository;

#[test]
fn every_expression_on_a_page_gives_what_the_page_says() {
    let mut count = 0;
    for path in pages::find(&repository().join("docs")).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = pages::blocks(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        count += blocks.iter().filter(|block| block.language == Language::Expr).count();
        pages::evaluate(&path, &blocks, Path::new(env!("CARGO_BIN_EXE_portal")))
            .unwrap_or_else(|error| panic!("{error:#}"));
    }
    assert!(count > 0, "the documentation has expressions");
}

/// What `portal eval` says to lines with an environment each.
fn lines(input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portal"))
        .args(["eval", "--strict", "--lines", "--env", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn each_line_can_have_its_own_environment() {
    let output = lines(
        r#"
           {"expr": "a + 1", "env": {"a": 41}}
           {"expr": "1\n+ $env.b", "env": {"a": 1}}
           {"expr": "a.b", "env": {"a": {"b": [null, 1.0, 1e2]}}, "more": 1}
        "#
        .trim(),
    );
    assert!(output.status.success());
    expect![[r#"
        {"ast":"a + 1","expr":"a + 1","val":{"i":"42"}}
        {"ast":"1 + $env.b","col":1,"err":"cannot use + with int and nil","expr":"1\n+ $env.b","line":2,"phase":"run"}
        {"ast":"a.b","expr":"a.b","val":[{"nil":true},{"f":"1"},{"f":"100"}]}
    "#]]
    .assert_eq(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn a_line_that_is_no_question_is_named() {
    let said = |input: &str| {
        let output = lines(input);
        assert!(!output.status.success(), "{input}");
        String::from_utf8(output.stderr).unwrap()
    };
    expect![[r#"
        error: line 2 cannot be read: 1:1: expected a value, found `x`
    "#]]
    .assert_eq(&said("{\"expr\": \"1\", \"env\": {}}\nx\n"));
    expect![[r#"
        error: line 1 cannot be read: its field `expr` is no text
    "#]]
    .assert_eq(&said("{\"expr\": 1, \"env\": {}}\n"));
    expect![[r#"
        error: line 1 cannot be read: its field `env` cannot be used: it holds no object: its fields would be the names to use
    "#]]
    .assert_eq(&said("{\"expr\": \"1\", \"env\": []}\n"));
}

#[test]
fn a_value_that_is_too_deep_to_print_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let said = |levels: usize| {
        let path = directory.path().join("deep.json");
        std::fs::write(&path, format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))).unwrap();
        Command::new(env!("CARGO_BIN_EXE_portal")).args(["eval", "object", "--file"]).arg(path).output().unwrap()
    };
    assert!(said(200).status.success());
    for levels in [300, 9_000] {
        let output = said(levels);
        assert_eq!(output.status.code(), Some(1));
        expect![[r#"
            error: the value is more than 256 levels deep: print a part of it
        "#]]
        .assert_eq(&String::from_utf8(output.stderr).unwrap());
    }
}

#[test]
fn what_stands_between_two_markers_may_be_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    for (text, code, said) in [
        ("---\n# A comment.\n---\nname: a\n---\n", 0, "\"a\"\n"),
        ("---\n---\n", 1, "error: FILE holds no object\n"),
        ("name: a\n---\nname: b\n", 1, "error: FILE holds 2 objects: leave one\n"),
    ] {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let output =
            Command::new(env!("CARGO_BIN_EXE_portal")).args(["eval", "object.name", "-f", path]).output().unwrap();
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap().replace(path, "FILE");
        assert_eq!((output.status.code(), shown.as_str()), (Some(code), said));
    }
}
