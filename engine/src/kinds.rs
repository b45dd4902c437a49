//! What the API server serves, asked again whenever that may have changed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, Client, Resource,
    core::PartialObjectMeta,
    discovery::{Discovery, Scope},
    runtime::watcher::{self, Event},
};
use portal_core::kinds::{Kind, Kinds};
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    health::{Health, Part},
    metrics::Metrics,
    rules::Update,
    run::Shutdown,
    watch::{Events, explain},
};

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

/// How often while a rule waits for a kind, or while nobody tells of changes.
const WAITING: Duration = Duration::from_secs(15);

/// Everything that the API server serves. What it cannot tell at the moment is taken from the snapshot before.
pub async fn discover(client: &Client, before: Option<&Kinds>) -> Result<Kinds, kube::Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    if core.items.is_empty() {
        // An older server answers with the plain list, which looks empty.
        return discover_each(client).await;
    }
    let groups = client.list_api_groups_aggregated().await?;
    let mut kinds: Vec<Kind> = Vec::new();
    for group in core.items.into_iter().chain(groups.items) {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        let first = kinds.len();
        for version in group.versions {
            let version_name = version.version.unwrap_or_default();
            let is_stale = version.freshness.as_deref() == Some("Stale");
            if is_stale && version.resources.is_empty() {
                // Who serves the group does not answer. Its kinds are not gone for that.
                let known = before.into_iter().flat_map(Kinds::iter).filter(|kind| kind.group == name);
                kinds.extend(known.filter(|kind| kind.versions.contains(&version_name)).cloned());
                continue;
            }
            for resource in version.resources {
                let Some(kind) = resource.response_kind.and_then(|kind| kind.kind) else { continue };
                let subresources = resource.subresources.into_iter().filter_map(|below| below.subresource);
                let namespaced = resource.scope.as_deref() == Some("Namespaced");
                let plural = resource.resource.unwrap_or_default();
                add(&mut kinds, first, &name, &version_name, kind, plural, namespaced, subresources.collect());
            }
        }
    }
    Ok(Kinds::new(kinds))
}

/// The same by a request for each version of each group, for servers that cannot tell it at once.
pub async fn discover_each(client: &Client) -> Result<Kinds, kube::Error> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut kinds: Vec<Kind> = Vec::new();
    for group in discovery.groups() {
        let first = kinds.len();
        let preferred = group.preferred_version();
        let mut versions: Vec<&str> = group.versions().collect();
        versions.sort_by_key(|version| Some(*version) != preferred);
        for version in versions {
            for (resource, capabilities) in group.versioned_resources(version) {
                let subresources = capabilities.subresources.into_iter().map(|(below, _)| below.plural);
                // Some name the resource as well.
                let subresources = subresources.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
                let namespaced = capabilities.scope == Scope::Namespaced;
                let group = if resource.group == "core" { "" } else { &resource.group };
                let subresources = subresources.collect();
                add(&mut kinds, first, group, version, resource.kind, resource.plural, namespaced, subresources);
            }
        }
    }
    Ok(Kinds::new(kinds))
}

/// Adds a version of a kind. Those of its group begin at `first`.
#[expect(clippy::too_many_arguments, reason = "they are the fields of a kind, as two forms of discovery tell them")]
fn add(
    kinds: &mut Vec<Kind>,
    first: usize,
    group: &str,
    version: &str,
    kind: String,
    plural: String,
    namespaced: bool,
    subresources: Vec<String>,
) {
    match kinds[first..].iter_mut().find(|known| known.kind == kind && known.plural == plural) {
        Some(known) => {
            known.versions.push(version.to_owned());
            known.subresources.extend(subresources);
            known.subresources.sort();
            known.subresources.dedup();
        }
        None => {
            let versions = vec![version.to_owned()];
            kinds.push(Kind { group: group.to_owned(), kind, plural, versions, namespaced, subresources });
        }
    }
}

/// Tells the index what is served, now and whenever it changes. `waiting` says whether a rule waits for a kind.
pub(crate) async fn follow(
    client: Client,
    updates: mpsc::Sender<Update>,
    waiting: watch::Receiver<bool>,
    health: Health,
    metrics: Metrics,
    mut shutdown: Shutdown,
) {
    let changed = Arc::new(Notify::new());
    tokio::join!(
        follow_definitions::<CustomResourceDefinition>(
            Part::Definitions,
            &client,
            &changed,
            &health,
            &metrics,
            shutdown.clone()
        ),
        follow_definitions::<APIService>(Part::ApiServices, &client, &changed, &health, &metrics, shutdown.clone()),
        async {
            let mut known: Option<Kinds> = None;
            let mut schedule = AFTER_A_CHANGE.iter();
            loop {
                match discover(&client, known.as_ref()).await {
                    Ok(kinds) => {
                        health.well(Part::Kinds);
                        let is_same = known.as_ref().is_some_and(|known| known.iter().eq(kinds.iter()));
                        metrics.discoveries.with_label_values(&[if is_same { "same" } else { "changed" }]).inc();
                        metrics.kinds.with_label_values(&[] as &[&str]).set(kinds.iter().count() as i64);
                        if !is_same {
                            known = Some(kinds.clone());
                            if updates.send(Update::Kinds(Arc::new(kinds))).await.is_err() {
                                return;
                            }
                        }
                    }
                    Err(error) => {
                        metrics.discoveries.with_label_values(&["failed"]).inc();
                        health.unwell(Part::Kinds, &explain("get", "/apis", &error));
                    }
                }
                let pause = match schedule.next() {
                    Some(pause) => *pause,
                    None if known.is_none() || *waiting.borrow() || !is_told(&health) => WAITING,
                    None => NOW_AND_THEN,
                };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = changed.notified() => {
                        schedule = AFTER_A_CHANGE.iter();
                        // Many definitions come at once: they are asked about together.
                        tokio::time::sleep(AFTER_A_CHANGE[0]).await;
                    }
                    () = shutdown.wait() => return,
                }
            }
        }
    );
}

/// Whether somebody tells when kinds come and go.
fn is_told(health: &Health) -> bool {
    health.is_well(Part::Definitions) && health.is_well(Part::ApiServices)
}

/// Tells of changes of definitions, without what is in them.
async fn follow_definitions<K>(
    part: Part,
    client: &Client,
    changed: &Notify,
    health: &Health,
    metrics: &Metrics,
    shutdown: Shutdown,
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let resource = K::plural(&()).into_owned();
    let config = watcher::Config::default();
    let mut events = Events::new(part, resource, api, config, health.clone(), metrics.clone(), shutdown);
    while let Some(event) = events.next().await {
        if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
            changed.notify_one();
        }
    }
}
