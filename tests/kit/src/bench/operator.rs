//! What the operator costs with many rules and several instances: memory, processors, and what it writes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use portal_test_kit::audit_log::AuditEvent;
use portal_test_kit::image::PORTAL_IMAGE;
use portal_test_kit::{Cluster, Size, prepare};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::table::{Goal, Row};
use super::{Measuring, engine, process};

const RULES: usize = 5000;
const INSTANCES: [&str; 3] = ["first", "second", "third"];

/// How often an instance is made to see how long it takes.
const STARTS: usize = 5;

/// How often an instance is changed to see what a plan takes.
const TOUCHES: usize = 100;

/// Rules that come at once, and the kinds that they are about, in the order of the rules: each of them widens what is sent to engines.
const AT_ONCE: usize = 1000;
const KINDS: [&str; 20] = [
    "ConfigMap",
    "Service",
    "Secret",
    "ServiceAccount",
    "PersistentVolumeClaim",
    "ResourceQuota",
    "LimitRange",
    "Endpoints",
    "PodTemplate",
    "ReplicationController",
    "Ingress",
    "NetworkPolicy",
    "Role",
    "RoleBinding",
    "PodDisruptionBudget",
    "HorizontalPodAutoscaler",
    "EndpointSlice",
    "ControllerRevision",
    "Deployment",
    "CronJob",
];

/// How often it is measured how long a rule takes to be in force.
const APPLIED: usize = 200;

/// How often it is measured how long roles and webhook take to follow a rule, beside all others.
const FOLLOWED: usize = 100;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// Nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(900);

/// The account of the operator.
const ACCOUNT: &str = "system:serviceaccount:portal-operator:portal-operator";

/// A cluster with real pods, and the operator in it.
struct Stage {
    cluster: Cluster,
    runtime: Runtime,
}

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    // On a thread without a runtime: this one has its own.
    let measured = std::thread::scope(|scope| scope.spawn(|| measure_operator(measuring)).join());
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn measure_operator(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let archive = prepare::portal_image(measuring.cache)?;
    let stage = Stage {
        cluster: Cluster::start(Size::Full)?,
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    stage.cluster.import_image(&archive)?;
    stage.install()?;
    let mut rows = vec![stage.starts()?];
    rows.extend(stage.refusals()?);
    stage.runtime.block_on(engine::create_rules(&stage.cluster, RULES))?;
    for name in INSTANCES {
        stage.make(name)?;
    }
    stage.settle()?;
    let (holder, other) = stage.operators()?;

    let (began, cpu) = (stage.events()?.len(), process::cpu_seconds(holder)?);
    std::thread::sleep(IDLE);
    let idle = (process::cpu_seconds(holder)? - cpu) / IDLE.as_secs_f64() * 100.0;
    let written = writes(&stage.events()?[began..]);
    let minutes = IDLE.as_secs_f64() / 60.0;
    let memory = (process::memory(holder)?, process::memory(other)?);
    rows.push(Row {
        must: Some(Goal::AtMost(60.0)),
        worst: format!("the other replica {:.1}", memory.1),
        ..row("memory of an operator with 5,000 rules and 3 instances", memory.0, "MB")
    });
    rows.push(row("CPU of it while nothing happens", idle, "% of a core"));
    rows.push(Row {
        must: Some(Goal::AtMost(0.0)),
        worst: most(&written).1,
        ..row("writes of it in a minute while nothing happens", total(&written) / minutes, "")
    });
    rows.push(stage.plans(holder)?);
    rows.push(stage.follows()?);
    rows.extend(stage.burst(holder)?);
    Ok(rows)
}

impl Stage {
    /// Installs the operator as users do.
    fn install(&self) -> anyhow::Result<()> {
        let program = prepare::static_program()?;
        for arguments in [&["crds"][..], &["install", "--image", PORTAL_IMAGE]] {
            let output = std::process::Command::new(&program).arg("generate").args(arguments).output()?;
            let manifest = String::from_utf8(output.stdout)?;
            self.cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &manifest)?;
        }
        let rollout = ["rollout", "status", "deployment/portal-operator", "--timeout=180s"];
        self.cluster.kubectl(&[&["--namespace=portal-operator"], &rollout[..]].concat())?;
        Ok(())
    }

    /// How long an instance takes from its first write until it is ready.
    fn starts(&self) -> anyhow::Result<Row> {
        let mut seconds = Vec::new();
        // The first brings what later ones find: programs in memory, files of the image.
        for number in 0..=STARTS {
            let name = format!("timed-{number}");
            let taken = self.make(&name)?;
            self.cluster.kubectl(&["delete", "portal", &name, "--timeout=180s"])?;
            if number > 0 {
                seconds.push(taken);
            }
        }
        seconds.sort_by(f64::total_cmp);
        Ok(Row {
            spread: Some((seconds[0], seconds[STARTS - 1])),
            ..row("an instance, from its creation until it is ready", seconds[STARTS / 2], "s")
        })
    }

    /// Makes an instance and waits until it is ready. Returns how many seconds that took.
    fn make(&self, name: &str) -> anyhow::Result<f64> {
        self.runtime.block_on(async {
            let api = self.instances().await;
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": {"name": name}, "spec": {},
            }))?;
            let began = Instant::now();
            api.patch(name, &PatchParams::apply("bench"), &Patch::Apply(&object)).await?;
            loop {
                let found = api.get(name).await?;
                let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
                if conditions.iter().any(|found| found["type"] == "Ready" && found["status"] == "True") {
                    return Ok(began.elapsed().as_secs_f64());
                }
                if began.elapsed() > LONG {
                    bail!("instance {name} does not become ready: {}", found.data["status"]);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    }

    async fn instances(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("portal.io", "v1alpha1", "PortalInstance");
        Api::all_with(self.cluster.client().await, &ApiResource::from_gvk(&kind))
    }

    /// Waits until nobody of ours has written for a while.
    fn settle(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + LONG;
        let mut before = usize::MAX;
        loop {
            let events = self.events()?;
            let ours =
                events.iter().filter(|event| event.user().contains(":portal-")).filter(|event| is_lasting(event));
            let count = ours.count();
            if count == before {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("Portal goes on writing: {count} writes");
            }
            before = count;
            std::thread::sleep(Duration::from_secs(15));
        }
    }

    fn events(&self) -> anyhow::Result<Vec<AuditEvent>> {
        self.runtime.block_on(self.cluster.audit_events())
    }

    /// The processes of the replica that acts, and of the other one.
    fn operators(&self) -> anyhow::Result<(u32, u32)> {
        let holder = self.holder()?;
        let pods = self.cluster.kubectl(&["--namespace=portal-operator", "get", "pods", "--output=json"])?;
        let pods: Value = serde_json::from_str(&pods)?;
        let (mut acting, mut waiting) = (None, None);
        for pod in pods["items"].as_array().into_iter().flatten() {
            let process = process_of(pod["metadata"]["uid"].as_str().unwrap_or_default())?;
            let place = if pod["metadata"]["name"] == holder.as_str() { &mut acting } else { &mut waiting };
            *place = Some(process);
        }
        acting.zip(waiting).with_context(|| format!("two operators run, and {holder} acts"))
    }

    /// The pod that acts. Who holds the Lease says also which of its lives it is.
    fn holder(&self) -> anyhow::Result<String> {
        let lease = ["get", "lease", "portal-operator", "--output=jsonpath={.spec.holderIdentity}"];
        let identity = self.cluster.kubectl(&[&["--namespace=portal-operator"], &lease[..]].concat())?;
        Ok(identity.split('_').next().unwrap_or_default().to_owned())
    }

    /// How many plans the replica that acts has made.
    fn planned(&self) -> anyhow::Result<f64> {
        let holder = self.holder()?;
        let path = format!("/api/v1/namespaces/portal-operator/pods/{holder}:8080/proxy/metrics");
        let text = self.cluster.kubectl(&["get", "--raw", &path])?;
        let value = text.lines().find_map(|line| line.strip_prefix("portal_operator_plans_total ")?.parse().ok());
        value.context("the operator counts its plans")
    }

    /// What it takes to look at an instance that has changed and needs nothing.
    fn plans(&self, holder: u32) -> anyhow::Result<Row> {
        let (plans, cpu) = (self.planned()?, process::cpu_seconds(holder)?);
        self.runtime.block_on(async {
            let api = self.instances().await;
            for number in 0..TOUCHES {
                let patch = json!({"metadata": {"annotations": {"example.org/touched": number.to_string()}}});
                api.patch(INSTANCES[0], &PatchParams::default(), &Patch::Merge(&patch)).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            anyhow::Ok(())
        })?;
        std::thread::sleep(Duration::from_secs(2));
        let plans = self.planned()? - plans;
        if plans < TOUCHES as f64 {
            bail!("{TOUCHES} changes led to {plans} plans");
        }
        let milliseconds = (process::cpu_seconds(holder)? - cpu) * 1000.0 / plans;
        Ok(row("CPU of a reconcile with nothing to write", milliseconds, "ms"))
    }

    /// From the first write of a rule to the first request that it refuses, and until every replica runs it.
    fn refusals(&self) -> anyhow::Result<Vec<Row>> {
        self.make("refusing")?;
        let mut rows = Vec::new();
        for (what, prefix, needs, must) in [
            ("a rule, from its creation until it is in force on every replica, p99", "plain", false, 1.0),
            ("the same of a rule that needs a right, p99", "granted", true, 5.0),
        ] {
            let mut taken = Vec::new();
            for number in 0..=APPLIED {
                let times =
                    self.runtime.block_on(self.apply_rule("refusing", &format!("{prefix}-{number}"), needs, true))?;
                // The first one brings the kind to the webhook.
                if number > 0 {
                    taken.push(times.in_force);
                }
            }
            rows.push(latency(what, taken, "s", must));
        }
        self.cluster.kubectl(&["delete", "portalrules", "--all", "--all-namespaces", "--wait=false"])?;
        self.cluster.kubectl(&["delete", "portal", "refusing", "--timeout=180s"])?;
        Ok(rows)
    }

    /// How long it takes from a rule, beside five thousand, until its right and its requests are in the roles and the webhook configuration.
    fn follows(&self) -> anyhow::Result<Row> {
        let mut taken = Vec::new();
        for number in 0..FOLLOWED {
            let namespace = format!("followed-{number}");
            let rule = self.apply_rule(INSTANCES[0], &namespace, true, false);
            taken.push(self.runtime.block_on(rule)?.written * 1000.0);
        }
        let row = latency("5,000 rules: a rule, until roles and webhook have what it needs, p99", taken, "ms", 500.0);
        self.cluster.kubectl(&["delete", "portalrules", "--all", "--all-namespaces", "--wait=false"])?;
        self.settle()?;
        Ok(row)
    }

    /// Makes a namespace with a rule of its own, and returns how many seconds after the rule things were as they should be.
    async fn apply_rule(&self, instance: &str, namespace: &str, needs: bool, wait: bool) -> anyhow::Result<Times> {
        let client = self.cluster.client().await;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": namespace}}))?)
            .await?;
        let kind = GroupVersionKind::gvk("portal.io", "v1alpha1", "PortalRule");
        let rules: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
        let lookup = format!(" && len(cluster.resourcequotas.list(\"{namespace}\")) >= 0");
        let expression = format!("\"bad\" in metadata.labels{}", if needs { &lookup } else { "" });
        let rule: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalRule", "metadata": {"name": "timed"},
            "spec": {"match": {"gvk": [{"kind": "ConfigMap"}]}, "rule": expression, "message": "it is bad"},
        }))?;
        let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let config_maps: Api<ConfigMap> = Api::namespaced(client, namespace);
        let bad: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "bad", "labels": {"bad": ""}}}))?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let name = format!("portal-{instance}");
        let began = Instant::now();
        rules.create(&PostParams::default(), &rule).await?;
        let (mut written, mut is_refused) = (None, !wait);
        loop {
            if written.is_none() {
                let is_granted = !needs || roles.get_opt(&name).await?.is_some();
                let sent = serde_json::to_string(&configurations.get(&name).await?.webhooks)?;
                written =
                    (is_granted && sent.contains(&format!("\"{namespace}\""))).then(|| began.elapsed().as_secs_f64());
            }
            is_refused = is_refused
                || config_maps.create(&dry_run, &bad).await.is_err_and(|error| error.to_string().contains("it is bad"));
            let is_active = !wait || is_refused && is_active(&rules.get("timed").await?);
            if let Some(written) = written.filter(|_| is_refused && is_active) {
                return Ok(Times { written, in_force: began.elapsed().as_secs_f64() });
            }
            if began.elapsed() > LONG {
                bail!("the rule in {namespace} is not in force: {}", rules.get("timed").await?.data["status"]);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What rules that come at once lead to.
    fn burst(&self, holder: u32) -> anyhow::Result<Vec<Row>> {
        let (began, cpu, start) = (self.events()?.len(), process::cpu_seconds(holder)?, Instant::now());
        let rules = (0..AT_ONCE).map(|number| {
            let kind = KINDS[number * KINDS.len() / AT_ONCE];
            json!({
                "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": format!("burst-{number}")},
                "spec": {"match": {"gvk": [{"kind": kind}]}, "rule": format!("metadata.name == \"refused-{number}\"")},
            })
        });
        self.runtime.block_on(engine::create_all(&self.cluster, rules))?;
        let seconds = start.elapsed().as_secs_f64();
        self.settle()?;
        let mut written = writes(&self.events()?[began..]);
        // What is told to people is no child, and has one path for all that is told.
        let events: usize = written.extract_if(.., |path, _| path.ends_with("/events")).map(|(_, count)| count).sum();
        let is_status = |path: &String| path.ends_with("/status");
        let (statuses, children): (BTreeMap<_, _>, BTreeMap<_, _>) =
            written.into_iter().partition(|(path, _)| is_status(path));
        let used = (process::cpu_seconds(holder)? - cpu) * 1000.0 / AT_ONCE as f64;
        let told = format!("rules created within {seconds:.1} s");
        Ok(vec![
            Row {
                must: Some(Goal::AtMost(10.0)),
                worst: most(&children).1,
                against: told.clone(),
                ..row("1,000 rules at once: most writes to a child", most(&children).0, "")
            },
            Row {
                worst: most(&statuses).1,
                against: told.clone(),
                ..row("1,000 rules at once: most writes to the status of an instance", most(&statuses).0, "")
            },
            Row { against: told, ..row("1,000 rules at once: Events", events as f64, "") },
            row("1,000 rules at once: CPU of the operator for each, and what follows", used, "ms"),
        ])
    }
}

/// Seconds from the creation of a rule until roles and webhook have what it needs, and until every replica runs it and refuses by it.
struct Times {
    written: f64,
    in_force: f64,
}

/// Whether every replica that is ready runs a rule, and the API server asks them.
fn is_active(rule: &DynamicObject) -> bool {
    let entries = rule.data["status"]["instances"].as_array().into_iter().flatten();
    let mut conditions = entries.flat_map(|entry| entry["conditions"].as_array().into_iter().flatten());
    conditions.any(|found| found["type"] == "Active" && found["status"] == "True")
}

/// The longest of a hundred, but for one.
fn latency(what: &str, mut taken: Vec<f64>, unit: &str, must: f64) -> Row {
    taken.sort_by(f64::total_cmp);
    let place = (taken.len() * 99).div_ceil(100) - 1;
    Row {
        against: format!("the middle is {:.2} {unit}, of {}", taken[taken.len() / 2], taken.len()),
        worst: format!("{:.2}", taken[taken.len() - 1]),
        must: Some(Goal::AtMost(must)),
        ..row(what, taken[place], unit)
    }
}

/// The process of a pod's program, found by the control group that has the name of the pod.
fn process_of(uid: &str) -> anyhow::Result<u32> {
    for entry in std::fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended since.
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        if read("cgroup").contains(uid) && read("cmdline").split('\0').any(|word| word == "operator") {
            return Ok(process);
        }
    }
    bail!("no process is that of pod {uid}")
}

/// Whether a request changes something that stays: no dry run, no question, and no sign of life.
fn is_lasting(event: &AuditEvent) -> bool {
    let resource = event.object_ref.resource.as_str();
    event.is_write()
        && !event.request_uri.contains("dryRun=All")
        && resource != "leases"
        && !resource.ends_with("reviews")
}

/// How often the operator has written each object.
fn writes(events: &[AuditEvent]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for event in events.iter().filter(|event| event.user() == ACCOUNT && is_lasting(event)) {
        let path = event.request_uri.split('?').next().unwrap_or_default();
        *count.entry(path.to_owned()).or_default() += 1;
    }
    count
}

fn total(written: &BTreeMap<String, usize>) -> f64 {
    written.values().sum::<usize>() as f64
}

/// What was written most often, and how often.
fn most(written: &BTreeMap<String, usize>) -> (f64, String) {
    let most = written.iter().max_by_key(|(_, count)| **count);
    most.map_or((0.0, String::new()), |(path, count)| {
        (*count as f64, path.rsplit_once("/v1").map_or(path.clone(), |(_, rest)| rest.to_owned()))
    })
}

fn row(what: &str, value: f64, unit: &str) -> Row {
    Row { what: what.to_owned(), value, unit: unit.to_owned(), ..Row::default() }
}
