//! The replicas of an instance, as one of them sees the others.
//!
//! ```text
//! every replica:  rules in force, those that lack something, tallies, outcomes ─→ State, at /state, for whoever shows a token of the
//!                 instance's account
//! the holder:     addresses ─→ asks each ─┬→ View: which replica runs which version of which rule, and why not
//!                                         ├→ Ledger: evaluations that no status says yet
//!                                         └→ audit: what was let in by rules that it never asks
//! ```
//!
//! Nothing is pushed and nobody waits: a replica that does not answer costs the holder a line in a condition, and a request nothing.

pub mod ask;
pub mod follow;
pub mod lacks;
pub mod ledger;
pub mod peers;
pub mod serve;
pub mod tokens;
pub mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::lacks::LacksTold;
use crate::outcomes::Told;

/// What the holder of the Lease asks a replica.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Question {
    /// The fingerprint of the rules that the holder knows the replica to run. If it runs others it names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The process that is meant. Another one that has taken its place has not counted what comes below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// How many of the replica's evaluations the status of rules says, for those rules whose status was written since the last time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounted: BTreeMap<String, u64>,
    /// The number of the first outcome that the holder does not know, if it wants to know of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<u64>,
    /// The number of what the holder knows to keep rules of this process from being asked, 0 if it knows nothing yet. If something else does
    /// by now, the replica tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<u64>,
}

/// What a replica says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Which process it is. A replica that was started again is another one, and has counted nothing yet.
    pub process: String,
    /// The name of the replica.
    pub identity: String,
    /// Whether it judges requests.
    pub ready: bool,
    /// What tells its rules from others.
    pub fingerprint: String,
    /// The versions of its rules by their names, unless the holder knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeMap<String, String>>,
    /// The rules that it has evaluated more often than their status says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluations: BTreeMap<String, Evaluations>,
    /// What it has let in, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Told>,
    /// What keeps rules from being asked here, if that was asked and the holder does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<LacksTold>,
}

/// How often a replica has evaluated a rule since it was started.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Evaluations {
    /// In all.
    pub total: u64,
    /// As the status of the rule says.
    pub accounted: u64,
}

/// The path at which a replica says how it is.
pub const STATE_PATH: &str = "/state";
