//! What is told of a rule that needs more than its engine is granted, with what to apply.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use portal_core::{
    requirements::{Permission, in_words},
    rule::source::RuleId,
};
use portal_crds::RbacMode;
use serde_json::{Value, json};

use super::{Need, Refusal};
use crate::{instance::Instance, names, needs::Needs, rights::AGGREGATE_LABEL};

/// Verbs by group and plural.
type Resources<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// What is told of a rule that lacks this. `is_enforced`: admission can do without.
pub(super) fn told(
    instance: &Instance,
    needs: &Needs,
    rule: &RuleId,
    lacks: &[(&Need, Refusal)],
    is_enforced: bool,
) -> String {
    let of = |is_meant: fn(Refusal) -> bool| lacks.iter().filter(move |(_, refusal)| is_meant(*refusal));
    let mut sentences =
        vec![format!("the engine may not {}, which the rule needs", words(lacks.iter().map(|(need, _)| *need)))];
    if is_enforced {
        sentences.push("requests are judged by it all the same: only audit cannot do without".to_owned());
    }
    let denied: BTreeSet<String> =
        of(|refusal| refusal == Refusal::ByInstance).map(|(need, _)| need.0.name()).collect();
    if !denied.is_empty() {
        let denied = Vec::from_iter(denied).join(", ");
        sentences.push(format!(
            "`rbac.deniedResources` of PortalInstance {} names {denied}: take it out there",
            instance.name
        ));
    }
    if of(|refusal| refusal == Refusal::NamespacedAction).next().is_some() {
        sentences.push(format!(
            "PortalInstance {} lets PortalRules have no actions: set `actions.namespaced: true` there, or take the actions out of the rule",
            instance.name
        ));
    }
    let missing = of(|refusal| refusal == Refusal::NoNamespace).filter_map(|(need, _)| need.1.as_deref());
    for namespace in missing.collect::<BTreeSet<_>>() {
        sentences.push(format!(
            "there is no namespace {namespace}, where the role would be: `kubectl create namespace {namespace}`, and the rule takes effect \
             by itself"
        ));
    }
    let mut manifests = String::new();
    let delicate: Resources<'_> = resources(of(|refusal| refusal == Refusal::ByDefault).map(|(need, _)| *need));
    if !delicate.is_empty() {
        sentences.push(format!(
            "that is granted to nobody by default: allow it by `{}`, and apply the role as somebody who may",
            allowing(instance, &delicate)
        ));
    }
    let above = of(|refusal| matches!(refusal, Refusal::ByDefault | Refusal::AboveCeiling)).map(|(need, _)| *need);
    let above = resources(above);
    if !above.is_empty() {
        if delicate.is_empty() {
            sentences.push(
                "the operator may not do it itself, and so cannot grant it: apply this role as somebody who may"
                    .to_owned(),
            );
        }
        manifests.push_str(&ceiling(rule, &above));
    }
    let by_hand = of(|refusal| matches!(refusal, Refusal::ByHand(_)));
    let mut places: BTreeMap<(Option<&str>, &str), Vec<&Need>> = BTreeMap::new();
    for (need, refusal) in by_hand {
        for layer in needs.layers_of(need) {
            places.entry((need.1.as_deref(), layer)).or_default().push(need);
        }
        let mode = if *refusal == Refusal::ByHand(RbacMode::Manual) { "Manual" } else { "Audit" };
        let sentence = format!("`rbac.mode` of PortalInstance {} is {mode}: somebody else grants it", instance.name);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    for ((namespace, layer), needs) in places {
        manifests.push_str(&role(instance, layer, rule, namespace, &resources(needs.into_iter())));
    }
    let end = if manifests.is_empty() { "" } else { "; the rule takes effect by itself then:\n" };
    format!("{}{end}{manifests}", sentences.join("; "))
}

/// What is needed, in words.
pub(super) fn words<'a>(needs: impl Iterator<Item = &'a Need>) -> String {
    in_words(needs.map(|(permission, namespace)| (permission, namespace.as_deref())))
}

fn resources<'a>(needs: impl Iterator<Item = &'a Need>) -> Resources<'a> {
    let mut found = Resources::new();
    for (Permission { group, resource, verb }, _) in needs {
        found.entry((group, resource)).or_default().insert(verb);
    }
    found
}

/// The command by which an instance allows what is refused by default, beside what it allows already. No manifest: whoever applies a part of
/// an instance takes away the rest.
fn allowing(instance: &Instance, resources: &Resources<'_>) -> String {
    let known = &instance.spec.rbac.allowed_resources;
    let known = known.iter().map(|allowed| (allowed.group.as_str(), allowed.resource.as_str()));
    let allowed = known.chain(resources.keys().copied());
    let allowed: Vec<Value> =
        allowed.map(|(group, resource)| json!({ "group": group, "resource": resource })).collect();
    let patch = json!({ "spec": { "rbac": { "allowedResources": allowed } } });
    format!("kubectl patch portalinstance {} --type=merge --patch='{patch}'", instance.name)
}

/// A role that raises the ceiling.
fn ceiling(rule: &RuleId, resources: &Resources<'_>) -> String {
    let (label, value) = AGGREGATE_LABEL;
    let name = format!("portal-ceiling-{}", name_of(rule));
    let mut text = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\n  labels: {{{label}: \"{value}\"}}\n"
    );
    rules(&mut text, resources);
    text
}

/// A role for a set of pods and its binding.
fn role(instance: &Instance, layer: &str, rule: &RuleId, namespace: Option<&str>, resources: &Resources<'_>) -> String {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let place = namespace.map(|name| format!(", namespace: {name}")).unwrap_or_default();
    let account = names::engine(&instance.name, layer);
    let name = format!("portal-granted-{}-{}", account.trim_start_matches("portal-"), name_of(rule));
    let head = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind:";
    let mut text = format!("{head} {prefix}Role\nmetadata: {{name: {name}{place}}}\n");
    rules(&mut text, resources);
    let _ = writeln!(
        text,
        "{head} {prefix}RoleBinding\nmetadata: {{name: {name}{place}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {prefix}Role, name: {name}}}\nsubjects:\n\
         - {{kind: ServiceAccount, name: {account}, namespace: {}}}",
        instance.namespace(),
    );
    text
}

fn rules(text: &mut String, resources: &Resources<'_>) {
    text.push_str("rules:\n");
    for ((group, resource), verbs) in resources {
        let verbs = Vec::from_iter(verbs.iter().copied()).join(", ");
        let _ = writeln!(text, "- {{apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [{verbs}]}}");
    }
}

fn name_of(rule: &RuleId) -> String {
    match &rule.namespace {
        Some(namespace) => format!("{namespace}-{}", rule.name),
        None => rule.name.clone(),
    }
}
