//! What engines may do while rules come and go by the thousand, and while a GitOps tool applies the same objects again and again. Nothing
//! goes wrong here: this is what the operator does on a good day.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use portal_operator::names::{OPERATOR, account};
use portal_operator::object::Kind;
use portal_test_kit::audit_log::{self, AuditEvent};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::NAMESPACE;
use super::stage::{Kinds, LONG, Operator, Stage, work};

/// How many rules come and go at once.
const RULES: usize = 1000;

/// How often a role may be written because of them, each way.
const WRITES: usize = 10;

/// The kinds that they look up. All are below the ceiling.
const KINDS: [&str; 20] = [
    "services",
    "configmaps",
    "endpoints",
    "limitranges",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "deployments",
    "daemonsets",
    "statefulsets",
    "replicasets",
    "cronjobs",
    "jobs",
    "ingresses",
    "poddisruptionbudgets",
    "storageclasses",
];

/// API servers heed a role a moment after it is written, and an engine tries again a moment after that.
const HEEDED: SignedDuration = SignedDuration::from_secs(15);

impl Stage {
    /// Writes a rule of an instance, which looks objects of a kind up.
    async fn look_up(&self, instance: &str, name: &str, plural: &str) {
        let is_of_cluster = ["nodes", "persistentvolumes", "storageclasses"].contains(&plural);
        let arguments = if is_of_cluster { "" } else { "metadata.namespace" };
        self.write_rule(instance, name, &format!("len(cluster.{plural}.list({arguments})) > 100000")).await;
    }

    /// Writes a rule of an instance for ConfigMaps.
    async fn write_rule(&self, instance: &str, name: &str, expression: &str) {
        let object = json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": name, "labels": { "served-by": instance } },
            "spec": { "match": { "gvk": [{ "kind": "ConfigMap" }] }, "rule": expression, "message": name },
        });
        self.rules().patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
    }

    /// Whether the API server refuses a ConfigMap with this label because of the rule of that name.
    async fn refuses(&self, instance: &str, label: &str, rule: &str) -> bool {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &work(instance));
        let object = json!({ "metadata": { "name": "tried", "labels": { label: "" } } });
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        let tried = api.create(&parameters, &serde_json::from_value(object).unwrap()).await;
        tried.is_err_and(|error| error.to_string().contains(rule))
    }

    /// The plurals in the ClusterRole of an instance.
    async fn granted(&self, instance: &str) -> Vec<String> {
        let role = Kinds(Kind::ClusterRole).api(&self.client).get(&format!("portal-{instance}")).await.unwrap();
        plurals(&serde_json::to_value(role).unwrap())
    }

    /// Everything that was asked for so far.
    fn requests(&self) -> Vec<AuditEvent> {
        audit_log::read(&self.cluster.logs().join("audit.jsonl")).unwrap()
    }

    /// The writes of the operator to the ClusterRole of an instance.
    fn role_writes(&self, instance: &str) -> Vec<AuditEvent> {
        let (user, name) = (account("portal-operator", OPERATOR), format!("portal-{instance}"));
        let is_meant = |event: &AuditEvent| {
            let object = &event.object_ref;
            event.is_write()
                && event.code() < 300
                && event.user() == user
                && (&*object.resource, &object.name) == ("clusterroles", &name)
        };
        self.requests().into_iter().filter(is_meant).collect()
    }

    /// The versions of an instance and of its rules: whoever writes anything changes one.
    async fn versions(&self, instance: &str) -> BTreeMap<String, String> {
        let rules =
            self.rules().list(&ListParams::default().labels(&format!("served-by={instance}"))).await.unwrap().items;
        let own = Kinds(Kind::PortalInstance).api(&self.client).get(instance).await.unwrap();
        let all = rules.into_iter().chain([own]);
        all.map(|object| (object.name_any(), object.resource_version().unwrap())).collect()
    }
}

fn plurals(role: &Value) -> Vec<String> {
    let rules = role["rules"].as_array().into_iter().flatten();
    let resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
    resources.filter_map(|resource| resource.as_str().map(str::to_owned)).collect()
}

async fn eventually<F: Future<Output = bool>>(
    what: &str,
    operator: &Operator,
    mut holds: impl FnMut() -> F,
) -> Duration {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < LONG, "{what} does not come about:\n{}", operator.log(60));
        sleep(Duration::from_millis(100)).await;
    }
    started.elapsed()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_rules_come_and_go_with_few_writes_and_no_engine_loses_what_it_needs() {
    let stage = Stage::new(0).await;
    let operator = Operator::start(&stage.operator_client("operator"), "operator");
    let names = ["storm", "steady"].map(str::to_owned);
    stage.prepare(&names);
    for name in &names {
        stage
            .apply_instance(name, &json!({ "admission": { "replicas": 1, "failClosed": false, "timeoutSeconds": 30 } }))
            .await;
    }
    for name in &names {
        stage.expect(name, "True Ready", &[&operator]).await;
    }

    // From a rule to the first request that it refuses, without and with a right that it needs. The bound is that of `eventually`.
    stage.write_rule("steady", "steady-plain", "'plain' in metadata.labels").await;
    let plain = eventually("a refusal", &operator, || stage.refuses("steady", "plain", "steady-plain")).await;
    let looks_up = "'granted' in metadata.labels && len(cluster.priorityclasses.list()) >= 0";
    stage.write_rule("steady", "steady-granted", looks_up).await;
    let granted = eventually("a refusal", &operator, || stage.refuses("steady", "granted", "steady-granted")).await;
    println!("a rule is in force after {plain:?}, and after {granted:?} if a right has to be granted");

    exception(&stage, &operator).await;
    let tool = second_manager(&stage, "steady", &operator);
    let ((), ()) = tokio::join!(storm(&stage, &operator), tool);
    unbounded(&stage, &operator).await;
    dead(&stage, &operator).await;
}

/// An exception ends: what it excepted is refused, and the instance says so, although nobody has written anything.
async fn exception(stage: &Stage, operator: &Operator) {
    let until = Timestamp::now() + SignedDuration::from_secs(10);
    let until = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let exceptions = json!([{ "namespaces": [work("steady")], "until": until, "reason": "it moves next week" }]);
    let object = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
        "metadata": { "name": "steady-excepted", "labels": { "served-by": "steady" } },
        "spec": {
            "match": { "gvk": [{ "kind": "ConfigMap" }] }, "rule": "'excepted' in metadata.labels", "message": "no exception",
            "exceptions": exceptions,
        },
    });
    stage.rules().patch("steady-excepted", &PatchParams::apply("user"), &Patch::Apply(object)).await.unwrap();
    let counted = |open: i64, ended: i64| async move {
        let said = &stage.instance("steady").await.unwrap()["status"]["exceptions"];
        (said["open"].as_i64(), said["ended"].as_i64()) == (Some(open), Some(ended))
    };
    eventually("that it is counted", operator, || counted(1, 0)).await;
    eventually("a refusal", operator, || stage.refuses("steady", "excepted", "no exception")).await;
    assert!(Timestamp::now() >= time(&until), "it was refused before the exception had ended");
    eventually("that it is told", operator, || counted(0, 1)).await;
    stage.rules().delete("steady-excepted", &DeleteParams::default()).await.unwrap();
}

/// Somebody raises the ceiling by a star. It is told, and an engine is given no more than its rules need.
async fn unbounded(stage: &Stage, operator: &Operator) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "everything", "labels": { "rbac.portal.io/aggregate-to-ceiling": "true" } },
        "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }],
    });
    stage.cluster.kubectl_with_input(&["apply", "--filename=-"], &role.to_string()).unwrap();
    let says = |reason: &'static str| async move {
        let instance = stage.instance("steady").await.unwrap();
        let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|found| found["type"] == "RBACReady" && found["reason"] == reason)
    };
    eventually("that it is told", operator, || says("CeilingUnbounded")).await;
    // What the ceiling that is installed does not have can be granted. What is refused by default is refused still.
    stage.look_up("steady", "steady-secrets", "secrets").await;
    stage.write_rule("steady", "steady-requests", "len(cluster.certificatesigningrequests.list()) > 100").await;
    eventually("that the other rule is told", operator, || says("PermissionRefused")).await;
    let is_announced = || async {
        let about = "involvedObject.kind=PortalInstance,involvedObject.name=steady";
        let selector = format!("--field-selector=type=Warning,reason=PermissionRefused,{about}");
        let found = stage.cluster.kubectl(&["get", "events", "--all-namespaces", &selector, "--output=json"]).unwrap();
        found.contains("rule steady-secrets: get, list, watch secrets in the whole cluster")
    };
    eventually("an Event", operator, is_announced).await;
    eventually("the right", operator, || async {
        stage.granted("steady").await.iter().any(|found| found == "certificatesigningrequests")
    })
    .await;
    let role = Kinds(Kind::ClusterRole).api(&stage.client).get("portal-steady").await.unwrap();
    assert!(!serde_json::to_string(&role.data).unwrap().contains('*'), "{role:?}");
    assert!(!stage.granted("steady").await.iter().any(|found| found == "secrets"), "{role:?}");
    for name in ["steady-secrets", "steady-requests"] {
        stage.rules().delete(name, &DeleteParams::default()).await.unwrap();
    }
    stage.cluster.kubectl(&["delete", "clusterrole", "everything"]).unwrap();
    eventually("that all is well again", operator, || says("InSync")).await;

    // A star in one place lifts the ceiling there, and nowhere else.
    let requests = "certificatesigningrequests";
    for (resources, verbs) in [(requests, &["*"][..]), ("*", &["get", "list", "watch"])] {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "something", "labels": { "rbac.portal.io/aggregate-to-ceiling": "true" } },
            "rules": [{ "apiGroups": ["certificates.k8s.io"], "resources": [resources], "verbs": verbs }],
        });
        stage.cluster.kubectl_with_input(&["apply", "--filename=-"], &role.to_string()).unwrap();
        eventually("that it is told", operator, || says("CeilingUnbounded")).await;
        stage.write_rule("steady", "steady-requests", "len(cluster.certificatesigningrequests.list()) > 100").await;
        stage.write_rule("steady", "steady-flows", "len(cluster.flowschemas.list()) > 100").await;
        eventually("that the other rule is told", operator, || says("PermissionRefused")).await;
        eventually("the right", operator, || async {
            stage.granted("steady").await.iter().any(|found| found == requests)
        })
        .await;
        let role = Kinds(Kind::ClusterRole).api(&stage.client).get("portal-steady").await.unwrap();
        let text = serde_json::to_string(&role.data).unwrap();
        assert!(!text.contains('*') && !text.contains("flowschemas"), "{role:?}");
        let rules = role.data["rules"].as_array().unwrap();
        let given = rules.iter().find(|rule| rule["resources"] == json!([requests])).unwrap();
        assert_eq!(given["verbs"], json!(["get", "list", "watch"]));
        for name in ["steady-requests", "steady-flows"] {
            stage.rules().delete(name, &DeleteParams::default()).await.unwrap();
        }
        stage.cluster.kubectl(&["delete", "clusterrole", "something"]).unwrap();
        eventually("that all is well again", operator, || says("InSync")).await;
    }
}

/// An instance whose engine is dead and that refuses rules whose authors it cannot check: those of others can be written, and are in force.
async fn dead(stage: &Stage, operator: &Operator) {
    let spec = json!({
        "admission": { "replicas": 2, "failClosed": true, "timeoutSeconds": 30 }, "rbac": { "authorCheck": "Enforce" },
    });
    stage.apply_instance("steady", &spec).await;
    stage.expect("steady", "True Ready", &[operator]).await;
    let api = Kinds(Kind::PortalInstance).api(&stage.client);
    let patch = json!({ "metadata": { "annotations": { "portal.io/paused": "true" } } });
    api.patch("steady", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    stage.expect("steady", "Unknown Paused", &[operator]).await;
    let namespace = format!("--namespace={NAMESPACE}");
    stage.cluster.kubectl(&[&namespace, "scale", "deployment", "portal-steady", "--replicas=0"]).unwrap();
    let rule = |instance: &str, number: usize| {
        json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": format!("{instance}-late"), "labels": { "served-by": instance } },
            "spec": { "match": { "gvk": [{ "kind": "ConfigMap" }] }, "rule": "'late' in metadata.labels", "message": format!("late {number}") },
        })
    };
    let write = |instance: &'static str, number: usize| async move {
        let object = rule(instance, number);
        let name = format!("{instance}-late");
        stage.rules().patch(&name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await
    };
    let mut number = 0;
    eventually("that nobody checks authors", operator, || {
        number += 1;
        let tried = write("steady", number);
        async move { tried.await.is_err() }
    })
    .await;
    write("storm", 0).await.unwrap();
    eventually("a refusal", operator, || stage.refuses("storm", "late", "late 0")).await;
}

/// A thousand rules come, and go again.
async fn storm(stage: &Stage, operator: &Operator) {
    let before = stage.role_writes("storm").len();
    let rules = (0..RULES).map(|number| async move {
        let name = format!("storm-{number:04}");
        stage.look_up("storm", &name, KINDS[number % KINDS.len()]).await;
    });
    stream::iter(rules).buffer_unordered(16).collect::<Vec<_>>().await;
    eventually("every right", operator, || async {
        let granted = stage.granted("storm").await;
        KINDS.iter().all(|kind| granted.iter().any(|found| found == kind))
    })
    .await;
    eventually("every rule", operator, || async {
        stage.instance("storm").await.unwrap()["status"]["rules"]["loaded"] == RULES as i64 + 1
    })
    .await;
    let selected = ListParams::default().labels("served-by=storm");
    let is_active = |rule: &kube::api::DynamicObject| {
        let entries = rule.data["status"]["instances"].as_array().into_iter().flatten();
        let mut conditions = entries.flat_map(|entry| entry["conditions"].as_array().into_iter().flatten());
        conditions.any(|found| found["type"] == "Active" && found["status"] == "True")
    };
    eventually("that every rule is active", operator, || async {
        stage.rules().list(&selected).await.unwrap().items.iter().all(is_active)
    })
    .await;
    let there = stage.role_writes("storm").len();
    stage.rules().delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    eventually("that nothing is granted any more", operator, || async {
        let granted = stage.granted("storm").await;
        KINDS.iter().all(|kind| granted.iter().all(|found| found != kind))
    })
    .await;
    let writes = stage.role_writes("storm");
    println!("{RULES} rules cost {} writes to the role, and {} when they went", there - before, writes.len() - there);
    assert!(there - before <= WRITES && writes.len() - there <= WRITES, "{before}, {there}, {}", writes.len());

    // What was granted was never refused, from when it could be heeded until the end, when nobody asks for it any more.
    let mut since: BTreeMap<String, Timestamp> = BTreeMap::new();
    for write in &writes {
        let role = write.request_object.as_ref().map(plurals).unwrap_or_default();
        let at = time(&write.stage_timestamp);
        for plural in role {
            since.entry(plural).or_insert(at);
        }
    }
    let engine = account(NAMESPACE, "portal-storm");
    let mut asked = 0;
    for event in stage.requests().iter().filter(|event| event.user() == engine) {
        let granted = since.get(&event.object_ref.resource);
        let is_late = granted.is_some_and(|at| time(&event.request_received_timestamp) > *at + HEEDED);
        assert!(event.code() != 403 || !is_late, "the engine was refused what it needs: {event:?}");
        asked += usize::from(KINDS.contains(&&*event.object_ref.resource) && event.code() < 300);
    }
    assert!(asked >= KINDS.len(), "the engine has read {asked} kinds");
}

/// A GitOps tool applies an instance and its rules every second. It finds no difference, and nobody writes anything because of it.
async fn second_manager(stage: &Stage, name: &str, operator: &Operator) {
    let mut objects = vec![Kinds(Kind::PortalInstance).api(&stage.client).get(name).await.unwrap()];
    let selected = ListParams::default().labels(&format!("served-by={name}"));
    objects.extend(stage.rules().list(&selected).await.unwrap().items);
    let wanted: Vec<Value> = objects
        .iter()
        .map(|object| {
            let name = object.name_any();
            // Whoever applies no labels as an empty map writes every time: API servers take that for a change.
            let (kind, metadata) = match object.labels().is_empty() {
                true => ("PortalInstance", json!({ "name": name })),
                false => ("PortalClusterRule", json!({ "name": name, "labels": object.labels() })),
            };
            json!({ "apiVersion": "portal.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": object.data["spec"] })
        })
        .collect();
    assert!(wanted.len() == 4 && wanted[0]["kind"] == "PortalInstance", "{wanted:#?}");
    let text = wanted.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let apply = || {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "--filename=-"];
        stage.cluster.kubectl_with_input(&arguments, &text).unwrap();
    };
    apply();
    // What was said of the rules before that is told by now.
    eventually("that nothing is written", operator, || async {
        let last = stage.versions(name).await;
        sleep(Duration::from_secs(5)).await;
        stage.versions(name).await == last
    })
    .await;
    let before = stage.versions(name).await;
    let writes = stage.writes(Some(name)).len();
    for _ in 0..20 {
        apply();
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(stage.versions(name).await, before, "somebody has written");
    let written = stage.writes(Some(name));
    assert_eq!(written[writes..], [] as [String; 0]);
    // `kubectl diff` ends with 1 if there is a difference.
    let arguments = ["diff", "--server-side", "--force-conflicts", "--field-manager=gitops", "--filename=-"];
    assert_eq!(stage.cluster.kubectl_with_input(&arguments, &text).unwrap(), "");
}
