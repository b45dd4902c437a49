//! Whatever is wrong with what is read: a clear line each, with its place, and the rest is judged.

use std::os::unix::fs::symlink;

use super::{BAD, GOOD, RULE, check, folder, portal};

/// Aliases of aliases: a few lines that would be ten million elements.
const BOMB: &str = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    g: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";

/// A file of ten megabytes.
fn large() -> String {
    format!("name: large\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\nmessage: {}\n", "x".repeat(10 << 20))
}

#[test]
fn objects_that_cannot_be_read_are_told_and_the_rest_is_judged() {
    let folder = folder(&[
        ("rules/a.yaml", RULE.as_bytes()),
        ("objects/a-tab.yaml", b"a:\n\tb: 1\n---\nnot: an object\n"),
        ("objects/b-bomb.yaml", BOMB.as_bytes()),
        ("objects/c-empty.yaml", b""),
        ("objects/d-binary.yaml", b"\x7fELF\x00\n\xc3\xa9\xff\xfe"),
        (
            "objects/e-good.json",
            br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j"},"spec":{"containers":[]}}"#,
        ),
        ("objects/f-bad.yaml", BAD.as_bytes()),
        ("objects/notes.txt", b"not looked at"),
    ]);
    symlink(folder.path().join("objects"), folder.path().join("objects/z-around")).unwrap();
    symlink("nowhere", folder.path().join("objects/g-dangling.yaml")).unwrap();
    symlink("h-itself.yaml", folder.path().join("objects/h-itself.yaml")).unwrap();
    // Permissions do not keep root from reading. This cannot be read by anybody: nothing is at address 0.
    symlink("/proc/self/mem", folder.path().join("objects/i-unreadable.yaml")).unwrap();
    check(
        folder.path(),
        &[],
        2,
        "
FOLDER/objects/f-bad.yaml:1 Pod default/bad
  deny   no-privileged (medium): container a: securityContext.privileged is true
error: FOLDER/objects/a-tab.yaml:2:2: tabs disallowed within this context (block indentation)
error: FOLDER/objects/a-tab.yaml:4: this is no Kubernetes object: it has no apiVersion and kind
error: FOLDER/objects/b-bomb.yaml:4:14: aliases and merge keys expand to too much
error: FOLDER/objects/d-binary.yaml:2:2: this is not text in UTF-8
error: FOLDER/objects/g-dangling.yaml: this file cannot be read: No such file or directory (os error 2)
error: FOLDER/objects/h-itself.yaml: this file cannot be read: Too many levels of symbolic links (os error 40)
error: FOLDER/objects/i-unreadable.yaml: this file cannot be read: Input/output error (os error 5)
note: skipped FOLDER/objects/c-empty.yaml:1:1: there is no object in this file: it is empty
1 violation (1 deny) in 2 objects, 2 rules, 7 errors, 1 file skipped",
    );
}

#[test]
fn an_input_without_any_object_is_no_pass() {
    let rules = folder(&[("rules.yaml", RULE.as_bytes())]);
    let rules = rules.path().join("rules.yaml");
    for text in ["", "\n", "---\n", "# Nothing yet.\n---\n---\n# Nor here.\n", "null\n"] {
        let output = portal(&["check", "-r", rules.to_str().unwrap(), "-"], text.as_bytes());
        let shown = String::from_utf8(output.stdout).unwrap();
        let expected = "error: (standard input):1:1: there is no object in this file: it is empty\n\
                        0 violations in 0 objects, 2 rules, 1 error\n";
        assert_eq!((shown.as_str(), output.status.code()), (expected, Some(2)), "{text:?}");
    }
    // Templates that come to nothing leave their comments between the others.
    let output =
        portal(&["check", "-r", rules.to_str().unwrap(), "-"], format!("---\n# a\n---\n{GOOD}---\n").as_bytes());
    assert_eq!(output.status.code(), Some(0));
    let empty = folder(&[("rules/a.yaml", RULE.as_bytes()), ("objects/notes.txt", b"")]);
    check(
        empty.path(),
        &[],
        2,
        "
error: FOLDER/objects: there is nothing in this folder: files to read end in .yaml, .yml or .json
0 violations in 0 objects, 2 rules, 1 error",
    );
}

#[test]
fn an_object_that_no_request_could_hold_is_no_pass() {
    let rule = "name: r\nmatch: {gvk: [{kind: ConfigMap}]}\nrule: request.object.metadata.name == 'deep'\n";
    let rules = folder(&[("rules.yaml", rule.as_bytes())]);
    let rules = rules.path().join("rules.yaml");
    for (levels, code, expected) in [(9_999, 1, "deny   r"), (10_000, 2, "nested too deep to be in a request")] {
        let (open, close) = ("{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep","namespace":"a"}},"x":{open}1{close}}}"#
        );
        let output = portal(&["check", "-r", rules.to_str().unwrap(), "-"], object.as_bytes());
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.code() == Some(code) && shown.contains(expected), "{levels}: {shown}");
    }
}

#[test]
fn a_device_in_a_folder_is_told_and_not_read() {
    let folder = folder(&[("rules/a.yaml", RULE.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    symlink("/dev/zero", folder.path().join("objects/b.yaml")).unwrap();
    check(
        folder.path(),
        &[],
        2,
        "
error: FOLDER/objects/b.yaml: this is no regular file
0 violations in 1 object, 2 rules, 1 error",
    );
}

#[test]
fn rules_that_cannot_be_read_are_told_and_the_rest_judge() {
    let large = large();
    let folder = folder(&[
        ("rules/a.yaml", RULE.as_bytes()),
        ("rules/b-tab.yaml", b"name: tab\nmatch:\n\tgvk: [{kind: Pod}]\n"),
        ("rules/c-bomb.yaml", BOMB.as_bytes()),
        ("rules/d-empty.yaml", b""),
        ("rules/e-comment.yaml", b"# Rules will be here.\n---\n"),
        ("rules/f-binary.yaml", b"name: binary\nrule: \x7fELF\x00\xff\xfe"),
        ("rules/g-list.yaml", b"- name: list\n"),
        ("rules/h-large.yaml", large.as_bytes()),
        ("rules/i-types.yaml", b"name: types\nmatch: {gvk: {kind: Pod}}\nrule: 5\n"),
        ("rules/j-typo.yaml", b"name: typo\nmatch: {gvk: [{kind: Pod}]}\nrulle: 'true'\n"),
        ("rules/k-twice.yaml", b"name: no-latest\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\n"),
        (
            "rules/l-action.yaml",
            b"name: action\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\nactions:\n- type: evict\n  key: a\n",
        ),
        (
            "rules/m-until.yaml",
            b"name: until\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\nexceptions:\n- names: [a]\n  reason: b\n  until: 2020-01-01\n",
        ),
        ("objects/a.yaml", BAD.as_bytes()),
    ]);
    symlink(folder.path().join("rules"), folder.path().join("rules/z-around")).unwrap();
    symlink("/proc/self/mem", folder.path().join("rules/n-unreadable.yaml")).unwrap();
    check(
        folder.path(),
        &[],
        2,
        "
FOLDER/objects/a.yaml:1 Pod default/bad
  deny   no-privileged (medium): container a: securityContext.privileged is true
error: FOLDER/rules/b-tab.yaml:3:2: tabs disallowed within this context (block indentation)
error: FOLDER/rules/c-bomb.yaml:4:14: aliases and merge keys expand to too much
error: FOLDER/rules/d-empty.yaml:1:1: there is no rule in this file: it is empty
error: FOLDER/rules/e-comment.yaml:1:1: there is no rule in this file: it is empty
error: FOLDER/rules/f-binary.yaml:2:12: this is not text in UTF-8
error: FOLDER/rules/g-list.yaml:1:1: a rule is a map, not a list: write each as a document, with `---` between
error: FOLDER/rules/h-large.yaml:4:1: rule large: message: may have at most 4096 characters, has 10485760
error: FOLDER/rules/i-types.yaml:2:9: rule types: match.gvk: expected a list, got a map: write `gvk: [{kind: Pod}]`
error: FOLDER/rules/i-types.yaml:3:1: rule types: rule: expected text, got a number: write it in quotes
error: FOLDER/rules/j-typo.yaml:3:1: rule typo: rulle: unknown field `rulle`, did you mean `rule`?
error: FOLDER/rules/j-typo.yaml:1:1: rule typo: `rule` is missing
error: FOLDER/rules/n-unreadable.yaml: this file cannot be read: Input/output error (os error 5)
error: FOLDER/rules/k-twice.yaml:1:1: rule no-latest: another rule is called `no-latest` too: rename one
error: FOLDER/rules/l-action.yaml:5:3: rule action: actions[0]: `key` belongs to label and annotate: remove it, or change `type`
error: FOLDER/rules/m-until.yaml:7:3: rule until: exceptions[0].until: the exception ended on 2020-01-01: remove it, or give it a later date
1 violation (1 deny) in 1 object, 3 rules, 15 errors",
    );
}

#[test]
fn an_object_whose_name_is_no_text_is_told() {
    let folder = folder(&[
        ("rules/a.yaml", RULE.as_bytes()),
        ("objects/a.yaml", b"apiVersion: v1\nkind: Pod\nmetadata: {name: n}\nspec: {containers: []}\n"),
    ]);
    check(
        folder.path(),
        &[],
        2,
        "
error: FOLDER/objects/a.yaml:1: metadata.name is a boolean, as YAML reads on, off, yes, no, y and n: write it in quotes
0 violations in 1 object, 2 rules, 1 error",
    );
}

#[test]
fn what_yaml_takes_for_something_else_is_told_with_the_way_out() {
    let folder = folder(&[
        (
            "rules/a.yaml",
            b"name: on-time\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\nactions:\n- type: evict\n  on: [audit]\n",
        ),
        ("rules/b.yaml", b"name: off\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\n"),
        ("rules/c.yaml", b"name: 1.5\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\n"),
        ("rules/d.yaml", b"name:\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\n"),
        (
            "rules/e.yaml",
            b"apiVersion: portal.io/v1alpha1\nkind: PortalClusterRule\nmetadata: {name: n}\n\
              spec: {match: {gvk: [{kind: Pod}], names: [y]}, rule: spec.hostPID}\n",
        ),
        (
            "rules/f.yaml",
            b"name: quoted\nmatch: {gvk: [{kind: Pod}], names: ['y']}\nrule: spec.hostPID\nactions:\n- type: evict\n  'on': [audit]\n",
        ),
        ("objects/a.yaml", GOOD.as_bytes()),
    ]);
    check(
        folder.path(),
        &[],
        2,
        "
error: FOLDER/rules/a.yaml:6:3: rule on-time: actions[0].on: unknown field `true`: YAML reads `on` as a boolean: write it in quotes
error: FOLDER/rules/b.yaml:1:1: name: expected text, got a boolean: YAML reads on, off, yes, no, y and n as booleans, so write it in quotes
error: FOLDER/rules/c.yaml:1:1: name: expected text, got a number: write it in quotes
error: FOLDER/rules/d.yaml:1:1: name: a rule needs a name
error: FOLDER/rules/e.yaml:3:12: metadata.name: expected text, got a boolean: YAML reads on, off, yes, no, y and n as booleans, so write it in quotes
0 violations in 1 object, 1 rule, 5 errors",
    );
}

#[test]
fn what_may_be_a_mistake_is_shown_with_its_place() {
    let rules = "
name: constant
match: {gvk: [{kind: Pod}], names: [nobody]}
rule: 1 == 1
---
name: in-no-namespace
match: {gvk: [{kind: Node}], namespaces: {include: [a]}}
rule: object.spec.unschedulable
---
name: selected-in-no-namespace
match: {gvk: [{kind: Node}], namespaceSelector: {}}
rule: object.spec.unschedulable
---
name: all-excluded
match: {gvk: [{kind: Pod}], namespaces: {include: [a], exclude: ['*']}}
rule: spec.hostPID
---
name: time
match: {gvk: [{kind: Pod}]}
rule: |
  spec.hostPID &&
  now().Year() > 2000
";
    let folder = folder(&[("rules/a.yaml", rules.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    check(
        folder.path(),
        &[],
        0,
        "
warning: FOLDER/rules/a.yaml:4:1: rule constant: rule: 1:3: this reads nothing, so its answer is always the same
 | 1 == 1
 |   ^
warning: FOLDER/rules/a.yaml:7:30: rule in-no-namespace: match.namespaces: `Node` is in no namespace, so a rule that names namespaces never judges one
warning: FOLDER/rules/a.yaml:11:30: rule selected-in-no-namespace: match.namespaceSelector: `Node` is in no namespace, so a rule that names namespaces never judges one
warning: FOLDER/rules/a.yaml:15:29: rule all-excluded: match.namespaces: everything that is included is excluded too: the rule judges nothing
warning: FOLDER/rules/a.yaml:20:1: rule time: rule: 2:1: `now()` changes without an event: audit asks again only when the object changes or on a resync
 | now().Year() > 2000
 | ^
0 violations in 1 object, 5 rules",
    );
}

#[test]
fn what_may_be_missing_is_refused_with_what_to_write() {
    let rules = "
name: order
match: {gvk: [{kind: Pod}]}
rule: |
  container.name == 'b' &&
  container.securityContext.runAsUser < 1000
---
name: sum
match: {gvk: [{kind: Pod}]}
rule: container.name == 'b' && container.securityContext.runAsUser + 1 == 1000
";
    let folder = folder(&[("rules/a.yaml", rules.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    check(
        folder.path(),
        &[],
        2,
        "
error: FOLDER/rules/a.yaml:4:1: rule order: rule: 2:27: `container.securityContext.runAsUser` may be missing, and what is missing is not less than anything: write `(container.securityContext.runAsUser ?? securityContext.runAsUser ?? 0) < 1000` to take it for 0, or `(let x = container.securityContext.runAsUser ?? securityContext.runAsUser; x != nil && x < 1000)` to leave out what has none
 | container.securityContext.runAsUser < 1000
 |                           ^
error: FOLDER/rules/a.yaml:10:1: rule sum: rule: 1:52: `container.securityContext.runAsUser` may be missing: write `(container.securityContext.runAsUser ?? securityContext.runAsUser ?? 0) + 1` to give it a value, or `let x = container.securityContext.runAsUser ?? securityContext.runAsUser; x != nil && …` to leave out what has none
 | container.name == 'b' && container.securityContext.runAsUser + 1 == 1000
 |                                                    ^
0 violations in 1 object, 0 rules, 2 errors",
    );
}

#[test]
fn ten_megabytes_that_are_no_yaml_are_a_line() {
    let folder = folder(&[("rules.yaml", RULE.as_bytes())]);
    let rules = folder.path().join("rules.yaml");
    let output = portal(&["check", "-r", rules.to_str().unwrap(), "-"], "[".repeat(10 << 20).as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("error: (standard input):1:"), "{}", &text[..200.min(text.len())]);
    assert_eq!(text.lines().count(), 2);
    assert_eq!(output.status.code(), Some(2));
}
