//! The rules of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use portal_core::{
    kinds::Kinds,
    manifest::Manifest,
    rule::{file, source::RuleId},
};

use super::world::World;
use crate::needs::{Known, Rules};

/// Rules by their names, as they were written.
pub(super) type Written = BTreeMap<String, (u64, &'static str)>;

/// What rules are there to be written: what they match, in YAML.
pub(super) const RULES: [(&str, &[&str]); 8] = [
    ("pods", &["match: {gvk: [{kind: Pod}]}", "match: {gvk: [{kind: Pod}, {kind: ConfigMap}]}"]),
    (
        "deployments",
        &["match: {gvk: [{group: apps, kind: Deployment}]}", "match: {gvk: [{group: apps, kind: DaemonSet}]}"],
    ),
    ("namespaces", &["match: {gvk: [{kind: Namespace}]}"]),
    ("warns", &["match: {gvk: [{kind: Service}]}\n  enforcementAction: warn"]),
    ("shop/own", &["match: {gvk: [{kind: ConfigMap}]}", "match: {gvk: [{kind: Pod}]}"]),
    (
        "looks-up",
        &[
            "match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.services.list(metadata.namespace)) > 9",
            "match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.poddisruptionbudgets.list(metadata.namespace)) > 9",
        ],
    ),
    // Nobody has this by default.
    ("secrets", &["match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.secrets.list(metadata.namespace)) > 9"]),
    (
        "shop/looks-up",
        &[
            "match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.services.list('shop')) > 9",
            "match: {gvk: [{kind: Pod}]}\n  rule: len(cluster.resourcequotas.list('shop')) > 9",
        ],
    ),
];

impl World {
    /// Somebody writes a rule, or deletes it.
    pub(super) fn set_rule(&mut self, name: &str, says: Option<&'static str>) {
        match says {
            Some(says) => {
                let version = self.written.get(name).map_or(1, |(version, _)| version + 1);
                self.written.insert(name.to_owned(), (version, says));
            }
            None => drop(self.written.remove(name)),
        }
        self.write_rules();
    }

    pub(super) fn write_rules(&mut self) {
        static KINDS: OnceLock<Arc<Kinds>> = OnceLock::new();
        let mut rules = Rules::default();
        rules.set_kinds(Arc::clone(KINDS.get_or_init(|| Arc::new(Kinds::builtin().clone()))));
        let mut seen = BTreeSet::new();
        for (name, (version, says)) in &self.written {
            let (kind, metadata) = match name.split_once('/') {
                Some((namespace, name)) => ("PortalRule", format!("{{name: {name}, namespace: {namespace}}}")),
                None => ("PortalClusterRule", format!("{{name: {name}}}")),
            };
            let always = if says.contains("rule:") { "" } else { "  rule: \"true\"\n" };
            let text = format!(
                "apiVersion: portal.io/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec:\n  {says}\n{always}"
            );
            let read = file::read(&Manifest::new("rules.yaml", text.clone().into_bytes()));
            let source = read.sources.into_iter().next().unwrap_or_else(|| panic!("{text}{:?}", read.problems));
            let id = source.id.clone();
            seen.insert(id.clone());
            let version = (name.clone(), i64::try_from(*version).unwrap());
            rules.set(id, Some(Known::new(String::new(), version, BTreeMap::new(), Some(source))));
        }
        for plural in ["portalclusterrules", "portalrules"] {
            let is_of_kind = |id: &RuleId| id.namespace.is_some() == (plural == "portalrules");
            rules.set_listed(plural, &seen, is_of_kind);
        }
        self.rules = Rc::new(rules);
    }
}
