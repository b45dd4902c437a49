//! The watches of the operator. They fill the [`Store`] and the [`Rules`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event},
};
use portal_cluster::{
    health::Part,
    rules::{
        Update,
        cluster::{RuleObject, id_of, labels_of, read},
    },
    runtime::Runtime,
    watch::{Events, News, Watched},
};
use portal_core::rule::{load::RuleKind, source::RuleId};
use tokio::sync::{mpsc, watch};

use crate::{
    names::{MANAGED_BY, MANAGER},
    needs::{Known, Rules},
    object::{Kind, Object},
    store::{Source, SourceState, Store},
};

/// The rules of the cluster, shared. A clone sees the same ones.
#[derive(Clone, Debug, Default)]
pub struct SharedRules {
    rules: Arc<Mutex<Rules>>,
    /// Grows with every change.
    changes: Arc<watch::Sender<u64>>,
}

impl SharedRules {
    /// Tells when something has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Does something with the rules.
    pub fn with<T>(&self, work: impl FnOnce(&Rules) -> T) -> T {
        work(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, work: impl FnOnce(&mut Rules) -> bool) {
        if work(&mut self.rules.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.changes.send_modify(|number| *number += 1);
        }
    }
}

/// Watches objects until the end. Of kinds that others have too, only those are watched that the operator made.
pub async fn follow(runtime: Runtime, store: Store, source: Source) {
    let Source { kind, namespace } = &source;
    let resource = kind.resource();
    let client = runtime.client.clone();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut config = watcher::Config::default();
    if !is_of_others(*kind) {
        config = config.labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    }
    let place = namespace.as_deref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
    let part = Part::Watch(format!("{}{place}", resource.plural).into());
    let mut events = Events::with(runtime, part, format!("{}{place}", resource.plural), api, config);
    let mut listed = Vec::new();
    while let Some(news) = events.news().await {
        match news {
            News::Refused(problem) => store.refuse(&source, problem),
            News::Recovered => {}
            News::Event(Event::Init) => listed.clear(),
            News::Event(Event::InitApply(object)) => listed.push(object_of(*kind, object)),
            News::Event(Event::InitDone) => store.set_all(&source, std::mem::take(&mut listed)),
            News::Event(Event::Apply(object)) => store.set(object_of(*kind, object)),
            News::Event(Event::Delete(object)) => {
                store.remove(&object_of(*kind, object));
            }
        }
    }
}

/// Whether somebody else makes objects of a kind that the operator has to see.
pub(crate) fn is_of_others(kind: Kind) -> bool {
    matches!(kind, Kind::PortalInstance | Kind::Namespace | Kind::Secret | Kind::ConfigMap)
}

/// An object without what nobody reads. Of who wrote which field, it is kept what the operator has applied.
pub fn object_of(kind: Kind, mut object: DynamicObject) -> Object {
    object.metadata.managed_fields.take_if(|entries| {
        let is_applied = |entry: &ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(MANAGER)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.is_none()
        };
        entries.retain(is_applied);
        entries.is_empty()
    });
    Object::of(kind, &object)
}

/// Whether everything is known of these watches, or refused.
pub fn are_synced(store: &Store, sources: &[Source]) -> bool {
    sources.iter().all(|source| store.state(source) != SourceState::Listing)
}

/// Watches the rules of one kind until the end.
pub async fn follow_rules<K: Resource<DynamicType = ()>>(runtime: Runtime, kind: RuleKind, rules: SharedRules) {
    let resource = ApiResource::erase::<K>(&());
    let (part, plural) = match kind {
        RuleKind::Cluster => (Part::ClusterRules, "portalclusterrules"),
        RuleKind::Namespaced => (Part::Rules, "portalrules"),
    };
    let health = runtime.health.clone();
    let api: Api<Watched<RuleObject>> = Api::all_with(runtime.client.clone(), &resource);
    let mut events = Events::new(runtime, part.clone(), format!("{plural}.portal.io"), api);
    let mut seen = BTreeSet::new();
    let is_of_kind = |id: &RuleId| id.namespace.is_some() == matches!(kind, RuleKind::Namespaced);
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(object) => {
                seen.insert(id_of(&object));
                take(&rules, kind, &object);
            }
            Event::InitDone => {
                rules.change(|rules| {
                    rules.set_listed(plural, &std::mem::take(&mut seen), is_of_kind);
                    true
                });
                health.loaded(&part);
            }
            Event::Apply(object) => take(&rules, kind, &object),
            Event::Delete(object) => rules.change(|rules| rules.set(id_of(&object), None)),
        }
    }
}

fn take(rules: &SharedRules, kind: RuleKind, object: &Watched<RuleObject>) {
    let id = id_of(object);
    let metadata = &object.metadata;
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
    let version = (metadata.uid.clone().unwrap_or_default(), metadata.generation.unwrap_or_default());
    let known = Known::new(created, version, labels_of(object), read(object, kind, &id).ok());
    rules.change(|rules| rules.set(id, Some(known)));
}

/// Takes what the API server serves, until the end.
pub async fn take_kinds(mut updates: mpsc::Receiver<Update>, rules: SharedRules) {
    while let Some(update) = updates.recv().await {
        if let Update::Kinds(kinds) = update {
            let rules = rules.clone();
            // Every rule is compiled anew, which takes a while.
            let compiling = tokio::task::spawn_blocking(move || {
                rules.change(|rules| {
                    rules.set_kinds(kinds);
                    true
                });
            });
            if let Err(error) = compiling.await {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}
