//! Rules as they come in, before anything is known about them.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use portal_crds::RuleSpec;

use crate::rule::diagnostic::Step;

/// The name of a rule.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RuleId {
    /// The namespace of a `PortalRule`; none for a `PortalClusterRule`.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// Where a rule comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A document of a file.
    File {
        /// The file, as the user called it.
        path: String,
        /// The line that the document begins on, from 1.
        line: usize,
    },
    /// An object of the cluster.
    Cluster {
        /// Its uid.
        uid: String,
    },
}

/// A rule whose form is right.
#[derive(Clone, Debug)]
pub struct RuleSource {
    /// Its name.
    pub id: RuleId,
    /// Where it comes from.
    pub origin: Origin,
    /// The way to its fields from where its document begins: `spec`, or nothing for the form of files.
    pub base: Vec<Step>,
    /// The generation of the object, 0 for a file.
    pub generation: i64,
    /// What it says.
    pub spec: RuleSpec,
}

impl RuleSource {
    /// What tells this version of the rule from others of its name: of an object its uid and generation, of a file what the rule says.
    /// Two engines that have the same version of a rule judge alike.
    pub fn version(&self) -> String {
        match &self.origin {
            Origin::Cluster { uid } => format!("{uid}/{}", self.generation),
            Origin::File { .. } => {
                let mut hasher = DefaultHasher::new();
                serde_json::to_string(&self.spec).unwrap_or_default().hash(&mut hasher);
                format!("{:016x}", hasher.finish())
            }
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}
