//! Objects of the cluster as the operator handles them: a key, and JSON.

use std::fmt;

use kube::api::ApiResource;
use serde::Serialize;
use serde_json::Value;

/// The kinds of object that the operator makes or looks at.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "the words are those of Kubernetes")]
pub enum Kind {
    PortalInstance,
    Namespace,
    ServiceAccount,
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
    Secret,
    ConfigMap,
    Service,
    PodDisruptionBudget,
    Deployment,
    Pod,
    NetworkPolicy,
    ValidatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    Lease,
    ServiceMonitor,
    PrometheusRule,
    Certificate,
    PolicyReport,
    Report,
}

/// Which object.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if the kind has namespaces.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// An object as it is, or as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Which one.
    pub key: Key,
    /// What it says.
    pub value: Value,
}

impl Kind {
    /// Group, version, plural, and whether objects are in namespaces.
    fn row(self) -> (&'static str, &'static str, &'static str, bool) {
        const RBAC: &str = "rbac.authorization.k8s.io";
        const ADMISSION: &str = "admissionregistration.k8s.io";
        const MONITORING: &str = "monitoring.coreos.com";
        match self {
            Kind::PortalInstance => ("portal.io", "v1alpha1", "portalinstances", false),
            Kind::Namespace => ("", "v1", "namespaces", false),
            Kind::ServiceAccount => ("", "v1", "serviceaccounts", true),
            Kind::ClusterRole => (RBAC, "v1", "clusterroles", false),
            Kind::ClusterRoleBinding => (RBAC, "v1", "clusterrolebindings", false),
            Kind::Role => (RBAC, "v1", "roles", true),
            Kind::RoleBinding => (RBAC, "v1", "rolebindings", true),
            Kind::Secret => ("", "v1", "secrets", true),
            Kind::ConfigMap => ("", "v1", "configmaps", true),
            Kind::Service => ("", "v1", "services", true),
            Kind::PodDisruptionBudget => ("policy", "v1", "poddisruptionbudgets", true),
            Kind::Deployment => ("apps", "v1", "deployments", true),
            Kind::Pod => ("", "v1", "pods", true),
            Kind::NetworkPolicy => ("networking.k8s.io", "v1", "networkpolicies", true),
            Kind::ValidatingWebhookConfiguration => (ADMISSION, "v1", "validatingwebhookconfigurations", false),
            Kind::ValidatingAdmissionPolicy => (ADMISSION, "v1", "validatingadmissionpolicies", false),
            Kind::ValidatingAdmissionPolicyBinding => (ADMISSION, "v1", "validatingadmissionpolicybindings", false),
            Kind::Lease => ("coordination.k8s.io", "v1", "leases", true),
            Kind::ServiceMonitor => (MONITORING, "v1", "servicemonitors", true),
            Kind::PrometheusRule => (MONITORING, "v1", "prometheusrules", true),
            Kind::Certificate => ("cert-manager.io", "v1", "certificates", true),
            Kind::PolicyReport => ("wgpolicyk8s.io", "v1alpha2", "policyreports", true),
            Kind::Report => ("openreports.io", "v1alpha1", "reports", true),
        }
    }

    /// How the API server is asked for objects of the kind.
    pub fn resource(self) -> ApiResource {
        let (group, version, plural, _) = self.row();
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: self.to_string(),
            plural: plural.to_owned(),
        }
    }

    /// Whether objects of the kind are in namespaces.
    pub fn is_namespaced(self) -> bool {
        self.row().3
    }

    /// The group of the kind.
    pub fn group(self) -> &'static str {
        self.row().0
    }

    /// The plural of the kind.
    pub fn plural(self) -> &'static str {
        self.row().2
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl Key {
    /// An object in a namespace.
    pub fn namespaced(kind: Kind, namespace: &str, name: &str) -> Key {
        Key { kind, namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }

    /// An object that is in no namespace.
    pub fn cluster(kind: Kind, name: &str) -> Key {
        Key { kind, namespace: None, name: name.to_owned() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { kind, namespace, name } = self;
        match namespace {
            Some(namespace) => write!(formatter, "{kind} {namespace}/{name}"),
            None => write!(formatter, "{kind} {name}"),
        }
    }
}

impl Object {
    /// An object from one of Kubernetes' own types. `apiVersion` and `kind` are filled in.
    pub fn of(kind: Kind, value: &impl Serialize) -> Object {
        let value = serde_json::to_value(value).expect("Kubernetes' types are JSON");
        Object::from_value(kind, value)
    }

    /// An object from JSON that has at least `metadata.name`. `apiVersion` and `kind` are filled in.
    pub fn from_value(kind: Kind, mut value: Value) -> Object {
        let resource = kind.resource();
        value["apiVersion"] = resource.api_version.into();
        value["kind"] = resource.kind.into();
        let text = |name: &str| value["metadata"][name].as_str().map(str::to_owned);
        let key = Key { kind, namespace: text("namespace"), name: text("name").unwrap_or_default() };
        Object { key, value }
    }

    /// A text of its metadata; empty if there is none.
    pub fn meta(&self, name: &str) -> &str {
        self.value["metadata"][name].as_str().unwrap_or_default()
    }

    /// Its UID; empty for one that only should be.
    pub fn uid(&self) -> &str {
        self.meta("uid")
    }

    /// The version of it that was seen.
    pub fn resource_version(&self) -> &str {
        self.meta("resourceVersion")
    }

    /// Whether somebody has deleted it, and something keeps it.
    pub fn is_terminating(&self) -> bool {
        !self.meta("deletionTimestamp").is_empty()
    }

    /// A label of it.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.value["metadata"]["labels"][key].as_str()
    }

    /// An annotation of it.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.value["metadata"]["annotations"][key].as_str()
    }
}
