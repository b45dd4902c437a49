//! Objects of kinds that nobody knows: Kubernetes does not serve them, nothing defines them, and no rule names them. They are
//! told, because an object that no rule can judge is no object that passed.

use std::collections::{BTreeMap, HashSet};

use portal_core::kinds::Kind;

use crate::check::judge::{Failed, Location};

/// Where the kinds come from that Kubernetes does not serve itself.
const DEFINITIONS: &str = "CustomResourceDefinitions among the rules, the files and --cluster";

/// The same if there is a cluster.
const LIVE_DEFINITIONS: &str = "the cluster, and from CustomResourceDefinitions among the rules and the files";

/// The objects of unknown kinds. Each worker has its own.
#[derive(Default)]
pub(crate) struct Unknown {
    /// By `apiVersion` and kind.
    kinds: BTreeMap<(String, String), UnknownKind>,
    /// Group and kind of the definitions that were among the objects.
    defined: HashSet<(String, String)>,
}

/// The objects of one kind that nobody knows.
pub(crate) struct UnknownKind {
    pub(crate) objects: usize,
    /// The first of them.
    pub(crate) first: Location,
}

impl Unknown {
    /// Adds an object. Its location says of which kind it is.
    pub(crate) fn add(&mut self, location: Location) {
        let key = (location.api_version.clone(), location.kind.clone());
        self.add_kind(key, UnknownKind { objects: 1, first: location });
    }

    /// Adds a definition: a kind may be used before it is defined.
    pub(crate) fn define(&mut self, kind: Kind) {
        self.defined.insert((kind.group, kind.kind));
    }

    pub(crate) fn append(&mut self, other: Unknown) {
        self.defined.extend(other.defined);
        for (key, kind) in other.kinds {
            self.add_kind(key, kind);
        }
    }

    /// What nobody defines, and the number of the objects that turned out to be known. The definitions that were not among the
    /// objects are asked for only if something is missing.
    pub(crate) fn settle(mut self, definitions: impl FnOnce() -> Vec<Kind>) -> (Vec<UnknownKind>, usize) {
        if self.kinds.is_empty() {
            return (Vec::new(), 0);
        }
        definitions().into_iter().for_each(|kind| self.define(kind));
        let group = |api_version: &str| api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        let (known, unknown): (Vec<_>, Vec<_>) = self
            .kinds
            .into_iter()
            .partition(|((api_version, kind), _)| self.defined.contains(&(group(api_version), kind.clone())));
        let known = known.into_iter().map(|(_, kind)| kind.objects).sum();
        (unknown.into_iter().map(|(_, kind)| kind).collect(), known)
    }

    fn add_kind(&mut self, key: (String, String), kind: UnknownKind) {
        match self.kinds.get_mut(&key) {
            Some(known) => {
                known.objects += kind.objects;
                known.first = std::mem::take(&mut known.first).min(kind.first);
            }
            None => {
                self.kinds.insert(key, kind);
            }
        }
    }
}

impl UnknownKind {
    /// What people are told.
    pub(crate) fn note(&self) -> String {
        let Location { api_version, kind, .. } = &self.first;
        let objects =
            if self.objects == 1 { "1 object is".to_owned() } else { format!("{} objects are", self.objects) };
        format!("{objects} not judged: the kind {kind} ({api_version}) is not known")
    }

    /// The same as an error, for whoever wants everything judged.
    pub(crate) fn failed(&self, is_live: bool) -> Failed {
        let error = format!("{}: definitions are taken from {}", self.note(), definitions(is_live));
        Failed { location: self.first.clone(), column: None, rule: None, error }
    }
}

/// Where the kinds come from, in words.
pub(crate) fn definitions(is_live: bool) -> &'static str {
    if is_live { LIVE_DEFINITIONS } else { DEFINITIONS }
}
