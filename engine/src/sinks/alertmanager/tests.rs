//! What tests of alerts need, and what is sent over a real connection.

mod payload;
mod sending;

use std::sync::Arc;

use jiff::Timestamp;
use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    manifest::Manifest,
    rule::{Rule, compile::compile, file},
};

use crate::findings::{Finding, Offender};

/// The rule of a document in the form of files.
#[track_caller]
pub(super) fn rule(yaml: &str) -> Arc<Rule> {
    let file = file::read(&Manifest::new("rules.yaml", yaml.as_bytes().to_vec()));
    assert!(file.problems.is_empty(), "{:?}", file.problems);
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    assert_eq!(rules.rules().len(), 1, "{diagnostics:?}");
    Arc::clone(&rules.rules()[0])
}

/// A rule with these actions.
pub(super) fn alerting(name: &str, rest: &str) -> Arc<Rule> {
    let matching = "match: {gvk: [{kind: Pod}]}\nrule: container.securityContext.privileged == true";
    rule(&format!("name: {name}\n{matching}\n{rest}\n"))
}

/// A pod of a namespace.
pub(super) fn pod(namespace: &str, name: &str, findings: Vec<Finding>) -> Offender {
    Offender {
        uid: format!("uid-of-{namespace}-{name}"),
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        findings,
        passes: Vec::new(),
    }
}

pub(super) fn finding(rule: &Arc<Rule>, container: Option<&str>, message: &str, since: Timestamp) -> Finding {
    Finding {
        rule: Arc::clone(rule),
        container: container.map(str::to_owned),
        is_failure: false,
        message: message.to_owned(),
        saw: None,
        since,
    }
}
