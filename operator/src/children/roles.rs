//! What engines may do: what every engine must, and what its rules need.

use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_core::permissions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::children::child_in;
use crate::instance::{Engine, Instance};
use crate::names::BECAUSE;
use crate::object::{Kind, Object};
use crate::permissions::{Granted, Permissions, some_of};

/// The roles of a set of pods and their bindings. Each set has its own, with what its layers need: what only audit reads, nobody reads with
/// the token of admission. A namespace whose rules need something there alone has a role of its own.
pub fn roles(instance: &Instance, engine: &Engine, permissions: &Permissions) -> Vec<Object> {
    let (name, own) = (&engine.name, instance.namespace());
    let granted = permissions.of(engine.layer);
    let permissions::Roles { cluster_role, cluster_binding, role, binding } =
        permissions::roles(&instance.name, name, own, name, instance.reports(engine));
    let with = |kind, place: Option<&str>, base: Vec<PolicyRule>| {
        let (rules, because) = given(granted, place);
        let rules = [base, rules].concat();
        let value = json!({ "rules": rules });
        let mut object = child_in(instance, kind, name, place.unwrap_or(own), value);
        // Said even if there is nothing to say, so that what was said before goes.
        object.value["metadata"]["annotations"] = json!({ BECAUSE: because });
        object
    };
    let bound = |kind, namespace: &str, binding: Value| child_in(instance, kind, name, namespace, binding);
    let binding = value_of(&binding);
    let mut objects = vec![
        with(Kind::ClusterRole, None, cluster_role.rules.unwrap_or_default()),
        bound(Kind::ClusterRoleBinding, own, value_of(&cluster_binding)),
        with(Kind::Role, Some(own), role.rules.unwrap_or_default()),
        bound(Kind::RoleBinding, own, binding.clone()),
    ];
    for namespace in granted.namespaces().into_iter().filter(|namespace| *namespace != own) {
        objects.push(with(Kind::Role, Some(namespace), Vec::new()));
        objects.push(bound(Kind::RoleBinding, namespace, binding.clone()));
    }
    objects
}

fn value_of(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("Kubernetes' types are JSON")
}

/// What is granted somewhere because of rules, and a line for each resource that says because of which.
fn given(granted: &Granted, namespace: Option<&str>) -> (Vec<PolicyRule>, String) {
    let mut rules = Vec::new();
    let mut lines = Vec::new();
    for ((group, resource), (verbs, causes)) in granted.by_resource(namespace) {
        rules.push(PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            ..PolicyRule::default()
        });
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        lines.push(format!("{resource}{group}: {}", some_of(causes)));
    }
    (rules, shortened(lines))
}

/// Annotations may have 256 KiB together.
fn shortened(lines: Vec<String>) -> String {
    const MOST: usize = 64 << 10;
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() > MOST {
            text.push('…');
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
