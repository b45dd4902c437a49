//! What must be true of webhook configurations at every step, as a watch shows them: nobody is locked out. And real requests, all the time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{DynamicObject, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use portal_core::webhook::SPARED_NAMESPACES;
use portal_operator::desired::is_enforcing;
use portal_operator::names::{INSTANCE_LABEL, OPERATOR, account};
use portal_operator::object::{Kind, Object};
use portal_operator::permissions::beside_base;
use portal_operator::rights::in_ceiling;
use portal_test_kit::fault_proxy::Verb;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::NAMESPACE;
use super::stage::{Kinds, Stage, work};

/// Looks on. What it has found wrong is told at the end.
pub(super) struct Watcher {
    tasks: JoinSet<()>,
    found: Found,
}

/// What was found: how much was looked at, and what was wrong.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<(usize, Vec<String>)>>);

impl Found {
    fn looked(&self) {
        self.0.lock().unwrap().0 += 1;
    }

    fn wrong(&self, what: String) {
        self.0.lock().unwrap().1.push(format!("{} {what}", Timestamp::now()));
    }
}

impl Watcher {
    /// Begins to look on. In the namespaces of these instances no request may fail.
    pub(super) fn start(stage: &Arc<Stage>, served: &[String]) -> Watcher {
        let (mut tasks, found) = (JoinSet::new(), Found::default());
        tasks.spawn(watch(Arc::clone(stage), Kind::ValidatingWebhookConfiguration, found.clone()));
        tasks.spawn(watch(Arc::clone(stage), Kind::ClusterRole, found.clone()));
        let spared = ["kube-system", NAMESPACE, "portal-operator"].map(str::to_owned);
        let places: Vec<String> = spared.into_iter().chain(served.iter().map(|name| work(name))).collect();
        tasks.spawn(request(stage.client.clone(), places, found.clone()));
        Watcher { tasks, found }
    }

    /// Asserts that nothing was wrong.
    pub(super) async fn finish(mut self) {
        self.tasks.shutdown().await;
        let (looked, wrong) = &*self.found.0.lock().unwrap();
        println!("{looked} configurations and requests were looked at");
        assert!(*looked > 100, "{looked} looks are few");
        assert_eq!(*wrong, [] as [String; 0]);
    }
}

/// Asks for what must be let in, all the time.
async fn request(client: Client, places: Vec<String>, found: Found) {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let good: ConfigMap = serde_json::from_value(json!({ "metadata": { "generateName": "good-" } })).unwrap();
    loop {
        for place in &places {
            let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), place);
            found.looked();
            if let Err(error) = config_maps.create(&dry_run, &good).await {
                found.wrong(format!("a request in {place} is refused: {error}"));
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Looks at every version of every object of a kind: configurations, or roles.
async fn watch(stage: Arc<Stage>, kind: Kind, found: Found) {
    let api = Kinds(kind).api(&stage.client);
    let look = |stage: &Stage, object: DynamicObject, enforcing: &mut BTreeSet<String>, found: &Found| {
        let object = Object::from_value(kind, serde_json::to_value(object).unwrap());
        match kind {
            Kind::ClusterRole => look_at_role(&object, found),
            _ => look(stage, &object, enforcing, found),
        }
    };
    let mut enforcing = BTreeSet::new();
    loop {
        let list = api.list(&ListParams::default()).await.unwrap();
        let mut version = list.metadata.resource_version.unwrap_or_default();
        for object in list.items {
            look(&stage, object, &mut enforcing, &found);
        }
        while let Ok(events) = api.watch(&WatchParams::default(), &version).await {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                        version = object.metadata.resource_version.clone().unwrap_or_default();
                        look(&stage, object, &mut enforcing, &found);
                    }
                    Ok(WatchEvent::Bookmark(_) | WatchEvent::Deleted(_)) => {}
                    Ok(WatchEvent::Error(_)) | Err(_) => break,
                }
            }
        }
    }
}

/// An engine may do what every engine may, and read what is in the ceiling.
fn look_at_role(role: &Object, found: &Found) {
    if role.label(INSTANCE_LABEL).is_none() {
        return;
    }
    found.looked();
    let rules: Vec<PolicyRule> = serde_json::from_value(role.value["rules"].clone()).unwrap_or_default();
    for (permission, _) in rules.iter().flat_map(|rule| beside_base(rule, None, NAMESPACE)) {
        let is_added = permission.resource == "certificatesigningrequests";
        if !in_ceiling(&permission) && !is_added {
            found.wrong(format!("{} may {} {}", role.key, permission.verb, permission.name()));
        }
    }
    if serde_json::to_string(&rules).unwrap().contains('*') {
        found.wrong(format!("{} has a star: {rules:?}", role.key));
    }
}

fn look(stage: &Stage, object: &Object, enforcing: &mut BTreeSet<String>, found: &Found) {
    let Some(name) = object.label(INSTANCE_LABEL).map(str::to_owned) else { return };
    found.looked();
    if is_enforcing(object, &name) && enforcing.insert(object.uid().to_owned()) && !has_answered(stage, object, &name) {
        found.wrong(format!("{} enforces before the probe was answered", object.key));
    }
    for entry in object.value["webhooks"].as_array().into_iter().flatten() {
        if let Some(problem) = problem(entry, &name) {
            found.wrong(format!("{} of {}: {problem}", entry["name"], object.key));
        }
    }
    let owners = object.value["metadata"]["ownerReferences"].to_string();
    if !owners.contains(r#""kind":"Namespace""#) {
        found.wrong(format!("{} does not go with its namespace: {owners}", object.key));
    }
}

/// Whether an engine has answered an operator through the API server since a configuration is there.
fn has_answered(stage: &Stage, object: &Object, name: &str) -> bool {
    let created: Timestamp = object.meta("creationTimestamp").parse().unwrap();
    let answer = format!("portal {name} answers ");
    stage.proxy.log().iter().any(|entry| {
        let at = stage.started + entry.at;
        // Times of objects have no fractions.
        let is_since = at.as_second() >= created.as_second();
        entry.verb == Verb::Create && is_since && entry.warnings.iter().any(|warning| warning.contains(&answer))
    })
}

/// What is wrong with an entry.
fn problem(entry: &Value, instance: &str) -> Option<String> {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    for rule in entry["rules"].as_array().into_iter().flatten() {
        let words = ["apiGroups", "apiVersions", "operations", "resources"].map(|part| list(&rule[part]));
        if words.concat().iter().any(|word| word.contains('*')) {
            return Some(format!("asks for everything: {rule}"));
        }
    }
    if entry["clientConfig"]["caBundle"].as_str().unwrap_or_default().is_empty() {
        return Some("trusts the authorities of the machine".to_owned());
    }
    let name = entry["name"].as_str().unwrap_or_default();
    if name.starts_with("probe.") || name.starts_with("own-rules.") {
        let is_open = entry["failurePolicy"] == "Ignore";
        return (!is_open).then(|| "refuses what nobody answers".to_owned());
    }
    let spared = SPARED_NAMESPACES.into_iter().chain(["portal-operator", NAMESPACE]);
    let left_out: Vec<String> = entry["namespaceSelector"]["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["key"] == "kubernetes.io/metadata.name" && one["operator"] == "NotIn")
        .flat_map(|one| list(&one["values"]))
        .collect();
    if let Some(namespace) = spared.into_iter().find(|namespace| !left_out.iter().any(|name| name == namespace)) {
        return Some(format!("does not leave {namespace} alone"));
    }
    let conditions = entry["matchConditions"].to_string();
    let is_left_alone = |account: String| conditions.contains(&format!("'{account}'"));
    let engines = ["", "-admission"].map(|layer| account(NAMESPACE, &format!("portal-{instance}{layer}")));
    // Which of the two is asked for at this moment, nobody can tell who was not asked.
    if !engines.into_iter().any(is_left_alone) || !is_left_alone(account("portal-operator", OPERATOR)) {
        return Some(format!("does not leave our own accounts alone: {conditions}"));
    }
    None
}
