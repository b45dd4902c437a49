//! What it costs to judge what is in a cluster, whenever it changes: an engine with audit on a real API server with 10,000 pods.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, Size, prepare, repository};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Measuring;
use super::process::Engine;
use super::samples::Samples;
use super::table::{Goal, Row};

const PODS: usize = 10_000;

/// How many pods are created at a time.
const AT_A_TIME: usize = 32;

/// Pods that are changed to see how long it takes until that is found, and how many in a second.
const CHANGES: usize = 1000;
const PER_SECOND: u32 = 200;

/// How often an object is changed that all pods depend on. Then it is changed back.
const ROUNDS: usize = 3;

/// A rule judges an object again three times within this time because of what it looks up.
const WINDOW: Duration = Duration::from_secs(11);

/// How many lookups of each pod are remembered, to see what they take.
const LOOKUPS: usize = 10;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(30);

/// Nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(300);

const NAMESPACE: &str = "crowd";

/// What is found of a pod by its own label, by a ConfigMap and by its Namespace.
const RULES: &str = r#"
name: marked
match: {gvk: [{kind: Pod}], podControllers: false}
rule: metadata.labels.bad == "yes"
message: it is marked
---
name: switched
match: {gvk: [{kind: Pod}], podControllers: false}
rule: cluster.configmaps.byName(metadata.namespace, "switch").data.on == "yes"
message: it is switched on
---
name: quarantined
match: {gvk: [{kind: Pod}], podControllers: false}
rule: cluster.namespaces.byName(metadata.namespace).metadata.labels.quarantine == "yes"
message: its namespace is in quarantine
"#;

/// Where an engine runs.
struct Stage {
    cluster: Cluster,
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// An engine, and what it prints.
struct Auditor {
    engine: Engine,
    log: PathBuf,
    /// How many rules judge each pod.
    rules: usize,
}

pub(super) fn measure(_: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    // On a thread without a runtime: this one has its own.
    let measured = std::thread::spawn(measure_audit).join();
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn measure_audit() -> anyhow::Result<Vec<Row>> {
    let stage = Stage {
        program: prepare::static_program()?,
        cluster: Cluster::start(Size::Core)?,
        folder: tempfile::tempdir()?,
    };
    stage.cluster.kubectl(&["create", "namespace", "portal-system"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let client = runtime.block_on(stage.cluster.client());
    let empty = stage.start("empty", 0)?;
    let without_pods = empty.memory()?;
    empty.engine.process.stop()?;
    runtime.block_on(fill(&client))?;

    let mut rows = Vec::new();
    let begin = Instant::now();
    let auditor = stage.start("pods", 0)?;
    auditor.judges(PODS)?;
    rows.push(row("audit 10,000 pods by 18 rules, from the start to the last", begin.elapsed().as_secs_f64(), "s"));
    let with_pods = auditor.memory()?;
    rows.push(row("memory of it for a pod", (with_pods - without_pods) * 1e3 / PODS as f64, "KB"));
    let before = auditor.engine.process.cpu_seconds()?;
    std::thread::sleep(IDLE);
    let idle = (auditor.engine.process.cpu_seconds()? - before) / IDLE.as_secs_f64() * 100.0;
    rows.push(Row { must: Some(Goal::AtMost(1.0)), ..row("CPU of it while nothing happens", idle, "% of a core") });
    rows.extend(auditor.measure_changes(&runtime, &client)?);
    let switch = |on: &str| runtime.block_on(switch(&client, on));
    rows.push(auditor.measure_fan_out("a ConfigMap", "switched", &switch)?);
    let quarantine = |on: &str| runtime.block_on(quarantine(&client, on));
    rows.push(auditor.measure_fan_out("a Namespace", "quarantined", &quarantine)?);
    auditor.engine.process.stop()?;

    let auditor = stage.start("lookups", LOOKUPS)?;
    auditor.judges(PODS)?;
    let entries = (PODS * LOOKUPS) as f64;
    let bytes = (auditor.memory()? - with_pods) * 1e6 / entries;
    rows.push(row("memory for a remembered lookup, each of another object", bytes, "bytes"));
    auditor.engine.process.stop()?;
    Ok(rows)
}

impl Stage {
    /// Starts an engine with the rules of `restricted`, ours, and so many that look up something of each pod's own.
    fn start(&self, name: &str, lookups: usize) -> anyhow::Result<Auditor> {
        let folder = self.folder.path().join(name);
        let rules = folder.join("rules");
        std::fs::create_dir_all(&rules)?;
        let mut count = 3 + lookups;
        for file in std::fs::read_dir(repository().join("docs/library/pod-security/restricted"))? {
            let path = file?.path();
            std::fs::copy(&path, rules.join(path.file_name().context("a file has a name")?))?;
            count += 1;
        }
        let looking_up = |number: usize| {
            format!(
                "---\nname: lookup-{number}\nmatch: {{gvk: [{{kind: Pod}}], podControllers: false}}\n\
                 rule: cluster.configmaps.byName(metadata.namespace, metadata.name + '-{number}') != nil\nmessage: it is there\n"
            )
        };
        let text: String = [RULES.to_owned()].into_iter().chain((0..lookups).map(looking_up)).collect();
        std::fs::write(rules.join("rules.yaml"), text)?;
        let log = folder.join("found");
        let mut command = dying_with_us("sh");
        command.args(["-c", "exec \"$0\" \"$@\" > found"]).arg(&self.program).current_dir(&folder);
        command.args(["engine", "--audit", "--policy-reports=none", "--log=error", "--rules-folder=rules"]);
        let engine = Engine::start(command.env("KUBECONFIG", self.cluster.kubeconfig()), free_port()?)?;
        engine.wait_until(LONG, |engine| engine.is_ready() && engine.metric("portal_lease_held") == 1.0)?;
        Ok(Auditor { engine, log, rules: count })
    }
}

impl Auditor {
    /// How often a rule was asked about an object.
    fn asked(&self) -> f64 {
        let results = ["passed", "violated", "failed"];
        let count = |result| self.engine.metric(&format!(r#"portal_audit_evaluations_total{{result="{result}"}}"#));
        results.into_iter().map(count).sum()
    }

    /// Waits until it has judged so many pods.
    fn judges(&self, pods: usize) -> anyhow::Result<()> {
        self.engine.wait_until(LONG, |_| self.asked() >= (pods * self.rules) as f64)
    }

    /// Its memory once that grows no more, in MB.
    fn memory(&self) -> anyhow::Result<f64> {
        std::thread::sleep(Duration::from_secs(5));
        self.engine.process.memory()
    }

    /// When it said of each object what has become of a finding of a rule, in seconds since 1970.
    fn told(&self, rule: &str, what: &str) -> anyhow::Result<BTreeMap<String, f64>> {
        let text = std::fs::read_to_string(&self.log)?;
        let mut told = BTreeMap::new();
        // The last line may not be whole yet.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["rule"] == rule && line["finding"] == what {
                let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
                told.insert(text("name"), text("time").parse::<Timestamp>()?.as_duration().as_secs_f64());
            }
        }
        Ok(told)
    }

    /// Changes pods so that they violate a rule.
    fn measure_changes(&self, runtime: &tokio::runtime::Runtime, client: &Client) -> anyhow::Result<Vec<Row>> {
        let (asked, processor) = (self.asked(), self.engine.process.cpu_seconds()?);
        let sent = runtime.block_on(mark(client))?;
        let deadline = Instant::now() + LONG;
        let told = loop {
            let told = self.told("marked", "appeared")?;
            if told.len() == CHANGES {
                break told;
            }
            if Instant::now() > deadline {
                bail!("{} of {CHANGES} changes were found", told.len());
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let (asked, processor) = (self.asked() - asked, self.engine.process.cpu_seconds()? - processor);
        let mut times: Vec<f64> = sent.iter().map(|(name, sent)| (told[name] - sent) * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let what = |what: &str| format!("a pod of 10,000 is changed, 200 in a second: {what}");
        Ok(vec![
            row(&what("from the request to its finding, half of them"), at(0.5), "ms"),
            Row {
                must: Some(Goal::AtMost(200.0)),
                aim: Some(Goal::AtMost(50.0)),
                worst: format!("{:.1} ms", at(1.0)),
                ..row(&what("from the request to its finding, 99 of 100"), at(0.99), "ms")
            },
            row(&what("rules that are asked"), asked / CHANGES as f64, ""),
            row(&what("CPU"), processor * 1e6 / CHANGES as f64, "µs"),
        ])
    }

    /// Changes what all pods depend on.
    fn measure_fan_out(
        &self,
        what: &str,
        rule: &str,
        change: &dyn Fn(&str) -> anyhow::Result<f64>,
    ) -> anyhow::Result<Row> {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            for (value, finding) in [("yes", "appeared"), ("no", "cleared")] {
                let sent = change(value)?;
                let deadline = Instant::now() + LONG;
                let last = loop {
                    let told = self.told(rule, finding)?;
                    if told.len() == PODS && told.values().all(|time| *time > sent) {
                        break told.values().copied().fold(sent, f64::max);
                    }
                    if Instant::now() > deadline {
                        bail!("not every pod has followed {what}");
                    }
                    std::thread::sleep(Duration::from_millis(500));
                };
                times.push((last - sent) * 1e3);
            }
            std::thread::sleep(WINDOW);
        }
        let samples = Samples::new(times);
        Ok(Row {
            spread: Some(samples.spread()),
            must: Some(Goal::AtMost(1000.0)),
            aim: Some(Goal::AtMost(200.0)),
            ..row(
                &format!("{what} is changed that 10,000 pods depend on: until all are judged again and told of"),
                samples.median(),
                "ms",
            )
        })
    }
}

fn row(what: &str, value: f64, unit: &str) -> Row {
    Row { what: what.to_owned(), value, unit: unit.to_owned(), ..Row::default() }
}

fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// Makes the pods, and what they depend on.
async fn fill(client: &Client) -> anyhow::Result<()> {
    let namespace = Namespace { metadata: named(NAMESPACE), ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    // Without a controller nobody else does.
    let account = ServiceAccount { metadata: named("default"), ..ServiceAccount::default() };
    Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &account).await?;
    let switch = ConfigMap { metadata: named("switch"), ..ConfigMap::default() };
    Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &switch).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let mut creating = JoinSet::new();
    for number in 0..PODS {
        if creating.len() >= AT_A_TIME
            && let Some(created) = creating.join_next().await
        {
            created??;
        }
        let (pods, pod) = (pods.clone(), pod(number)?);
        creating.spawn(async move { pods.create(&PostParams::default(), &pod).await.map(drop) });
    }
    while let Some(created) = creating.join_next().await {
        created??;
    }
    Ok(())
}

/// A pod that meets every rule.
fn pod(number: usize) -> anyhow::Result<Pod> {
    let secure = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": { "drop": ["ALL"] },
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example/team-{}/{name}:1.{number}", number % 50), "securityContext": secure,
            "env": [{ "name": "NUMBER", "value": number.to_string() }, { "name": "LEVEL", "value": "info" }],
            "resources": { "limits": { "memory": "128Mi" }, "requests": { "cpu": "100m", "memory": "64Mi" } },
            "ports": [{ "containerPort": 8080, "name": name }],
        })
    };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("pod-{number}"), "labels": { "app": format!("app-{}", number % 1000), "bad": "no" } },
        "spec": { "automountServiceAccountToken": false, "containers": [container("app"), container("sidecar")] },
    });
    Ok(serde_json::from_value(pod)?)
}

/// Marks pods, so many in a second. Returns when each request was sent.
async fn mark(client: &Client) -> anyhow::Result<BTreeMap<String, f64>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    let mut marking = JoinSet::new();
    for number in 0..CHANGES {
        ticks.tick().await;
        let (pods, name) = (pods.clone(), format!("pod-{}", number * (PODS / CHANGES)));
        marking.spawn(async move {
            let sent = now();
            let patch = Patch::Merge(json!({ "metadata": { "labels": { "bad": "yes" } } }));
            pods.patch_metadata(&name, &PatchParams::default(), &patch).await.map(|_| (name, sent))
        });
    }
    let mut sent = BTreeMap::new();
    while let Some(marked) = marking.join_next().await {
        let (name, time) = marked??;
        sent.insert(name, time);
    }
    Ok(sent)
}

/// Changes the ConfigMap that all pods depend on. Returns when the request was sent.
async fn switch(client: &Client, on: &str) -> anyhow::Result<f64> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let sent = now();
    maps.patch("switch", &PatchParams::default(), &Patch::Merge(json!({ "data": { "on": on } }))).await?;
    Ok(sent)
}

/// Changes their Namespace. Returns when the request was sent.
async fn quarantine(client: &Client, on: &str) -> anyhow::Result<f64> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let sent = now();
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "quarantine": on } } }));
    namespaces.patch(NAMESPACE, &PatchParams::default(), &patch).await?;
    Ok(sent)
}
