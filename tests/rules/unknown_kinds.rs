//! Objects of kinds that nobody knows are told, and never taken for objects that passed.

use serde_json::{Value, json};

use super::{GOOD, RULE, check, folder, portal};

#[test]
fn objects_of_unknown_kinds_are_told_and_counted() {
    let rollouts = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\n---\n\
                    apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: b, namespace: shop}\n---\n";
    let files = folder(&[
        ("rules/a.yaml", RULE.as_bytes()),
        ("objects/a.yaml", format!("{rollouts}{GOOD}").as_bytes()),
        ("objects/b.yaml", b"apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: c}\n"),
    ]);
    let shown = "note: 2 objects are not judged: the kind Rollout (argoproj.io/v1alpha1) is not known\n\
                 note: 1 object is not judged: the kind Ingress (extensions/v1beta1) is not known\n\
                 0 violations in 1 object, 2 rules, 3 objects of unknown kinds";
    check(files.path(), &[], 0, shown);
    let way_out = "definitions are taken from CustomResourceDefinitions among the rules, the files and --cluster";
    let strict = format!(
        "error: FOLDER/objects/a.yaml:1: Rollout a: 2 objects are not judged: the kind Rollout (argoproj.io/v1alpha1) is not known: {way_out}\n\
         error: FOLDER/objects/b.yaml:1: Ingress c: 1 object is not judged: the kind Ingress (extensions/v1beta1) is not known: {way_out}\n\
         0 violations in 1 object, 2 rules, 2 errors, 3 objects of unknown kinds"
    );
    check(files.path(), &["--strict"], 2, &strict);
    // What is defined is known, wherever the definition is, although no rule names it.
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: rollouts.argoproj.io}\n\
                      spec: {group: argoproj.io, scope: Namespaced, names: {kind: Rollout, plural: rollouts}, versions: [{name: v1alpha1}]}\n";
    for place in ["objects/z.yaml", "rules/z.yaml", "cluster/z.yaml"] {
        let files = folder(&[
            ("rules/a.yaml", RULE.as_bytes()),
            ("objects/a.yaml", rollouts.as_bytes()),
            (place, definition.as_bytes()),
        ]);
        let cluster = files.path().join("cluster");
        let more =
            if cluster.exists() { vec!["--strict", "--cluster", cluster.to_str().unwrap()] } else { vec!["--strict"] };
        let objects = if place.starts_with("objects") { 3 } else { 2 };
        check(files.path(), &more, 0, &format!("0 violations in {objects} objects, 2 rules"));
    }
}

#[test]
fn rules_among_the_objects_are_of_a_known_kind() {
    let rule = "apiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {name: a}\n";
    let files = folder(&[("rules/a.yaml", RULE.as_bytes()), ("objects/a.yaml", rule.as_bytes())]);
    check(files.path(), &["--strict"], 0, "0 violations in 1 object, 2 rules");
}

#[test]
fn a_program_reads_which_kinds_are_unknown_and_which_are_assumed() {
    let rule = "name: r\nmatch: {gvk: [{group: argoproj.io, kind: Rollout}]}\nrule: object.spec.paused\n";
    let folder = folder(&[("rules.yaml", rule.as_bytes())]);
    let rules = folder.path().join("rules.yaml");
    let input = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\nspec: {paused: true}\n---\n\
                 apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: b}\n";
    let output = portal(&["check", "-r", rules.to_str().unwrap(), "-o", "json", "-"], input.as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| report["summary"][name].as_u64().unwrap();
    assert_eq!((count("objects"), count("unknown"), count("failures")), (1, 1, 0));
    assert_eq!(report["results"][0]["kind"], "Rollout");
    let file = "(standard input)";
    let unknown =
        json!([{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "objects": 1, "file": file, "line": 6}]);
    assert_eq!(report["unknown"], unknown);
    assert_eq!(report["assumed"], json!([{"group": "argoproj.io", "version": null, "kind": "Rollout"}]));
}
