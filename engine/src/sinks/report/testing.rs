//! Rules and objects that violate them.

use std::collections::HashMap;
use std::sync::Arc;

use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    manifest::Manifest,
    rule::{Rule, compile::compile, file},
};

use crate::findings::{Finding, Offender};

/// Rules by their names, each with what is done about a violation.
pub(super) fn rules(rules: &[(&str, &str)]) -> HashMap<String, Arc<Rule>> {
    rules_with(rules, "mode: [admission, audit]")
}

/// The same, each with another line.
pub(super) fn rules_with(rules: &[(&str, &str)], line: &str) -> HashMap<String, Arc<Rule>> {
    let text = |(name, action): &(&str, &str)| {
        format!(
            "name: {name}\ncategory: Pod Security\nseverity: high\nenforcementAction: {action}\n{line}\nmatch: {{gvk: [{{kind: Pod}}]}}\n\
             rule: spec.hostPID\n---\n"
        )
    };
    let text: String = rules.iter().map(text).collect();
    let file = file::read(&Manifest::new("rules.yaml", text.as_bytes()));
    assert!(file.problems.is_empty(), "{:?}", file.problems);
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    rules.rules().iter().map(|rule| (rule.id.name.clone(), Arc::clone(rule))).collect()
}

/// A pod that is called like its UID and violates these rules, with a message for each.
pub(super) fn offender(uid: &str, namespace: Option<&str>, findings: &[(&Arc<Rule>, &str)]) -> Offender {
    let finding = |(rule, message): &(&Arc<Rule>, &str)| Finding {
        rule: Arc::clone(rule),
        container: None,
        is_failure: false,
        message: (*message).to_owned(),
        saw: None,
        since: "2023-11-14T22:13:20Z".parse().unwrap(),
    };
    Offender {
        uid: uid.to_owned(),
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: namespace.map(str::to_owned),
        name: uid.to_owned(),
        findings: findings.iter().map(finding).collect(),
        passes: Vec::new(),
    }
}
