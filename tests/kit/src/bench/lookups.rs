//! What it costs to know the pods of a large cluster: 100,000 that an API double tells, and fewer that a real API server does.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use portal_test_kit::certificates::Authority;
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, Size, prepare};
use tokio::task::JoinSet;

use super::Measuring;
use super::process::Engine;
use super::samples::Samples;
use super::table::Row;

/// Pods of the real cluster, and how many are made at a time.
const PODS: usize = 20_000;
const AT_A_TIME: usize = 32;

const STARTS: usize = 3;

/// Looks pods up, so that they are cached.
const RULE: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: neighbours}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: 'len(cluster.pods.list(metadata.namespace, {"app.kubernetes.io/name": "web"})) > 100'
  message: there are too many of them
"#;

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    // In programs that are built as the one that users get.
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let as_shipped = ["--no-default-features", "--features", "lookups,jemalloc", "--target", &target];
    let lookups = measuring.programs.build("lookups", &as_shipped)?;
    let mut rows = measuring.programs.rows(&lookups, &[])?;
    // On a thread without a runtime: this one has its own.
    let measured = std::thread::scope(|scope| scope.spawn(|| measure_cluster(&lookups)).join());
    rows.extend(measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    Ok(rows)
}

fn measure_cluster(lookups: &Path) -> anyhow::Result<Vec<Row>> {
    let program = prepare::static_program()?;
    let cluster = Cluster::start(Size::Core)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(create(&cluster, lookups))?;
    let folder = tempfile::tempdir()?;
    let pair = Authority::new("portal")?.server("portal", &["127.0.0.1"])?;
    std::fs::create_dir(folder.path().join("rules"))?;
    for (name, text) in [("tls.crt", &*pair.certificate), ("tls.key", &pair.key), ("rules/rule.yaml", RULE)] {
        std::fs::write(folder.path().join(name), text)?;
    }
    let (mut seconds, mut processor, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let mut command = dying_with_us(&program);
        command.args(["engine", "--admission", "--log=error", "--rules-folder", "rules"]).current_dir(folder.path());
        command.args(["--tls-cert", "tls.crt", "--tls-key", "tls.key", "--admission-listen"]);
        command.arg(format!("127.0.0.1:{}", free_port()?)).env("KUBECONFIG", cluster.kubeconfig());
        let begin = Instant::now();
        let engine = Engine::start(&mut command, free_port()?)?;
        engine.wait_until(Duration::from_secs(60), Engine::is_ready)?;
        seconds.push(begin.elapsed().as_secs_f64());
        processor.push(engine.process.cpu_seconds()? * 1e6 / PODS as f64);
        memory.push(engine.process.memory()?);
        let cached = engine.metric(r#"portal_cache_objects{watch="pods.v1"}"#);
        if cached != PODS as f64 {
            bail!("the engine has {cached} of {PODS} pods");
        }
        engine.process.stop()?;
    }
    let row = |what: &str, samples: Vec<f64>, unit: &str| {
        let samples = Samples::new(samples);
        Row {
            what: format!("start an engine whose rules look up 20,000 pods of a real API server: {what}"),
            value: samples.median(),
            unit: unit.to_owned(),
            spread: Some(samples.spread()),
            ..Row::default()
        }
    };
    Ok(vec![row("until it is ready", seconds, "s"), row("CPU for a pod", processor, "µs"), row("memory", memory, "MB")])
}

/// Makes the pods, by the generator of those that the API double tells.
async fn create(cluster: &Cluster, lookups: &Path) -> anyhow::Result<()> {
    let client = cluster.client().await;
    let output = Command::new(lookups).args(["pods", &PODS.to_string()]).output()?;
    let mut creating = JoinSet::new();
    let mut namespaces = std::collections::BTreeSet::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let mut pod: Pod = serde_json::from_str(line)?;
        pod.metadata = ObjectMeta {
            name: pod.metadata.name,
            namespace: pod.metadata.namespace,
            labels: pod.metadata.labels,
            annotations: pod.metadata.annotations,
            ..ObjectMeta::default()
        };
        let spec = pod.spec.as_mut().context("a pod has a spec")?;
        // The account that each namespace has.
        (spec.service_account_name, spec.service_account) = (Some("default".to_owned()), None);
        spec.automount_service_account_token = Some(false);
        (spec.priority_class_name, spec.priority) = (None, None);
        let namespace = pod.metadata.namespace.clone().context("a pod has a namespace")?;
        if namespaces.insert(namespace.clone()) {
            create_namespace(&client, &namespace).await?;
        }
        if creating.len() >= AT_A_TIME
            && let Some(created) = creating.join_next().await
        {
            created??;
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        creating.spawn(async move { api.create(&PostParams::default(), &pod).await.map(drop) });
    }
    while let Some(created) = creating.join_next().await {
        created??;
    }
    Ok(())
}

/// Makes a namespace with the account that pods need. Without a controller nobody else does.
async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: named(name), ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let account = ServiceAccount { metadata: named("default"), ..ServiceAccount::default() };
    Api::namespaced(client.clone(), name).create(&PostParams::default(), &account).await?;
    Ok(())
}
