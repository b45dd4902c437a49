//! From the manifests of an installation to what people are told: answers to requests, reports, alerts at the real Alertmanager, and what Prometheus
//! scrapes are compared with committed files. `PORTAL_UPDATE=1` writes them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use portal_test_kit::cache::Cache;
use portal_test_kit::image::{self, ALERTMANAGER_IMAGE};
use portal_test_kit::{Cluster, repository};
use serde_json::{Value, json};

use super::{Installation, cluster, portal, rolled_out};

/// The real Alertmanager in a pod, and a Service that leads to it.
struct Alertmanager {
    cluster: &'static Cluster,
    namespace: String,
}

/// What of an alert is other at other times.
const TIMES: [&str; 3] = ["startsAt", "endsAt", "updatedAt"];

/// What of a result is other in other clusters: when it began, and what is made of the UID of its object.
const OF_THIS_CLUSTER: [&str; 3] = ["timestamp", "uid", "resultID"];

/// What is scraped: the answers that rules had something to do with, and how many objects violate each rule.
const SERIES: [&str; 3] = [
    r#"portal_admission_requests_total{decision="denied"}"#,
    r#"portal_admission_requests_total{decision="warned"}"#,
    "portal_audit_violations{",
];

impl Alertmanager {
    fn start(cluster: &'static Cluster, namespace: String) -> Alertmanager {
        cluster.import_image(&image::find(&Cache::open().unwrap(), "alertmanager").unwrap()).unwrap();
        let config = json!({ "route": { "receiver": "people" }, "receivers": [{ "name": "people" }] });
        let metadata = json!({ "name": "alertmanager", "namespace": namespace });
        let container = json!({
            "name": "alertmanager", "image": ALERTMANAGER_IMAGE, "imagePullPolicy": "Never",
            // It looks for no others.
            "args": ["--config.file=/config/config.yml", "--storage.path=/data", "--cluster.listen-address="],
            "ports": [{ "containerPort": 9093 }],
            "readinessProbe": { "httpGet": { "path": "/-/ready", "port": 9093 }, "periodSeconds": 1 },
            "volumeMounts": [{ "name": "config", "mountPath": "/config" }, { "name": "data", "mountPath": "/data" }],
        });
        let volumes =
            json!([{ "name": "config", "configMap": { "name": "alertmanager" } }, { "name": "data", "emptyDir": {} }]);
        let pod = json!({ "metadata": { "labels": { "app": "alertmanager" } }, "spec": { "containers": [container], "volumes": volumes } });
        let selector = json!({ "app": "alertmanager" });
        let items = json!([
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } },
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "config.yml": config.to_string() } },
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "spec": { "selector": { "matchLabels": selector }, "template": pod },
            },
            {
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": { "selector": selector, "ports": [{ "port": 9093 }] },
            },
        ]);
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &list.to_string()).unwrap();
        rolled_out(cluster, &namespace, "alertmanager");
        Alertmanager { cluster, namespace }
    }

    /// Where engines reach it: nobody answers for names in this cluster.
    fn url(&self) -> String {
        let get = ["get", "service", "alertmanager", "--output=jsonpath={.spec.clusterIP}"];
        let address = self.cluster.kubectl(&[&["--namespace", &self.namespace], &get[..]].concat()).unwrap();
        format!("http://{address}:9093")
    }

    /// What fires there, in the order of its labels.
    fn firing(&self) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{}/services/alertmanager:9093/proxy/api/v2/alerts", self.namespace);
        let alerts = self.cluster.kubectl(&["get", "--raw", &path]).unwrap();
        let mut alerts: Vec<Value> = serde_json::from_str(&alerts).unwrap();
        alerts.sort_by_key(|alert| alert["labels"].to_string());
        alerts
    }

    /// The objects that alerts are about which fire.
    fn names(&self) -> Vec<String> {
        let alerts = self.firing();
        alerts.iter().map(|alert| alert["labels"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Installation {
    /// Sends an object to the namespace whose objects are judged. Returns all that kubectl says.
    fn send(&self, arguments: &[&str], object: &str) -> String {
        let mut command = self.cluster.kubectl_command();
        command.args(["--namespace", &self.work()]).args(arguments).arg("--filename=-");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(object.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// The reports of the namespace whose objects are judged. Their results are in the order of rules and objects: where each is in the
    /// report follows from its UID.
    fn reports(&self) -> Vec<Value> {
        let namespace = format!("--namespace={}", self.work());
        let reports = self.cluster.kubectl(&[&namespace, "get", "policyreports", "--output=json"]).unwrap();
        let mut reports: Value = serde_json::from_str(&reports).unwrap();
        let report = |report: &mut Value| {
            let mut results = report["results"].take();
            let key = |result: &Value| format!("{} {} {}", result["policy"], result["resources"], result["properties"]);
            results.as_array_mut().unwrap().sort_by_key(key);
            mask(&mut results, &OF_THIS_CLUSTER);
            let (name, labels) = (&report["metadata"]["name"], &report["metadata"]["labels"]);
            json!({ "name": name, "labels": labels, "summary": report["summary"], "results": results })
        };
        reports["items"].as_array_mut().unwrap().iter_mut().map(report).collect()
    }

    /// What Prometheus would be told: of counters the sum of all replicas, of states what any of them says.
    fn scrape(&self) -> BTreeMap<String, u64> {
        let mut series = BTreeMap::new();
        for pod in self.pods() {
            let path = format!("/api/v1/namespaces/{}/pods/{pod}:8080/proxy/metrics", self.engine());
            let text = self.cluster.kubectl(&["get", "--raw", &path]).unwrap();
            for line in text.lines().filter(|line| SERIES.iter().any(|series| line.starts_with(series))) {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let (value, known): (u64, _) = (value.parse().unwrap(), series.entry(name.to_owned()).or_insert(0));
                *known = if name.contains("_total") { *known + value } else { value.max(*known) };
            }
        }
        series
    }

    /// The same, with counters counted from here on.
    fn scrape_since(&self, before: &BTreeMap<String, u64>) -> String {
        let line = |(name, value): (&String, &u64)| {
            let before = before.get(name).filter(|_| name.contains("_total")).copied().unwrap_or_default();
            format!("{name} {}\n", value - before)
        };
        self.scrape().iter().map(line).collect()
    }
}

/// Replaces the values of these fields, wherever they are.
fn mask(value: &mut Value, fields: &[&str]) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match fields.contains(&name.as_str()) {
                    true => *value = json!("…"),
                    false => mask(value, fields),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, fields)),
        _ => {}
    }
}

/// A pod of one container that never runs.
fn pod(name: &str, image: &str, is_privileged: bool) -> String {
    let container = json!({ "name": "app", "image": image, "securityContext": { "privileged": is_privileged } });
    let spec = json!({ "nodeSelector": { "there-is": "no-such-node" }, "containers": [container] });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec }).to_string()
}

fn pretty(value: &impl serde::Serialize) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap())
}

#[track_caller]
fn compare(file: &str, text: &str) {
    let path = repository().join("tests/operator/golden").join(file);
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == text,
        "{file} is not what came of the rules: run PORTAL_UPDATE=1 make test SUITE=operator, and read the difference. There was\n{text}"
    );
}

#[test]
fn what_people_are_told_of_given_objects_is_what_is_committed() {
    let (cluster, _operator) = cluster();
    cluster
        .kubectl_with_input(&["apply", "--server-side", "--filename=-"], &portal(&["generate", "report-crds"]))
        .unwrap();
    let installation = Installation::without_instance(cluster, "golden");
    let alertmanager = Alertmanager::start(cluster, "alerts-golden".to_owned());
    let sinks = json!({ "alertmanager": { "urls": [alertmanager.url()] } });
    installation.apply(json!({ "audit": { "enabled": true }, "sinks": sinks }));
    let said = installation.send(&["apply"], include_str!("golden/cluster.yaml"));
    assert!(said.contains("deployment.apps/agent created"), "{said}");
    let namespace = format!("--namespace={}", installation.work());
    cluster.kubectl(&[&namespace, "rollout", "status", "deployment/agent", "--timeout=180s"]).unwrap();
    installation.ready();
    installation.says("ReportsAvailable", "True Available");

    cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], include_str!("golden/rules.yaml")).unwrap();
    let rules = ["pcr/privileged-container", "pcr/image-without-version"];
    cluster.kubectl(&[&["wait", "--for=condition=Ready", "--timeout=180s"], &rules[..]].concat()).unwrap();
    let (shell, latest) =
        (pod("shell", "registry.example/shell:1.0", true), pod("latest", "registry.example/web", false));
    // The API server may take a moment to ask. What is not stored alerts nobody.
    let tries = ["create", "--dry-run=server"];
    installation.eventually("rules are asked", || {
        installation.send(&tries, &shell).contains("denied") && installation.send(&tries, &latest).contains("Warning")
    });

    let before = installation.scrape();
    let requests = [("good", pod("good", "registry.example/web:1.4", false)), ("shell", shell), ("latest", latest)];
    let answers: String =
        requests.iter().map(|(name, pod)| format!("# {name}\n{}", installation.send(&["create"], pod))).collect();
    compare("expected_answers.txt", &answers);

    installation.eventually("alerts fire", || alertmanager.names().len() >= 3);
    let mut alerts = json!(alertmanager.firing());
    mask(&mut alerts, &TIMES);
    compare("expected_alert.json", &pretty(&alerts));

    let results = |count: usize| {
        let reports = installation.reports();
        reports.iter().map(|report| report["results"].as_array().unwrap().len()).sum::<usize>() == count
    };
    installation.eventually("all is reported", || results(3));
    compare("expected_reports.json", &pretty(&installation.reports()));

    // A replica may not have judged everything yet.
    installation.eventually("it is counted", || {
        let of_rules = |(name, count): (String, u64)| name.starts_with("portal_audit").then_some(count);
        installation.scrape().into_iter().filter_map(of_rules).sum::<u64>() == 3
    });
    compare("expected_metrics.txt", &installation.scrape_since(&before));

    // Mended: what was found ends, and what was refused ends by its time alone.
    cluster.kubectl(&[&namespace, "delete", "--now", "pod/web", "deployment/agent"]).unwrap();
    installation.eventually("alerts end", || alertmanager.names() == ["shell"]);
    installation.eventually("it is reported no more", || results(1));
}
