//! The watches of the operator. They fill the [`Store`] and the [`Rules`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event},
};
use portal_cluster::{
    health::Part,
    rules::{
        Update,
        cluster::{RuleObject, SeenRule, id_of, labels_of, read},
    },
    runtime::Runtime,
    watch::{Events, News, Watched},
};
use portal_core::rule::{load::RuleKind, source::RuleId};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

use crate::{
    names::{MANAGED_BY, MANAGER, OPERATOR},
    needs::{Known, Rules},
    object::{Kind, Object},
    rule_status::RuleStatuses,
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

/// The watches that instances need, each while an instance needs it. A clone has the same ones.
#[derive(Clone, Debug, Default)]
pub struct Watching(Arc<Mutex<BTreeMap<Source, AbortHandle>>>);

impl Watching {
    /// Begins those that have not begun.
    pub fn begin<'a>(&self, sources: impl Iterator<Item = &'a Source>, runtime: &Runtime, store: &Store) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for source in sources {
            running.entry(source.clone()).or_insert_with(|| {
                store.begin(source);
                tokio::spawn(follow(runtime.clone(), store.clone(), source.clone())).abort_handle()
            });
        }
    }

    /// Ends those that nobody needs: they would ask for ever about namespaces in which nothing of ours is.
    pub fn end_but(&self, needed: &BTreeSet<Source>, store: &Store) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (source, task) in running.extract_if(.., |source, _| !needed.contains(source)) {
            task.abort();
            store.end(&source);
        }
    }
}

/// What is known of rules: what they say, and what is said of them. A clone sees the same.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What they say.
    pub rules: SharedRules,
    /// What is said of them.
    pub statuses: RuleStatuses,
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

/// What the operator may do itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ceiling {
    /// Grows with every change.
    pub version: u64,
    /// Whether there is a star in it, so that it bounds nothing.
    pub is_unbounded: bool,
}

/// Tells when the roles of the operator itself change, until the end: what it may hand on may be more or less then.
pub async fn follow_ceiling(runtime: Runtime, changes: watch::Sender<Ceiling>) {
    let api: Api<DynamicObject> = Api::all_with(runtime.client.clone(), &Kind::ClusterRole.resource());
    let config = watcher::Config::default().labels(&format!("app.kubernetes.io/name={OPERATOR}"));
    let place = "clusterroles of the operator".to_owned();
    let mut events = Events::with(runtime, Part::Watch(place.clone().into()), place, api, config);
    let mut unbounded = BTreeSet::new();
    while let Some(event) = events.next().await {
        match &event {
            Event::Init => unbounded.clear(),
            Event::InitApply(role) | Event::Apply(role) if has_star(&role.data) => {
                unbounded.insert(role.name_any());
            }
            Event::InitApply(role) | Event::Apply(role) | Event::Delete(role) => {
                unbounded.remove(&role.name_any());
            }
            Event::InitDone => {}
        }
        if !matches!(event, Event::Init | Event::InitApply(_)) {
            changes.send_modify(|ceiling| {
                ceiling.version += 1;
                ceiling.is_unbounded = !unbounded.is_empty();
            });
        }
    }
}

/// Whether a role allows something by a star.
fn has_star(role: &Value) -> bool {
    let rules = role["rules"].as_array().into_iter().flatten();
    let mut words = rules.flat_map(|rule| {
        let lists = ["apiGroups", "resources", "verbs"].map(|name| rule[name].as_array().into_iter().flatten());
        lists.into_iter().flatten()
    });
    words.any(|word| word.as_str().is_some_and(|word| word.contains('*')))
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
pub async fn follow_rules<K: Resource<DynamicType = ()>>(runtime: Runtime, kind: RuleKind, known: Seen) {
    let Seen { rules, statuses } = &known;
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
                take(&known, kind, &object);
            }
            Event::InitDone => {
                statuses.retain(|id| !is_of_kind(id) || seen.contains(id));
                rules.change(|rules| {
                    rules.set_listed(plural, &std::mem::take(&mut seen), is_of_kind);
                    true
                });
                health.loaded(&part);
            }
            Event::Apply(object) => take(&known, kind, &object),
            Event::Delete(object) => {
                statuses.saw(id_of(&object), None);
                rules.change(|rules| rules.set(id_of(&object), None));
            }
        }
    }
}

fn take(Seen { rules, statuses }: &Seen, kind: RuleKind, object: &Watched<RuleObject>) {
    let id = id_of(object);
    statuses.saw(id.clone(), Some(&SeenRule::new(object, false)));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_in_any_place_makes_a_ceiling_none() {
        let role = |groups: &str, resources: &[&str], verb: &str| {
            json!({ "rules": [
                { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
                { "apiGroups": [groups], "resources": resources, "verbs": ["list", verb] },
            ] })
        };
        assert!(!has_star(&role("apps", &["deployments", "deployments/scale"], "get")));
        assert!(!has_star(&json!({})));
        assert!(has_star(&role("*", &["deployments"], "get")));
        assert!(has_star(&role("apps", &["deployments", "*"], "get")));
        assert!(has_star(&role("apps", &["deployments", "*/scale"], "get")));
        assert!(has_star(&role("apps", &["deployments"], "*")));
    }
}
