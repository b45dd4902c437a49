//! What an engine costs with many rules: until it is ready, while nothing happens, and for each change.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, Size, prepare, repository};
use serde_json::{Value, json};

use super::Measuring;
use super::process::Engine;
use super::table::{Goal, Row};

const RULES: usize = 5000;
const STARTS: usize = 3;
const CHANGES: usize = 200;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(30);

pub(super) fn measure(_: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    // On a thread without a runtime: this one has its own.
    let measured = std::thread::spawn(measure_engine).join();
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn measure_engine() -> anyhow::Result<Vec<Row>> {
    let program = prepare::static_program()?;
    let cluster = Cluster::start(Size::Core)?;
    let definitions = repository().join("crds/yaml").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--filename", &definitions])?;
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "--filename", &definitions])?;
    cluster.kubectl(&["create", "namespace", "portal-system"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(create_rules(&cluster, RULES))?;

    // The first one writes every status, which is not what a start usually is.
    let engine = start(&cluster, &program)?;
    engine.wait_until(Duration::from_secs(300), |engine| {
        engine.metric("portal_status_writes_total{result=\"written\"}") >= RULES as f64
    })?;
    engine.process.stop()?;
    let mut starts = Vec::new();
    for _ in 1..STARTS {
        let (engine, seconds) = start_timed(&cluster, &program)?;
        starts.push(seconds);
        engine.process.stop()?;
    }
    let (engine, seconds) = start_timed(&cluster, &program)?;
    starts.push(seconds);
    engine.wait_until(Duration::from_secs(60), |engine| engine.metric("portal_lease_held") == 1.0)?;
    // What a start leaves behind is over by then.
    std::thread::sleep(Duration::from_secs(15));
    let before = engine.process.cpu_seconds()?;
    std::thread::sleep(IDLE);
    let idle = (engine.process.cpu_seconds()? - before) / IDLE.as_secs_f64() * 100.0;
    let memory = engine.process.memory()?;

    let counted = |engine: &Engine| {
        let written = engine.metric("portal_status_writes_total{result=\"written\"}");
        (engine.metric("portal_rule_sets_total"), engine.metric("portal_rule_set_microseconds_total"), written)
    };
    let before = counted(&engine);
    let mut told = runtime.block_on(change_rules(&cluster))?;
    let after = counted(&engine);
    engine.process.stop()?;
    told.sort_by(f64::total_cmp);
    let sets = after.0 - before.0;
    let at = |share: f64| told[((told.len() - 1) as f64 * share) as usize];
    let row = |what: &str, value: f64, unit: &str| Row {
        what: what.to_owned(),
        value,
        unit: unit.to_owned(),
        ..Row::default()
    };
    starts.sort_by(f64::total_cmp);
    Ok(vec![
        Row {
            spread: Some((starts[0], starts[STARTS - 1])),
            ..row("start an engine with 5,000 rules", starts[STARTS / 2], "s")
        },
        row("memory of an engine with 5,000 rules", memory, "MB"),
        Row { must: Some(Goal::AtMost(0.5)), ..row("CPU of it while nothing happens", idle, "% of a core") },
        Row {
            must: Some(Goal::AtMost(5.0)),
            ..row("a changed rule to the set with it", (after.1 - before.1) / sets / 1000.0, "ms")
        },
        Row {
            must: Some(Goal::AtMost(1.0)),
            ..row("writes of status for a changed rule", (after.2 - before.2) / CHANGES as f64, "")
        },
        row("a changed rule to its status, half of them", at(0.5) * 1000.0, "ms"),
        Row {
            aim: Some(Goal::AtMost(1000.0)),
            ..row("a changed rule to its status, 99 of 100", at(0.99) * 1000.0, "ms")
        },
    ])
}

async fn rules(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("portal.io", "v1alpha1", "PortalClusterRule");
    Api::all_with(cluster.client().await, &ApiResource::from_gvk(&kind))
}

/// Makes so many rules about pods.
pub(super) async fn create_rules(cluster: &Cluster, count: usize) -> anyhow::Result<()> {
    let rules = (0..count).map(|number| {
        json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": format!("rule-{number}")},
            "spec": {
                "match": {"gvk": [{"kind": "Pod"}]},
                "rule": format!("container.image.registry not in [\"registry-{number}.example\"] && container.securityContext.privileged == true"),
                "message": "container {{ container.name }} is privileged",
            },
        })
    });
    create_all(cluster, rules).await
}

/// Makes rules, some at a time.
pub(super) async fn create_all(cluster: &Cluster, rules: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let api = self::rules(cluster).await;
    let mut creating = tokio::task::JoinSet::new();
    for rule in rules {
        let rule: DynamicObject = serde_json::from_value(rule)?;
        if creating.len() >= 32
            && let Some(created) = creating.join_next().await
        {
            created??;
        }
        let api = api.clone();
        creating.spawn(async move { api.create(&PostParams::default(), &rule).await.map(drop) });
    }
    while let Some(created) = creating.join_next().await {
        created??;
    }
    Ok(())
}

/// Changes rules, one after the other, and returns how long each took to be told in its status.
async fn change_rules(cluster: &Cluster) -> anyhow::Result<Vec<f64>> {
    let api = rules(cluster).await;
    let mut seconds = Vec::new();
    for number in 0..CHANGES {
        let name = format!("rule-{}", number * 7);
        let patch = json!({"spec": {"rule": format!("spec.hostNetwork == true && \"{number}\" != \"\"")}});
        let begin = Instant::now();
        let changed = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let generation = json!(changed.metadata.generation);
        loop {
            let rule = api.get(&name).await?;
            if rule.data["status"]["observedGeneration"] == generation {
                break;
            }
            if begin.elapsed() > Duration::from_secs(30) {
                bail!("the status of {name} does not follow: {}", rule.data["status"]);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        seconds.push(begin.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Starts an engine with the rules of the cluster.
fn start(cluster: &Cluster, program: &Path) -> anyhow::Result<Engine> {
    let mut command = dying_with_us(program);
    command.args(["engine", "--rules-from-cluster", "--log=error"]).env("KUBECONFIG", cluster.kubeconfig());
    Engine::start(&mut command, free_port()?)
}

/// Starts one and waits until all rules are in force. Returns how many seconds that took too.
fn start_timed(cluster: &Cluster, program: &Path) -> anyhow::Result<(Engine, f64)> {
    let begin = Instant::now();
    let engine = start(cluster, program)?;
    let limit = Duration::from_secs(60);
    engine.wait_until(limit, |engine| engine.metric("portal_rules{state=\"active\"}") >= RULES as f64)?;
    Ok((engine, begin.elapsed().as_secs_f64()))
}
