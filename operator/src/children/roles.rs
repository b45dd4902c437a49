//! What engines may do.

use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_core::permissions;
use serde::Serialize;
use serde_json::Value;

use crate::children::child;
use crate::instance::Instance;
use crate::names::configuration_name;
use crate::object::{Kind, Object};

/// A kind that every engine may read, beside what it must be allowed whatever its rules say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Readable {
    /// The group.
    pub group: &'static str,
    /// The plural.
    pub resource: &'static str,
    /// What rules look there for.
    pub reason: &'static str,
}

/// The verbs by which objects are read: for caches, and one by one.
pub const READ: &[&str] = &["get", "list", "watch"];

/// What every engine may read until permissions follow from the rules: what the shipped rules and pages look up, and what rules
/// commonly do. Namespaces are in [`permissions::BASE`]. Secrets are not here: whoever needs them grants them on purpose.
pub const READABLE: &[Readable] = &[
    readable("", "configmaps", "values that rules allow, kept as data"),
    readable("", "limitranges", "whether a namespace has limits"),
    readable("", "nodes", "where pods would run"),
    readable("", "persistentvolumeclaims", "what volumes of pods mean"),
    readable("", "persistentvolumes", "what claims are bound to"),
    readable("", "pods", "what runs in a namespace"),
    readable("", "replicationcontrollers", "owners of pods"),
    readable("", "resourcequotas", "whether a namespace has a quota"),
    readable("", "serviceaccounts", "who pods run as"),
    readable("", "services", "what is exposed, and how many of it"),
    readable("apps", "daemonsets", "owners of pods, and targets of references"),
    readable("apps", "deployments", "owners of pods, and targets of references"),
    readable("apps", "replicasets", "owners of pods"),
    readable("apps", "statefulsets", "owners of pods, and targets of references"),
    readable("autoscaling", "horizontalpodautoscalers", "whether something else sets the replicas"),
    readable("batch", "cronjobs", "owners of jobs"),
    readable("batch", "jobs", "owners of pods"),
    readable("networking.k8s.io", "ingressclasses", "what an ingress refers to"),
    readable("networking.k8s.io", "ingresses", "hosts that are taken"),
    readable("networking.k8s.io", "networkpolicies", "whether a namespace is closed"),
    readable("policy", "poddisruptionbudgets", "whether a workload has one"),
    readable("rbac.authorization.k8s.io", "clusterrolebindings", "who may do what"),
    readable("rbac.authorization.k8s.io", "clusterroles", "what a binding refers to"),
    readable("rbac.authorization.k8s.io", "rolebindings", "who may do what"),
    readable("rbac.authorization.k8s.io", "roles", "what a binding refers to"),
    readable("scheduling.k8s.io", "priorityclasses", "what pods refer to"),
    readable("storage.k8s.io", "storageclasses", "what claims refer to"),
];

const fn readable(group: &'static str, resource: &'static str, reason: &'static str) -> Readable {
    Readable { group, resource, reason }
}

/// The roles and their bindings. All sets of pods of an instance have the same: they load the same rules.
pub fn roles(instance: &Instance) -> Vec<Object> {
    let engines = instance.engines();
    if engines.is_empty() {
        return Vec::new();
    }
    let accounts: Vec<&str> = engines.iter().map(|engine| engine.name.as_str()).collect();
    let permissions::Roles { mut cluster_role, cluster_binding, role, binding } =
        permissions::roles(&instance.name, instance.namespace(), &accounts);
    cluster_role.rules.get_or_insert_default().extend(READABLE.iter().map(Readable::rule));
    vec![
        of(instance, Kind::ClusterRole, &cluster_role),
        of(instance, Kind::ClusterRoleBinding, &cluster_binding),
        of(instance, Kind::Role, &role),
        of(instance, Kind::RoleBinding, &binding),
    ]
}

/// A role or a binding, with the labels and the owner of a child.
fn of(instance: &Instance, kind: Kind, object: &impl Serialize) -> Object {
    let value: Value = serde_json::to_value(object).expect("Kubernetes' types are JSON");
    child(instance, kind, &configuration_name(&instance.name), value)
}

impl Readable {
    /// The rule of a role that allows to read it.
    pub fn rule(&self) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(vec![self.resource.to_owned()]),
            verbs: READ.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_readable_that_holds_secrets_and_nothing_is_there_twice() {
        let words: Vec<(&str, &str)> = READABLE.iter().map(|readable| (readable.group, readable.resource)).collect();
        assert!(words.is_sorted(), "people look for a kind in the table");
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
        for readable in READABLE {
            assert!(!readable.reason.is_empty() && !readable.resource.contains(['*', '/']), "{readable:?}");
            assert_ne!(readable.resource, "secrets");
            let in_base =
                |base: &&permissions::Base| (base.group, base.resource) == (readable.group, readable.resource);
            assert_eq!(permissions::BASE.iter().find(in_base), None);
        }
    }

    #[test]
    fn what_the_pages_look_up_is_readable() {
        let kinds = portal_core::kinds::Kinds::builtin();
        for plural in [
            "clusterroles",
            "configmaps",
            "deployments",
            "ingresses",
            "jobs",
            "namespaces",
            "poddisruptionbudgets",
            "pods",
            "replicasets",
            "roles",
            "services",
            "statefulsets",
        ] {
            let kind = kinds.by_plural(plural).unwrap();
            let in_base =
                permissions::BASE.iter().any(|base| (base.group, base.resource) == (&*kind.group, &*kind.plural));
            let is_readable =
                READABLE.iter().any(|readable| (readable.group, readable.resource) == (&*kind.group, &*kind.plural));
            assert!(in_base || is_readable, "{plural}");
        }
    }
}
