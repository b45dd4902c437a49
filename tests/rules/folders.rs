//! Folders as people have them: charts, kustomizations, and rules of other programs beside the objects.

use std::fs;

use serde_json::Value;

use super::{BAD, GOOD, RULE, check, folder, portal};

const TEMPLATE: &str =
    "{{- if .Values.enabled }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n";

/// A folder with everything that is no object.
const NO_OBJECTS: [(&str, &[u8]); 6] = [
    ("objects/chart/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
    ("objects/chart/templates/service.yaml", TEMPLATE.as_bytes()),
    ("objects/chart/values.yaml", b"# The image.\nimage: nginx\nkind: DaemonSet\n"),
    ("objects/empty.yaml", b"# Nothing yet.\n---\n"),
    (
        "objects/kustomization.yaml",
        b"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [pod.yaml]\n",
    ),
    ("objects/package.json", b"{\"name\": \"shop\"}"),
];

const SKIPPED: &str = "
note: skipped FOLDER/objects/chart/Chart.yaml:1: this is no Kubernetes object: it has no apiVersion and kind
note: skipped FOLDER/objects/chart/templates/service.yaml:1:3: this is a template and no YAML (\"-\" is only valid inside a block): check what it renders to
note: skipped FOLDER/objects/chart/values.yaml:2: this is no Kubernetes object: it has no apiVersion and kind
note: skipped FOLDER/objects/empty.yaml:1:1: there is no object in this file: it is empty
note: skipped FOLDER/objects/kustomization.yaml:1: kustomize reads this, and no cluster: check what `kustomize build` writes
note: skipped FOLDER/objects/package.json:1: this is no Kubernetes object: it has no apiVersion and kind";

#[test]
fn files_of_a_folder_that_hold_no_object_are_told_and_counted() {
    let files = [&NO_OBJECTS[..], &[("rules/a.yaml", RULE.as_bytes()), ("objects/pod.yaml", GOOD.as_bytes())]].concat();
    let files = folder(&files);
    check(files.path(), &[], 0, &format!("{SKIPPED}\n0 violations in 1 object, 2 rules, 6 files skipped"));
    let errors = SKIPPED.replace("note: skipped", "error:");
    check(files.path(), &["--strict"], 2, &format!("{errors}\n0 violations in 1 object, 2 rules, 6 errors"));
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let report = portal(&["check", "-r", &path("rules"), "-o", "json", &path("objects")], b"");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["summary"]["skippedFiles"], 6);
    assert_eq!(report["skippedFiles"][3]["reason"], "there is no object in this file: it is empty");
    // A file that is named is meant.
    for (name, _) in NO_OBJECTS {
        let output = portal(&["check", "-r", &path("rules"), &path(name), &path("objects")], b"");
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
}

#[test]
fn a_folder_in_which_everything_is_passed_over_is_no_pass() {
    let files = [&NO_OBJECTS[..], &[("rules/a.yaml", RULE.as_bytes())]].concat();
    let files = folder(&files);
    let expected = format!(
        "error: FOLDER/objects: there is no object in this folder: every file in it is passed over{SKIPPED}\n\
         0 violations in 0 objects, 2 rules, 1 error, 6 files skipped"
    );
    check(files.path(), &[], 2, &expected);
}

#[test]
fn what_is_wrong_among_objects_or_was_meant_as_one_is_an_error_in_a_folder_too() {
    let files = folder(&[
        ("rules/a.yaml", RULE.as_bytes()),
        ("objects/a.yaml", format!("{GOOD}---\nreplicas: 3\n").as_bytes()),
        ("objects/b.yaml", b"kind: Pod\nmetadata: {name: a}\n"),
        ("objects/c.yaml", b"apiVersion: v1\nmetadata: {name: a}\n"),
        ("objects/d.yaml", b"a: [\n"),
    ]);
    check(
        files.path(),
        &[],
        2,
        "
error: FOLDER/objects/a.yaml:6: this is no Kubernetes object: it has no apiVersion and kind
error: FOLDER/objects/b.yaml:1: this is no Kubernetes object: it has no apiVersion and kind
error: FOLDER/objects/c.yaml:1: this is no Kubernetes object: it has no apiVersion and kind
error: FOLDER/objects/d.yaml:1:4: unclosed bracket '['
0 violations in 1 object, 2 rules, 4 errors",
    );
}

#[test]
fn what_lookups_find_may_be_in_such_a_folder_too() {
    let rule = "name: s\nmatch: {gvk: [{kind: Pod}]}\nrule: cluster.services.byName(metadata.namespace, metadata.name) == nil\n";
    let files = folder(&[
        ("rules/a.yaml", rule.as_bytes()),
        ("objects/a.yaml", GOOD.as_bytes()),
        ("cluster/a.yaml", b"apiVersion: v1\nkind: Service\nmetadata: {name: good}\n"),
        ("cluster/b.yaml", TEMPLATE.as_bytes()),
        ("cluster/c.yaml", b""),
    ]);
    let cluster = files.path().join("cluster");
    let cluster = ["--cluster", cluster.to_str().unwrap()];
    check(
        files.path(),
        &cluster,
        0,
        "
note: skipped FOLDER/cluster/b.yaml:1:3: this is a template and no YAML (\"-\" is only valid inside a block): check what it renders to
note: skipped FOLDER/cluster/c.yaml:1:1: there is no object in this file: it is empty
0 violations in 1 object, 1 rule, 2 files skipped",
    );
}

#[test]
fn a_hundred_templates_are_a_few_lines() {
    let names: Vec<String> = (0..100).map(|number| format!("objects/{number:03}.yaml")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), TEMPLATE.as_bytes())).collect();
    files.extend([("rules/a.yaml", RULE.as_bytes()), ("objects/pod.yaml", BAD.as_bytes())]);
    let files = folder(&files);
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let output = portal(&["check", "-r", &path("rules"), &path("objects")], b"");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown.lines().filter(|line| line.starts_with("note: ")).count(), 11);
    assert!(shown.ends_with(
        "note: skipped 90 files more, which `-o json` lists\n1 violation (1 deny) in 1 object, 2 rules, 100 files skipped\n"
    ));
}

#[test]
fn rules_that_are_none_are_told_with_what_to_write() {
    let policy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\n";
    let begin = "a rule has `apiVersion: portal.io/v1alpha1` and `kind: PortalClusterRule` or `PortalRule`, or neither and `name`, \
                 `match` and `rule` at the top";
    let files = folder(&[("rules/a.yaml", policy.as_bytes()), ("objects/a.yaml", GOOD.as_bytes())]);
    let expected = format!(
        "error: FOLDER/rules: there is no rule here, but ClusterPolicy (kyverno.io/v1): {begin}\n\
         0 violations in 1 object, 0 rules, 1 error"
    );
    check(files.path(), &[], 2, &expected);
    // Beside rules it is passed over: it is for somebody else.
    let files = folder(&[
        ("rules/a.yaml", policy.as_bytes()),
        ("rules/b.yaml", RULE.as_bytes()),
        ("objects/a.yaml", GOOD.as_bytes()),
    ]);
    check(files.path(), &[], 0, "0 violations in 1 object, 2 rules");
    // A rule with the wrong beginning is none, wherever it is.
    let rule = "apiVersion: portal.dev/v1\nkind: PortalClusterRule\nmetadata: {name: a}\n";
    let files = folder(&[
        ("rules/a.yaml", rule.as_bytes()),
        ("rules/b.yaml", RULE.as_bytes()),
        ("objects/a.yaml", GOOD.as_bytes()),
    ]);
    let expected = format!(
        "error: FOLDER/rules/a.yaml:1:1: PortalClusterRule (portal.dev/v1) is no rule: {begin}\n\
         0 violations in 1 object, 2 rules, 1 error"
    );
    check(files.path(), &[], 2, &expected);
}

#[test]
fn a_namespace_that_no_file_has_is_not_told_by_what_it_lacks() {
    let rule = "name: env\nmatch: {gvk: [{kind: Pod}]}\n\
                rule: cluster.namespaces.byName(metadata.namespace).metadata.labels.env == nil || metadata.name == \"x\"\n";
    let pod = BAD.replace("{name: bad}", "{name: bad, namespace: shop}");
    let given = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let files = folder(&[("rules/a.yaml", rule.as_bytes()), ("objects/a.yaml", pod.as_bytes())]);
    let shown = "FOLDER/objects/a.yaml:1 Pod shop/bad\n  deny   env (medium): namespaces[\"shop\"] is in no file\n\
                 note: no file has the Namespace shop, which was looked up: it was taken for one without labels and annotations. \
                 Put such Namespaces into --cluster, or ask a cluster with --live\n\
                 1 violation (1 deny) in 1 object, 1 rule";
    check(files.path(), &[], 1, shown);
    fs::write(files.path().join("objects/b.yaml"), given).unwrap();
    let shown = "FOLDER/objects/a.yaml:1 Pod shop/bad\n  deny   env (medium): namespaces[\"shop\"].metadata.labels.env is not set\n\
                 1 violation (1 deny) in 2 objects, 1 rule";
    check(files.path(), &[], 1, shown);
}

#[test]
fn a_rule_that_compares_uids_is_told_that_files_have_none() {
    let rule = "name: twice\nmatch: {gvk: [{kind: Pod}], podControllers: false}\n\
                rule: any(cluster.pods.list(metadata.namespace), .metadata.uid != metadata.uid)\n";
    let files = folder(&[("rules/a.yaml", rule.as_bytes()), ("objects/a.yaml", BAD.as_bytes())]);
    let shown = "note: rule twice compares `metadata.uid`, which objects of files do not have before a cluster gives it to them: \
                 `.metadata.uid != metadata.uid` is not true of any of them. Write `(.metadata.name != metadata.name || \
                 .metadata.namespace != metadata.namespace)` to tell them apart\n\
                 0 violations in 1 object, 1 rule";
    check(files.path(), &[], 0, shown);
    // Objects that a cluster had have them.
    let [one, other] = ["bad, uid: a", "other, uid: b"].map(|name| BAD.replace("name: bad", &format!("name: {name}")));
    fs::write(files.path().join("objects/a.yaml"), format!("{one}---\n{other}")).unwrap();
    let output = portal(
        &[
            "check",
            "-r",
            &files.path().join("rules").to_string_lossy(),
            &files.path().join("objects").to_string_lossy(),
        ],
        b"",
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("2 violations (2 deny) in 2 objects, 1 rule") && !shown.contains("note:"), "{shown}");
}
