//! What engines may do: what every engine must, and what its rules need.

use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_core::permissions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::children::child_in;
use crate::instance::Instance;
use crate::names::{BECAUSE, configuration_name};
use crate::object::{Kind, Object};
use crate::permissions::{Permissions, some_of};

/// The roles and their bindings. All sets of pods of an instance have the same: they load the same rules. A namespace whose rules need
/// something there alone has a role of its own.
pub fn roles(instance: &Instance, permissions: &Permissions) -> Vec<Object> {
    let engines = instance.engines();
    if engines.is_empty() {
        return Vec::new();
    }
    let accounts: Vec<&str> = engines.iter().map(|engine| engine.name.as_str()).collect();
    let own = instance.namespace();
    let permissions::Roles { cluster_role, cluster_binding, role, binding } =
        permissions::roles(&instance.name, own, &accounts, instance.reports());
    let with = |kind, place: Option<&str>, base: Vec<PolicyRule>| {
        let (rules, because) = granted(permissions, place);
        let rules = [base, rules].concat();
        let value = json!({ "rules": rules });
        let name = configuration_name(&instance.name);
        let mut object = child_in(instance, kind, &name, place.unwrap_or(own), value);
        // Said even if there is nothing to say, so that what was said before goes.
        object.value["metadata"]["annotations"] = json!({ BECAUSE: because });
        object
    };
    let mut objects = vec![
        with(Kind::ClusterRole, None, cluster_role.rules.unwrap_or_default()),
        of(instance, Kind::ClusterRoleBinding, own, &cluster_binding),
        with(Kind::Role, Some(own), role.rules.unwrap_or_default()),
        of(instance, Kind::RoleBinding, own, &binding),
    ];
    for namespace in permissions.namespaces().into_iter().filter(|namespace| *namespace != own) {
        objects.push(with(Kind::Role, Some(namespace), Vec::new()));
        objects.push(of(instance, Kind::RoleBinding, namespace, &binding));
    }
    objects
}

/// A binding, with the labels and the owner of a child.
fn of(instance: &Instance, kind: Kind, namespace: &str, object: &impl Serialize) -> Object {
    let value: Value = serde_json::to_value(object).expect("Kubernetes' types are JSON");
    child_in(instance, kind, &configuration_name(&instance.name), namespace, value)
}

/// What is granted somewhere because of rules, and a line for each resource that says because of which.
fn granted(permissions: &Permissions, namespace: Option<&str>) -> (Vec<PolicyRule>, String) {
    let mut rules = Vec::new();
    let mut lines = Vec::new();
    for ((group, resource), (verbs, causes)) in permissions.by_resource(namespace) {
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
