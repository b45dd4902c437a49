//! Which other instances live. One that was renamed or removed must not leave its words in the status of rules for ever.
//!
//! An instance lives as long as its Lease is renewed, by our own clock: what its replicas write there is not compared with it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::run::lease_name;

/// How often the Leases of others are looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long a Lease may stay as it is before its instance counts as gone. Its replicas may all be restarting.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Instances {
    leases: Api<Lease>,
    own: String,
    others: HashMap<String, Other>,
    /// Those that were found to be gone the last time.
    gone: BTreeSet<String>,
    next: Instant,
}

/// What is known of another instance.
struct Other {
    /// Its Lease as it was seen last: holder and time of renewal, which are compared with nothing but themselves.
    lease: Option<Value>,
    /// When that changed.
    since: Instant,
}

impl Instances {
    pub(super) fn new(client: Client, namespace: &str, own: &str) -> Instances {
        let leases = Api::namespaced(client, namespace);
        Instances {
            leases,
            own: own.to_owned(),
            others: HashMap::new(),
            gone: BTreeSet::new(),
            next: Instant::now() + INTERVAL,
        }
    }

    /// Notes the instances that a status names.
    pub(super) fn note(&mut self, status: &Value) {
        let entries = status["instances"].as_array().into_iter().flatten();
        for name in entries.filter_map(|entry| entry["instance"].as_str()).filter(|name| *name != self.own) {
            if !self.others.contains_key(name) {
                self.others.insert(name.to_owned(), Other { lease: None, since: Instant::now() });
            }
        }
    }

    /// Whether an instance lives, as far as is known.
    pub(super) fn is_alive(&self, name: &str) -> bool {
        self.others.get(name).is_none_or(|other| other.since.elapsed() < PATIENCE)
    }

    /// Waits until another instance is found to be gone.
    pub(super) async fn look(&mut self) {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + INTERVAL;
            for (name, other) in &mut self.others {
                // An error says nothing about the instance.
                let Ok(lease) = self.leases.get_opt(&lease_name(name)).await else {
                    other.since = Instant::now();
                    continue;
                };
                let spec = lease.and_then(|lease| serde_json::to_value(lease.spec).ok());
                if spec != other.lease {
                    (other.lease, other.since) = (spec, Instant::now());
                }
            }
            let gone: BTreeSet<String> = self.others.keys().filter(|name| !self.is_alive(name)).cloned().collect();
            if gone != self.gone {
                self.gone = gone;
                return;
            }
        }
    }
}
