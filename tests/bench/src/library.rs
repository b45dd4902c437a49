//! Rules of the library, as many as one likes.

use std::fs;
use std::path::PathBuf;

use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    rule::{
        RuleSet,
        compile::compile,
        load::load,
        source::{Origin, RuleSource},
    },
};
use portal_document::{Document, Options, from_yaml};

/// The files of the rules that pods are held to most strictly, in order.
pub fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/library/pod-security/restricted");
    let entries = fs::read_dir(folder).expect("the library is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the library can be read").path()).collect();
    files.sort();
    files
}

/// Those rules over and over, each with a name of its own.
pub fn documents(count: usize) -> Vec<Document> {
    let texts: Vec<String> =
        files().iter().map(|file| fs::read_to_string(file).expect("the library can be read")).collect();
    let numbered = |number: usize| {
        let text = texts[number % texts.len()].replacen("name: pss-", &format!("name: pss-{number}-"), 1);
        from_yaml(&text, &Options::default()).expect("a rule is YAML").remove(0).document
    };
    (0..count).map(numbered).collect()
}

/// So many rules, of which each looks objects up: of twenty kinds, in the cluster and in a hundred namespaces.
pub fn lookups(count: usize) -> Vec<Document> {
    const KINDS: [&str; 20] = [
        "services",
        "configmaps",
        "endpoints",
        "limitranges",
        "persistentvolumeclaims",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "serviceaccounts",
        "pods",
        "deployments",
        "daemonsets",
        "statefulsets",
        "replicasets",
        "cronjobs",
        "jobs",
        "ingresses",
        "networkpolicies",
        "poddisruptionbudgets",
        "horizontalpodautoscalers",
    ];
    let numbered = |number: usize| {
        let (kind, namespace) = (KINDS[number % KINDS.len()], number / KINDS.len() % 200);
        let place = if namespace < 100 { format!("'team-{namespace}'") } else { "metadata.namespace".to_owned() };
        let rule = format!(
            "{{name: looks-up-{number}, match: {{gvk: [{{kind: Pod}}]}}, rule: \"len(cluster.{kind}.list({place})) > 1\"}}"
        );
        from_yaml(&rule, &Options::default()).expect("it is YAML").remove(0).document
    };
    (0..count).map(numbered).collect()
}

/// A rule that reads an object by the types of its kind.
pub fn typed() -> Document {
    let rule = r#"{name: typed, match: {gvk: [{group: apps, kind: Deployment}]},
        rule: 'object.spec.strategy.type == "Recreate" && any(object.spec.template.spec.containers, .livenessProbe == nil)'}"#;
    from_yaml(rule, &Options::default()).expect("it is YAML").remove(0).document
}

/// The size of the table of types.
pub fn table_of_types() -> u64 {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../engine/core/src/context/fields.txt");
    fs::metadata(file).expect("the table is there").len()
}

/// Loads and compiles rules.
pub fn rule_set(documents: &[Document]) -> RuleSet {
    compiled(&sources(documents))
}

/// Loads rules.
pub fn sources(documents: &[Document]) -> Vec<RuleSource> {
    let origin = || Origin::File { path: "rules.yaml".to_owned(), line: 1 };
    let load = |document: &Document| load(document.root(), origin(), Vec::new()).expect("these rules are right");
    documents.iter().map(load).collect()
}

/// Compiles rules.
pub fn compiled(sources: &[RuleSource]) -> RuleSet {
    let (rule_set, diagnostics) = compile(sources, Kinds::builtin(), &ExprEngine);
    assert!(diagnostics.is_empty() && rule_set.rules().len() == sources.len(), "{diagnostics:?}");
    rule_set
}
