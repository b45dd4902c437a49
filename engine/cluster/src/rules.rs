//! Rules on their way from where they are kept to the set that is evaluated.
//!
//! ```text
//! folder ──┐
//! cluster ─┼→ Update → Index (by the intake) → Snapshot, swapped under those who read it
//! kinds ───┤
//! feeds ───┘                               └→ Report → status (by the holder of the Lease)
//! ```

pub mod cluster;
pub mod feeds;
pub mod folder;
pub mod index;
pub mod intake;
pub mod quota;
pub mod selector;
pub mod snapshot;
pub mod status;

use std::path::PathBuf;
use std::sync::Arc;

use portal_core::{
    kinds::Kinds,
    manifest::Problem,
    rule::{
        diagnostic::Diagnostic,
        source::{RuleId, RuleSource},
    },
};
use portal_crds::Front;

use crate::{
    health::Part,
    rules::feeds::{Feeds, Lack},
};

/// News for the [`index`]. Loaders send them; each replaces what was said about the same file or object before.
#[derive(Debug)]
pub enum Update {
    /// Files were read, or are gone. All that one look at a folder has found: a rule that moves from one file to another is never
    /// missing in between.
    Files(Vec<(PathBuf, Option<FileContent>)>),
    /// An object was seen, or is gone.
    Object(RuleId, Option<Box<Object>>),
    /// What the API server serves.
    Kinds(Arc<Kinds>),
    /// What is known of the objects that rules look up.
    Feeds(Arc<Feeds>),
    /// A loader has told all that it found when it began.
    Loaded(Loader),
}

/// The rules of a file, or everything that is wrong with it: a file is taken as a whole.
pub type FileContent = Result<Vec<RuleSource>, Vec<Problem>>;

/// A rule as the cluster has it.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its uid: another object of the same name is another rule.
    pub uid: String,
    /// When it was created, as the API server writes it.
    pub created: String,
    /// Which version of the spec it is.
    pub generation: i64,
    /// The rule, or what is wrong with its form.
    pub source: Result<RuleSource, Vec<Diagnostic>>,
}

/// Where rules come from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loader {
    /// A folder of files.
    Folder,
    /// The cluster's `PortalClusterRule` objects.
    ClusterRules,
    /// The cluster's `PortalRule` objects.
    Rules,
}

/// What has become of a rule of the cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// The object that it is about.
    pub uid: String,
    /// The version of its spec.
    pub generation: i64,
    /// What has become of it.
    pub outcome: Outcome,
    /// Where it runs. Empty if that is not known.
    pub mode: Vec<Front>,
    /// The kinds that it judges, such as `apps/v1/Deployment`.
    pub active_on: Vec<String>,
    /// What may be a mistake although it compiles.
    pub warnings: Vec<Diagnostic>,
}

/// What has become of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It is in the set.
    Active,
    /// It says that it is switched off.
    Disabled,
    /// It cannot be used as it is.
    Refused(Vec<Diagnostic>),
    /// It names a kind that is not served, which may come.
    Waiting(Vec<Diagnostic>),
    /// It looks objects up that are not at hand yet. The version of it before, if there is one, is in force until they are.
    Syncing(Lack),
    /// Its namespace has as many older rules as it may have.
    OverQuota(usize),
    /// A file has a rule of the same name, and files come first.
    Shadowed(PathBuf),
}

impl Loader {
    /// The part that is well when the rules of this loader are in force.
    pub(crate) fn part(self) -> Part {
        match self {
            Loader::Folder => Part::Folder,
            Loader::ClusterRules => Part::ClusterRules,
            Loader::Rules => Part::Rules,
        }
    }
}
