//! The objects of files as the cluster that rules look things up in.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use portal_core::{
    event::Subject,
    kinds::{Kind, Kinds},
    lookup::{Answer, Filter, Lookup, Query},
    manifest::{Problem, items},
    object::Object,
};
use portal_document::{Builder, Interning, Node};

use crate::check::{files, skipped};

/// Objects, by group and kind.
#[derive(Default)]
pub(crate) struct Cluster {
    objects: HashMap<(String, String), Vec<Entry>>,
    /// What makes pods that somebody asked for and nobody found, because it is only about to make them. Written by whoever asks.
    unmade: Mutex<BTreeSet<String>>,
    /// The Namespaces that somebody asked for and no file has. Written by whoever asks.
    assumed_namespaces: Mutex<BTreeSet<String>>,
}

struct Entry {
    kind: Arc<Kind>,
    namespace: Option<String>,
    name: String,
    object: Arc<Object<'static>>,
}

impl Cluster {
    /// Reads the files of the cluster, and those that are judged: objects that are applied together see each other.
    ///
    /// `namespace` is the one of objects that name none. `skipped` gets the files of folders that hold no object. None if that is wrong too.
    pub(crate) fn read(
        cluster: &[PathBuf],
        judged: &[PathBuf],
        kinds: &Kinds,
        namespace: &str,
        problems: &mut Vec<Problem>,
        mut skipped: Option<&mut Vec<Problem>>,
    ) -> Cluster {
        let mut found = Cluster::default();
        let paths = files::expand(cluster, problems);
        for path in &paths {
            match files::read(path) {
                Ok(manifest) => {
                    let (documents, mut damaged) = manifest.documents(Interning::Add);
                    let is_template = !damaged.is_empty() && skipped::is_template(&manifest);
                    if is_template {
                        damaged = damaged.into_iter().take(1).map(skipped::of_template).collect();
                    }
                    let is_empty = documents.is_empty() && damaged.is_empty();
                    damaged.extend(is_empty.then(|| files::empty(&manifest, "object")));
                    match &mut skipped {
                        Some(skipped) if (is_template || is_empty) && !skipped::is_named(path, cluster) => {
                            skipped.append(&mut damaged);
                        }
                        _ => problems.append(&mut damaged),
                    }
                    for placed in &documents {
                        let wrong = found.add_all(placed.document.root(), kinds, namespace);
                        let wrong = wrong.into_iter().map(|error| manifest.problem(Some(placed.line), None, error));
                        problems.extend(wrong);
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        // Problems of these files are not kept here: judging them reports the same ones.
        for path in judged {
            let Ok(manifest) = files::read(path) else { continue };
            for placed in manifest.documents(Interning::Add).0 {
                let _ = found.add_all(placed.document.root(), kinds, namespace);
            }
        }
        found
    }

    /// Adds the objects of a document. What is wrong with its lists, or with the names of its objects, comes back.
    fn add_all(&mut self, document: Node<'_>, kinds: &Kinds, default_namespace: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        for item in items(document) {
            let content = match item.content {
                Ok(content) => content,
                Err(error) => {
                    wrong.push(error);
                    continue;
                }
            };
            let object = content.root();
            let text = |name: &str| object.get_str(name).and_then(Node::as_str);
            let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else { continue };
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let Some(kind) = kinds.get(group, kind) else { continue };
            if let Some(error) = skipped::misnamed(object) {
                wrong.push(error);
                continue;
            }
            let Some(subject) = Subject::of(object, kind, version, default_namespace) else { continue };
            let Some(name) = subject.name().map(str::to_owned) else { continue };
            let namespace = subject.namespace().map(str::to_owned);
            let objects = self.objects.entry((kind.group.clone(), kind.kind.clone())).or_default();
            // Of objects with the same name the last one stays, as if all of them were applied in order.
            objects.retain(|entry| (&entry.namespace, &entry.name) != (&namespace, &name));
            objects.push(Entry { kind: Arc::clone(kind), namespace, name, object: Arc::new(subject.into_object()) });
        }
        wrong
    }

    /// The objects that are asked for.
    pub(crate) fn find(&self, query: &Query) -> Vec<Arc<Object<'static>>> {
        let entries = self.of_kind(&query.kind).iter();
        let found = entries
            .filter(|entry| query.selects(&query.kind, entry.object.root(), &entry.name, entry.namespace.as_deref()));
        found.map(|entry| Arc::clone(&entry.object)).collect()
    }

    /// What makes pods that were asked for, and that no file has.
    pub(crate) fn unmade(&self) -> BTreeSet<String> {
        self.unmade.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The Namespaces that were asked for, and that no file has.
    pub(crate) fn assumed_namespaces(&self) -> BTreeSet<String> {
        self.assumed_namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what would make the pods that are asked for.
    fn note_unmade(&self, query: &Query) {
        let makes =
            |entry: &&Entry| query.selects_pods_of(&entry.kind, entry.object.root(), entry.namespace.as_deref());
        let describe = |entry: &Entry| match &entry.namespace {
            Some(namespace) => format!("{} {namespace}/{}", entry.kind.kind, entry.name),
            None => format!("{} {}", entry.kind.kind, entry.name),
        };
        let makers: Vec<String> = self.objects.values().flatten().filter(makes).map(describe).collect();
        if !makers.is_empty() {
            self.unmade.lock().unwrap_or_else(PoisonError::into_inner).extend(makers);
        }
    }

    /// The namespaces and names of the objects of a kind.
    pub(crate) fn names(&self, kind: &Kind) -> HashSet<(Option<&str>, &str)> {
        self.of_kind(kind).iter().map(|entry| (entry.namespace.as_deref(), entry.name.as_str())).collect()
    }

    fn of_kind(&self, kind: &Kind) -> &[Entry] {
        self.objects.get(&(kind.group.clone(), kind.kind.clone())).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Lookup for Cluster {
    fn answer(&self, query: &Query) -> Answer {
        let mut found = self.find(query);
        if let (true, Filter::Name(name), "Namespace") = (found.is_empty(), &query.filter, query.kind.kind.as_str()) {
            found.extend(namespace(name, &query.kind));
            self.assumed_namespaces.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        }
        if found.is_empty() {
            self.note_unmade(query);
        }
        Answer::Found(found)
    }

    fn assumed(&self, query: &Query) -> Option<&'static str> {
        let is_assumed =
            |name: &str| self.assumed_namespaces.lock().unwrap_or_else(PoisonError::into_inner).contains(name);
        match (&query.filter, query.kind.kind.as_str()) {
            (Filter::Name(name), "Namespace") if is_assumed(name) => Some("is in no file"),
            _ => None,
        }
    }
}

/// The Namespace of this name, for names that no file defines.
fn namespace(name: &str, kind: &Kind) -> Option<Arc<Object<'static>>> {
    let mut builder = Builder::new();
    builder.begin_object().key("metadata").begin_object().key("name").string(name).end().end();
    builder.finish().ok().map(|document| Arc::new(Object::kept(document.root(), kind)))
}
