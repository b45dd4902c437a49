//! Those who listen to the API server, each in a process of its own: the engine's cache, kube's store, and one who reads every event
//! into a `serde_json::Value` and keeps nothing.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::core::WatchEvent;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{reflector, watcher};
use kube::{Api, Client, client::Body};
use portal_cluster::{
    client::connect,
    health::Health,
    metrics::{Metrics, Registry},
    runtime::Runtime,
    watch::read_event,
};
use portal_engine::{
    cache::{
        feed::{self, Source},
        store::{Shown, Store},
    },
    metrics::EngineMetrics,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::events::{LIST, list};
use super::{FEW, PODS, UPDATES, pods};
use crate::measure::{self, process_time};
use crate::objects::crowd;

/// What it took until all pods were there.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Outcome {
    /// How many pods were there.
    pub pods: usize,
    /// Seconds.
    pub seconds: f64,
    /// Seconds of all processors together.
    pub processor: f64,
    /// Bytes of memory that the process has more than before.
    pub resident: f64,
    /// The same after the changes, and seconds of processors for a change, if there were changes.
    pub changes: Option<(f64, f64)>,
}

/// One who listens.
pub struct Side {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Listens to the API server of a kubeconfig.
    pub run: fn(&Path) -> Result<Outcome, Box<dyn Error>>,
}

const ENDLESS: &str = "the list had no end";

/// Since when something is measured.
struct Begin {
    instant: Instant,
    processor: Duration,
    resident: usize,
}

/// All who listen.
pub fn builtin() -> [Side; 8] {
    [
        Side { name: "cache", run: |kubeconfig| served(kubeconfig, |client| cache(client, false)) },
        Side { name: "cache-and-changes", run: |kubeconfig| served(kubeconfig, |client| cache(client, true)) },
        Side { name: "values", run: |kubeconfig| served(kubeconfig, values) },
        Side { name: "kept-values", run: |kubeconfig| served(kubeconfig, kept_values) },
        Side { name: "nothing", run: |kubeconfig| served(kubeconfig, nothing) },
        Side { name: "reflector", run: |kubeconfig| served(kubeconfig, reflected) },
        Side { name: "cache-of-bytes", run: |_| of_bytes(true) },
        Side { name: "values-of-bytes", run: |_| of_bytes(false) },
    ]
}

/// Runs one as the engine runs its feeds: all on one thread.
fn served<F>(kubeconfig: &Path, side: impl Fn(Client) -> F) -> Result<Outcome, Box<dyn Error>>
where
    F: Future<Output = Result<Outcome, String>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(connect(Some(kubeconfig)))?;
    let outcome = runtime.block_on(runtime.spawn(side(client)))??;
    // What is still under way ends with the process.
    runtime.shutdown_background();
    Ok(outcome)
}

async fn cache(client: Client, changes: bool) -> Result<Outcome, String> {
    let (store, registry, changed) = (Store::default(), Registry::new(), Arc::new(Notify::new()));
    let shown = store.shown();
    let source = Source { kind: Arc::new(pods().clone()), namespace: None };
    let runtime = Runtime {
        client,
        health: Health::default(),
        metrics: Metrics::register(&registry),
        shutdown: CancellationToken::new(),
    };
    let begin = Begin::now();
    let own = EngineMetrics::register(&registry);
    tokio::spawn(feed::follow(source, store, runtime, own, Arc::clone(&changed), None));
    while shown.moment().is_none() {
        changed.notified().await;
    }
    let outcome = begin.outcome(shown.moment().map_or(0, |moment| moment.len()));
    match changes {
        true => Ok(Outcome { changes: Some(after_changes(&shown, &begin).await), ..outcome }),
        false => Ok(outcome),
    }
}

/// Memory and seconds of processors once the changes are told.
async fn after_changes(shown: &Shown, begin: &Begin) -> (f64, f64) {
    let before = process_time();
    let is_over = || shown.moment().is_some_and(|moment| moment.get(Some("default"), "the-end").is_some());
    while !is_over() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let processor = process_time() - before;
    (begin.outcome(0).resident, processor.as_secs_f64() / UPDATES as f64)
}

async fn values(client: Client) -> Result<Outcome, String> {
    listed(client, |value| drop(black_box(value))).await
}

async fn kept_values(client: Client) -> Result<Outcome, String> {
    let mut values = Vec::new();
    listed(client, |value| values.push(value)).await
}

/// Reads every object of the list into a value.
async fn listed(client: Client, mut take: impl FnMut(Value)) -> Result<Outcome, String> {
    let begin = Begin::now();
    let request = Request::get(LIST).body(Vec::new()).map_err(|error| error.to_string())?;
    let events = client.request_events::<Value>(request).await.map_err(|error| error.to_string())?;
    let (mut events, mut count) = (pin!(events), 0);
    while let Some(event) = events.try_next().await.map_err(|error| error.to_string())? {
        match event {
            WatchEvent::Added(value) => take(value),
            _ => return Ok(begin.outcome(count)),
        }
        count += 1;
    }
    Err(ENDLESS.to_owned())
}

/// Reads the list, and makes nothing of it.
async fn nothing(client: Client) -> Result<Outcome, String> {
    let begin = Begin::now();
    let request = Request::get(LIST).body(Body::empty()).map_err(|error| error.to_string())?;
    let mut body = client.send(request).await.map_err(|error| error.to_string())?.into_body();
    let mut lines = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        let bytes = frame.data_ref().map_or(&[][..], |bytes| bytes);
        // A frame never has parts of two events.
        if bytes.starts_with(br#"{"type":"BOOKMARK""#) {
            return Ok(begin.outcome(lines));
        }
        lines += usize::from(bytes.ends_with(b"\n"));
    }
    Err(ENDLESS.to_owned())
}

async fn reflected(client: Client) -> Result<Outcome, String> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let begin = Begin::now();
    let writer = Writer::new(resource);
    let store = writer.as_reader();
    let mut events = pin!(reflector(writer, watcher(api, watcher::Config::default().streaming_lists())));
    while let Some(event) = events.next().await {
        if let watcher::Event::InitDone = event.map_err(|error| error.to_string())? {
            return Ok(begin.outcome(store.len()));
        }
    }
    Err(ENDLESS.to_owned())
}

/// The same without the way to the server: from bytes in memory into the cache, or into values.
fn of_bytes(cached: bool) -> Result<Outcome, Box<dyn Error>> {
    let lines = crowd(PODS).take(FEW).map(|pod| format!(r#"{{"type":"ADDED","object":{pod}}}"#));
    let lines: Vec<String> = lines.collect();
    let begin = Begin::now();
    if !cached {
        for line in &lines {
            drop(black_box(serde_json::from_str::<WatchEvent<Value>>(line)?));
        }
        return Ok(begin.outcome(lines.len()));
    }
    let mut store = Store::default();
    store.begin_list();
    for line in &lines {
        match read_event(line.as_bytes()).ok_or("a line is empty")?? {
            WatchEvent::Added(pod) => list(&mut store, pod),
            _ => return Err("there are other events in a list".into()),
        }
    }
    store.end_list();
    Ok(begin.outcome(store.shown().moment().map_or(0, |moment| moment.len())))
}

impl Begin {
    fn now() -> Begin {
        Begin { instant: Instant::now(), processor: process_time(), resident: resident() }
    }

    fn outcome(&self, pods: usize) -> Outcome {
        Outcome {
            pods,
            seconds: self.instant.elapsed().as_secs_f64(),
            processor: (process_time() - self.processor).as_secs_f64(),
            resident: resident() as f64 - self.resident as f64,
            changes: None,
        }
    }
}

fn resident() -> usize {
    measure::resident().expect("the kernel says it")
}
