//! Rules that are objects of the cluster: a watch of each of the two kinds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::{
    Api, Resource,
    api::ApiResource,
    core::{Selector, SelectorExt as _},
    runtime::watcher::Event,
};
use portal_core::rule::{
    diagnostic::{Diagnostic, Level},
    load::{self, RuleKind},
    source::{CATEGORY, Origin, RuleId, RuleSource},
};
use portal_document::{Document, DocumentLimits, Error, Node, Options, View};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    rules::{Loader, Object, Update},
    runtime::Runtime,
    watch::{Events, Form, Watched},
};

/// The object of a rule as it was seen last, for whoever writes its status.
#[derive(Clone, Debug)]
pub struct SeenRule {
    /// Its uid.
    pub uid: String,
    /// Which version of the spec it is.
    pub generation: i64,
    /// Which version of the whole object.
    pub resource_version: String,
    /// Its status; null if it has none.
    pub status: Value,
    /// Whether this instance serves the rule.
    pub is_served: bool,
    /// Whether it comes from a list. A list is believed even if its version is lower than one that was seen before: the API server
    /// may have been set back to an older state.
    pub is_listed: bool,
}

/// The object of a rule, in its flat form.
#[derive(Clone, Debug)]
pub struct RuleObject(Document);

/// The schema of a rule is not half as deep. The API server cannot have checked a deeper object against it.
const MAX_DEPTH: usize = 64;

impl Form for RuleObject {
    fn read(json: &[u8]) -> Result<RuleObject, Error> {
        let limits = DocumentLimits { depth: MAX_DEPTH, ..DocumentLimits::default() };
        Document::parse(json, &Options { limits, ..Options::default() }).map(RuleObject)
    }

    fn root(&self) -> Node<'_> {
        self.0.root()
    }
}

impl SeenRule {
    /// Takes what is needed out of an object that the API server answered with.
    pub fn new(object: &Watched<RuleObject>, is_served: bool) -> SeenRule {
        let metadata = object.metadata.clone();
        let status = object.form.as_ref().ok().and_then(|form| form.root().get_str("status"));
        SeenRule {
            is_served,
            is_listed: false,
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            status: status.map(value_of).unwrap_or_default(),
        }
    }

    /// Whether the other one is a later version of the object. Kubernetes promises that versions are numbers that grow.
    pub fn is_older_than(&self, other: &SeenRule) -> bool {
        let number = |seen: &SeenRule| seen.resource_version.parse::<u128>().ok();
        number(self).zip(number(other)).is_some_and(|(own, other)| own < other)
    }
}

/// Where news about objects go.
#[derive(Clone, Debug)]
pub struct Outlets {
    /// What the index needs: a change of what a rule says.
    pub updates: mpsc::Sender<Update>,
    /// What the status writer needs: every change. Nothing for an object that is gone.
    pub seen: mpsc::Sender<(RuleId, Option<SeenRule>)>,
}

/// What is known of the objects of one kind.
struct Watch {
    kind: RuleKind,
    loader: Loader,
    outlets: Outlets,
    /// Which of the rules this instance serves.
    selector: Selector,
    /// The version of the rule that the index was told. Nothing for rules that are not served.
    told: HashMap<RuleId, Option<Told>>,
    /// Those that a list that is under way has named.
    listed: HashSet<RuleId>,
}

/// What tells the version of a rule from others: its UID, its generation, and its category, which is an annotation.
type Told = (String, i64, Option<Arc<str>>);

/// The receiver is gone: the process ends.
struct Closed;

/// Tells of the objects of a kind and of their changes, until the end. Those that the selector does not fit are watched too: if they
/// were served before, their status still says so.
pub async fn follow<K: Resource<DynamicType = ()>>(
    runtime: Runtime,
    kind: RuleKind,
    selector: Selector,
    outlets: Outlets,
) {
    let loader = match kind {
        RuleKind::Cluster => Loader::ClusterRules,
        RuleKind::Namespaced => Loader::Rules,
    };
    let resource = ApiResource::erase::<K>(&());
    let name = format!("{}.{}", resource.plural, resource.group);
    let api: Api<Watched<RuleObject>> = Api::all_with(runtime.client.clone(), &resource);
    let mut events = Events::new(runtime, loader.part(), name, api);
    let mut watch = Watch { kind, loader, outlets, selector, told: HashMap::new(), listed: HashSet::new() };
    while let Some(event) = events.next().await {
        if watch.take(event).await.is_err() {
            return;
        }
    }
}

impl Watch {
    async fn take(&mut self, event: Event<Watched<RuleObject>>) -> Result<(), Closed> {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let id = id_of(&object);
                self.listed.insert(id.clone());
                self.tell(id, &object, true).await?;
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
            Event::Apply(object) => self.tell(id_of(&object), &object, false).await?,
            Event::Delete(object) => self.forget(id_of(&object)).await?,
        }
        Ok(())
    }

    async fn tell(&mut self, id: RuleId, object: &Watched<RuleObject>, is_listed: bool) -> Result<(), Closed> {
        let is_served = self.selector.matches(&labels_of(object));
        let seen = SeenRule { is_listed, ..SeenRule::new(object, is_served) };
        let version = is_served.then(|| (seen.uid.clone(), seen.generation, category_of(object)));
        // A change of the status alone says nothing new about the rule.
        if self.told.get(&id) != Some(&version) {
            let rule = is_served.then(|| {
                let source = read(object, self.kind, &id);
                let created = object.metadata.creation_timestamp.as_ref();
                let created = created.map(|time| time.0.to_string()).unwrap_or_default();
                Box::new(Object { uid: seen.uid.clone(), created, generation: seen.generation, source })
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

    async fn send_seen(&self, id: RuleId, seen: Option<SeenRule>) -> Result<(), Closed> {
        self.outlets.seen.send((id, seen)).await.map_err(|_| Closed)
    }
}

/// What sort of rule an object is. It is an annotation, whose change makes no other generation.
fn category_of(object: &Watched<RuleObject>) -> Option<Arc<str>> {
    let metadata = object.form.as_ref().ok()?.root().get_str("metadata")?;
    load::category(metadata.get_str("annotations")?.get_str(CATEGORY))
}

/// The name of the rule that an object is.
pub fn id_of(object: &Watched<RuleObject>) -> RuleId {
    let metadata = &object.metadata;
    RuleId { namespace: metadata.namespace.clone(), name: metadata.name.clone().unwrap_or_default() }
}

/// The labels of an object.
pub fn labels_of(object: &Watched<RuleObject>) -> BTreeMap<String, String> {
    let metadata = object.form.as_ref().ok().and_then(|form| form.root().get_str("metadata"));
    let labels = metadata.and_then(|metadata| metadata.get_str("labels")?.as_object());
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    labels.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect()
}

/// The rule that an object is, or what is wrong with its form.
pub fn read(object: &Watched<RuleObject>, kind: RuleKind, id: &RuleId) -> Result<RuleSource, Vec<Diagnostic>> {
    let origin = Origin::Cluster { uid: object.metadata.uid.clone().unwrap_or_default() };
    match &object.form {
        Ok(form) => load::load_object(form.root(), kind, origin),
        Err(error) => Err(vec![Diagnostic {
            rule: Some(id.clone()),
            origin,
            level: Level::Error,
            field: Vec::new(),
            message: format!("the object cannot be read: {error}"),
            excerpt: None,
            awaits_kind: false,
        }]),
    }
}

/// A part of a document as whoever writes a status wants it. [`MAX_DEPTH`] bounds the depth.
fn value_of(node: Node<'_>) -> Value {
    match node.view() {
        View::Null => Value::Null,
        View::Bool(value) => value.into(),
        View::Int(value) => value.into(),
        View::Float(value) => value.into(),
        View::Str(value) => value.into(),
        View::Array(array) => array.iter().map(value_of).collect(),
        View::Object(object) => object.iter().map(|(key, value)| (key.to_owned(), value_of(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_index_is_told_what_a_rule_says_and_its_category_and_nothing_else() {
        let (updates, mut updates_in) = mpsc::channel(9);
        let (seen, mut seen_in) = mpsc::channel(9);
        let (outlets, selector) = (Outlets { updates, seen }, Selector::default());
        let (kind, loader) = (RuleKind::Cluster, Loader::ClusterRules);
        let mut watch = Watch { kind, loader, outlets, selector, told: HashMap::new(), listed: HashSet::new() };
        for (generation, annotations, is_told) in [
            (1, "{}", true),
            (1, "{}", false),
            (1, r#"{"team": "a"}"#, false),
            (1, r#"{"portal.io/category": "Network"}"#, true),
            (1, r#"{"portal.io/category": "Network", "team": "a"}"#, false),
            (2, r#"{"portal.io/category": "Network"}"#, true),
            (2, "{}", true),
        ] {
            let json = format!(
                r#"{{"apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {{"name": "a", "uid": "u",
                "generation": {generation}, "annotations": {annotations}}},
                "spec": {{"match": {{"gvk": [{{"kind": "Pod"}}]}}, "rule": "spec.hostPID"}}}}"#
            );
            let object: Watched<RuleObject> = serde_json::from_str(&json).unwrap();
            assert!(watch.take(Event::Apply(object)).await.is_ok());
            assert_eq!(updates_in.try_recv().is_ok(), is_told, "{generation} {annotations}");
            assert!(seen_in.try_recv().is_ok());
        }
    }
}
