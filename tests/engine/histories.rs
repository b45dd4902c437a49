//! Random histories of rules, with faults between the engine and the API server: once all is quiet, nothing tells that there
//! were any.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use portal_cluster::{holder::Timing, rules::quota::RULES_PER_NAMESPACE};
use portal_core::layers::Layers;
use portal_engine::run::{self, EngineSettings};
use portal_test_kit::fault_proxy::{FaultProxy, Requests, Storm};
use portal_test_kit::share;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{BAD, GOOD, cluster, is_ready, rule, rules_api, status_writes};

/// An engine within this process.
struct Engine {
    shutdown: CancellationToken,
    task: JoinHandle<bool>,
}

impl Engine {
    fn start(client: Client, instance: &str, selector: String) -> Engine {
        let settings = EngineSettings {
            instance_uid: None,
            instance: instance.to_owned(),
            namespace: "portal-system".to_owned(),
            identity: instance.to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            address: None,
            layers: Layers::default(),
            rules_from_cluster: true,
            rule_selector: portal_cluster::rules::selector::parse(&selector).unwrap(),
            rules_folder: None,
            rules_per_namespace: RULES_PER_NAMESPACE,
            watched_kinds: Vec::new(),
            timing: Timing::default(),
            peers: None,
            other_layers: Layers::default(),
            stands: true,
            admission: None,
            audit: None,
            finding_log: false,
            reports: None,
            alerts: None,
        };
        let shutdown = CancellationToken::new();
        let told = shutdown.clone();
        let task = tokio::spawn(async move {
            run::run(move || std::future::ready(Ok(client.clone())), settings, told).await.unwrap()
        });
        Engine { shutdown, task }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        assert!(self.task.await.unwrap(), "every part ends as it should");
    }
}

/// A Lease that somebody has let go of, so that nobody waits for one who may be there.
async fn release(client: &Client, instance: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "portal-system");
    let spec =
        LeaseSpec { holder_identity: Some(String::new()), lease_duration_seconds: Some(1), ..LeaseSpec::default() };
    let metadata = ObjectMeta { name: Some(format!("portal-engine-{instance}")), ..ObjectMeta::default() };
    leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.unwrap();
}

/// The rules of a history with their status, without what differs from time to time.
async fn state(api: &Api<DynamicObject>, label: &str) -> BTreeMap<String, Value> {
    let found = api.list(&ListParams::default().labels(&format!("history={label}"))).await.unwrap();
    let states = found.items.into_iter().map(|object| {
        let value = json!({ "metadata": { "generation": object.metadata.generation }, "spec": object.data["spec"], "status": object.data["status"] });
        (object.name_any(), value)
    });
    states.collect()
}

fn is_told(state: &BTreeMap<String, Value>) -> bool {
    state.values().all(|rule| is_ready(rule, if rule["spec"]["rule"] == BAD { "False" } else { "True" }))
}

async fn history(seed: u64, direct: Client, proxy: &FaultProxy) {
    let label = format!("h{seed}");
    let mut random = Rng::with_seed(seed);
    let api = rules_api(direct.clone());
    release(&direct, &label).await;
    let client = proxy.client(&label, "engine", &["system:masters"]).unwrap();
    let selector = format!("history={label}");
    let storm = proxy.storm(Storm { on: Requests::all().from(&label), ..Storm::default() });
    let engine = Engine::start(client.client(), &label, selector.clone());
    for _ in 0..10 {
        let name = format!("{label}-{}", random.u64(..3));
        let text = if random.u64(..3) == 0 { BAD } else { GOOD };
        let mut rule = rule(&name, text);
        rule["metadata"]["labels"] = json!({ "history": label });
        match random.u64(..4) {
            0 => drop(api.delete(&name, &DeleteParams::default()).await),
            1 => drop(api.create(&PostParams::default(), &serde_json::from_value(rule).unwrap()).await),
            _ => {
                let patch = json!({ "spec": { "rule": text } });
                drop(api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await);
            }
        }
        tokio::time::sleep(Duration::from_millis(random.u64(..120))).await;
    }
    drop(storm);
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_told(&state(&api, &label).await) {
        assert!(Instant::now() < deadline, "history {seed}: {:#?}", state(&api, &label).await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let told = state(&api, &label).await;
    engine.stop().await;
    // One that knows nothing of all that finds nothing to do.
    let fresh = Engine::start(direct, &label, selector);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(state(&api, &label).await, told, "history {seed}");
    fresh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happened_the_end_is_that_of_a_fresh_start() {
    const AT_ONCE: usize = 20;
    let seeds: Vec<u64> = share::seeds(60, 600).collect();
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, seeds[0]).await.unwrap();
    for seeds in seeds.chunks(AT_ONCE) {
        let client = cluster.client().await;
        let histories = seeds.iter().map(|seed| history(*seed, client.clone(), &proxy));
        futures_util::future::join_all(histories).await;
    }
    let before = status_writes(&cluster).await.len();
    assert!(before > seeds.len(), "{before} writes");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(status_writes(&cluster).await.len(), before, "nobody is left who writes");
}
