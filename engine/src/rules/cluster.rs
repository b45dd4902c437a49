//! Rules that are objects of the cluster: a watch of each of the two kinds.

use std::collections::{HashMap, HashSet};

use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, TypeMeta},
    core::{Selector, SelectorExt as _},
    runtime::watcher::{self, Event},
};
use portal_core::rule::{
    diagnostic::{Diagnostic, Level},
    load,
    source::{Origin, RuleId},
};
use portal_document::{Document, Options};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    health::Health,
    metrics::Metrics,
    rules::{Loader, Object, Update},
    run::Shutdown,
    watch::Events,
};

/// An object as it was seen last, for whoever writes its status.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) resource_version: String,
    pub(crate) status: Value,
    /// Whether this instance serves the rule.
    pub(crate) is_served: bool,
    /// Whether a list told it, which knows better than what was seen before: an API server that was set back to an older state counts
    /// from there.
    pub(crate) is_listed: bool,
}

impl Seen {
    /// Takes what is needed out of an object.
    pub(crate) fn new(object: &mut DynamicObject, is_served: bool) -> Seen {
        Seen {
            is_served,
            is_listed: false,
            uid: object.uid().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            status: object.data.get_mut("status").map(Value::take).unwrap_or_default(),
        }
    }

    /// Whether this was seen later than it was. Kubernetes promises that versions are numbers that grow.
    pub(crate) fn is_older_than(&self, other: &Seen) -> bool {
        let number = |seen: &Seen| seen.resource_version.parse::<u128>().ok();
        number(self).zip(number(other)).is_some_and(|(own, other)| own < other)
    }
}

/// Where news about objects go.
#[derive(Clone, Debug)]
pub(crate) struct Outlets {
    /// What the index needs: a change of what a rule says.
    pub(crate) updates: mpsc::Sender<Update>,
    /// What the status writer needs: every change. Nothing for an object that is gone.
    pub(crate) seen: mpsc::Sender<(RuleId, Option<Seen>)>,
}

/// What is known of the objects of one kind.
struct Watch {
    resource: ApiResource,
    loader: Loader,
    outlets: Outlets,
    /// Which of the rules this instance serves.
    selector: Selector,
    /// The version of the spec that the index was told. Nothing for rules that are not served.
    told: HashMap<RuleId, Option<(String, i64)>>,
    /// Those that a list that is under way has named.
    listed: HashSet<RuleId>,
}

/// The receiver is gone: the engine ends.
struct Closed;

/// Tells of the objects of a kind and of their changes, until the end. Those that the selector does not fit are watched too: if they
/// were served before, their status still says so.
pub(crate) async fn follow<K: Resource<DynamicType = ()>>(
    client: Client,
    loader: Loader,
    selector: Selector,
    outlets: Outlets,
    health: Health,
    metrics: Metrics,
    shutdown: Shutdown,
) {
    let resource = ApiResource::erase::<K>(&());
    let name = format!("{}.{}", resource.plural, resource.group);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut events = Events::new(loader.part(), name, api, watcher::Config::default(), health, metrics, shutdown);
    let mut watch = Watch { resource, loader, outlets, selector, told: HashMap::new(), listed: HashSet::new() };
    while let Some(event) = events.next().await {
        if watch.take(event).await.is_err() {
            return;
        }
    }
}

impl Watch {
    async fn take(&mut self, event: Event<DynamicObject>) -> Result<(), Closed> {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let id = id_of(&object);
                self.listed.insert(id.clone());
                self.tell(id, object, true).await?;
            }
            Event::InitDone => {
                // What vanished while nobody watched.
                let gone: Vec<RuleId> = self.told.keys().filter(|id| !self.listed.contains(id)).cloned().collect();
                for id in gone {
                    self.forget(id).await?;
                }
                self.listed = HashSet::new();
                self.send(Update::Loaded(self.loader)).await?;
            }
            Event::Apply(object) => self.tell(id_of(&object), object, false).await?,
            Event::Delete(object) => self.forget(id_of(&object)).await?,
        }
        Ok(())
    }

    async fn tell(&mut self, id: RuleId, mut object: DynamicObject, is_listed: bool) -> Result<(), Closed> {
        let is_served = self.selector.matches(object.labels());
        let seen = Seen { is_listed, ..Seen::new(&mut object, is_served) };
        let version = is_served.then(|| (seen.uid.clone(), seen.generation));
        // A change of the status alone says nothing new about the rule.
        if self.told.get(&id) != Some(&version) {
            let rule = is_served.then(|| {
                let source = read(&self.resource, &mut object, &id);
                Box::new(Object { uid: seen.uid.clone(), generation: seen.generation, source })
            });
            self.send(Update::Object(id.clone(), rule)).await?;
            self.told.insert(id.clone(), version);
        }
        self.send_seen(id, Some(seen)).await
    }

    async fn forget(&mut self, id: RuleId) -> Result<(), Closed> {
        self.told.remove(&id);
        self.send(Update::Object(id.clone(), None)).await?;
        self.send_seen(id, None).await
    }

    async fn send(&self, update: Update) -> Result<(), Closed> {
        self.outlets.updates.send(update).await.map_err(|_| Closed)
    }

    async fn send_seen(&self, id: RuleId, seen: Option<Seen>) -> Result<(), Closed> {
        self.outlets.seen.send((id, seen)).await.map_err(|_| Closed)
    }
}

fn id_of(object: &DynamicObject) -> RuleId {
    RuleId { namespace: object.namespace(), name: object.name_any() }
}

/// The rule that an object is.
fn read(
    resource: &ApiResource,
    object: &mut DynamicObject,
    id: &RuleId,
) -> Result<portal_core::rule::source::RuleSource, Vec<Diagnostic>> {
    // The items of a list do not say what they are.
    object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
    let origin = Origin::Cluster { uid: object.uid().unwrap_or_default() };
    let wrong = |message: String| {
        vec![Diagnostic {
            rule: Some(id.clone()),
            origin: origin.clone(),
            level: Level::Error,
            field: Vec::new(),
            message,
            excerpt: None,
            awaits_kind: false,
        }]
    };
    let json = serde_json::to_vec(object).map_err(|error| wrong(format!("the object cannot be read: {error}")))?;
    let document = Document::parse(&json, &Options::default())
        .map_err(|error| wrong(format!("the object cannot be read: {error}")))?;
    load::load(document.root(), origin.clone(), Vec::new())
}
