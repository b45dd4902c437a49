//! Rules as they come in, before anything is known about them.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

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
    /// What sort of rule it is, for those who read reports: its annotation [`CATEGORY`], or `category` in the form of files.
    pub category: Option<Arc<str>>,
    /// What it says.
    pub spec: RuleSpec,
}

/// The annotation of a rule that says what sort of rule it is.
pub const CATEGORY: &str = "portal.io/category";

/// Whether this is a [version](RuleSource::version) of the rule that is an object with this uid, in this generation, whatever its category
/// is.
pub fn is_version_of(version: &str, uid: &str, generation: i64) -> bool {
    let behind_uid = version.strip_prefix(uid).and_then(|rest| rest.strip_prefix('/'));
    behind_uid.and_then(|rest| rest.split('/').next()) == Some(generation.to_string().as_str())
}

impl RuleSource {
    /// What tells this version of the rule from others of its name: of an object its uid and generation, of a file what the rule says.
    /// Two engines that have the same version of a rule judge alike, and tell of it alike: an annotation changes no generation, so the
    /// category is a part of the version.
    pub fn version(&self) -> String {
        match (&self.origin, &self.category) {
            (Origin::Cluster { uid }, None) => format!("{uid}/{}", self.generation),
            (Origin::Cluster { uid }, Some(category)) => format!("{uid}/{}/{category}", self.generation),
            (Origin::File { .. }, category) => {
                // Named one by one, so that none is forgotten. The two that are long are taken as they are.
                let RuleSpec {
                    enabled,
                    severity,
                    mode,
                    enforcement_action,
                    matching,
                    rule,
                    message,
                    alert,
                    actions,
                    exceptions,
                } = &self.spec;
                let rest = (
                    enabled,
                    severity,
                    mode,
                    enforcement_action,
                    matching,
                    alert,
                    actions,
                    exceptions,
                    category.as_deref(),
                );
                let mut hasher = DefaultHasher::new();
                (rule, message, serde_json::to_string(&rest).unwrap_or_default()).hash(&mut hasher);
                format!("{:016x}", hasher.finish())
            }
        }
    }
}

impl RuleId {
    /// The rule that is written so. Neither names nor namespaces have a slash.
    pub fn parse(text: &str) -> RuleId {
        match text.split_once('/') {
            Some((namespace, name)) => RuleId { namespace: Some(namespace.to_owned()), name: name.to_owned() },
            None => RuleId { namespace: None, name: text.to_owned() },
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
