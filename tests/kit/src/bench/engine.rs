//! What an engine costs with many rules: until it is ready, while nothing happens, and for each change.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, Size, prepare, repository};
use serde_json::json;

use super::Measuring;
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
    runtime.block_on(create_rules(&cluster))?;

    // The first one writes every status, which is not what a start usually is.
    let engine = Engine::start(&cluster, &program)?;
    engine.wait_until(Duration::from_secs(300), |engine| {
        engine.metric("portal_status_writes_total{result=\"written\"}") >= RULES as f64
    })?;
    engine.stop()?;
    let mut starts = Vec::new();
    for _ in 1..STARTS {
        let (engine, seconds) = Engine::timed(&cluster, &program)?;
        starts.push(seconds);
        engine.stop()?;
    }
    let (engine, seconds) = Engine::timed(&cluster, &program)?;
    starts.push(seconds);
    engine.wait_until(Duration::from_secs(60), |engine| engine.metric("portal_lease_held") == 1.0)?;
    // What a start leaves behind is over by then.
    std::thread::sleep(Duration::from_secs(15));
    let before = engine.cpu_seconds()?;
    std::thread::sleep(IDLE);
    let idle = (engine.cpu_seconds()? - before) / IDLE.as_secs_f64() * 100.0;
    let memory = engine.memory()?;

    let counted = |engine: &Engine| {
        let written = engine.metric("portal_status_writes_total{result=\"written\"}");
        (engine.metric("portal_rule_sets_total"), engine.metric("portal_rule_set_microseconds_total"), written)
    };
    let before = counted(&engine);
    let mut told = runtime.block_on(change_rules(&cluster))?;
    let after = counted(&engine);
    engine.stop()?;
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

async fn create_rules(cluster: &Cluster) -> anyhow::Result<()> {
    let api = rules(cluster).await;
    let mut creating = tokio::task::JoinSet::new();
    for number in 0..RULES {
        let rule: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": format!("rule-{number}")},
            "spec": {
                "match": {"gvk": [{"kind": "Pod"}]},
                "rule": format!("container.image.registry not in [\"registry-{number}.example\"] && container.securityContext.privileged == true"),
                "message": "container {{ container.name }} is privileged",
            },
        }))?;
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

/// A running engine, which ends with the bench.
struct Engine {
    child: Child,
    port: u16,
}

impl Engine {
    fn start(cluster: &Cluster, program: &Path) -> anyhow::Result<Engine> {
        let port = free_port()?;
        let mut command = dying_with_us(program);
        command.args(["engine", "--rules-from-cluster", "--log=error", "--listen", &format!("127.0.0.1:{port}")]);
        command.env("KUBECONFIG", cluster.kubeconfig()).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Engine { child: command.spawn()?, port })
    }

    /// Starts one and waits until all rules are in force. Returns how many seconds that took too.
    fn timed(cluster: &Cluster, program: &Path) -> anyhow::Result<(Engine, f64)> {
        let begin = Instant::now();
        let engine = Engine::start(cluster, program)?;
        let limit = Duration::from_secs(60);
        engine.wait_until(limit, |engine| engine.metric("portal_rules{state=\"active\"}") >= RULES as f64)?;
        Ok((engine, begin.elapsed().as_secs_f64()))
    }

    fn stop(mut self) -> anyhow::Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        self.child.wait()?;
        Ok(())
    }

    fn wait_until(&self, limit: Duration, condition: impl Fn(&Engine) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        while !condition(self) {
            if Instant::now() > deadline {
                bail!("the engine did not come to what is measured within {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The value of a metric, 0 until it is there.
    fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit_once(')').context("a process has a name")?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).context("a process has times")?;
        Ok((user + system) / 100.0)
    }

    fn memory(&self) -> anyhow::Result<f64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let pages: f64 = statm.split(' ').nth(1).context("a process has memory")?.parse()?;
        Ok(pages * 4096.0 / 1e6)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
