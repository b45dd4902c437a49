//! Keeps a store in step with the API server: one watch of a kind, in the cluster or in a namespace.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client,
    api::{ApiResource, ListParams},
    runtime::watcher,
};
use portal_cluster::{
    health::Part,
    names::is_name,
    runtime::Runtime,
    watch::{Events, Form, News, Watched, identity},
};
use portal_core::{
    kinds::{Kind, Kinds},
    object::Object,
};
use portal_document::{Error, Interning, Node, Options};
use tokio::sync::Notify;

use super::{
    changes::{Changes, Place},
    store::Store,
};
use crate::metrics::EngineMetrics;

/// What a feed tells of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The kind, in the version that it prefers.
    pub kind: Arc<Kind>,
    /// The namespace, if it is one alone.
    pub namespace: Option<String>,
}

/// A feed that runs.
struct Feed {
    source: Source,
    store: Store,
    runtime: Runtime,
    metrics: EngineMetrics,
    changed: Arc<Notify>,
    /// Whoever is told of every change.
    listener: Option<Arc<dyn Changes>>,
}

/// An object as rules may see it. kube decides by type how an object is read, and the objects of a list do not say what they are.
struct Cached<S> {
    object: Object<'static>,
    sort: PhantomData<fn(S)>,
}

/// How objects of some kinds are read.
trait Sort: 'static {
    /// A kind that is read so.
    fn kind() -> &'static Kind;
}

/// Secrets, whose values are left out while they are read.
struct Secrets;

/// Namespaces, which have a label that tells their name.
struct Namespaces;

/// All others.
struct Others;

/// How many objects a page has of a list that nothing follows.
const PAGE: u32 = 500;

impl Source {
    /// The version in which objects are read.
    pub fn version(&self) -> &str {
        self.kind.versions.first().map_or("", String::as_str)
    }

    /// What it is called for people, and in metrics: `pods.v1`, `deployments.v1.apps in shop`.
    pub fn name(&self) -> String {
        let Kind { plural, group, .. } = &*self.kind;
        let mut name = format!("{plural}.{}", self.version());
        if !group.is_empty() {
            name = format!("{name}.{group}");
        }
        match &self.namespace {
            Some(namespace) => format!("{name} in {namespace}"),
            None => name,
        }
    }

    /// What is told of, to those who want to know of changes.
    fn place(&self) -> Place<'_> {
        Place { kind: &self.kind, namespace: self.namespace.as_deref() }
    }

    /// The part that a feed of it is.
    pub fn part(&self) -> Part {
        match self.is_namespaces() {
            true => Part::Namespaces,
            false => Part::Watch(self.name().into()),
        }
    }

    /// Namespace, name and object, or why it cannot be read.
    fn read<S>(&self, watched: Watched<Cached<S>>) -> (Option<String>, String, Result<Object<'static>, String>) {
        let Watched { metadata, form } = watched;
        let object = match form {
            Ok(Cached { object, .. }) => Ok(object.with_type(&self.kind, self.version(), Interning::Add)),
            Err(error) => Err(error.to_string()),
        };
        (metadata.namespace, metadata.name.unwrap_or_default(), object)
    }

    fn api<S: Sort>(&self, client: Client) -> Api<Watched<Cached<S>>> {
        let resource = ApiResource {
            group: self.kind.group.clone(),
            version: self.version().to_owned(),
            api_version: self.kind.api_version(self.version()),
            kind: self.kind.kind.clone(),
            plural: self.kind.plural.clone(),
        };
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    async fn list<S: Sort>(&self, store: &mut Store, client: &Client) -> kube::Result<()> {
        let api = self.api::<S>(client.clone());
        let mut page = ListParams::default().limit(PAGE);
        store.begin_list();
        // A rule may ask for a namespace that no namespace can be called, and the path would lead to something else.
        let mut is_more = self.namespace.as_deref().is_none_or(is_name);
        while is_more {
            let objects = api.list(&page).await?;
            for object in objects.items {
                let (namespace, name, object) = self.read(object);
                store.list(namespace.as_deref(), &name, object);
            }
            let next = objects.metadata.continue_.unwrap_or_default();
            is_more = !next.is_empty();
            page = page.continue_token(&next);
        }
        store.end_list();
        Ok(())
    }

    fn is_namespaces(&self) -> bool {
        self.kind.group.is_empty() && self.kind.kind == "Namespace"
    }
}

/// Keeps a store in step until the end. `changed` is told when the objects were all listed, and when the API server refuses to tell more or
/// tells again.
pub async fn follow(
    source: Source,
    store: Store,
    runtime: Runtime,
    metrics: EngineMetrics,
    changed: Arc<Notify>,
    listener: Option<Arc<dyn Changes>>,
) {
    let feed = Feed { source, store, runtime, metrics, changed, listener };
    match (&*feed.source.kind.group, &*feed.source.kind.kind) {
        ("", "Secret") => feed.run::<Secrets>().await,
        ("", "Namespace") => feed.run::<Namespaces>().await,
        _ => feed.run::<Others>().await,
    }
}

/// Fills a store with a list of all objects, and follows them no further. Whoever asks needs the verb `list` and no other. An error leaves
/// the store as it was for those who read it, and it can be called again.
pub async fn list(source: &Source, store: &mut Store, client: &Client) -> kube::Result<()> {
    match (&*source.kind.group, &*source.kind.kind) {
        ("", "Secret") => source.list::<Secrets>(store, client).await,
        ("", "Namespace") => source.list::<Namespaces>(store, client).await,
        _ => source.list::<Others>(store, client).await,
    }
}

impl Feed {
    async fn run<S: Sort>(mut self) {
        let part = self.source.part();
        let api = self.source.api::<S>(self.runtime.client.clone());
        let mut events = Events::of_many(self.runtime.clone(), part.clone(), self.source.name(), api);
        let objects = self.metrics.cache_objects.at(&part);
        let bytes = self.metrics.cache_bytes.at(&part);
        while let Some(news) = events.news().await {
            let is_listing = matches!(news, News::Event(watcher::Event::InitApply(_)));
            self.take(news, &part);
            if let Some(moment) = self.store.shown().moment().filter(|_| !is_listing) {
                objects.set(moment.len() as i64);
                bytes.set(moment.size_bytes() as i64);
            }
        }
        self.metrics.cache_objects.forget(&part);
        self.metrics.cache_bytes.forget(&part);
        if let Some(listener) = &self.listener {
            listener.ended(self.source.place());
        }
    }

    fn take<S: Sort>(&mut self, news: News<Watched<Cached<S>>>, part: &Part) {
        let store = &mut self.store;
        let event = match news {
            News::Refused(reason) => {
                store.set_refusal(Some(reason));
                self.changed.notify_one();
                return;
            }
            News::Recovered => {
                store.set_refusal(None);
                if let Some(listener) = &self.listener {
                    listener.recovered(self.source.place());
                }
                self.changed.notify_one();
                return;
            }
            News::Event(event) => event,
        };
        match event {
            watcher::Event::Init => store.begin_list(),
            watcher::Event::InitApply(object) => {
                let (namespace, name, object) = self.source.read(object);
                store.list(namespace.as_deref(), &name, object);
            }
            watcher::Event::InitDone => {
                let before = store.end_list();
                store.set_refusal(None);
                if let (Some(listener), Some(after)) = (&self.listener, store.shown().moment()) {
                    listener.listed(self.source.place(), before.as_deref(), &after);
                }
                self.runtime.health.loaded(part);
                self.changed.notify_one();
            }
            watcher::Event::Apply(object) => {
                let (namespace, name, object) = self.source.read(object);
                let change = store.apply(namespace.as_deref(), &name, object);
                if let Some(listener) = &self.listener {
                    listener.changed(self.source.place(), &change);
                }
            }
            watcher::Event::Delete(object) => {
                let (namespace, name) = (object.metadata.namespace.as_deref(), object.metadata.name.as_deref());
                let change = store.delete(namespace, name.unwrap_or_default());
                if let Some(listener) = &self.listener {
                    listener.changed(self.source.place(), &change);
                }
            }
        }
    }
}

impl Sort for Secrets {
    fn kind() -> &'static Kind {
        builtin("Secret")
    }
}

impl Sort for Namespaces {
    fn kind() -> &'static Kind {
        builtin("Namespace")
    }
}

impl Sort for Others {
    fn kind() -> &'static Kind {
        // One of those that are read as they are.
        static PLAIN: LazyLock<&Kind> = LazyLock::new(|| builtin("ConfigMap"));
        *PLAIN
    }
}

fn builtin(kind: &str) -> &'static Kind {
    Kinds::builtin().get("", kind).expect("the table of Kubernetes has it")
}

impl<S: Sort> Form for Cached<S> {
    fn read(json: &[u8]) -> Result<Self, Error> {
        // The API server writes correct JSON.
        let options = Options { well_formed: true, ..Options::default() };
        Object::parse(json, S::kind(), &options).map(|object| Cached { object, sort: PhantomData })
    }

    fn root(&self) -> Node<'_> {
        self.object.root()
    }

    fn metadata(&self) -> ObjectMeta {
        identity(self.root())
    }
}

impl<S> Clone for Cached<S> {
    fn clone(&self) -> Self {
        Cached { object: self.object.clone(), sort: PhantomData }
    }
}

impl<S> std::fmt::Debug for Cached<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.object.fmt(formatter)
    }
}
