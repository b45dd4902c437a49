//! The manifests of the operator on a real API server: what they make, and what an account with exactly its rights can do.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portal_core::permissions;
use portal_operator::names::{OPERATOR, account};
use portal_operator::object::{Kind, Object};
use portal_test_kit::{Cluster, repository};
use serde_json::{Value, json};

use super::{eventually, rules};

const IMAGE: &str = "registry.example/portal:v1";

/// What the program prints.
pub(crate) fn generate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_portal")).arg("generate").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Applies a manifest as users are told to. A warning is a failure.
pub(crate) fn apply(cluster: &Cluster, manifest: &str) {
    use std::io::Write as _;
    let mut child = cluster
        .kubectl_command()
        .args(["apply", "--server-side", "--filename", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Which version of each object of a manifest is stored.
fn versions(cluster: &Cluster, manifest: &str) -> String {
    let shown = "jsonpath={range .items[*]}{.kind} {.metadata.namespace} {.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}";
    let found = cluster.kubectl_with_input(&["get", "--filename", "-", "--output", shown], manifest).unwrap();
    assert_eq!(found.lines().count(), manifest.split("---\n").count(), "{found}");
    found
}

/// The shared cluster, with the definitions and the operator installed.
pub(crate) fn cluster() -> &'static Cluster {
    static INSTALLED: OnceLock<&Cluster> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let cluster = rules::cluster();
        apply(cluster, &generate(&["install", "--image", IMAGE]));
        // The authorizer learns of bindings by a watch. The last one that is made is for the engine's namespace.
        eventually("the operator has its rights", || {
            let who = format!("--as={}", operator());
            cluster
                .kubectl(&["auth", "can-i", "create", "deployments", "--namespace=portal-system", &who])
                .is_ok_and(|answer| answer.trim() == "yes")
        });
        cluster
    })
}

fn operator() -> String {
    account("portal-operator", OPERATOR)
}

/// A client with the rights of an account and no others.
pub(crate) async fn client_of(cluster: &Cluster, account: &str) -> Client {
    cluster.client_as(account, &["system:serviceaccounts", "system:authenticated"]).await
}

/// Whether a client may do something: a verb, a resource as in `secrets`, `deployments.apps` or `pods/exec`, and where.
pub(crate) async fn may(client: &Client, verb: &str, resource: &str, namespace: &str) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let some = |text: &str| Some(text.to_owned());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: some(verb),
                group: some(group),
                resource: some(resource),
                subresource: some(subresource),
                namespace: some(namespace),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

fn api(client: Client, object: &Object) -> Api<DynamicObject> {
    let resource = object.key.kind.resource();
    match &object.key.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Makes an object as the operator does. An error is what the API server says.
pub(crate) async fn make(client: &Client, object: &Object) -> Result<(), String> {
    let params = PatchParams::apply("portal-operator").force();
    let patch = Patch::Apply(&object.value);
    match api(client.clone(), object).patch(&object.key.name, &params, &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("{error}"),
    }
}

fn role(kind: Kind, name: &str, namespace: Option<&str>, rules: Value) -> Object {
    Object::from_value(kind, json!({ "metadata": { "name": name, "namespace": namespace }, "rules": rules }))
}

fn rule(group: &str, resource: &str, verb: &str) -> Value {
    json!([{ "apiGroups": [group], "resources": [resource], "verbs": [verb] }])
}

#[tokio::test]
async fn manifests_apply_without_a_warning_and_a_second_time_change_nothing() {
    let cluster = cluster();
    let namespace = cluster.namespace("granted-twice").await;
    for manifest in [
        generate(&["install", "--image", IMAGE]),
        generate(&["namespace-grant", &namespace.name]),
        generate(&["action-roles"]),
        generate(&["report-crds"]),
    ] {
        apply(cluster, &manifest);
        // The API server adds to a definition what it has made of it, a moment later.
        let waits = ["wait", "--for=condition=Established", "--timeout=30s", "--filename", "-"];
        if manifest.contains("kind: CustomResourceDefinition") {
            cluster.kubectl_with_input(&waits, &manifest).unwrap();
        }
        let before = versions(cluster, &manifest);
        apply(cluster, &manifest);
        assert_eq!(versions(cluster, &manifest), before);
    }
}

#[tokio::test]
async fn the_operator_may_do_its_work_and_nothing_beside_it() {
    let cluster = cluster();
    let namespace = cluster.namespace("elsewhere").await;
    let client = client_of(cluster, &operator()).await;
    let elsewhere = namespace.name.as_str();
    let mut wrong = Vec::new();
    for (verbs, resources, place, expected) in [
        ("get list watch patch update", "portalinstances.portal.io", "", true),
        ("create delete bypass", "portalinstances.portal.io", "", false),
        ("patch update", "portalinstances.portal.io/status", "", true),
        ("update", "portalinstances.portal.io/finalizers", "", true),
        ("get list watch", "portalclusterrules.portal.io portalrules.portal.io", "", true),
        ("create update patch delete", "portalclusterrules.portal.io portalrules.portal.io", "", false),
        (
            "get list watch",
            "namespaces nodes pods configmaps deployments.apps roles.rbac.authorization.k8s.io",
            "",
            true,
        ),
        ("create update patch delete", "namespaces nodes pods configmaps services serviceaccounts", "", false),
        (
            "create update patch delete",
            "deployments.apps daemonsets.apps jobs.batch networkpolicies.networking.k8s.io",
            "",
            false,
        ),
        ("get list watch create update patch delete", "secrets", "", false),
        ("get list watch create update patch delete", "secrets", elsewhere, false),
        ("get list watch create update patch delete", "secrets", "kube-system", false),
        ("get list watch create update patch delete", "secrets", "portal-operator", true),
        ("get list watch create update patch delete", "secrets", "portal-system", true),
        ("create patch delete", "services serviceaccounts deployments.apps", elsewhere, false),
        ("create patch delete", "services serviceaccounts deployments.apps", "portal-operator", false),
        ("create patch delete", "services serviceaccounts deployments.apps", "portal-system", true),
        ("create patch delete", "poddisruptionbudgets.policy networkpolicies.networking.k8s.io", "portal-system", true),
        (
            "create patch delete",
            "servicemonitors.monitoring.coreos.com certificates.cert-manager.io",
            "portal-system",
            true,
        ),
        ("create patch delete", "configmaps", "portal-system", true),
        ("create patch delete", "configmaps", elsewhere, false),
        ("create patch delete", "pods", "portal-system", false),
        ("get create update", "leases.coordination.k8s.io", "portal-operator", true),
        ("create update patch delete", "leases.coordination.k8s.io", elsewhere, false),
        (
            "create",
            "pods/exec pods/attach pods/portforward pods/eviction serviceaccounts/token",
            "portal-system",
            false,
        ),
        ("create update patch delete", "validatingwebhookconfigurations.admissionregistration.k8s.io", "", true),
        ("create update patch", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "", false),
        ("create update patch", "validatingadmissionpolicies.admissionregistration.k8s.io", "", true),
        ("delete", "validatingadmissionpolicies.admissionregistration.k8s.io", "", false),
        ("create update patch delete", "customresourcedefinitions.apiextensions.k8s.io", "", false),
        (
            "create update patch delete",
            "clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io",
            "",
            true,
        ),
        ("escalate bind", "clusterroles.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io", "", false),
        ("impersonate", "users groups serviceaccounts", "", false),
    ] {
        for resource in resources.split(' ') {
            for verb in verbs.split(' ') {
                if may(&client, verb, resource, place).await != expected {
                    wrong.push(format!("{verb} {resource} in `{place}`: expected {expected}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_operator_can_give_engines_their_roles_and_no_more_than_it_holds() {
    let cluster = cluster();
    let client = client_of(cluster, &operator()).await;
    let roles = permissions::roles("granted", "portal-granted", "portal-system", "portal-granted", None);
    for object in [
        Object::of(Kind::ClusterRole, &roles.cluster_role),
        Object::of(Kind::Role, &roles.role),
        Object::of(Kind::ClusterRoleBinding, &roles.cluster_binding),
        Object::of(Kind::RoleBinding, &roles.binding),
        role(Kind::ClusterRole, "portal-granted-rules", None, rule("gateway.networking.k8s.io", "httproutes", "list")),
    ] {
        assert_eq!(make(&client, &object).await, Ok(()), "{}", object.key);
        // Roles are compared as a whole, and replaced.
        let api = api(client.clone(), &object);
        let stored = api.get(&object.key.name).await.unwrap();
        api.replace(&object.key.name, &PostParams::default(), &stored).await.unwrap();
    }

    let held = "attempting to grant RBAC permissions not currently held";
    let subject = json!([{ "kind": "ServiceAccount", "name": OPERATOR, "namespace": "portal-operator" }]);
    let bound = |kind: Kind, namespace: Option<&str>, to: &str| {
        Object::from_value(
            kind,
            json!({
                "metadata": { "name": "portal-more", "namespace": namespace },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to },
                "subjects": subject,
            }),
        )
    };
    let mut collected = role(Kind::ClusterRole, "portal-more", None, rule("", "secrets", "get"));
    collected.value["metadata"]["labels"] = json!({ "rbac.portal.io/aggregate-to-ceiling": "true" });
    let mut collecting = role(Kind::ClusterRole, "portal-more", None, Value::Null);
    collecting.value["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    for (object, words) in [
        (role(Kind::ClusterRole, "portal-more", None, rule("", "secrets", "get")), held),
        (role(Kind::ClusterRole, "portal-more", None, rule("*", "*", "get")), held),
        (role(Kind::ClusterRole, "portal-more", None, rule("", "pods/exec", "create")), held),
        (role(Kind::ClusterRole, "portal-more", None, rule("", "pods/eviction", "create")), held),
        (role(Kind::ClusterRole, "portal:operator", None, rule("apps", "deployments", "patch")), held),
        (role(Kind::Role, "portal-more", Some("default"), rule("", "secrets", "get")), held),
        (role(Kind::Role, "portal-more", Some("kube-system"), rule("apps", "deployments", "create")), held),
        (bound(Kind::ClusterRoleBinding, None, "cluster-admin"), held),
        (bound(Kind::RoleBinding, Some("default"), "cluster-admin"), held),
        (bound(Kind::ClusterRoleBinding, None, "system:kube-controller-manager"), held),
        (collected, held),
        (collecting, "must have cluster-admin privileges to use the aggregationRule"),
    ] {
        let made = make(&client, &object).await;
        assert!(made.as_ref().is_err_and(|refusal| refusal.contains(words)), "{}: {made:?}", object.value);
    }
}

#[tokio::test]
async fn the_operator_writes_nothing_in_namespaces_that_it_was_not_given() {
    let cluster = cluster();
    let namespace = cluster.namespace("given").await;
    let client = client_of(cluster, &operator()).await;
    let objects = |namespace: &str| {
        let object = |kind: Kind, rest: Value| {
            let mut value = rest;
            value["metadata"] = json!({ "name": "portal-tried", "namespace": namespace });
            Object::from_value(kind, value)
        };
        let labels = json!({ "app": "a" });
        let pod = json!({ "containers": [{ "name": "a", "image": "a" }] });
        [
            object(Kind::Secret, json!({})),
            object(Kind::ServiceAccount, json!({})),
            object(Kind::Service, json!({ "spec": { "ports": [{ "port": 443 }] } })),
            object(
                Kind::Deployment,
                json!({ "spec": {
                    "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels }, "spec": pod },
                } }),
            ),
        ]
    };
    for object in objects(&namespace.name).iter().chain(&objects("kube-system")) {
        let refusal = make(&client, object).await.unwrap_err();
        assert!(refusal.contains("is forbidden") && refusal.contains(&operator()), "{}: {refusal}", object.key);
    }

    apply(cluster, &generate(&["namespace-grant", &namespace.name]));
    for _ in 0..200 {
        if may(&client, "patch", "deployments.apps", &namespace.name).await {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for object in objects(&namespace.name) {
        assert_eq!(make(&client, &object).await, Ok(()), "{}", object.key);
    }
    // An engine there can be given its roles too.
    let roles = permissions::roles("given", "portal-given", &namespace.name, "portal-given", None);
    assert_eq!(make(&client, &Object::of(Kind::Role, &roles.role)).await, Ok(()));
}

#[tokio::test]
async fn an_engine_writes_neither_roles_nor_webhook_configurations() {
    let cluster = cluster();
    let roles = permissions::roles("engine", "portal-engine", "portal-system", "portal-engine", None);
    let client = client_of(cluster, &operator()).await;
    for object in [
        Object::of(Kind::ClusterRole, &roles.cluster_role),
        Object::of(Kind::Role, &roles.role),
        Object::of(Kind::ClusterRoleBinding, &roles.cluster_binding),
        Object::of(Kind::RoleBinding, &roles.binding),
    ] {
        assert_eq!(make(&client, &object).await, Ok(()), "{}", object.key);
    }
    let engine = client_of(cluster, &account("portal-system", "portal-engine")).await;
    for _ in 0..200 {
        if may(&engine, "create", "leases.coordination.k8s.io", "portal-system").await {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(may(&engine, "list", "portalrules.portal.io", "").await);
    for resource in [
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "secrets",
        "deployments.apps",
        "portalinstances.portal.io",
        "portalrules.portal.io",
    ] {
        for verb in ["create", "update", "patch", "delete"] {
            assert!(!may(&engine, verb, resource, "portal-system").await, "{verb} {resource}");
        }
    }
}

#[tokio::test]
async fn reports_are_stored_as_their_readers_expect_them() {
    let cluster = cluster();
    let manifest = generate(&["report-crds"]);
    apply(cluster, &manifest);
    let waits = ["wait", "--for=condition=Established", "--timeout=30s", "--filename", "-"];
    cluster.kubectl_with_input(&waits, &manifest).unwrap();
    let namespace = cluster.namespace("reports").await;
    let report = |head: Value| {
        let mut report = head;
        report["metadata"] = json!({ "name": "one" });
        report["scope"] = json!({ "apiVersion": "v1", "kind": "Namespace", "name": "shop" });
        report["summary"] = json!({ "pass": 0, "fail": 1, "warn": 2, "error": 3, "skip": 4 });
        report["results"] = json!([{
            "source": "portal", "policy": "no-privileged", "rule": "a", "category": "b", "severity": "high", "result": "fail",
            "scored": true, "message": "container app is privileged", "timestamp": { "seconds": 1700000000, "nanos": 7 },
            "resources": [{ "apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "c" }],
            "properties": { "d": "e" },
        }]);
        report
    };
    for (short, report) in [
        ("polr", report(json!({ "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport" }))),
        ("cpolr", report(json!({ "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "ClusterPolicyReport" }))),
        ("reps", report(json!({ "apiVersion": "openreports.io/v1alpha1", "kind": "Report", "source": "portal" }))),
        (
            "creps",
            report(json!({
                "apiVersion": "openreports.io/v1alpha1", "kind": "ClusterReport",
                "configuration": { "limits": { "maxResults": 7, "statusFilter": ["fail"] } },
            })),
        ),
    ] {
        let mut applied = namespace.apply(&report.to_string());
        eventually("the kind is served", || {
            applied = namespace.apply(&report.to_string());
            applied.is_ok()
        });
        let stored: Value =
            serde_json::from_str(&namespace.kubectl(&["get", short, "one", "--output=json"]).unwrap()).unwrap();
        for (field, value) in report.as_object().unwrap().iter().filter(|(field, _)| *field != "metadata") {
            assert_eq!(&stored[field], value, "{short} {field}");
        }
        let table = namespace.kubectl(&["get", short, "one"]).unwrap();
        let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells[..6], ["one", "0", "1", "2", "3", "4"]);
        let mut wrong = report.clone();
        wrong["results"][0]["result"] = "broken".into();
        let refusal = namespace.apply(&wrong.to_string()).unwrap_err().to_string();
        assert!(refusal.contains(r#"supported values: "pass", "fail", "warn", "error", "skip""#), "{refusal}");
    }
}

fn make_manifests(folder: &str, image: &str) -> std::process::Output {
    Command::new("make")
        .args(["--no-print-directory", "install-manifest"])
        .args([format!("DIST={folder}"), format!("IMAGE={image}"), format!("PORTAL={}", env!("CARGO_BIN_EXE_portal"))])
        .current_dir(repository())
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap()
}

#[test]
fn kustomize_builds_the_folder_of_manifests() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dist");
    let path = path.to_str().unwrap();
    let output = make_manifests(path, IMAGE);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<_> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["action-roles.yaml", "crds.yaml", "install.yaml", "kustomization.yaml", "report-crds.yaml"]);

    let kinds = |built: &str| built.lines().filter(|line| line.starts_with("kind: ")).count();
    let count = |manifest: &str| manifest.split("---\n").count();
    let install = generate(&["install", "--image", IMAGE]);
    assert_eq!(std::fs::read_to_string(format!("{path}/install.yaml")).unwrap(), install);
    let built = cluster.kubectl(&["kustomize", path]).unwrap();
    assert_eq!(kinds(&built), count(&install));
    assert!(!built.contains("CustomResourceDefinition"), "what deletes the operator must not delete rules");

    // With everything that it offers, and moved elsewhere as users do.
    let kustomization = format!("{path}/kustomization.yaml");
    let text = std::fs::read_to_string(&kustomization).unwrap().replace("# - ", "- ");
    std::fs::write(&kustomization, text + "commonAnnotations: {team: platform}\n").unwrap();
    let built = cluster.kubectl(&["kustomize", path]).unwrap();
    let all = [&install, &generate(&["crds"]), &generate(&["action-roles"]), &generate(&["report-crds"])];
    assert_eq!(kinds(&built), all.iter().map(|manifest| count(manifest)).sum::<usize>());
    cluster.kubectl(&["apply", "--server-side", "--dry-run=server", "--force-conflicts", "--kustomize", path]).unwrap();
}

#[test]
fn a_folder_of_manifests_needs_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let output = make_manifests(folder.path().to_str().unwrap(), "");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "say which image to install: make install-manifest IMAGE=registry.example/portal:v1\n";
    assert!(said.starts_with(expected), "{said}");
}
