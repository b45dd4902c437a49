//! What the operator makes, on a real API server: it stores what is applied in the very form in which it is applied, and the guard of the
//! bypass holds on every path.

use std::fs;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use portal_core::kinds::Kinds;
use portal_core::language::ExprEngine;
use portal_core::layers::Layers;
use portal_core::requirements::Requirements;
use portal_core::rule::{compile::compile, load::load, source::Origin};
use portal_document::{Options, from_yaml};
use portal_operator::children::webhook::Around;
use portal_operator::children::{children, guard, webhook_configuration, webhook_settings};
use portal_operator::compare::is_as_wanted;
use portal_operator::instance::{Instance, OperatorSettings};
use portal_operator::names::MANAGER;
use portal_operator::object::{Kind, Object};
use portal_operator::permissions::Permissions;
use portal_test_kit::{Cluster, Size, repository};
use serde_json::{Value, json};

pub(crate) fn operator() -> OperatorSettings {
    OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "registry.example/portal:v1".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

/// An instance with all defaults.
fn with_defaults(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance",
        "metadata": { "name": name, "uid": "6f1c0f2e-0000-4000-8000-000000000000" },
        "spec": { "namespace": namespace },
    })
}

/// An instance that says something in every field, with one Deployment so that it is the same one as with defaults.
fn with_every_field(name: &str, namespace: &str) -> Value {
    let path = repository().join("operator/src/children/tests/every-field.json");
    let mut instance: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    instance["metadata"] = with_defaults(name, namespace)["metadata"].clone();
    instance["spec"]["namespace"] = namespace.into();
    instance["spec"]["mode"] = "combined".into();
    instance
}

/// The children whose kinds every API server has.
fn made(instance: &Value) -> Vec<Object> {
    let children = children(&Instance::read(instance).unwrap(), &Permissions::default(), &operator());
    let is_served = |object: &&Object| object.key.kind.group() != "monitoring.coreos.com";
    children.iter().filter(is_served).cloned().collect()
}

fn api(client: &Client, object: &Object) -> Api<DynamicObject> {
    let resource = object.key.kind.resource();
    match &object.key.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// What the API server makes of an object.
async fn apply(client: &Client, object: &Object, dry_run: bool) -> Value {
    let parameters = PatchParams { dry_run, ..PatchParams::apply(MANAGER).force() };
    let applied = api(client, object).patch(&object.key.name, &parameters, &Patch::Apply(&object.value)).await;
    serde_json::to_value(applied.unwrap_or_else(|error| panic!("{}: {error}", object.key))).unwrap()
}

/// Where what is stored does not have what was applied.
pub(crate) fn lost(path: &str, applied: &Value, stored: &Value, found: &mut Vec<String>) {
    match (applied, stored) {
        (Value::Object(fields), Value::Object(stored)) => {
            for (name, value) in fields {
                lost(&format!("{path}.{name}"), value, stored.get(name).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(items), Value::Array(stored)) if items.len() == stored.len() => {
            for (number, (item, stored)) in items.iter().zip(stored).enumerate() {
                lost(&format!("{path}[{number}]"), item, stored, found);
            }
        }
        _ if applied == stored => {}
        _ => found.push(format!("{path}: {applied} is stored as {stored}")),
    }
}

#[tokio::test]
async fn every_child_is_stored_as_it_is_applied() {
    let cluster = Cluster::shared(Size::Core);
    let client = cluster.client().await;
    let namespace = cluster.namespace("children").await;
    let mut found = Vec::new();
    for instance in [with_defaults("stored", &namespace.name), with_every_field("stored-every", &namespace.name)] {
        for object in made(&instance) {
            let stored = apply(&client, &object, false).await;
            lost(&object.key.to_string(), &object.value, &stored, &mut found);
        }
        let instance = Instance::read(&instance).unwrap();
        let around = Around { instances: &[], operator: &operator(), ca_bundle: b"", namespace_uid: &instance.uid };
        let configuration = webhook_configuration(&requirements(), &webhook_settings(&instance, &around));
        // It would be asked, and nobody answers.
        let stored = apply(&client, &configuration, true).await;
        lost(&configuration.key.to_string(), &configuration.value, &stored, &mut found);
    }
    for object in guard() {
        let stored = apply(&client, &object, false).await;
        lost(&object.key.to_string(), &object.value, &stored, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

fn requirements() -> Requirements {
    let rule = "name: pods\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork";
    let documents = from_yaml(rule, &Options::default()).unwrap();
    let origin = Origin::File { path: "rule.yaml".to_owned(), line: 1 };
    let source = load(documents[0].document.root(), origin, Vec::new()).unwrap();
    let (rules, _) = compile(&[source], Kinds::builtin(), &ExprEngine);
    Requirements::of(&rules, Layers { admission: true, ..Layers::default() })
}

/// What the API server fills in for one spec must not stay when another one is applied.
#[tokio::test]
async fn the_same_spec_leads_to_the_same_children_whatever_was_there_before() {
    let cluster = Cluster::shared(Size::Core);
    let client = cluster.client().await;
    let namespace = cluster.namespace("histories").await;
    let (usual, every) = (with_defaults("history", &namespace.name), with_every_field("history", &namespace.name));
    let mut first: Vec<(Object, Value)> = Vec::new();
    for object in made(&usual) {
        let stored = apply(&client, &object, false).await;
        first.push((object, stored));
    }
    for object in made(&every) {
        apply(&client, &object, false).await;
    }
    for (object, before) in first {
        let mut after = apply(&client, &object, false).await;
        let mut before = before;
        for value in [&mut before, &mut after] {
            value["metadata"] = Value::Null;
            value["status"] = Value::Null;
        }
        assert_eq!(before, after, "{}", object.key);
    }
}

/// A child as a newer version of the operator might apply it.
fn newer(object: &Object) -> Object {
    let mut newer = object.clone();
    for part in ["labels", "annotations"] {
        newer.value["metadata"][part]["portal.io/later"] = "x".into();
    }
    match object.key.kind {
        Kind::Deployment => {
            let pod = &mut newer.value["spec"]["template"]["spec"];
            pod["shareProcessNamespace"] = true.into();
            pod["volumes"].as_array_mut().unwrap().push(json!({ "name": "later", "emptyDir": {} }));
            let container = &mut pod["containers"][0];
            container["args"].as_array_mut().unwrap().push("--later".into());
            container["env"].as_array_mut().unwrap().push(json!({ "name": "PORTAL_LATER", "value": "x" }));
            container["volumeMounts"].as_array_mut().unwrap().push(json!({ "name": "later", "mountPath": "/later" }));
        }
        Kind::Service => {
            let port = json!({ "name": "later", "port": 9999, "protocol": "TCP", "targetPort": "later" });
            newer.value["spec"]["ports"].as_array_mut().unwrap().push(port);
        }
        _ => {}
    }
    newer
}

#[tokio::test]
async fn what_a_newer_operator_has_applied_is_seen_by_an_older_one_and_goes() {
    let cluster = Cluster::shared(Size::Core);
    let client = cluster.client().await;
    let namespace = cluster.namespace("newer").await;
    for object in made(&with_defaults("newer", &namespace.name)) {
        let stored = |value| Object::from_value(object.key.kind, value);
        let mut before = stored(apply(&client, &object, false).await);
        assert!(is_as_wanted(&before, &object, None), "{}", object.key);
        let changed = stored(apply(&client, &newer(&object), false).await);
        assert!(!is_as_wanted(&changed, &object, None), "{}", object.key);
        let mut after = stored(apply(&client, &object, false).await);
        for object in [&mut before, &mut after] {
            object.value["status"] = Value::Null;
            let metadata = object.value["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| ["labels", "annotations"].contains(&name.as_str()));
        }
        // The Deployment controller does not run, and nobody else writes.
        assert_eq!(before.value, after.value, "{}", object.key);
    }
}

/// Somebody who may do everything with namespaces, and whether they may set the mark.
struct Person {
    namespaces: Api<Namespace>,
    client: Client,
}

impl Person {
    async fn new(cluster: &Cluster, name: &str, may_bypass: bool) -> Person {
        let subresources = "--resource=namespaces,namespaces/status,namespaces/finalize";
        let verbs = "--verb=get,create,update,patch,delete";
        let role = format!("{name}-namespaces");
        let user = format!("--user={name}");
        cluster.kubectl(&["create", "clusterrole", &role, verbs, subresources]).unwrap();
        cluster.kubectl(&["create", "clusterrolebinding", &role, &format!("--clusterrole={role}"), &user]).unwrap();
        if may_bypass {
            let role = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": { "name": format!("{name}-bypass") },
                "rules": [{ "apiGroups": ["portal.io"], "resources": ["portalinstances"], "verbs": ["bypass"] }],
            });
            cluster.kubectl_with_input(&["create", "--filename=-"], &role.to_string()).unwrap();
            let role = format!("{name}-bypass");
            cluster.kubectl(&["create", "clusterrolebinding", &role, &format!("--clusterrole={role}"), &user]).unwrap();
        }
        let client = cluster.client_as(name, &[]).await;
        Person { namespaces: Api::all(client.clone()), client }
    }

    /// Changes metadata of a namespace by way of itself, or of a subresource.
    async fn change(&self, name: &str, subresource: Option<&str>, metadata: Value) -> kube::Result<()> {
        let patch = json!({ "metadata": metadata });
        let parameters = PatchParams::default();
        match subresource {
            None => self.namespaces.patch(name, &parameters, &Patch::Merge(patch)).await?,
            // It takes whole objects only.
            Some("finalize") => {
                let mut namespace = serde_json::to_value(self.namespaces.get(name).await?).unwrap();
                for (part, changes) in metadata.as_object().unwrap() {
                    for (key, value) in changes.as_object().unwrap() {
                        namespace["metadata"][part][key] = value.clone();
                    }
                }
                let path = format!("/api/v1/namespaces/{name}/finalize");
                let request = http::Request::put(path).header("content-type", "application/json");
                self.client.request(request.body(namespace.to_string().into_bytes()).unwrap()).await?
            }
            Some(subresource) => {
                self.namespaces.patch_subresource(subresource, name, &parameters, &Patch::Merge(patch)).await?
            }
        };
        Ok(())
    }
}

fn mark(value: impl Into<Value>) -> Value {
    json!({ "annotations": { "portal.io/bypass": value.into() } })
}

fn marked(name: &str) -> Namespace {
    serde_json::from_value(json!({ "metadata": { "name": name, "annotations": { "portal.io/bypass": "true" } } }))
        .unwrap()
}

#[track_caller]
fn assert_guarded<T: std::fmt::Debug>(path: &str, answer: kube::Result<T>) {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("takes the verb `bypass`") => {}
        other => panic!("{path}: {other:?}"),
    }
}

#[tokio::test]
async fn nobody_without_the_verb_sets_the_mark_of_the_bypass_on_any_path() {
    const PATHS: [Option<&str>; 3] = [None, Some("status"), Some("finalize")];
    let cluster = Cluster::shared(Size::Core);
    let admin = cluster.client().await;
    for object in guard() {
        apply(&admin, &object, false).await;
    }
    let namespace = cluster.namespace("guard").await.name.clone();
    let (jane, john) =
        (Person::new(cluster, "guarded-jane", false).await, Person::new(cluster, "guarded-john", true).await);
    // Rights and policies are learnt by watches.
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let refused = jane.namespaces.create(&dry_run, &marked("guarded-new")).await;
        let is_guarded = matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("`bypass`"));
        if is_guarded && john.namespaces.create(&dry_run, &marked("guarded-new")).await.is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "{refused:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    for path in PATHS {
        let name = format!("{path:?}");
        assert_guarded(&name, jane.change(&namespace, path, mark("true")).await);
        // Whatever else she may change there she may.
        jane.change(&namespace, path, json!({ "annotations": { "team": "a" } })).await.unwrap();
        john.change(&namespace, path, mark("true")).await.unwrap();
        assert_guarded(&name, jane.change(&namespace, path, mark("TRUE")).await);
        jane.change(&namespace, path, json!({ "annotations": { "team": "b" } })).await.unwrap();
        // Rules judge again: nobody needs a right for that.
        jane.change(&namespace, None, mark(Value::Null)).await.unwrap();
    }
    let applied = PatchParams::apply("jane").force();
    let mut body = serde_json::to_value(marked(&namespace)).unwrap();
    (body["apiVersion"], body["kind"]) = ("v1".into(), "Namespace".into());
    assert_guarded("apply", jane.namespaces.patch(&namespace, &applied, &Patch::Apply(&body)).await);
    let mut found = jane.namespaces.get(&namespace).await.unwrap();
    found.annotations_mut().insert("portal.io/bypass".to_owned(), "true".to_owned());
    assert_guarded("replace", jane.namespaces.replace(&namespace, &PostParams::default(), &found).await);
}
