//! The objects of files as the cluster that rules look things up in.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use portal_core::{
    kinds::Kinds,
    lookup::{Answer, Filter, Lookup, Query},
};
use portal_document::{Builder, Document, Node};

use crate::check::files::{self, Problem};

/// Objects, by group and kind.
#[derive(Default)]
pub(crate) struct Cluster {
    objects: HashMap<(String, String), Vec<Object>>,
}

struct Object {
    namespace: Option<String>,
    name: String,
    document: Arc<Document>,
}

impl Cluster {
    /// Reads the files of the cluster, and those that are judged: what is applied together sees each other.
    pub(crate) fn read(cluster: &[PathBuf], judged: &[PathBuf], kinds: &Kinds, problems: &mut Vec<Problem>) -> Cluster {
        let mut found = Cluster::default();
        let paths = files::expand(cluster, problems);
        for path in &paths {
            match files::read(path, usize::MAX) {
                Ok(pieces) => pieces.iter().for_each(|piece| {
                    let (documents, mut damaged) = piece.documents();
                    problems.append(&mut damaged);
                    documents.iter().for_each(|placed| found.add_all(placed.document.root(), kinds));
                }),
                Err(problem) => problems.push(problem),
            }
        }
        // Whoever judges them says what is wrong with them.
        for path in judged {
            for piece in files::read(path, usize::MAX).into_iter().flatten() {
                piece.documents().0.iter().for_each(|placed| found.add_all(placed.document.root(), kinds));
            }
        }
        found
    }

    fn add_all(&mut self, document: Node<'_>, kinds: &Kinds) {
        for object in files::items(document) {
            let text = |node: Node<'_>, name: &str| node.get_str(name).and_then(Node::as_str).map(str::to_owned);
            let (Some(api_version), Some(kind)) = (text(object, "apiVersion"), text(object, "kind")) else { continue };
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let Some(kind) = kinds.get(group, &kind) else { continue };
            let metadata = object.get_str("metadata");
            let field = |name: &str| metadata.and_then(|metadata| text(metadata, name));
            let (namespace, document) = match field("namespace").filter(|_| kind.namespaced) {
                None if kind.namespaced => {
                    let namespace = files::DEFAULT_NAMESPACE;
                    (Some(namespace.to_owned()), files::in_namespace(object, namespace))
                }
                namespace => {
                    let mut builder = Builder::new();
                    builder.node(object);
                    (namespace, builder.finish().ok())
                }
            };
            let (Some(name), Some(document)) = (field("name"), document) else { continue };
            let objects = self.objects.entry((kind.group.clone(), kind.kind.clone())).or_default();
            // The last one of a name is the one that would be there in the end.
            objects.retain(|object| (&object.namespace, &object.name) != (&namespace, &name));
            objects.push(Object { namespace, name, document: Arc::new(document) });
        }
    }
}

impl Lookup for Cluster {
    fn answer(&self, query: &Query) -> Answer {
        let key = (query.kind.group.clone(), query.kind.kind.clone());
        let objects = self.objects.get(&key).map(Vec::as_slice).unwrap_or_default();
        let found = objects.iter().filter(|object| {
            query.selects(&query.kind, object.document.root(), &object.name, object.namespace.as_deref())
        });
        let mut found: Vec<Arc<Document>> = found.map(|object| Arc::clone(&object.document)).collect();
        if let (true, Filter::Name(name), "Namespace") = (found.is_empty(), &query.filter, query.kind.kind.as_str()) {
            found.extend(namespace(name));
        }
        Answer::Found(found)
    }
}

/// A namespace that nobody wrote down, with the label that the API server gives to each.
fn namespace(name: &str) -> Option<Arc<Document>> {
    let mut builder = Builder::new();
    builder.begin_object().key("metadata").begin_object().key("name").string(name);
    builder.key("labels").begin_object().key("kubernetes.io/metadata.name").string(name).end().end().end();
    builder.finish().ok().map(Arc::new)
}
