//! What the API server serves, asked again whenever that may have changed.

mod discovery;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{Api, Resource, core::PartialObjectMeta, runtime::watcher::Event};
use portal_core::kinds::Kinds;
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    health::{Health, Part},
    metrics::Discovery,
    rules::Update,
    runtime::Runtime,
    watch::{Events, explain},
};

pub use self::discovery::{discover, discover_each};

/// When the server is asked after a definition changed: it serves a new kind a little later than it stores the definition.
const AFTER_A_CHANGE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// How often it is asked although nothing is known to have changed.
const NOW_AND_THEN: Duration = Duration::from_secs(300);

/// How often it is asked while a rule waits for a kind, or while the watches that tell of changes do not work.
const WAITING: Duration = Duration::from_secs(15);

/// Tells the index what is served, now and whenever it changes, until the end. `waiting` says whether a rule waits for a kind.
pub async fn follow(runtime: Runtime, updates: mpsc::Sender<Update>, waiting: watch::Receiver<bool>) {
    let changed = Arc::new(Notify::new());
    tokio::join!(
        follow_definitions::<CustomResourceDefinition>(&runtime, Part::Definitions, &changed),
        follow_definitions::<APIService>(&runtime, Part::ApiServices, &changed),
        runtime.shutdown.run_until_cancelled(ask(&runtime, &updates, &waiting, &changed))
    );
}

/// Asks what is served, again and again.
async fn ask(runtime: &Runtime, updates: &mpsc::Sender<Update>, waiting: &watch::Receiver<bool>, changed: &Notify) {
    let Runtime { client, health, metrics, .. } = runtime;
    let mut known: Option<Kinds> = None;
    let mut schedule = AFTER_A_CHANGE.iter();
    loop {
        match discover(client, known.as_ref()).await {
            Ok(kinds) => {
                health.well(&Part::Kinds);
                let is_same = known.as_ref().is_some_and(|known| known.iter().eq(kinds.iter()));
                metrics.discoveries.at(if is_same { &Discovery::Same } else { &Discovery::Changed }).inc();
                metrics.kinds.set(kinds.iter().count() as i64);
                if !is_same {
                    known = Some(kinds.clone());
                    if updates.send(Update::Kinds(Arc::new(kinds))).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                metrics.discoveries.at(&Discovery::Failed).inc();
                health.unwell(&Part::Kinds, &explain("get", "/apis", &error));
            }
        }
        let pause = match schedule.next() {
            Some(pause) => *pause,
            None if known.is_none() || *waiting.borrow() || !is_told(health) => WAITING,
            None => NOW_AND_THEN,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed.notified() => {
                schedule = AFTER_A_CHANGE.iter();
                // Many definitions come at once: they are asked about together.
                tokio::time::sleep(AFTER_A_CHANGE[0]).await;
            }
        }
    }
}

/// Whether both watches work that tell when kinds come and go.
fn is_told(health: &Health) -> bool {
    health.is_well(&Part::Definitions) && health.is_well(&Part::ApiServices)
}

/// Tells that definitions changed, and not how.
async fn follow_definitions<K>(runtime: &Runtime, part: Part, changed: &Notify)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(runtime.client.clone());
    let mut events = Events::new(runtime.clone(), part, K::plural(&()).into_owned(), api);
    while let Some(event) = events.next().await {
        if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
            changed.notify_one();
        }
    }
}
