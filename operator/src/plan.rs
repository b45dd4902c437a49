//! What is to be done, in order, each step one request.

use jiff::Timestamp;
use portal_crds::PortalInstanceStatus;

use crate::certificates::Action;
use crate::object::{Key, Kind, Object};

/// What is to be done for an instance now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The steps, in order. Whoever does them stops at the first that fails.
    pub steps: Vec<Step>,
    /// When to plan again although nothing is known to have changed.
    pub look_again: Option<Timestamp>,
    /// Whether a step that has failed waits for its time, with what would come after it. If not, nobody has to do it any more.
    pub is_held_up: bool,
}

/// One request to the API server.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes the status of the instance.
    Status(Box<PortalInstanceStatus>),
    /// Adds the finalizer to the instance, or removes it.
    Keep(bool),
    /// Applies a child: what it says is so, what others have added stays.
    Apply(Object),
    /// Makes an object that is not there.
    Create(Object),
    /// Replaces an object as a whole, if it still is the version that was seen. What others have added goes.
    Replace(Object),
    /// Deletes the object that was seen, and no other one of its name.
    Delete(Key, String),
    /// Reads an object that no watch shows. A watch may be behind, and what depends on it that an object is gone cannot be.
    Look(Key),
    /// Makes keys and certificates, and writes one of the two Secrets.
    Certificate(Action),
    /// Asks the API server whether it reaches the engine. Nothing is stored.
    Probe,
}

/// What a step that writes the status is about.
pub const STATUS: &str = "the status";

impl Step {
    /// Which object the step writes, for people and for the memory of what failed.
    pub fn subject(&self) -> String {
        match self {
            Step::Status(_) => STATUS.to_owned(),
            Step::Keep(_) => "the finalizer".to_owned(),
            Step::Apply(object) | Step::Create(object) | Step::Replace(object) => object.key.to_string(),
            Step::Delete(key, _) | Step::Look(key) => key.to_string(),
            Step::Certificate(_) => "the certificates".to_owned(),
            Step::Probe => "the probe".to_owned(),
        }
    }

    /// Whether the step is about what somebody may do.
    pub fn grants(&self) -> bool {
        match self {
            Step::Create(object) | Step::Replace(object) => matches!(object.key.kind, Kind::ClusterRole | Kind::Role),
            _ => false,
        }
    }

    /// Whether the step changes what is stored.
    pub fn is_write(&self) -> bool {
        !matches!(self, Step::Probe | Step::Look(_))
    }
}
