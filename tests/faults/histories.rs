//! Histories of instances: users change what they want, others break what they can, and two operators whose requests go wrong, whose views
//! are late and old, and of whom each is cut off or dies at times. At the end all is as if nothing of that had been.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use portal_operator::names::{INSTANCE_LABEL, PAUSED};
use portal_operator::object::Kind;
use portal_test_kit::fault_proxy::{Fault, Requests, Storm};
use portal_test_kit::share;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::invariants::Watcher;
use super::stage::{CHILDREN, Kinds, LONG, Operator, Stage, ageless, work};

/// What somebody may ask for. From each the way leads to a ready instance.
const SPECS: [&str; 11] = [
    r#"{}"#,
    r#"{ "mode": "split" }"#,
    r#"{ "image": "registry.example/portal:v2" }"#,
    r#"{ "admission": { "replicas": 3 } }"#,
    r#"{ "admission": { "replicas": 1, "failClosed": false } }"#,
    r#"{ "admission": { "port": 9443 }, "networkPolicy": true }"#,
    r#"{ "admission": { "maxEnforcement": "warn", "excludeNamespaces": ["legacy"] } }"#,
    r#"{ "pods": { "labels": { "tier": "policy" } }, "scheduling": { "spread": "Required" } }"#,
    r#"{ "mode": "split", "audit": { "enabled": true, "replicas": 1 } }"#,
    r#"{ "rbac": { "deniedResources": [{ "group": "", "resource": "services" }] } }"#,
    r#"{ "rbac": { "mode": "Manual" } }"#,
];

/// Kinds that rules are about.
const JUDGED: [(&str, &str); 3] = [("", "Service"), ("apps", "Deployment"), ("networking.k8s.io", "Ingress")];

/// What rules may ask for beside the object that they judge. The ceiling does not always have the third, and nobody has the last.
const LOOKED_UP: [&str; 5] = [
    "",
    " && len(cluster.services.list(metadata.namespace)) > 100",
    " && len(cluster.endpoints.list(metadata.namespace)) > 100",
    " && len(cluster.certificatesigningrequests.list()) > 100",
    " && len(cluster.secrets.list(metadata.namespace)) > 100",
];

/// How many histories there are at a time.
const AT_ONCE: usize = 5;

/// An instance, and what happens to it.
struct History {
    name: String,
    random: Rng,
    /// Whether only users change what they want. Then no request may fail.
    is_fair: bool,
    spec: Value,
    is_there: bool,
}

impl History {
    fn new(seed: u64) -> History {
        let name = format!("h{:03}", seed % 1000);
        History {
            name,
            random: Rng::with_seed(seed),
            is_fair: seed.is_multiple_of(2),
            spec: json!({}),
            is_there: false,
        }
    }

    async fn apply(&mut self, stage: &Stage) {
        self.spec = serde_json::from_str(SPECS[self.random.usize(..SPECS.len())]).unwrap();
        // A machine that is busy is no reason to refuse anything.
        self.spec["admission"]["timeoutSeconds"] = 30.into();
        self.is_there = stage.try_apply_instance(&self.name, &self.spec).await;
    }

    async fn run(&mut self, stage: &Stage) {
        self.apply(stage).await;
        for _ in 0..8 {
            sleep(Duration::from_millis(self.random.u64(200..6000))).await;
            self.event(stage).await;
        }
    }

    /// Something happens.
    async fn event(&mut self, stage: &Stage) {
        match self.random.u32(..if self.is_fair { 12 } else { 20 }) {
            0..5 => self.apply(stage).await,
            5..8 => self.rule(stage).await,
            8 => match self.random.bool() {
                true => self.pause(stage, true).await,
                false => raise_ceiling(stage, self.random.bool()).await,
            },
            9 | 10 => self.pause(stage, false).await,
            11 => {
                stage.delete_instance(&self.name, self.random.bool()).await;
                self.is_there = false;
            }
            12..15 => self.edit_child(stage).await,
            15..18 => self.delete_child(stage).await,
            _ => self.kill_pods(stage).await,
        }
    }

    /// A rule for another kind comes or goes.
    async fn rule(&mut self, stage: &Stage) {
        let (group, kind) = JUDGED[self.random.usize(..JUDGED.len())];
        let name = format!("{}-{}", self.name, kind.to_lowercase());
        let api = stage.rules();
        if self.random.bool() {
            let _ = api.delete(&name, &DeleteParams::default()).await;
            return;
        }
        let expression = format!("'bad' in metadata.labels{}", LOOKED_UP[self.random.usize(..LOOKED_UP.len())]);
        let rule = json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": name, "labels": { "served-by": self.name } },
            "spec": { "match": { "gvk": [{ "group": group, "kind": kind }] }, "rule": expression },
        });
        let parameters = PatchParams::apply("user").force();
        let _ = api.patch(&name, &parameters, &Patch::Apply(rule)).await;
    }

    async fn pause(&self, stage: &Stage, is_paused: bool) {
        let patch = json!({ "metadata": { "annotations": { PAUSED: is_paused.to_string() } } });
        let api = Kinds(Kind::PortalInstance).api(&stage.client);
        // It may not be there.
        let _ = api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    async fn any_child(&mut self, stage: &Stage) -> Option<(Api<DynamicObject>, DynamicObject)> {
        let kind = CHILDREN[self.random.usize(..CHILDREN.len())];
        let selected = ListParams::default().labels(&format!("{INSTANCE_LABEL}={}", self.name));
        let found = Kinds(kind).api(&stage.client).list(&selected).await.unwrap().items;
        let found = found.get(self.random.usize(..found.len().max(1)))?;
        Some((Kinds(kind).api(&stage.client), found.clone()))
    }

    /// Somebody edits a child.
    async fn edit_child(&mut self, stage: &Stage) {
        let Some((api, child)) = self.any_child(stage).await else { return };
        if child.types.as_ref().is_some_and(|types| types.kind.starts_with("Validating")) {
            return add_condition(&api, child).await;
        }
        let patch = match self.random.u32(..3) {
            0 => json!({ "metadata": { "labels": { "app.kubernetes.io/name": "foreign" } } }),
            1 => json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": null } } }),
            _ => json!({ "spec": { "replicas": 1 }, "rules": [], "subjects": [] }),
        };
        // Some of it is refused.
        let _ = api.patch(&child.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    async fn delete_child(&mut self, stage: &Stage) {
        let Some((api, child)) = self.any_child(stage).await else { return };
        let _ = api.delete(&child.name_any(), &DeleteParams::default()).await;
    }

    async fn kill_pods(&mut self, stage: &Stage) {
        let pods: Api<Pod> = Api::namespaced(stage.client.clone(), super::NAMESPACE);
        let selected = ListParams::default().labels(&format!("{INSTANCE_LABEL}={}", self.name));
        for pod in pods.list(&selected).await.unwrap().items {
            match self.random.u32(..3) {
                0 => drop(pods.delete(&pod.name_any(), &DeleteParams::default()).await),
                1 => stage.nodes.kill(&pod.name_any()),
                _ => {}
            }
        }
    }
}

/// Two operators, and what happens to them.
struct Operators {
    running: Vec<Operator>,
    starts: u32,
}

const REPLICAS: [&str; 2] = ["one", "two"];

impl Operators {
    fn start(stage: &Stage) -> Operators {
        let mut operators = Operators { running: Vec::new(), starts: 0 };
        for place in 0..REPLICAS.len() {
            let operator = operators.new_one(stage, place);
            operators.running.push(operator);
        }
        operators
    }

    fn new_one(&mut self, stage: &Stage, place: usize) -> Operator {
        self.starts += 1;
        let client = stage.operator_client(REPLICAS[place]);
        // As short as they may be: a step has eight seconds.
        let times = ["--lease-duration=11", "--lease-renew-deadline=10", "--lease-retry=1"];
        Operator::start_with(&client, &format!("{}-{}", REPLICAS[place], self.starts), &times)
    }

    /// One is cut off until another one has taken over, and one dies and comes back.
    async fn suffer(&mut self, stage: &Stage, random: &mut Rng) {
        sleep(Duration::from_millis(random.u64(4000..9000))).await;
        let fault = if random.bool() { Fault::Refuse } else { Fault::Silence };
        let holder = stage.holder().await;
        let place = REPLICAS.iter().position(|name| holder.starts_with(name)).unwrap_or_default();
        let partition = stage.proxy.inject(fault.on(Requests::all().from(REPLICAS[place])));
        let deadline = Instant::now() + LONG;
        while stage.holder().await == holder {
            assert!(Instant::now() < deadline, "nobody takes over from {holder}");
            sleep(Duration::from_millis(200)).await;
        }
        drop(partition);
        sleep(Duration::from_millis(random.u64(1000..4000))).await;
        let place = random.usize(..REPLICAS.len());
        let next = self.new_one(stage, place);
        std::mem::replace(&mut self.running[place], next).kill();
    }

    fn all(&self) -> Vec<&Operator> {
        self.running.iter().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happened_instances_end_as_fresh_ones_and_nobody_was_locked_out() {
    let seeds: Vec<u64> = share::seeds(5, 50).collect();
    let stage = Arc::new(Stage::new(seeds[0]).await);
    let mut operators = Operators::start(&stage);
    for seeds in seeds.chunks(AT_ONCE) {
        check(&stage, &mut operators, seeds).await;
    }
}

async fn check(stage: &Arc<Stage>, operators: &mut Operators, seeds: &[u64]) {
    let mut histories: Vec<History> = seeds.iter().map(|seed| History::new(*seed)).collect();
    let twin_of = |name: &str| format!("t{}", &name[1..]);
    let names: Vec<String> = histories.iter().map(|history| history.name.clone()).collect();
    let twins: Vec<String> = names.iter().map(|name| twin_of(name)).collect();
    stage.prepare(&[&names[..], &twins[..]].concat());
    let fair: Vec<String> =
        histories.iter().filter(|history| history.is_fair).map(|history| history.name.clone()).collect();
    let watcher = Watcher::start(stage, &fair);
    let storms = REPLICAS.map(|name| {
        let on = Requests::all().from(name);
        stage.proxy.storm(Storm {
            on,
            requests: 0.08,
            events: 0.05,
            longest: Duration::from_millis(800),
            ..Storm::default()
        })
    });
    let mut random = Rng::with_seed(seeds[0]);
    let happening = join_all(histories.iter_mut().map(|history| history.run(stage)));
    tokio::join!(happening, operators.suffer(stage, &mut random));
    drop(storms);

    // What is wanted last is wanted of a fresh one too.
    for history in &mut histories {
        history.pause(stage, false).await;
        let deadline = Instant::now() + LONG;
        while !history.is_there && history.random.u32(..3) > 0 {
            assert!(Instant::now() < deadline, "{} cannot be made anew", history.name);
            stage.expect(&history.name, "gone", &operators.all()).await;
            history.apply(stage).await;
        }
        if history.is_there {
            stage.copy_rules(&history.name, &twin_of(&history.name)).await;
            stage.apply_instance(&twin_of(&history.name), &history.spec).await;
        }
    }
    for history in &histories {
        let (expected, twin) = (if history.is_there { "True Ready" } else { "gone" }, twin_of(&history.name));
        stage.expect(&history.name, expected, &operators.all()).await;
        stage.expect(&twin, expected, &operators.all()).await;
    }
    // What nobody needs any more stays for a while.
    for history in &histories {
        let deadline = Instant::now() + LONG;
        while rights(stage, &history.name).await != rights(stage, &twin_of(&history.name)).await {
            assert!(
                Instant::now() < deadline,
                "{} with {} keeps other rights than a fresh one",
                history.name,
                history.spec
            );
            sleep(Duration::from_secs(1)).await;
        }
    }
    stage.assert_quiet(&operators.all()).await;
    for history in &histories {
        let twin = twin_of(&history.name);
        let (found, expected) = (ageless(stage.state(&history.name).await), ageless(stage.state(&twin).await));
        for key in found.keys().chain(expected.keys()) {
            assert_eq!(found.get(key), expected.get(key), "{key} of {} with {}", history.name, history.spec);
        }
        assert_eq!(found.is_empty(), !history.is_there, "{found:?}");
        let is_enforced = history.is_there && history.spec["admission"]["maxEnforcement"].is_null();
        let refused = create_bad(stage, &history.name).await;
        assert_eq!(refused.is_err(), is_enforced, "{} with {}: {refused:?}", history.name, history.spec);
    }
    stage.assert_order();
    watcher.finish().await;
    for name in names.iter().chain(&twins) {
        stage.delete_instance(name, false).await;
    }
    for name in names.iter().chain(&twins) {
        stage.expect(name, "gone", &operators.all()).await;
    }
}

/// Somebody lets rules read what the ceiling that is installed does not have, or takes that back.
async fn raise_ceiling(stage: &Stage, is_higher: bool) {
    let api: Api<ClusterRole> = Api::all(stage.client.clone());
    let name = "portal-ceiling-more";
    if !is_higher {
        let _ = api.delete(name, &DeleteParams::default()).await;
        return;
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "labels": { "rbac.portal.io/aggregate-to-ceiling": "true" } },
        "rules": [{
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
            "verbs": ["get", "list", "watch"],
        }],
    });
    api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(role)).await.unwrap();
}

/// The roles of an instance, without what differs between two that are the same.
async fn rights(stage: &Stage, name: &str) -> Vec<(String, Value)> {
    let is_role = |key: &String| key.contains("Role");
    stage.state(name).await.into_iter().filter(|(key, _)| is_role(key)).collect()
}

/// Somebody adds a condition by which no request is sent any more.
async fn add_condition(api: &Api<DynamicObject>, mut configuration: DynamicObject) {
    let entries = configuration.data["webhooks"].as_array_mut().into_iter().flatten();
    for conditions in entries.filter_map(|entry| entry["matchConditions"].as_array_mut()) {
        conditions.push(json!({ "name": "foreign", "expression": "false" }));
    }
    let _ = api.replace(&configuration.name_any(), &PostParams::default(), &configuration).await;
}

/// Asks for what the rule of an instance refuses.
async fn create_bad(stage: &Stage, name: &str) -> kube::Result<()> {
    let config_maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &work(name));
    let bad = json!({ "metadata": { "generateName": "bad-", "labels": { "bad": "" } } });
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    config_maps.create(&dry_run, &serde_json::from_value(bad).unwrap()).await.map(drop)
}
