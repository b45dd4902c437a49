//! Rules against objects in files: the same verdicts whoever asks, and a clear line for everything that is wrong.

mod bad_input;
mod folders;
mod live;
mod permissions;
mod unknown_kinds;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use portal_test_kit::repository;
use serde_json::{Value, json};
use tempfile::TempDir;

const RULE: &str = r#"
name: no-privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged == true
---
name: no-latest
enforcementAction: warn
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == "latest"
"#;

const GOOD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a, image: 'a:1'}]}\n";

const BAD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\n\
                   spec: {containers: [{name: a, image: 'a:1', securityContext: {privileged: true}}]}\n";

fn portal(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portal"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Checks the objects of a folder by the rules beside them. `FOLDER` stands for the folder in what is said.
#[track_caller]
fn check(folder: &Path, more: &[&str], code: i32, expected: &str) {
    let (rules, objects) = (folder.join("rules"), folder.join("objects"));
    let arguments = ["check", "-r", rules.to_str().unwrap(), objects.to_str().unwrap()];
    let output = portal(&[&arguments, more].concat(), b"");
    let text = String::from_utf8(output.stdout).unwrap().replace(folder.to_str().unwrap(), "FOLDER");
    assert_eq!(text.trim_end(), expected.trim(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn every_case_is_as_expected() {
    let cases = repository().join("tests/cases");
    let output = portal(&["test", cases.to_str().unwrap()], b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn check_and_test_come_to_the_same_verdicts() {
    for case in fs::read_dir(repository().join("tests/cases")).unwrap() {
        let case = case.unwrap().path();
        let file = |name: &str| case.join(name).to_str().unwrap().to_owned();
        let mut arguments =
            vec!["check".to_owned(), "-o".to_owned(), "json".to_owned(), "-r".to_owned(), file("rules.yaml")];
        if case.join("cluster.yaml").exists() {
            arguments.extend(["--cluster".to_owned(), file("cluster.yaml")]);
        }
        arguments.push(file("input.yaml"));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let report: Value = serde_json::from_slice(&portal(&arguments, b"").stdout).unwrap();
        let expected = fs::read_to_string(case.join("expected.yaml")).unwrap();
        let expected = portal_document::from_yaml(&expected, &portal_document::Options::default()).unwrap();
        let expected: Value = serde_json::from_str(&expected[0].document.to_json()).unwrap();
        let verdicts = |violations: &Value, name: &dyn Fn(&Value) -> String| -> Vec<Value> {
            let list = violations.as_array().cloned().unwrap_or_default();
            list.iter().map(|found| json!([found["rule"], name(found), found["container"], found["message"]])).collect()
        };
        let object = |found: &Value| {
            let parts = [&found["kind"], &found["namespace"], &found["name"]];
            parts.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join("/")
        };
        let named = |found: &Value| found["object"].as_str().unwrap().to_owned();
        assert_eq!(
            verdicts(&report["results"], &object),
            verdicts(&expected["violations"], &named),
            "{}",
            case.display()
        );
    }
}

#[test]
fn the_exit_code_says_how_it_went() {
    let files =
        |objects: &'static str| folder(&[("rules/a.yaml", RULE.as_bytes()), ("objects/a.yaml", objects.as_bytes())]);
    check(files(GOOD).path(), &[], 0, "0 violations in 1 object, 2 rules");
    let shown = "FOLDER/objects/a.yaml:1 Pod default/bad\n  deny   no-privileged (medium): container a: \
                 securityContext.privileged is true\n1 violation (1 deny) in 1 object, 2 rules";
    check(files(BAD).path(), &[], 1, shown);
    let latest = "apiVersion: v1\nkind: Pod\nmetadata: {name: latest}\nspec: {containers: [{name: a, image: a}]}\n";
    let shown = "FOLDER/objects/a.yaml:1 Pod default/latest\n  warn   no-latest (medium): container a: image.tag is \
                 \"latest\"\n1 violation (1 warn) in 1 object, 2 rules";
    check(files(latest).path(), &[], 0, shown);
    check(files(latest).path(), &["--warn-as-error"], 1, shown);
}

#[test]
fn standard_input_lists_and_custom_resources_are_read() {
    let rule = "name: w\nmatch: {gvk: [{group: example.com, kind: Widget}]}\nrule: object.spec.size > 3\n---\n\
                apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
                spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}\n";
    let folder = folder(&[("rules.yaml", rule.as_bytes())]);
    let rules = folder.path().join("rules.yaml");
    let input = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: example.com/v1, kind: Widget, metadata: {name: small}, spec: {size: 1}}\n\
                 - apiVersion: example.com/v1\n  kind: Widget\n  metadata: {name: large}\n  spec: {size: 9}\n";
    let output = portal(&["check", "-r", rules.to_str().unwrap(), "-o", "json", "-"], input.as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        report,
        json!({
            "summary": {
                "objects": 2, "rules": 1, "violations": {"deny": 1, "warn": 0, "dryrun": 0}, "failures": 0, "warnings": 0, "skipped": 0,
                "unknown": 0, "skippedFiles": 0,
            },
            "results": [{
                "rule": "w", "severity": "medium", "action": "deny", "apiVersion": "example.com/v1", "kind": "Widget",
                "namespace": "default", "name": "large", "container": null, "message": "spec.size is 9",
                "file": "(standard input)", "line": 5,
            }],
            "failures": [],
            "warnings": [],
            "unknown": [],
            "skippedFiles": [],
            "assumed": [],
        })
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn lists_in_lists_and_lists_that_name_their_items_are_judged() {
    let rule =
        "name: p\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID && len(cluster.pods.list(metadata.namespace)) == 2\n";
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: PodList\n\
                \x20   items:\n    - metadata: {name: typed}\n      spec: {hostPID: true}\n\
                - {apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {hostPID: true}}\n\
                - {apiVersion: v1, kind: List, items: null}\n- {apiVersion: v1, kind: List, items: foo}\n\
                - {apiVersion: v1, kind: PodList, items: {a: b}}\n";
    let deep = (0..9).fold("{apiVersion: v1, kind: Pod, metadata: {name: deep}}".to_owned(), |inner, _| {
        format!("{{apiVersion: v1, kind: List, items: [{inner}]}}")
    });
    let folder =
        folder(&[("rules/a.yaml", rule.as_bytes()), ("objects/a.yaml", format!("{list}---\n{deep}\n").as_bytes())]);
    check(
        folder.path(),
        &[],
        2,
        "
FOLDER/objects/a.yaml:4 Pod default/typed
  deny   p (medium): len(pods in default) is 2, spec.hostPID is true
FOLDER/objects/a.yaml:12 Pod default/plain
  deny   p (medium): len(pods in default) is 2, spec.hostPID is true
error: FOLDER/objects/a.yaml:14: `items` of this List is no list of objects
error: FOLDER/objects/a.yaml:15: `items` of this PodList is no list of objects
error: FOLDER/objects/a.yaml:17: lists are in each other more than 8 deep
2 violations (2 deny) in 2 objects, 1 rule, 3 errors",
    );
}

/// The engine's folder is asked the same by `rules_in_lists_are_read_whatever_the_list` of `engine/cluster`.
#[test]
fn rules_in_lists_are_read_by_check_and_by_test() {
    let item = |name: &str| {
        format!(
            "metadata: {{name: {name}}}, spec: {{match: {{gvk: [{{kind: Pod}}]}}, rule: metadata.name == '{name}'}}"
        )
    };
    // As `kubectl get portalclusterrules --raw` answers, and as files are put together.
    let typed = format!(
        "{{apiVersion: portal.io/v1alpha1, kind: PortalClusterRuleList, metadata: {{resourceVersion: '1'}}, items: [{{{}}}]}}",
        item("good")
    );
    let nested = format!(
        "{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: List, items: [\
         {{apiVersion: portal.io/v1alpha1, kind: PortalClusterRule, {}}}]}}]}}",
        item("bad")
    );
    let rules = format!("{typed}\n---\n{nested}\n");
    let objects = format!("{GOOD}---\n{BAD}");
    let expected = "violations:\n- rule: good\n  object: Pod/default/good\n  action: deny\n  message: metadata.name is \"good\"\n\
                    - rule: bad\n  object: Pod/default/bad\n  action: deny\n  message: metadata.name is \"bad\"\n";
    let files = folder(&[
        ("rules/rules.yaml", rules.as_bytes()),
        ("objects/a.yaml", objects.as_bytes()),
        ("case/rules.yaml", rules.as_bytes()),
        ("case/input.yaml", objects.as_bytes()),
        ("case/expected.yaml", expected.as_bytes()),
    ]);
    check(
        files.path(),
        &[],
        1,
        "
FOLDER/objects/a.yaml:1 Pod default/good
  deny   good (medium): metadata.name is \"good\"
FOLDER/objects/a.yaml:6 Pod default/bad
  deny   bad (medium): metadata.name is \"bad\"
2 violations (2 deny) in 2 objects, 2 rules",
    );
    let output = portal(&["test", files.path().join("case").to_str().unwrap()], b"");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "1 case, 0 not as expected, 0 could not be run\n");
    assert!(output.status.success());
}

#[test]
fn a_message_sees_the_request_that_the_rule_sees() {
    let rule = "name: m\nmatch: {gvk: [{kind: Pod}]}\nrule: metadata.name == 'good'\n\
                message: '{{ request.operation }} {{ request.namespace }}/{{ request.name }} {{ request.object.kind }} {{ request.userInfo.username }}'\n";
    let files = folder(&[("rules/a.yaml", rule.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    check(
        files.path(),
        &[],
        1,
        "
FOLDER/objects/a.yaml:1 Pod default/good
  deny   m (medium): CREATE default/good Pod nil
         metadata.name is \"good\"
1 violation (1 deny) in 1 object, 1 rule",
    );
    let audited =
        folder(&[("rules/a.yaml", format!("{rule}mode: [audit]\n").as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    check(
        audited.path(),
        &[],
        2,
        "
error: FOLDER/rules/a.yaml:5:1: rule m: mode: the message reads `request`, which only admission has: remove `audit` from mode, or `request` from the message
0 violations in 1 object, 0 rules, 1 error",
    );
}

#[test]
fn a_failure_names_its_container() {
    let rule = "name: u\nmatch: {gvk: [{kind: Pod}]}\nrule: int(container.name ?? \"0\") > 1\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec: {containers: [{name: a}, {name: b}]}\n";
    let folder = folder(&[("rules/a.yaml", rule.as_bytes()), ("objects/a.yaml", pod.as_bytes())]);
    check(
        folder.path(),
        &[],
        2,
        "
error: FOLDER/objects/a.yaml:1: Pod default/two: rule u: container a: 1:1: \"a\" is not an int
 | int(container.name ?? \"0\") > 1
 | ^
error: FOLDER/objects/a.yaml:1: Pod default/two: rule u: container b: 1:1: \"b\" is not an int
 | int(container.name ?? \"0\") > 1
 | ^
0 violations in 1 object, 1 rule, 2 errors",
    );
}

#[test]
fn what_comes_by_standard_input_sees_each_other() {
    let rule = "name: s\nmatch: {gvk: [{kind: Pod}]}\nrule: cluster.services.byName(metadata.namespace, metadata.name) == nil\n";
    let folder = folder(&[("rules.yaml", rule.as_bytes())]);
    let rules = folder.path().join("rules.yaml");
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: good}\n";
    let arguments = ["check", "-r", rules.to_str().unwrap(), "-"];
    assert_eq!(portal(&arguments, format!("{GOOD}{service}").as_bytes()).status.code(), Some(0));
    assert_eq!(portal(&arguments, GOOD.as_bytes()).status.code(), Some(1));
}

#[test]
fn ten_thousand_files_are_judged() {
    let folder = folder(&[("rules/a.yaml", RULE.as_bytes())]);
    let objects = folder.path().join("objects");
    fs::create_dir(&objects).unwrap();
    for number in 0..10_000 {
        fs::write(objects.join(format!("{number}.yaml")), if number % 1000 == 0 { BAD } else { GOOD }).unwrap();
    }
    let rules = folder.path().join("rules");
    let output = portal(&["check", "-r", rules.to_str().unwrap(), objects.to_str().unwrap(), "-o", "json"], b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.stderr, b"", "only a terminal is told how far it is");
    assert_eq!(report["summary"]["objects"], 10_000);
    assert_eq!(report["summary"]["violations"]["deny"], 10);
}

#[test]
fn a_case_that_differs_is_shown_line_by_line() {
    let expected = "violations:\n- rule: no-privileged\n  object: Pod/default/bad\n  container: a\n  action: deny\n  message: other\n";
    let folder = folder(&[
        ("case/rules.yaml", RULE.as_bytes()),
        ("case/input.yaml", BAD.as_bytes()),
        ("case/expected.yaml", expected.as_bytes()),
    ]);
    let path = folder.path().to_str().unwrap();
    let output = portal(&["test", path], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("-   message: other\n"), "{text}");
    assert!(text.contains("+   message: \"container a: securityContext.privileged is true\"\n"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(portal(&["test", path, "--update"], b"").status.success());
    assert!(portal(&["test", path], b"").status.success());
    fs::remove_file(folder.path().join("case/expected.yaml")).unwrap();
    assert_eq!(portal(&["test", path], b"").status.code(), Some(2));
    assert_eq!(portal(&["test", "/nowhere"], b"").status.code(), Some(2));
}

#[test]
fn a_mistake_in_what_is_expected_has_its_place() {
    let violation = "violations:\n# The first.\n- rule: a\n  object: b\n  action: deny\n  message: 'c: \"d\"'\n";
    for (expected, said) in [
        (
            format!("{violation}- rule: a\n  object: b\n  mesage: c\n"),
            "9:3: unknown field `mesage`, expected one of `rule`, `object`, `container`, `action`, `message`",
        ),
        (format!("{violation}- rule: a\n  object: b\n  action: deny\n"), "7:3: missing field `message`"),
        (format!("{violation}- rule: a\n  object: [b]\n"), "8:3: invalid type: sequence, expected a string"),
        (format!("{violation}failures: 5\n"), "7:1: invalid type: integer `5`, expected a sequence"),
        ("violations:\n\t- a\n".to_owned(), "2:2: tabs disallowed within this context (block indentation)"),
    ] {
        let folder = folder(&[
            ("case/rules.yaml", RULE.as_bytes()),
            ("case/input.yaml", BAD.as_bytes()),
            ("case/expected.yaml", expected.as_bytes()),
        ]);
        let output = portal(&["test", folder.path().to_str().unwrap()], b"");
        let text = String::from_utf8(output.stderr).unwrap().replace(folder.path().to_str().unwrap(), "FOLDER");
        assert_eq!(text, format!("error: FOLDER/case/expected.yaml:{said}\n"));
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_no_panic() {
    let folder = folder(&[
        ("case/rules.yaml", RULE.as_bytes()),
        ("case/input.yaml", BAD.as_bytes()),
        ("case/expected.yaml", b"violations: []\n"),
    ]);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rules, input, case) = (file("case/rules.yaml"), file("case/input.yaml"), file("case"));
    let commands: [(&[&str], i32); 7] = [
        (&["check", "-r", &rules, &input], 1),
        (&["check", "-r", &rules, &input, "-o", "json"], 1),
        (&["test", &case], 1),
        (&["eval", "object", "-f", &input], 0),
        (&["version"], 0),
        (&["completion", "bash"], 0),
        (&["generate", "command-line"], 0),
    ];
    for (arguments, code) in commands {
        let run = |out: Stdio| {
            let child = Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments).stdout(out).output().unwrap();
            (child.status.code(), String::from_utf8(child.stderr).unwrap())
        };
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let error = "error: the output could not be written: No space left on device (os error 28)\n";
        assert_eq!(run(full.into()), (Some(2), error.to_owned()), "{arguments:?}");
        // Whoever reads has seen enough: what came out is still in the exit code.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(run(writer.into()), (Some(code), String::new()), "{arguments:?}");
    }
}
