//! What rules are told that need more than their engine may do.

use expect_test::expect;
use portal_core::{
    kinds::Kinds,
    layers::Layers,
    manifest::Manifest,
    rule::{file, source::Origin},
};
use serde_json::json;

use super::*;
use crate::children::tests::instance;
use crate::instance::Engine;
use crate::names::COMBINED;
use crate::needs::{Known, Rules};
use crate::object::Object;

/// What these rules need, as objects of the cluster in their first version.
pub(crate) fn needs(instance: &Instance, text: &str) -> Needs {
    needs_of(instance, &instance.engines(), text)
}

fn needs_of(instance: &Instance, engines: &[Engine], text: &str) -> Needs {
    let mut rules = Rules::default();
    rules.set_kinds(Arc::new(Kinds::builtin().clone()));
    let read = file::read(&Manifest::new("rules.yaml", text.as_bytes().to_vec()));
    let mut seen = BTreeSet::new();
    for mut source in read.sources {
        let (id, uid) = (source.id.clone(), format!("uid-{}", source.id.name));
        source.origin = Origin::Cluster { uid: uid.clone() };
        source.generation = 1;
        seen.insert(id.clone());
        rules.set(id, Some(Known::new(String::new(), (uid, 1), BTreeMap::new(), Some(source))));
    }
    for plural in ["portalclusterrules", "portalrules"] {
        rules.set_listed(plural, &seen, |id| id.namespace.is_some() == (plural == "portalrules"));
    }
    rules.needs(instance, engines, |_| None).unwrap()
}

pub(crate) const RULES: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: secrets}
spec:
  match: {gvk: [{kind: ServiceAccount}]}
  rule: len(cluster.secrets.list(metadata.namespace)) > 100
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: services, annotations: {portal.io/category: Network/Ports}}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: len(cluster.services.list(metadata.namespace)) > 100
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: shop}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: consistentCluster.leases.byName("shop", "x") != nil
"#;

/// Everything that these rules need is held, but for resources of these names.
fn held(needs: &Needs, but_for: &[&str]) -> Held {
    needs.grants.keys().map(|need| (need.clone(), !but_for.contains(&&*need.0.resource))).collect()
}

fn decide(spec: serde_json::Value, but_for: &[&str]) -> (Instance, Needs, Permissions) {
    let instance = instance(spec);
    let needs = needs(&instance, RULES);
    let permissions = Permissions::decide(&instance, &needs, &held(&needs, but_for), &BTreeMap::new());
    (instance, needs, permissions)
}

fn shown(permissions: &Permissions) -> String {
    let mut lines = Vec::new();
    for (layer, granted) in &permissions.granted {
        let layer = if *layer == COMBINED { String::new() } else { format!("{layer}: ") };
        for namespace in [None].into_iter().chain(granted.namespaces().into_iter().map(Some)) {
            for ((group, resource), (verbs, rules)) in granted.by_resource(namespace) {
                let (place, verbs) = (namespace.unwrap_or("*"), Vec::from_iter(verbs).join(","));
                lines.push(format!("{layer}{place} {group}/{resource} {verbs} {}", some_of(rules)));
            }
        }
    }
    let refused =
        permissions.refused.iter().map(|((permission, _), (refusal, _))| format!("{} {refusal:?}", permission.name()));
    let refused: BTreeSet<String> = refused.collect();
    lines.extend(refused);
    lines.join("\n")
}

fn told(spec: serde_json::Value, but_for: &[&str]) -> String {
    let (instance, needs, permissions) = decide(spec, but_for);
    let told = Verdicts::new(&instance, &needs, &permissions).denied;
    let told: Vec<String> = told.iter().map(|(rule, told)| format!("{rule}: {told}")).collect();
    for manifest in told.iter().flat_map(|told| told.split("---\n").skip(1)) {
        let _: serde_json::Value = serde_saphyr::from_str(manifest).unwrap();
    }
    told.join("\n")
}

#[test]
fn what_rules_need_is_granted_within_the_bounds() {
    let allowed = json!({ "rbac": { "allowedResources": [{ "group": "", "resource": "secrets" }] } });
    let denied = json!({ "rbac": { "deniedResources": [{ "group": "", "resource": "services" }] } });
    for (spec, but_for, expected) in [
        (
            json!({}),
            &[][..],
            expect![[r#"
            * /services get,list,watch services
            shop coordination.k8s.io/leases list shop/own
            secrets ByDefault"#]],
        ),
        (
            allowed.clone(),
            &[],
            expect![[r#"
            * /secrets get,list,watch secrets
            * /services get,list,watch services
            shop coordination.k8s.io/leases list shop/own"#]],
        ),
        (
            allowed,
            &["secrets"],
            expect![[r#"
            * /services get,list,watch services
            shop coordination.k8s.io/leases list shop/own
            secrets AboveCeiling"#]],
        ),
        (
            denied,
            &[],
            expect![[r#"
            shop coordination.k8s.io/leases list shop/own
            secrets ByDefault
            services ByInstance"#]],
        ),
        (
            json!({}),
            &["leases"],
            expect![[r#"
            * /services get,list,watch services
            leases.coordination.k8s.io AboveCeiling
            secrets ByDefault"#]],
        ),
        (json!({ "rbac": { "mode": "Manual" } }), &["services"], expect!["services ByHand(Manual)"]),
        // What only audit reads, admission is not given.
        (
            json!({ "mode": "split", "audit": { "enabled": true } }),
            &["leases"],
            expect![[r#"
                admission: * /services get,list,watch services
                audit: * /pods get,list,watch services
                audit: * /podtemplates get,list,watch services
                audit: * /replicationcontrollers get,list,watch services
                audit: * /serviceaccounts get,list,watch secrets
                audit: * /services get,list,watch services
                audit: * apps/daemonsets get,list,watch services
                audit: * apps/deployments get,list,watch services
                audit: * apps/replicasets get,list,watch services
                audit: * apps/statefulsets get,list,watch services
                audit: * batch/cronjobs get,list,watch services
                audit: * batch/jobs get,list,watch services
                leases.coordination.k8s.io AboveCeiling
                secrets ByDefault"#]],
        ),
    ] {
        expected.assert_eq(&shown(&decide(spec, but_for).2));
    }
}

#[test]
fn a_rule_that_lacks_something_is_told_what_to_apply() {
    let by_hand = json!({ "mode": "split", "audit": { "enabled": true }, "rbac": { "mode": "Manual" } });
    let denied = json!({ "rbac": { "deniedResources": [{ "group": "", "resource": "services" }] } });
    expect![[r#"
        secrets: the engine may not get, list, watch secrets in the whole cluster, which the rule needs; that is granted to nobody by default: allow it by `kubectl patch portalinstance default --type=merge --patch='{"spec":{"rbac":{"allowedResources":[{"group":"","resource":"secrets"}]}}}'`, and apply the role as somebody who may; the rule takes effect by itself then:
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: portal-ceiling-secrets
          labels: {rbac.portal.io/aggregate-to-ceiling: "true"}
        rules:
        - {apiGroups: [""], resources: ["secrets"], verbs: [get, list, watch]}

        shop/own: the engine may not list leases.coordination.k8s.io in namespace shop, which the rule needs; the operator may not do it itself, and so cannot grant it: apply this role as somebody who may; the rule takes effect by itself then:
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: portal-ceiling-shop-own
          labels: {rbac.portal.io/aggregate-to-ceiling: "true"}
        rules:
        - {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [list]}
    "#]].assert_eq(&told(json!({}), &["leases"]));
    expect![[r#"
        services: the engine may not get, list, watch services in the whole cluster, which the rule needs; `rbac.mode` of PortalInstance default is Manual: somebody else grants it; the rule takes effect by itself then:
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata: {name: portal-granted-default-admission-services}
        rules:
        - {apiGroups: [""], resources: ["services"], verbs: [get, list, watch]}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata: {name: portal-granted-default-admission-services}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: portal-granted-default-admission-services}
        subjects:
        - {kind: ServiceAccount, name: portal-default-admission, namespace: portal-system}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata: {name: portal-granted-default-audit-services}
        rules:
        - {apiGroups: [""], resources: ["services"], verbs: [get, list, watch]}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata: {name: portal-granted-default-audit-services}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: portal-granted-default-audit-services}
        subjects:
        - {kind: ServiceAccount, name: portal-default-audit, namespace: portal-system}

        shop/own: the engine may not list leases.coordination.k8s.io in namespace shop, which the rule needs; `rbac.mode` of PortalInstance default is Manual: somebody else grants it; the rule takes effect by itself then:
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata: {name: portal-granted-default-admission-shop-own, namespace: shop}
        rules:
        - {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [list]}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata: {name: portal-granted-default-admission-shop-own, namespace: shop}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: portal-granted-default-admission-shop-own}
        subjects:
        - {kind: ServiceAccount, name: portal-default-admission, namespace: portal-system}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata: {name: portal-granted-default-audit-shop-own, namespace: shop}
        rules:
        - {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [list]}
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata: {name: portal-granted-default-audit-shop-own, namespace: shop}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: portal-granted-default-audit-shop-own}
        subjects:
        - {kind: ServiceAccount, name: portal-default-audit, namespace: portal-system}
    "#]].assert_eq(&told(by_hand, &["services", "leases"]));
    expect![[r#"
        secrets: the engine may not get, list, watch secrets in the whole cluster, which the rule needs; that is granted to nobody by default: allow it by `kubectl patch portalinstance default --type=merge --patch='{"spec":{"rbac":{"allowedResources":[{"group":"","resource":"secrets"}]}}}'`, and apply the role as somebody who may; the rule takes effect by itself then:
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: portal-ceiling-secrets
          labels: {rbac.portal.io/aggregate-to-ceiling: "true"}
        rules:
        - {apiGroups: [""], resources: ["secrets"], verbs: [get, list, watch]}

        services: the engine may not get, list, watch services in the whole cluster, which the rule needs; `rbac.deniedResources` of PortalInstance default names services: take it out there"#]].assert_eq(&told(denied, &[]));
}

#[test]
fn what_is_needed_no_more_stays_for_a_while_and_what_nobody_knows_is_not_decided() {
    let (instance, needs, _) = decide(json!({}), &[]);
    let before = held(&needs, &[]);
    let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let mut memory = crate::observed::Memory::default();
    let mut observed = Observed::nothing(now, std::time::Duration::ZERO);
    memory.needs(&needs, &instance, &observed);
    let nothing = self::needs(&instance, "");
    observed.now = now + SignedDuration::from_secs(80);
    memory.needs(&nothing, &instance, &observed);
    let permissions = Permissions::decide(&instance, &nothing, &before, &memory.needed);
    assert!(permissions.of(COMBINED).0.keys().any(|(permission, _)| permission.resource == "services"));
    assert!(permissions.refused.is_empty() && !permissions.is_incomplete);
    observed.now = now + SignedDuration::from_secs(100);
    memory.needs(&nothing, &instance, &observed);
    assert_eq!(memory.needed, BTreeMap::new());
    assert!(Permissions::decide(&instance, &needs, &Held::new(), &memory.needed).is_incomplete);
}

#[test]
fn rules_of_a_namespace_act_only_if_the_instance_says_so() {
    const ACTING: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: shop}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: container.securityContext.privileged == true
  actions: [{type: evict}]
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: all}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: container.securityContext.privileged == true
  actions: [{type: label, key: bad, value: "yes"}]
"#;
    let on = json!({ "enabled": true, "allowed": ["evict", "label"] });
    let on_in_namespaces = json!({ "enabled": true, "allowed": ["evict", "label"], "namespaced": true });
    // As if the layer existed, and as it is.
    for (actions, layers, expected) in [
        (
            on.clone(),
            Layers::ALL,
            expect![[r#"
                * /pods get,list,patch,watch all
                * /podtemplates get,list,patch,watch all
                * /replicationcontrollers get,list,patch,watch all
                * apps/daemonsets get,list,patch,watch all
                * apps/deployments get,list,patch,watch all
                * apps/replicasets get,list,patch,watch all
                * apps/statefulsets get,list,patch,watch all
                * batch/cronjobs get,list,patch,watch all
                * batch/jobs get,list,patch,watch all
                pods/eviction NamespacedAction"#]],
        ),
        (
            on_in_namespaces.clone(),
            Layers::ALL,
            expect![[r#"
                * /pods get,list,patch,watch all
                * /podtemplates get,list,patch,watch all
                * /replicationcontrollers get,list,patch,watch all
                * apps/daemonsets get,list,patch,watch all
                * apps/deployments get,list,patch,watch all
                * apps/replicasets get,list,patch,watch all
                * apps/statefulsets get,list,patch,watch all
                * batch/cronjobs get,list,patch,watch all
                * batch/jobs get,list,patch,watch all
                shop /pods/eviction create shop/own"#]],
        ),
        (on, Layers { admission: true, ..Layers::default() }, expect![""]),
        (on_in_namespaces, Layers { admission: true, ..Layers::default() }, expect![""]),
    ] {
        let instance = instance(json!({ "actions": actions }));
        let engine = Engine { layers, ..instance.engines().remove(0) };
        let needs = needs_of(&instance, &[engine], ACTING);
        let permissions = Permissions::decide(&instance, &needs, &held(&needs, &[]), &BTreeMap::new());
        expected.assert_eq(&shown(&permissions));
        let told = Verdicts::new(&instance, &needs, &permissions).denied;
        let is_told = told.values().any(|told| told.contains("set `actions.namespaced: true` there"));
        assert_eq!(is_told, permissions.refused.values().any(|(refusal, _)| *refusal == Refusal::NamespacedAction));
    }
}

#[test]
fn a_rule_that_only_audit_cannot_follow_says_that_it_is_enforced() {
    const JUDGING: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: judges}
spec:
  match: {gvk: [{kind: Secret}]}
  rule: metadata.labels.owner == nil
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: looks-up}
spec:
  match: {gvk: [{kind: ServiceAccount}]}
  rule: len(cluster.secrets.list(metadata.namespace)) > 100
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: only-audits}
spec:
  match: {gvk: [{kind: Secret}]}
  mode: [audit]
  rule: metadata.labels.owner == nil
"#;
    for mode in ["combined", "split"] {
        let instance = instance(json!({ "mode": mode, "audit": { "enabled": true } }));
        let needs = needs(&instance, JUDGING);
        let permissions = Permissions::decide(&instance, &needs, &held(&needs, &[]), &BTreeMap::new());
        let told = Verdicts::new(&instance, &needs, &permissions).denied;
        let is_told = |told: &String| told.contains("requests are judged by it all the same");
        let told: Vec<(String, bool)> = told.iter().map(|(rule, told)| (rule.to_string(), is_told(told))).collect();
        let expected = [("judges", true), ("looks-up", false), ("only-audits", false)];
        assert_eq!(told, expected.map(|(rule, is_enforced)| (rule.to_owned(), is_enforced)));
    }
}

/// What is told of the rules if these objects are there, and this step has failed last.
fn told_by_roles(objects: Vec<Object>, failure: Option<&Failure>) -> String {
    let instance = instance(json!({}));
    let needs = needs(&instance, RULES);
    let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let mut observed = Observed::nothing(now, std::time::Duration::ZERO);
    observed.held = held(&needs, &[]);
    observed.objects = objects.into_iter().map(|object| (object.key.clone(), Arc::new(object))).collect();
    let permissions = Permissions::judge(&instance, &needs, &observed);
    let verdicts = Verdicts::new(&instance, &needs, &permissions);
    let verdicts = verdicts.by_roles(&instance, &permissions, &observed, failure);
    let told = verdicts.rules.iter().map(|rule| {
        let told = match verdicts.denied.get(&rule.id) {
            Some(told) => told.lines().next().unwrap().split("; ").nth(1).unwrap().to_owned(),
            None if verdicts.pending.contains(&rule.id) => "…".to_owned(),
            None => "granted".to_owned(),
        };
        format!("{}: {told}", rule.id)
    });
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_right_is_granted_when_a_role_gives_it() {
    let object = |kind, metadata: serde_json::Value, rules: serde_json::Value| {
        Object::from_value(kind, json!({ "metadata": metadata, "rules": rules }))
    };
    let shop = || object(Kind::Namespace, json!({ "name": "shop" }), json!(null));
    let ending = "2027-01-01T00:00:00Z";
    let ends = object(Kind::Namespace, json!({ "name": "shop", "deletionTimestamp": ending }), json!(null));
    let services = || {
        let rules =
            json!([{ "apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"] }]);
        object(Kind::ClusterRole, json!({ "name": "portal-default" }), rules)
    };
    let cluster_binding = || object(Kind::ClusterRoleBinding, json!({ "name": "portal-default" }), json!(null));
    let own = json!({ "name": "portal-default", "namespace": "shop" });
    let leases = |group: &str| {
        let rules = json!([{ "apiGroups": [group], "resources": ["leases"], "verbs": ["list"] }]);
        vec![object(Kind::Role, own.clone(), rules), object(Kind::RoleBinding, own.clone(), json!(null))]
    };
    let secrets = "secrets: that is granted to nobody by default: allow it by `kubectl patch portalinstance default --type=merge \
                   --patch='{\"spec\":{\"rbac\":{\"allowedResources\":[{\"group\":\"\",\"resource\":\"secrets\"}]}}}'`, and apply the role as \
                   somebody who may\n";
    let failure = Failure {
        subject: role_key("portal-default", Some("shop")).to_string(),
        reason: NOT_ALLOWED,
        message: "attempting to grant what is not held".to_owned(),
        times: 1,
        until: "2027-01-01T00:00:02Z".parse().unwrap(),
    };
    let all = || [vec![shop(), services(), cluster_binding()], leases("coordination.k8s.io")].concat();
    for (objects, failure, expected) in [
        (vec![shop()], None, "services: …\nshop/own: …"),
        // Its watch has not told of the namespace of a rule yet.
        (Vec::new(), None, "services: …\nshop/own: …"),
        (vec![shop(), services()], None, "services: …\nshop/own: …"),
        (vec![shop(), services(), cluster_binding()], None, "services: granted\nshop/own: …"),
        ([all(), leases("")].concat(), None, "services: granted\nshop/own: …"),
        (all(), None, "services: granted\nshop/own: granted"),
        (
            vec![shop()],
            Some(&failure),
            "services: …\nshop/own: the role that gives it is refused: attempting to grant what is not held",
        ),
        // What is there is there, whatever became of a further step.
        (all(), Some(&failure), "services: granted\nshop/own: granted"),
        (
            vec![ends],
            None,
            "services: …\nshop/own: namespace shop is being deleted, and nothing is granted there any more",
        ),
    ] {
        assert_eq!(told_by_roles(objects, failure), format!("{secrets}{expected}"));
    }
}

#[test]
fn a_rule_for_a_kind_that_nobody_serves_needs_nothing_and_changes_nothing_for_others() {
    const WIDGETS: &str = r#"
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: widgets}
spec:
  match: {gvk: [{group: acme.io, kind: Widget}]}
  rule: len(cluster.configmaps.list(metadata.namespace)) > 100
"#;
    let instance = instance(json!({}));
    let (alone, all) = (needs(&instance, RULES), needs(&instance, &format!("{RULES}{WIDGETS}")));
    assert_eq!(all.grants, alone.grants);
    assert_eq!((all.counts.loaded, all.counts.refused), (alone.counts.loaded, 1));
}
