//! What each part of a process says about itself: `/readyz` is made of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::{error, info, warn};

use crate::metrics::{Label, Word};

/// What the parts say. Cheap to clone; every part writes its own line.
#[derive(Clone, Debug, Default)]
pub struct Health {
    parts: Arc<Mutex<BTreeMap<Part, State>>>,
}

/// A part of a process.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Part {
    /// The way to the API server.
    ApiServer,
    /// The kinds that the API server serves.
    Kinds,
    /// The watch of definitions, which tells when kinds come and go.
    Definitions,
    /// The watch of API services, which tells the same of kinds that other servers serve.
    ApiServices,
    /// The watch of `PortalClusterRule` objects.
    ClusterRules,
    /// The watch of `PortalRule` objects.
    Rules,
    /// The folder of rules.
    Folder,
    /// The Lease.
    Lease,
    /// The status of rules, which the holder of the Lease writes.
    Status,
    /// The watch of namespaces, for the bypass and for selectors.
    Namespaces,
    /// The listener of the webhook.
    Listener,
    /// The certificate that the webhook shows, and the authority that it knows its clients by.
    Certificate,
    /// The watch of the other replicas' addresses.
    Peers,
    /// The watch of the webhook configuration, which decides what is sent to the engine.
    Configuration,
    /// The objects that rules look up, at the start.
    Caches,
    /// The reports of what audit finds, which the holder of the Lease writes.
    Reports,
    /// The watch of a kind that comes and goes with the rules that need it, by the name of its resource: `pods.v1`,
    /// `deployments.v1.apps`.
    Watch(Arc<str>),
}

/// How a part is.
#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    /// It has not done yet what the process needs before it is ready, or can do it no more.
    Starting(Option<String>),
    Well,
    /// It was well, or the process can do without it, and something is wrong.
    Unwell(String),
    /// It ends, and whatever it still says changes nothing.
    Ending,
}

impl Health {
    /// Says that the process is not ready before this part is.
    pub fn expect(&self, part: &Part) {
        self.change(part, |_| State::Starting(None));
    }

    /// A part is well.
    pub fn well(&self, part: &Part) {
        if self.change(part, |_| State::Well) {
            info!(%part, "Part is well");
        }
    }

    /// A part has done what the process needs before it is ready. If it has a problem, it keeps it, and counts as unwell.
    pub fn loaded(&self, part: &Part) {
        let changed = self.change(part, |before| match before {
            Some(State::Starting(Some(problem)) | State::Unwell(problem)) => State::Unwell(problem.clone()),
            _ => State::Well,
        });
        if changed {
            info!(%part, "Part is loaded");
        }
    }

    /// The problem of a part is over. A part that is still starting goes on starting.
    pub fn recovered(&self, part: &Part) {
        let changed = self.change(part, |before| match before {
            Some(State::Starting(_)) => State::Starting(None),
            _ => State::Well,
        });
        if changed {
            info!(%part, "Part has recovered");
        }
    }

    /// Something is wrong with a part. If it was well once it stays ready: what it knows is still true as far as anyone
    /// can tell, and taking every replica out of service would help nobody.
    pub fn unwell(&self, part: &Part, problem: &str) {
        let changed = self.change(part, |before| match before {
            Some(State::Starting(_)) => State::Starting(Some(problem.to_owned())),
            _ => State::Unwell(problem.to_owned()),
        });
        if changed {
            warn!(%part, error = problem, "Part is not well");
        }
    }

    /// Something is wrong with a part without which the process cannot do what it is there for. It is not ready until the part is
    /// [well](Self::well) again.
    pub fn failed(&self, part: &Part, problem: &str) {
        if self.change(part, |_| State::Starting(Some(problem.to_owned()))) {
            error!(%part, error = problem, "Part has failed");
        }
    }

    /// A part ends, because the process is to end: it is not ready any more.
    pub fn ends(&self, part: &Part) {
        if self.change(part, |_| State::Ending) {
            info!(%part, "Part ends");
        }
    }

    /// A part is gone, and with it whatever it said.
    pub fn forget(&self, part: &Part) {
        self.states().remove(part);
    }

    /// Whether everything that is needed was well once.
    pub fn is_ready(&self) -> bool {
        !self.states().values().any(|state| matches!(state, State::Starting(_) | State::Ending))
    }

    /// Whether everything that is needed was well once, whether the process is to end by now or not.
    pub fn was_ready(&self) -> bool {
        !self.states().values().any(|state| matches!(state, State::Starting(_)))
    }

    /// Whether a part has done what the process needs before it is ready.
    pub fn is_loaded(&self, part: &Part) -> bool {
        !matches!(self.states().get(part), None | Some(State::Starting(_)))
    }

    /// Whether a part has nothing to complain about.
    pub fn is_well(&self, part: &Part) -> bool {
        self.states().get(part) == Some(&State::Well)
    }

    /// A line for each part, then the verdict.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (part, state) in self.states().iter() {
            let (mark, words) = match state {
                State::Starting(None) => ('-', "not there yet".to_owned()),
                State::Starting(Some(problem)) => ('-', problem.clone()),
                State::Ending => ('-', "it ends, because the process does".to_owned()),
                State::Well => ('+', "ok".to_owned()),
                State::Unwell(problem) => ('!', problem.clone()),
            };
            let _ = writeln!(text, "[{mark}]{part} {words}");
        }
        text.push_str(if self.is_ready() { "ready\n" } else { "not ready\n" });
        text
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<Part, State>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of a part. Returns whether it differs from the state before.
    fn change(&self, part: &Part, change: impl FnOnce(Option<&State>) -> State) -> bool {
        let mut parts = self.states();
        if parts.get(part) == Some(&State::Ending) {
            return false;
        }
        let state = change(parts.get(part));
        parts.insert(part.clone(), state.clone()) != Some(state)
    }
}

/// The label of what is counted per watch.
impl Label for Part {
    const NAME: &'static str = "watch";
    const WORDS: &'static [Word] = &[
        Word("cluster-rules", ""),
        Word("rules", ""),
        Word("definitions", ""),
        Word("api-services", ""),
        Word("namespaces", ""),
        Word("peers", "addresses of other replicas"),
        Word("webhook-configuration", ""),
    ];
    const IS_OPEN: bool = true;

    fn word(&self) -> &str {
        match self {
            Part::ApiServer => "api-server",
            Part::Kinds => "kinds",
            Part::Definitions => "definitions",
            Part::ApiServices => "api-services",
            Part::ClusterRules => "cluster-rules",
            Part::Rules => "rules",
            Part::Folder => "folder",
            Part::Lease => "lease",
            Part::Status => "status",
            Part::Namespaces => "namespaces",
            Part::Listener => "listener",
            Part::Certificate => "certificate",
            Part::Peers => "peers",
            Part::Configuration => "webhook-configuration",
            Part::Caches => "caches",
            Part::Reports => "reports",
            Part::Watch(resource) => resource,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Part::Watch(_) = self {
            f.write_str("watch ")?;
        }
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_every_part_that_is_needed_was_well_once() {
        let health = Health::default();
        assert!(health.is_ready());
        health.expect(&Part::Kinds);
        health.unwell(&Part::Kinds, "the API server does not answer");
        health.unwell(&Part::Status, "may not patch");
        assert!(!health.is_ready());
        assert_eq!(health.report(), "[-]kinds the API server does not answer\n[!]status may not patch\nnot ready\n");
        health.well(&Part::Kinds);
        health.unwell(&Part::Kinds, "gone for a minute");
        assert!(health.is_ready());
        assert_eq!(health.report(), "[!]kinds gone for a minute\n[!]status may not patch\nready\n");
    }

    #[test]
    fn a_part_that_has_failed_is_why_the_process_is_not_ready() {
        let health = Health::default();
        health.expect(&Part::Certificate);
        health.well(&Part::Certificate);
        health.failed(&Part::Certificate, "it has expired");
        assert_eq!(health.report(), "[-]certificate it has expired\nnot ready\n");
        health.well(&Part::Certificate);
        assert!(health.is_ready());
    }

    #[test]
    fn a_part_that_ends_is_never_well_again() {
        let health = Health::default();
        health.expect(&Part::Listener);
        health.well(&Part::Listener);
        health.ends(&Part::Listener);
        health.well(&Part::Listener);
        health.recovered(&Part::Listener);
        assert_eq!(health.report(), "[-]listener it ends, because the process does\nnot ready\n");
        assert!(health.was_ready() && !health.is_ready());
        health.expect(&Part::Rules);
        assert!(!health.was_ready());
    }

    #[test]
    fn a_part_that_comes_and_goes_leaves_nothing() {
        let health = Health::default();
        let pods = Part::Watch("pods".into());
        health.expect(&pods);
        health.unwell(&pods, "not allowed to list pods");
        assert_eq!(health.report(), "[-]watch pods not allowed to list pods\nnot ready\n");
        health.forget(&pods);
        assert_eq!(health.report(), "ready\n");
    }
}
