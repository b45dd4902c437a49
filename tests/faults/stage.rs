//! A cluster, an operator, and what instances have become.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, CustomResourceExt as _, ResourceExt as _};
use portal_cluster::names::OPERATOR_LEASE;
use portal_crds::PortalClusterRule;
use portal_operator::names::{BUNDLE_SINCE, INSTANCE_LABEL, OPERATOR, account};
use portal_operator::object::Kind;
use portal_test_kit::audit_log::AuditEvent;
use portal_test_kit::fault_proxy::ProxyClient;
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, FaultProxy, Size, repository};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use super::NAMESPACE;
use super::node::Nodes;
use crate::core::install::{apply, generate};

/// A cluster with the operator's rights and nodes, and the proxy in front of it.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) proxy: FaultProxy,
    pub(super) nodes: Nodes,
    /// When the proxy was started.
    pub(super) started: Timestamp,
    pub(super) cluster: Arc<Cluster>,
}

/// A running operator. It ends with the test.
pub(super) struct Operator {
    child: Child,
    folder: TempDir,
}

/// What has become of an instance: its children by kind and name, and what it says.
pub(super) type State = BTreeMap<String, Value>;

/// The kinds of children.
pub(super) const CHILDREN: [Kind; 12] = [
    Kind::ServiceAccount,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Role,
    Kind::RoleBinding,
    Kind::Secret,
    Kind::ConfigMap,
    Kind::Service,
    Kind::PodDisruptionBudget,
    Kind::Deployment,
    Kind::NetworkPolicy,
    Kind::ValidatingWebhookConfiguration,
];

/// The image that engines have if their instance says none.
const IMAGE: &str = "registry.example/portal:v1";

/// How long anything may take on a machine that is busy. Nothing waits for it to pass.
pub(super) const LONG: Duration = Duration::from_secs(300);

/// How often it is looked whether something has happened.
const OFTEN: Duration = Duration::from_millis(300);

impl Stage {
    pub(super) async fn new(seed: u64) -> Stage {
        let cluster = Arc::new(Cluster::start(Size::Control).unwrap());
        let definitions = repository().join("crds/yaml");
        cluster.kubectl(&["apply", "--server-side", "--filename", definitions.to_str().unwrap()]).unwrap();
        apply(&cluster, &generate(&["install", "--image", IMAGE]));
        // The program runs here, and not in a pod.
        cluster.kubectl(&["--namespace=portal-operator", "delete", "deployment", OPERATOR]).unwrap();
        let nodes = Nodes::start(&cluster);
        let proxy = FaultProxy::start(&cluster, seed).await.unwrap();
        Stage { client: cluster.client().await, proxy, nodes, started: Timestamp::now(), cluster }
    }

    /// A client of the proxy with exactly the rights of the operator.
    pub(super) fn operator_client(&self, name: &str) -> ProxyClient {
        self.proxy
            .client(name, &account("portal-operator", OPERATOR), &["system:serviceaccounts", "system:authenticated"])
            .unwrap()
    }

    /// Lets go of the operator's Lease, as if the time of one who is dead had passed.
    pub(super) async fn release(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "portal-operator");
        let patch = json!({ "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 } });
        // Before the first one there is none.
        let _ = leases.patch(OPERATOR_LEASE, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    /// Applies an instance with these fields, beside those that keep it apart from others.
    pub(super) async fn apply_instance(&self, name: &str, spec: &Value) {
        assert!(self.try_apply_instance(name, spec).await, "{name} is being deleted");
    }

    /// The same. Not, if it is there and being deleted.
    pub(super) async fn try_apply_instance(&self, name: &str, spec: &Value) -> bool {
        let mut whole = json!({
            "ruleSelector": { "matchLabels": { "served-by": name } },
            "namespaceSelector": { "matchLabels": { "served-by": name } },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        let metadata = json!({ "name": name });
        let object = json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": whole });
        let api = Kinds(Kind::PortalInstance).api(&self.client);
        if api.get_opt(name).await.unwrap().is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
            return false;
        }
        api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
        true
    }

    /// The rules of the cluster.
    pub(super) fn rules(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &PortalClusterRule::api_resource())
    }

    /// Gives an instance the rules that another one has.
    pub(super) async fn copy_rules(&self, from: &str, to: &str) {
        let found = self.rules().list(&ListParams::default().labels(&format!("served-by={from}"))).await.unwrap();
        for rule in found.items {
            let name = rule.name_any().replace(from, to);
            let metadata = json!({ "name": name, "labels": { "served-by": to } });
            let object = json!({
                "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": metadata, "spec": rule.data["spec"],
            });
            self.rules().patch(&name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
        }
    }

    /// Who holds the operator's Lease.
    pub(super) async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "portal-operator");
        let lease = leases.get_opt(OPERATOR_LEASE).await.unwrap();
        lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
    }

    /// A namespace that an instance serves, and a rule that refuses ConfigMaps with the label `bad` there.
    pub(super) fn prepare(&self, names: &[String]) {
        let objects = names.iter().flat_map(|name| {
            let labels = json!({ "served-by": name });
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": work(name), "labels": labels } });
            let rule = json!({
                "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": { "name": name, "labels": labels },
                "spec": { "match": { "gvk": [{ "kind": "ConfigMap" }] }, "rule": "'bad' in metadata.labels", "message": "it is bad" },
            });
            [namespace, rule]
        });
        let text: Vec<String> = objects.map(|object| object.to_string()).collect();
        self.cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &text.join("\n---\n")).unwrap();
    }

    pub(super) async fn delete_instance(&self, name: &str, is_foreground: bool) {
        let parameters = if is_foreground { DeleteParams::foreground() } else { DeleteParams::default() };
        let _ = Kinds(Kind::PortalInstance).api(&self.client).delete(name, &parameters).await;
    }

    /// An instance as it is. Nothing if it is gone.
    pub(super) async fn instance(&self, name: &str) -> Option<Value> {
        let found = Kinds(Kind::PortalInstance).api(&self.client).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// What the condition `Ready` of an instance says about its present version, such as `True Ready`. `gone` if it is gone.
    pub(super) async fn ready(&self, name: &str) -> String {
        let Some(instance) = self.instance(name).await else { return "gone".to_owned() };
        if instance["status"]["observedGeneration"] != instance["metadata"]["generation"] {
            return "not seen".to_owned();
        }
        let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|found| found["type"] == "Ready").unwrap_or_default();
        format!("{} {}", ready["status"].as_str().unwrap_or_default(), ready["reason"].as_str().unwrap_or_default())
    }

    /// Waits until an instance is what is expected.
    pub(super) async fn expect(&self, name: &str, expected: &str, operators: &[&Operator]) {
        let deadline = Instant::now() + LONG;
        while self.ready(name).await != expected {
            if Instant::now() > deadline {
                let instance = self.instance(name).await.unwrap_or_default();
                let log = operators.iter().map(|operator| operator.log(60)).collect::<Vec<_>>().join("\n---\n");
                panic!("{name} does not become {expected}: {:#}\n{:#}\n{log}", instance["spec"], instance["status"]);
            }
            sleep(OFTEN).await;
        }
    }

    /// What has become of an instance: its children and its conditions, without what differs between two that are the same.
    pub(super) async fn state(&self, name: &str) -> State {
        let mut state = State::new();
        for kind in CHILDREN {
            let selected = ListParams::default().labels(&format!("{INSTANCE_LABEL}={name}"));
            let found =
                Api::<DynamicObject>::all_with(self.client.clone(), &kind.resource()).list(&selected).await.unwrap();
            for object in found.items {
                let key = format!("{kind} {}", object.name_any().replace(name, "NAME"));
                state.insert(key, comparable(kind, serde_json::to_value(object).unwrap(), name));
            }
        }
        if let Some(instance) = self.instance(name).await {
            let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let said =
                conditions.iter().map(|found| format!("{} {} {}", found["type"], found["status"], reason(found)));
            state.insert("conditions".to_owned(), said.collect());
            state.insert("finalizers".to_owned(), instance["metadata"]["finalizers"].clone());
            let end =
                instance["status"]["certificates"]["notAfter"].as_str().and_then(|end| end.parse::<Timestamp>().ok());
            let days = end.map(|end| end.duration_since(Timestamp::now()).as_hours() / 24);
            state.insert("days of the certificate".to_owned(), days.into());
        }
        state
    }

    /// What was written that is worth looking at, oldest first. The record has a request before its client has the answer.
    fn record(&self, is_worth_reading: impl Fn(&str) -> bool) -> Vec<AuditEvent> {
        let record = std::fs::read_to_string(self.cluster.logs().join("audit.jsonl")).unwrap();
        // Of a hundred thousand lines only a few are taken apart.
        let is_read =
            |line: &str| ["get", "list", "watch"].iter().any(|verb| line.contains(&format!(r#""verb":"{verb}""#)));
        let lines = record.lines().filter(|line| line.ends_with('}') && is_worth_reading(line) && !is_read(line));
        let events = lines.map(|line| serde_json::from_str::<AuditEvent>(line).unwrap());
        events
            .filter(|event| event.is_write() && event.code() < 300 && !event.request_uri.contains("dryRun="))
            .collect()
    }

    /// The writes of operators about an instance, or about anything, that changed what is stored.
    pub(super) fn writes(&self, about: Option<&str>) -> Vec<String> {
        let user = account("portal-operator", OPERATOR);
        let events = self.record(|line| line.contains(&user));
        let writes = events.iter().filter(|event| {
            let object = &event.object_ref;
            let is_own = event.user() == user && !["leases", "events"].contains(&object.resource.as_str());
            let says = |word: &str| {
                let text = event.request_object.as_ref().map(Value::to_string).unwrap_or_default();
                object.name.contains(word) || text.contains(&format!("\"{word}\""))
            };
            is_own && about.is_none_or(says)
        });
        let told = writes.map(|event| {
            let object = &event.object_ref;
            format!(
                "{} {} {}/{} {}",
                event.stage_timestamp, event.verb, object.resource, object.name, object.subresource
            )
        });
        told.collect()
    }

    /// Asserts that what answers API servers never went before what made them ask.
    pub(super) fn assert_order(&self) {
        let (services, configurations) =
            (r#""resource":"services""#, r#""resource":"validatingwebhookconfigurations""#);
        let mut asked: BTreeMap<String, bool> = BTreeMap::new();
        let mut ends = 0;
        for event in self.record(|line| line.contains(services) || line.contains(configurations)) {
            let object = event.object_ref.clone();
            match (object.resource.as_str(), event.verb.as_str()) {
                ("validatingwebhookconfigurations", verb) => drop(asked.insert(object.name, verb != "delete")),
                (_, "delete")
                    if event.user() == account("portal-operator", OPERATOR) && !object.name.ends_with("-pods") =>
                {
                    assert_ne!(asked.get(&object.name), Some(&true), "{} goes while API servers ask it", object.name);
                    ends += 1;
                }
                _ => {}
            }
        }
        println!("{ends} webhooks came to their end");
    }

    /// Whether pods still answer that were deleted. What they need goes when they are gone.
    pub(super) async fn is_draining(&self) -> bool {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        found.iter().any(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    /// Waits until nothing is written for a while, and asserts that nothing is for another while.
    pub(super) async fn assert_quiet(&self, operators: &[&Operator]) {
        let deadline = Instant::now() + LONG;
        let mut before = self.writes(None).len();
        loop {
            sleep(Duration::from_secs(3)).await;
            let writes = self.writes(None);
            if writes.len() == before && !self.is_draining().await {
                break;
            }
            assert!(Instant::now() < deadline, "this does not come to an end: {:#?}", &writes[before..]);
            before = writes.len();
        }
        // Longer than a step waits that failed, or a probe.
        sleep(Duration::from_secs(6)).await;
        let writes = self.writes(None);
        let log = operators.iter().map(|operator| operator.log(30)).collect::<Vec<_>>().join("\n---\n");
        assert_eq!(writes[before..], [] as [String; 0], "more is written although all is done:\n{log}");
    }
}

impl Operator {
    pub(super) fn start(client: &ProxyClient, identity: &str) -> Operator {
        Operator::start_with(client, identity, &[])
    }

    /// Starts one with these flags.
    pub(super) fn start_with(client: &ProxyClient, identity: &str, flags: &[&str]) -> Operator {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let listen = format!("127.0.0.1:{}", free_port().unwrap());
        let mut command = dying_with_us(env!("CARGO_BIN_EXE_portal"));
        command.args(["operator", "--image", IMAGE, "--identity", identity, "--listen", &listen]);
        command.args(["--log", "info,portal_operator=debug"]).args(flags);
        command.env_clear().env("KUBECONFIG", client.kubeconfig()).env("RUST_BACKTRACE", "1");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Operator { child, folder }
    }

    /// The end of what it said.
    pub(super) fn log(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(lines).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Kills it: nothing of it is done after this.
    pub(super) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kind that users write.
pub(super) struct Kinds(pub(super) Kind);

impl Kinds {
    pub(super) fn api(&self, client: &Client) -> Api<DynamicObject> {
        if self.0.is_namespaced() {
            Api::namespaced_with(client.clone(), NAMESPACE, &self.0.resource())
        } else {
            Api::all_with(client.clone(), &self.0.resource())
        }
    }
}

/// What has become of an instance, without how often its pods were replaced.
pub(super) fn ageless(mut state: State) -> State {
    for value in state.values_mut() {
        if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.remove("deployment.kubernetes.io/revision");
        }
    }
    state
}

/// The namespace that an instance serves.
pub(super) fn work(name: &str) -> String {
    format!("work-{name}")
}

/// An object without what differs between two that are the same: who and when it is, what certificates hold, and who else is there.
fn comparable(kind: Kind, mut value: Value, name: &str) -> Value {
    let metadata = &mut value["metadata"];
    let owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    let uids: Vec<String> = owners.iter().filter_map(|owner| owner["uid"].as_str().map(str::to_owned)).collect();
    let owners: Vec<String> = owners.iter().map(|owner| format!("{} {}", owner["kind"], owner["name"])).collect();
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(BUNDLE_SINCE);
    }
    let kept = json!({
        "labels": metadata["labels"], "annotations": annotations, "owners": owners, "finalizers": metadata["finalizers"],
    });
    *metadata = kept;
    value["status"] = Value::Null;
    match kind {
        Kind::Secret => {
            let data = value["data"].as_object().cloned().unwrap_or_default();
            value["data"] = data.into_iter().map(|(key, _)| Value::from(key)).collect();
        }
        Kind::Service => {
            for field in ["clusterIP", "clusterIPs"] {
                if value["spec"][field] != "None" {
                    value["spec"][field] = Value::Null;
                }
            }
        }
        Kind::ValidatingWebhookConfiguration => {
            for entry in value["webhooks"].as_array_mut().into_iter().flatten() {
                let bundle = entry["clientConfig"]["caBundle"].take();
                let text = serde_json::from_value::<ByteString>(bundle).map(|bytes| bytes.0).unwrap_or_default();
                entry["clientConfig"]["caBundle"] = String::from_utf8_lossy(&text).matches("BEGIN").count().into();
                for condition in entry["matchConditions"].as_array_mut().into_iter().flatten() {
                    condition["expression"] = without_others(condition["expression"].as_str().unwrap(), name).into();
                }
            }
        }
        _ => {}
    }
    let text = uids.iter().fold(value.to_string(), |text, uid| text.replace(uid, "UID"));
    serde_json::from_str(&text.replace(name, "NAME")).unwrap()
}

/// A condition without the accounts of other instances, which are left alone too.
fn without_others(expression: &str, name: &str) -> String {
    let (Some((head, rest)), own) = (expression.split_once('['), format!("portal-{name}")) else {
        return expression.to_owned();
    };
    let Some((list, tail)) = rest.rsplit_once(']') else { return expression.to_owned() };
    let is_kept = |account: &&str| account.contains(&own) || account.contains("portal-operator");
    format!("{head}[{}]{tail}", list.split(", ").filter(is_kept).collect::<Vec<_>>().join(", "))
}

/// Why a condition holds. While an authority is replaced, which of the two reasons is told depends on when pods were last asked.
fn reason(condition: &Value) -> &str {
    match condition["reason"].as_str().unwrap_or_default() {
        "RotatingAuthority" | "WaitingForPods" if condition["type"] == "CertificatesReady" => "…",
        reason => reason,
    }
}
