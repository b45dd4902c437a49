//! What every engine must be allowed to do, whatever its rules say. What rules need beside it follows from them: see
//! [`crate::requirements`].

use std::collections::BTreeMap;

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::webhook::configuration_name;

/// Something that every engine must be allowed to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Base {
    /// The group.
    pub group: &'static str,
    /// The plural, with the subresource behind a slash.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// Why.
    pub reason: &'static str,
}

/// Where something is allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the whole cluster, for the object that is named after the instance.
    OwnObject,
    /// In the namespace of the engine.
    OwnNamespace,
}

/// What a watch takes.
const READ: &[&str] = &["get", "list", "watch"];

/// Everything that every engine must be allowed to do.
pub const BASE: &[Base] = &[
    Base::new("portal.io", "portalclusterrules", READ, Place::Cluster, "the rules"),
    Base::new("portal.io", "portalrules", READ, Place::Cluster, "the rules"),
    Base::new("portal.io", "portalclusterrules/status", &["patch"], Place::Cluster, "what has become of each rule"),
    Base::new("portal.io", "portalrules/status", &["patch"], Place::Cluster, "what has become of each rule"),
    Base::new("apiextensions.k8s.io", "customresourcedefinitions", READ, Place::Cluster, "when kinds come and go"),
    Base::new("apiregistration.k8s.io", "apiservices", READ, Place::Cluster, "when kinds come and go"),
    Base::new("", "namespaces", READ, Place::Cluster, "labels and the bypass annotation"),
    Base::new(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        READ,
        Place::OwnObject,
        "what is sent to the engine",
    ),
    Base::new("coordination.k8s.io", "leases", &["get"], Place::Cluster, "whether other instances live"),
    Base::new("coordination.k8s.io", "leases", &["create", "update"], Place::OwnNamespace, "which replica writes"),
    Base::new("discovery.k8s.io", "endpointslices", READ, Place::OwnNamespace, "where the other replicas are"),
    Base::new(
        "authentication.k8s.io",
        "tokenreviews",
        &["create"],
        Place::Cluster,
        "who asks for the state of a replica",
    ),
    Base::new("authentication.k8s.io", "selfsubjectreviews", &["create"], Place::Cluster, "who the engine itself is"),
    Base::new(
        "authorization.k8s.io",
        "subjectaccessreviews",
        &["create"],
        Place::Cluster,
        "what authors of rules may do",
    ),
    Base::new(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        Place::Cluster,
        "what was done to an object, for its owner",
    ),
];

/// What an engine must be allowed to do that writes reports: those of the API group that it writes.
pub const REPORTS: &[Base] = &[
    Base::new("wgpolicyk8s.io", "policyreports", WRITE, Place::Cluster, "what audit finds in namespaces"),
    Base::new("wgpolicyk8s.io", "clusterpolicyreports", WRITE, Place::Cluster, "what audit finds of the cluster"),
    Base::new("openreports.io", "reports", WRITE, Place::Cluster, "what audit finds in namespaces"),
    Base::new("openreports.io", "clusterreports", WRITE, Place::Cluster, "what audit finds of the cluster"),
];

/// What it takes to keep objects as they should be.
const WRITE: &[&str] = &["get", "list", "create", "update", "delete"];

/// Everything that some engine must be allowed to do.
pub fn all() -> impl Iterator<Item = &'static Base> {
    BASE.iter().chain(REPORTS)
}

impl Base {
    const fn new(
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
        place: Place,
        reason: &'static str,
    ) -> Base {
        Base { group, resource, verbs, place, reason }
    }

    fn rule(&self, instance: &str) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(vec![self.resource.to_owned()]),
            resource_names: (self.place == Place::OwnObject).then(|| vec![configuration_name(instance)]),
            verbs: self.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        }
    }
}

/// The roles that allow it, and their bindings.
#[derive(Clone, Debug)]
pub struct Roles {
    /// For the whole cluster.
    pub cluster_role: ClusterRole,
    /// Its binding.
    pub cluster_binding: ClusterRoleBinding,
    /// For the namespace of the engine.
    pub role: Role,
    /// Its binding.
    pub binding: RoleBinding,
}

/// The roles of this name for an account, in the namespace of an instance's engine. It writes the reports of an API group, if it writes any.
pub fn roles(instance: &str, name: &str, namespace: &str, account: &str, reports: Option<&str>) -> Roles {
    let metadata = |namespace: Option<&str>| ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(BTreeMap::from([("portal.io/instance".to_owned(), instance.to_owned())])),
        ..ObjectMeta::default()
    };
    let rules = |is_own: bool| {
        let reports = REPORTS.iter().filter(|base| Some(base.group) == reports);
        let wanted = BASE.iter().chain(reports).filter(|base| (base.place == Place::OwnNamespace) == is_own);
        Some(wanted.map(|base| base.rule(instance)).collect())
    };
    let role_ref = |kind: &str| RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: account.to_owned(),
        namespace: Some(namespace.to_owned()),
        ..Subject::default()
    };
    let subjects = || Some(vec![subject.clone()]);
    Roles {
        cluster_role: ClusterRole { metadata: metadata(None), rules: rules(false), aggregation_rule: None },
        cluster_binding: ClusterRoleBinding {
            metadata: metadata(None),
            role_ref: role_ref("ClusterRole"),
            subjects: subjects(),
        },
        role: Role { metadata: metadata(Some(namespace)), rules: rules(true) },
        binding: RoleBinding { metadata: metadata(Some(namespace)), role_ref: role_ref("Role"), subjects: subjects() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_by_a_star_and_nothing_twice() {
        for base in all() {
            assert!(!base.verbs.is_empty() && !base.reason.is_empty());
            for word in base.verbs.iter().chain([&base.group, &base.resource]) {
                assert!(!word.contains('*'), "{base:?}");
            }
            let is_same =
                |other: &&Base| (other.group, other.resource, other.place) == (base.group, base.resource, base.place);
            assert_eq!(all().filter(is_same).count(), 1, "{base:?}");
            // What holds secrets, or leads to them.
            assert!(!["secrets", "serviceaccounts/token", "pods/exec"].contains(&base.resource), "{base:?}");
        }
    }

    #[test]
    fn roles_hold_the_table_and_nothing_else() {
        let roles = roles("canary", "portal-canary-audit", "portal-system", "engine", None);
        let cluster = roles.cluster_role.rules.unwrap();
        let own = roles.role.rules.unwrap();
        assert_eq!(cluster.len() + own.len(), BASE.len());
        let with_reports = super::roles("canary", "portal-canary", "portal-system", "engine", Some("openreports.io"));
        assert_eq!(with_reports.cluster_role.rules.unwrap().len(), cluster.len() + 2);
        let named: Vec<_> = cluster.iter().filter_map(|rule| rule.resource_names.as_ref()).collect();
        assert_eq!(named, [&["portal-canary"]]);
        assert_eq!(roles.role.metadata.namespace.as_deref(), Some("portal-system"));
        assert_eq!(roles.cluster_role.metadata.name.as_deref(), Some("portal-canary-audit"));
        for subjects in [roles.cluster_binding.subjects, roles.binding.subjects] {
            let names: Vec<String> = subjects.unwrap().into_iter().map(|subject| subject.name).collect();
            assert_eq!(names, ["engine"]);
        }
    }
}
