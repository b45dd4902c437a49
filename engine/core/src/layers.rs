//! The parts of the engine that an instance switches on or off.

use crate::event::Front;

/// Which parts of an engine are on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Layers {
    /// Judges requests.
    pub admission: bool,
    /// Judges what is in the cluster.
    pub audit: bool,
    /// Judges who may talk to whom.
    pub network: bool,
    /// Changes the cluster when a rule says so.
    pub actions: bool,
}

impl Layers {
    /// Everything is on.
    pub const ALL: Layers = Layers { admission: true, audit: true, network: true, actions: true };

    /// What one of both has.
    pub fn with(self, other: Layers) -> Layers {
        Layers {
            admission: self.admission || other.admission,
            audit: self.audit || other.audit,
            network: self.network || other.network,
            actions: self.actions || other.actions,
        }
    }

    /// Whether a loop runs.
    pub fn run(self, front: Front) -> bool {
        match front {
            Front::Admission => self.admission,
            Front::Audit => self.audit,
            Front::Network => self.network,
        }
    }
}
