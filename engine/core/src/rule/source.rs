//! Rules as they come in, before anything is known about them.

use std::fmt;

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

impl fmt::Display for RuleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}
