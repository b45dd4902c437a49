//! The operator on a cluster with real pods, installed from the manifests that users get, and used by kubectl alone.

mod audit;
mod bad_input;
mod end;
mod golden;
mod life;
mod load;
mod lockout;
mod permissions;
mod upgrade;

use std::process::Command;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use portal_test_kit::cache::Cache;
use portal_test_kit::image::PORTAL_IMAGE;
use portal_test_kit::{Cluster, Size, audit_log, prepare};
use serde_json::{Value, json};

/// Held for reading by tests that need the operator, and for writing by those that take it away.
static OPERATOR: RwLock<()> = RwLock::new(());

/// How long anything may take on a machine that is busy. Nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(180);

/// The shared cluster with the operator in it.
fn cluster() -> (&'static Cluster, RwLockReadGuard<'static, ()>) {
    let guard = OPERATOR.read().unwrap_or_else(PoisonError::into_inner);
    (installed(), guard)
}

/// The same for a test that takes the operator away, and brings it back.
fn cluster_alone() -> (&'static Cluster, RwLockWriteGuard<'static, ()>) {
    let guard = OPERATOR.write().unwrap_or_else(PoisonError::into_inner);
    (installed(), guard)
}

fn installed() -> &'static Cluster {
    static INSTALLED: Once = Once::new();
    let cluster = Cluster::shared(Size::Full);
    INSTALLED.call_once(|| {
        let cache = Cache::open().unwrap();
        cluster.import_image(&prepare::portal_image(&cache).unwrap()).unwrap();
        install(cluster);
    });
    cluster
}

/// Installs the operator, as the documentation says.
fn install(cluster: &Cluster) {
    for arguments in [&["generate", "crds"][..], &["generate", "install", "--image", PORTAL_IMAGE]] {
        cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &portal(arguments)).unwrap();
    }
    rolled_out(cluster, "portal-operator", "portal-operator");
}

fn rolled_out(cluster: &Cluster, namespace: &str, deployment: &str) {
    let deployment = format!("deployment/{deployment}");
    cluster.kubectl(&["--namespace", namespace, "rollout", "status", &deployment, "--timeout=180s"]).unwrap();
}

/// What the program prints.
fn portal(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the operator has asked for an instance: the verb, or `read`, and where.
fn requests(installation: &Installation) -> Vec<String> {
    let events = audit_log::read(&installation.cluster.logs().join("audit.jsonl")).unwrap();
    let by_operator =
        events.iter().filter(|event| event.user() == "system:serviceaccount:portal-operator:portal-operator");
    let named = by_operator.filter(|event| event.request_uri.contains(installation.name));
    named
        .map(|event| format!("{} {}", if event.is_write() { &event.verb } else { "read" }, event.request_uri))
        .collect()
}

/// An instance with namespaces of its own: one for its engine, and one whose objects it judges. Others do not meet it.
struct Installation {
    cluster: &'static Cluster,
    name: &'static str,
}

impl Installation {
    /// Makes namespaces and an instance, with these fields beside what keeps it apart from others.
    fn new(cluster: &'static Cluster, name: &'static str, spec: Value) -> Installation {
        let installation = Installation::without_instance(cluster, name);
        installation.apply(spec);
        installation
    }

    /// Makes the namespaces alone.
    fn without_instance(cluster: &'static Cluster, name: &'static str) -> Installation {
        let installation = Installation { cluster, name };
        let namespace = |name: &str, labels: Value| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } });
        installation.apply_object(&namespace(&installation.engine(), json!({})));
        installation.apply_object(&namespace(&installation.work(), json!({ "served-by": name })));
        let grant = portal(&["generate", "namespace-grant", &installation.engine()]);
        cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &grant).unwrap();
        installation
    }

    /// The namespace of the engine.
    fn engine(&self) -> String {
        format!("engine-{}", self.name)
    }

    /// The namespace whose objects it judges.
    fn work(&self) -> String {
        format!("work-{}", self.name)
    }

    /// The name of what is named after the instance.
    fn child(&self) -> String {
        format!("portal-{}", self.name)
    }

    /// The instance with these fields.
    fn object(&self, spec: Value) -> Value {
        let mut whole = json!({
            "namespace": self.engine(),
            "ruleSelector": { "matchLabels": { "served-by": self.name } },
            "namespaceSelector": { "matchLabels": { "served-by": self.name } },
            "imagePullPolicy": "IfNotPresent",
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": { "name": self.name }, "spec": whole,
        })
    }

    fn apply(&self, spec: Value) {
        self.apply_object(&self.object(spec));
    }

    fn apply_object(&self, object: &Value) {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        self.cluster.kubectl_with_input(&arguments, &object.to_string()).unwrap();
    }

    /// A rule that refuses ConfigMaps whose label `bad` is there.
    fn refuse_bad(&self) {
        self.apply_object(&json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": self.name, "labels": { "served-by": self.name } },
            "spec": { "match": { "gvk": [{ "kind": "ConfigMap" }] }, "rule": "'bad' in metadata.labels", "message": "it is bad" },
        }));
        self.eventually("a bad ConfigMap is refused", || self.create_bad().is_err());
    }

    /// Tries to create what the rule refuses, without storing it.
    fn create_bad(&self) -> Result<String, String> {
        self.create("x", json!({ "bad": "" }), &self.work())
    }

    /// Tries to create a ConfigMap, without storing it.
    fn create(&self, name: &str, labels: Value, namespace: &str) -> Result<String, String> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace, "labels": labels },
        });
        let arguments = ["create", "--dry-run=server", "--filename=-"];
        self.cluster.kubectl_with_input(&arguments, &object.to_string()).map_err(|error| error.to_string())
    }

    /// The instance as it is.
    fn get(&self) -> Value {
        let text = self.cluster.kubectl(&["get", "portal", self.name, "--output=json"]);
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Status and reason of a condition, such as `True Ready`.
    fn condition(&self, name: &str) -> String {
        let instance = self.get();
        let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|found| found["type"] == name).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    }

    /// What a condition says.
    fn message(&self, name: &str) -> String {
        let instance = self.get();
        let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|found| found["type"] == name).unwrap_or_default();
        found["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the instance is ready, in its present version.
    fn ready(&self) {
        self.eventually("the instance is ready", || {
            let instance = self.get();
            instance["status"]["observedGeneration"] == instance["metadata"]["generation"]
                && self.condition("Ready") == "True Ready"
        });
    }

    /// Waits until a condition says something.
    fn says(&self, name: &str, expected: &str) {
        self.eventually(&format!("{name} is {expected}"), || self.condition(name) == expected);
    }

    /// Waits until nothing is left of the instance.
    fn nothing_is_left(&self) {
        let selector = format!("--selector=portal.io/instance={}", self.name);
        let list = |arguments: &[&str]| {
            self.cluster.kubectl(&[&["get", "--output=name", &selector], arguments].concat()).unwrap()
        };
        self.eventually("nothing is left", || {
            let namespaced = "deployments,services,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,\
                              configmaps,pods";
            list(&["--all-namespaces", namespaced]).is_empty()
                && list(&["clusterroles,clusterrolebindings,validatingwebhookconfigurations"]).is_empty()
        });
        let lease = format!("portal-engine-{}", self.name);
        let lease = ["get", "lease", &lease, "--ignore-not-found", "--output=name"];
        self.eventually("the Lease is gone", || self.kubectl(&lease).is_empty());
        assert_eq!(self.get(), Value::Null);
    }

    /// The pods of the engine.
    fn pods(&self) -> Vec<String> {
        let pods = self.kubectl(&["get", "pods", "--output=jsonpath={.items[*].metadata.name}"]);
        pods.split_whitespace().map(str::to_owned).collect()
    }

    /// Asks the API server to evict a pod, as whoever empties a node does.
    fn evict(&self, pod: &str) -> Result<String, String> {
        let namespace = self.engine();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace },
        });
        let arguments = ["create", "--raw", &path, "--filename=-"];
        self.cluster.kubectl_with_input(&arguments, &eviction.to_string()).map_err(|error| error.to_string())
    }

    fn configuration(&self) -> Option<Value> {
        let arguments = ["get", "validatingwebhookconfiguration", &self.child(), "--ignore-not-found", "--output=json"];
        serde_json::from_str(&self.cluster.kubectl(&arguments).unwrap()).ok()
    }

    /// Runs kubectl in the engine's namespace.
    fn kubectl(&self, arguments: &[&str]) -> String {
        let namespace = self.engine();
        self.cluster.kubectl(&[&["--namespace", &namespace], arguments].concat()).unwrap()
    }

    #[track_caller]
    fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        self.within(LONG, what, holds);
    }

    /// Waits for what heals by itself, no longer than the page on recovery says.
    #[track_caller]
    fn heals(&self, what: &str, holds: impl FnMut() -> bool) {
        let page = include_str!("../docs/operator/recovery-from-self-lockout.md");
        assert!(page.contains("at most two minutes"));
        let began = Instant::now();
        self.within(Duration::from_secs(120), what, holds);
        println!("{what} after {:.1} s", began.elapsed().as_secs_f64());
    }

    #[track_caller]
    fn within(&self, limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + limit;
        while !holds() {
            assert!(Instant::now() < deadline, "{what}: {:#}\n{}", self.get()["status"], self.operator_log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The last words of the operator.
    fn operator_log(&self) -> String {
        let arguments =
            ["--namespace=portal-operator", "logs", "--selector=app.kubernetes.io/name=portal-operator", "--tail=30"];
        self.cluster.kubectl(&arguments).unwrap_or_default()
    }
}

impl Drop for Installation {
    /// What the test has not deleted goes: a webhook configuration that nobody looks after would stay for the others.
    fn drop(&mut self) {
        let _ = self.cluster.kubectl(&["delete", "portal", self.name, "--ignore-not-found", "--wait=false"]);
        let served = format!("--selector=served-by={}", self.name);
        let _ = self.cluster.kubectl(&["delete", "portalclusterrule", &served, "--ignore-not-found", "--wait=false"]);
    }
}
