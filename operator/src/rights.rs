//! What the operator may do, in one place: install manifests are made from these tables, and bundles will be.
//!
//! The API server lets nobody grant what they do not hold. So the operator holds what it hands on: what every engine needs
//! ([`portal_core::permissions::all`]), and what rules may need, which is the ceiling. It has no verb that would lift this check.

use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_core::permissions;
use portal_core::requirements::Permission;
use portal_crds::ActionType;

/// Something that is allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Right {
    /// The group.
    pub group: &'static str,
    /// The plural, with the subresource behind a slash.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// The names of the objects; empty for all.
    pub names: &'static [&'static str],
    /// Why.
    pub reason: &'static str,
}

/// Where something is allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the operator.
    OwnNamespace,
    /// In each namespace that an administrator has given to the operator for an engine.
    EngineNamespace,
}

/// Who may do something with Portal's own kinds, by the roles that Kubernetes has for people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum People {
    /// Whoever may see what is in a namespace, and all who may do more.
    View,
    /// Whoever may change what is in a namespace, and its administrators.
    Edit,
}

/// What a watch takes.
const READ: &[&str] = &["get", "list", "watch"];

/// What it takes to keep objects as they should be by server-side apply.
const APPLY: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// What it takes to keep objects as they should be by comparing and replacing them.
const REPLACE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Everything that the operator needs for its own work.
pub const RIGHTS: &[Right] = &[
    cluster(
        "portal.io",
        "portalinstances",
        &["get", "list", "watch", "patch", "update"],
        "what is asked for, and the finalizer",
    ),
    cluster("portal.io", "portalinstances/status", &["patch", "update"], "what has become of it"),
    // Some API servers let only those set an owner, which keeps it from being deleted, who could do so by a finalizer.
    cluster("portal.io", "portalinstances/finalizers", &["update"], "children are owned by their instance"),
    cluster("portal.io", "portalclusterrules", READ, "what engines and the webhook are for"),
    cluster("portal.io", "portalrules", READ, "what engines and the webhook are for"),
    cluster("", "namespaces", READ, "whether a namespace is there, and the owner of the webhook configuration"),
    cluster("apiextensions.k8s.io", "customresourcedefinitions", READ, "when kinds come and go"),
    cluster("apiregistration.k8s.io", "apiservices", READ, "when kinds come and go"),
    cluster(ADMISSION, "validatingwebhookconfigurations", REPLACE, "what is sent to engines"),
    cluster(
        ADMISSION,
        "validatingadmissionpolicies",
        &["get", "list", "watch", "create", "patch", "update"],
        "the guard of the bypass annotation, which outlives instances",
    ),
    cluster(
        ADMISSION,
        "validatingadmissionpolicybindings",
        &["get", "list", "watch", "create", "patch", "update"],
        "the guard of the bypass annotation, which outlives instances",
    ),
    cluster(RBAC, "clusterroles", REPLACE, "what engines may do"),
    cluster(RBAC, "clusterrolebindings", REPLACE, "what engines may do"),
    cluster(RBAC, "roles", REPLACE, "what engines may do in their namespace and for rules of a namespace"),
    cluster(RBAC, "rolebindings", REPLACE, "what engines may do in their namespace and for rules of a namespace"),
    cluster("authorization.k8s.io", "selfsubjectaccessreviews", &["create"], "what it may do itself, before it tries"),
    cluster("events.k8s.io", "events", &["create", "patch"], "what was done, for whoever looks at an instance"),
    own("", "secrets", REPLACE, "authorities, whose keys nobody else reads"),
    own(
        "coordination.k8s.io",
        "leases",
        &["get", "create", "update"],
        "which replica acts; the probe, which is never stored",
    ),
    engine("", "secrets", REPLACE, "the certificate of the webhook"),
    engine("", "configmaps", APPLY, "bootstrap rules, and the authorities of a certificate that comes without them"),
    engine("", "pods", READ, "which pods are ready, and what they serve"),
    engine("", "services", APPLY, "how the API server reaches the webhook"),
    engine("", "serviceaccounts", APPLY, "who engines are"),
    engine("apps", "deployments", APPLY, "engines"),
    engine("policy", "poddisruptionbudgets", APPLY, "that one replica is always left"),
    engine("networking.k8s.io", "networkpolicies", APPLY, "closed ports, if the instance asks for them"),
    engine("monitoring.coreos.com", "servicemonitors", APPLY, "monitoring, if the instance asks for it"),
    engine("monitoring.coreos.com", "prometheusrules", APPLY, "monitoring, if the instance asks for it"),
    engine("cert-manager.io", "certificates", APPLY, "the certificate, if cert-manager issues it"),
];

/// What rules may need to read without anybody being asked: what is judged and looked up, and never what is secret. Whoever wants
/// more adds a ClusterRole with the label of [`AGGREGATE_LABEL`].
pub const CEILING: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        ADMISSION,
        &[
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("gateway.networking.k8s.io", &["gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"]),
    ("networking.k8s.io", &["ingressclasses", "ingresses", "networkpolicies"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("policy", &["poddisruptionbudgets"]),
    (RBAC, &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    ("storage.k8s.io", &["csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"]),
];

/// The label of ClusterRoles that raise the ceiling.
pub const AGGREGATE_LABEL: (&str, &str) = ("rbac.portal.io/aggregate-to-ceiling", "true");

/// The objects that can be labelled and annotated. Whoever may patch what makes pods can run anything in them: RBAC cannot tell a label
/// from a container.
const MARKED: &[Right] = &[
    cluster("", "pods", &["patch"], "to mark what violates a rule"),
    cluster("", "services", &["patch"], "to mark what violates a rule"),
    cluster("apps", "daemonsets", &["patch"], "to mark what violates a rule"),
    cluster("apps", "deployments", &["patch"], "to mark what violates a rule"),
    cluster("apps", "replicasets", &["patch"], "to mark what violates a rule"),
    cluster("apps", "statefulsets", &["patch"], "to mark what violates a rule"),
    cluster("batch", "cronjobs", &["patch"], "to mark what violates a rule"),
    cluster("batch", "jobs", &["patch"], "to mark what violates a rule"),
    cluster("networking.k8s.io", "ingresses", &["patch"], "to mark what violates a rule"),
];

/// What each action that changes the cluster needs. The operator has none of it unless an administrator adds it to the ceiling.
pub const ACTIONS: &[(ActionType, &[Right])] = &[
    (ActionType::Label, MARKED),
    (ActionType::Annotate, MARKED),
    (ActionType::Evict, &[cluster("", "pods/eviction", &["create"], "to evict pods")]),
    (
        ActionType::PatchNetworkPolicy,
        &[cluster(
            "networking.k8s.io",
            "networkpolicies",
            &["create", "patch", "delete"],
            "to isolate pods by policies of its own",
        )],
    ),
    (
        ActionType::RevokeSaToken,
        &[
            cluster(
                "",
                "secrets",
                &["delete"],
                "tokens that are stored, which accounts name: their values are not read",
            ),
            cluster("", "pods", &["delete"], "tokens that end with their pod"),
        ],
    ),
];

/// What people may do with Portal's own kinds beside those who may do everything. Nobody is given the verb `bypass`.
pub const PEOPLE: &[(People, &str, &[&str])] = &[
    (People::View, "portalclusterrules", READ),
    (People::View, "portalinstances", READ),
    (People::View, "portalrules", READ),
    (People::Edit, "portalrules", &["create", "update", "patch", "delete", "deletecollection"]),
];

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    place: Place,
    reason: &'static str,
) -> Right {
    Right { group, resource, verbs, place, names: &[], reason }
}

const fn cluster(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    reason: &'static str,
) -> Right {
    right(group, resource, verbs, Place::Cluster, reason)
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    reason: &'static str,
) -> Right {
    right(group, resource, verbs, Place::OwnNamespace, reason)
}

const fn engine(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    reason: &'static str,
) -> Right {
    right(group, resource, verbs, Place::EngineNamespace, reason)
}

/// What the operator's own work needs in a place.
pub fn own_rules(place: Place) -> Vec<PolicyRule> {
    let wanted = RIGHTS.iter().filter(|right| right.place == place);
    wanted.map(|right| rule(right.group, &[right.resource], right.verbs, right.names)).collect()
}

/// What the operator holds in a place because it gives it to every engine.
pub fn engine_rules(place: Place) -> Vec<PolicyRule> {
    let is_wanted = |base: &&permissions::Base| match base.place {
        // The name of the object is that of the instance, which nobody knows before.
        permissions::Place::Cluster | permissions::Place::OwnObject => place == Place::Cluster,
        permissions::Place::OwnNamespace => place == Place::EngineNamespace,
    };
    let wanted = permissions::all().filter(is_wanted);
    wanted.map(|base| rule(base.group, &[base.resource], base.verbs, &[])).collect()
}

/// What the operator holds because rules may need it.
pub fn ceiling_rules() -> Vec<PolicyRule> {
    CEILING.iter().map(|(group, resources)| rule(group, resources, READ, &[])).collect()
}

/// Whether something is in the ceiling that is installed.
pub fn in_ceiling(permission: &Permission) -> bool {
    let is_there = |(group, plurals): &(&str, &[&str])| {
        *group == permission.group && plurals.contains(&permission.resource.as_str())
    };
    READ.contains(&permission.verb) && CEILING.iter().any(is_there)
}

/// What an action needs.
pub fn action_rules(action: ActionType) -> Vec<PolicyRule> {
    let rights = ACTIONS.iter().filter(|(named, _)| *named == action).flat_map(|(_, rights)| *rights);
    rights.map(|right| rule(right.group, &[right.resource], right.verbs, right.names)).collect()
}

/// What people may do with Portal's own kinds.
pub fn people_rules(people: People) -> Vec<PolicyRule> {
    let rights = PEOPLE.iter().filter(|(named, ..)| *named == people);
    rights.map(|(_, resource, verbs)| rule("portal.io", &[resource], verbs, &[])).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str], names: &[&str]) -> PolicyRule {
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        resource_names: (!names.is_empty()).then(|| texts(names)),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests;
