//! What is installed before there is an instance: the operator, its rights, and the namespaces.

use portal_crds::ActionType;
use serde_json::{Value, json};

use crate::names::{AGGREGATED_CEILING_ROLE, CEILING_ROLE, ENGINES_ROLE, METRICS_PORT, OPERATOR, OPERATOR_ROLE};
use crate::object::{Kind, Object};
use crate::rights::{
    ACTIONS, AGGREGATE_LABEL, People, Place, action_rules, ceiling_rules, engine_rules, own_rules, people_rules,
};

/// What an installation is made for.
#[derive(Clone, Debug)]
pub struct Install {
    /// The image of the operator, and of engines whose instance names none.
    pub image: String,
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespace of the first engine, which is granted to the operator.
    pub engine_namespace: String,
    /// How many operators there are. One acts.
    pub replicas: u32,
}

/// Everything but the definitions of kinds, in the order in which it is made.
pub fn manifest(install: &Install) -> Vec<Object> {
    let namespace = &install.namespace;
    let mut objects = vec![
        self::namespace(namespace),
        self::namespace(&install.engine_namespace),
        object(Kind::ServiceAccount, OPERATOR, Some(namespace), json!({})),
    ];
    objects.extend(operator_roles(namespace));
    objects.extend(people_roles());
    let rules = [own_rules(Place::OwnNamespace), engine_rules(Place::OwnNamespace)].concat();
    objects.extend(granted(namespace, namespace, json!(rules)));
    objects.extend(namespace_grant(&install.engine_namespace, namespace));
    objects.push(object(
        Kind::PodDisruptionBudget,
        OPERATOR,
        Some(namespace),
        json!({ "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": { "matchLabels": selector() },
        } }),
    ));
    objects.push(deployment(install));
    objects
}

/// What lets the operator run engines in a namespace.
pub fn namespace_grant(namespace: &str, operator_namespace: &str) -> Vec<Object> {
    let rules = [own_rules(Place::EngineNamespace), engine_rules(Place::EngineNamespace)].concat();
    granted(namespace, operator_namespace, json!(rules)).into()
}

/// What lets the operator hand on the rights of each action that changes the cluster.
pub fn action_roles() -> Vec<Object> {
    let role = |action: &ActionType| {
        let name = serde_json::to_value(action).expect("an action is a word");
        let name = format!("portal:action-{}", name.as_str().unwrap_or_default());
        let mut role = object(Kind::ClusterRole, &name, None, json!({ "rules": action_rules(*action) }));
        role.value["metadata"]["labels"][AGGREGATE_LABEL.0] = AGGREGATE_LABEL.1.into();
        role
    };
    ACTIONS.iter().map(|(action, _)| role(action)).collect()
}

/// What the operator may do in the whole cluster: its own work, what it gives to engines, and the ceiling of what rules may need.
fn operator_roles(namespace: &str) -> Vec<Object> {
    let role = |name: &str, rest: Value| object(Kind::ClusterRole, name, None, rest);
    let roles = [
        role(OPERATOR_ROLE, json!({ "rules": own_rules(Place::Cluster) })),
        role(ENGINES_ROLE, json!({ "rules": engine_rules(Place::Cluster) })),
        role(CEILING_ROLE, json!({ "rules": ceiling_rules() })),
        // A controller fills in its rules: whoever sends some, even none, takes them away.
        role(
            AGGREGATED_CEILING_ROLE,
            json!({ "aggregationRule": {
                "clusterRoleSelectors": [{ "matchLabels": { AGGREGATE_LABEL.0: AGGREGATE_LABEL.1 } }],
            } }),
        ),
    ];
    let bindings = roles.clone().map(|role| {
        let name = &role.key.name;
        object(
            Kind::ClusterRoleBinding,
            name,
            None,
            json!({ "roleRef": role_ref("ClusterRole", name), "subjects": subjects(namespace) }),
        )
    });
    roles.into_iter().chain(bindings).collect()
}

/// What people may do with Portal's own kinds: added to the roles that Kubernetes has for them.
fn people_roles() -> [Object; 2] {
    let role = |name: &str, people: People, collected: &[&str]| {
        let mut role = object(Kind::ClusterRole, name, None, json!({ "rules": people_rules(people) }));
        for whom in collected {
            role.value["metadata"]["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{whom}")] = "true".into();
        }
        role
    };
    [
        role("portal:view", People::View, &["view", "edit", "admin"]),
        role("portal:edit", People::Edit, &["edit", "admin"]),
    ]
}

/// A Role of the operator in a namespace, and its binding.
fn granted(namespace: &str, operator_namespace: &str, rules: Value) -> [Object; 2] {
    [
        object(Kind::Role, OPERATOR_ROLE, Some(namespace), json!({ "rules": rules })),
        object(
            Kind::RoleBinding,
            OPERATOR_ROLE,
            Some(namespace),
            json!({ "roleRef": role_ref("Role", OPERATOR_ROLE), "subjects": subjects(operator_namespace) }),
        ),
    ]
}

fn role_ref(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": Kind::Role.group(), "kind": kind, "name": name })
}

fn subjects(namespace: &str) -> Value {
    json!([{ "kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace }])
}

/// A namespace whose pods have no rights on their node. It is where the cluster heals from, so that rules do not judge what is in it.
fn namespace(name: &str) -> Object {
    let mut labels = json!({ "app.kubernetes.io/part-of": "portal" });
    for mode in ["enforce", "audit", "warn"] {
        labels[format!("pod-security.kubernetes.io/{mode}")] = "restricted".into();
    }
    Object::from_value(Kind::Namespace, json!({ "metadata": { "name": name, "labels": labels } }))
}

fn deployment(install: &Install) -> Object {
    let (port, number) = METRICS_PORT;
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": port } });
    let pod = json!({
        "serviceAccountName": OPERATOR,
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": selector() },
        }],
        "containers": [{
            "name": "operator",
            "image": install.image,
            "args": ["operator"],
            "env": [
                field("PORTAL_NAMESPACE", "metadata.namespace"),
                field("PORTAL_IDENTITY", "metadata.name"),
                field("PORTAL_ADDRESS", "status.podIP"),
                { "name": "PORTAL_IMAGE", "value": install.image },
            ],
            "ports": [{ "name": port, "containerPort": number }],
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/readyz"),
            "resources": { "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "256Mi" } },
            // No user: OpenShift chooses one for each namespace, and elsewhere the image has one.
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        }],
    });
    object(
        Kind::Deployment,
        OPERATOR,
        Some(&install.namespace),
        json!({ "spec": {
            "replicas": install.replicas,
            "selector": { "matchLabels": selector() },
            "template": { "metadata": { "labels": labels() }, "spec": pod },
        } }),
    )
}

/// The labels by which the operator's pods are found.
fn selector() -> Value {
    json!({ "app.kubernetes.io/name": OPERATOR })
}

/// Not the label of children: the operator looks after those, and after nothing that was installed.
fn labels() -> Value {
    json!({ "app.kubernetes.io/name": OPERATOR, "app.kubernetes.io/part-of": "portal" })
}

fn object(kind: Kind, name: &str, namespace: Option<&str>, rest: Value) -> Object {
    let mut value = rest;
    value["metadata"] = json!({ "name": name, "labels": labels() });
    if let Some(namespace) = namespace {
        value["metadata"]["namespace"] = namespace.into();
    }
    Object::from_value(kind, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::MANAGED_BY;

    fn install() -> Install {
        Install {
            image: "registry.example/portal:v1".to_owned(),
            namespace: "portal-operator".to_owned(),
            engine_namespace: "portal-system".to_owned(),
            replicas: 2,
        }
    }

    #[test]
    fn nothing_that_is_installed_looks_like_a_child_of_an_instance() {
        for object in manifest(&install()).iter().chain(&action_roles()) {
            assert_eq!(object.value["metadata"]["labels"].get(MANAGED_BY.0), None, "{}", object.key);
            // A role named as that of an instance would be taken for it, and replaced.
            let is_role = object.key.kind.group() == Kind::Role.group();
            assert!(!is_role || object.key.name.starts_with("portal:"), "{}", object.key);
        }
    }

    #[test]
    fn the_definitions_are_a_manifest_of_their_own() {
        let kinds: Vec<_> = manifest(&install()).iter().map(|object| object.key.kind).collect();
        assert!(!kinds.contains(&Kind::PortalInstance));
        assert_eq!(kinds.last(), Some(&Kind::Deployment), "what runs comes last");
    }

    #[test]
    fn only_the_role_that_collects_others_has_no_rules() {
        let roles = manifest(&install()).into_iter().filter(|object| object.key.kind == Kind::ClusterRole);
        let without: Vec<_> =
            roles.filter(|role| role.value.get("rules").is_none()).map(|role| role.key.name).collect();
        assert_eq!(without, [AGGREGATED_CEILING_ROLE]);
    }
}
