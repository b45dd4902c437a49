//! Which other instances live. One that was renamed or removed must not leave its words in the status of rules for ever.
//!
//! An instance lives as long as we see its Lease change, by our own clock: the times in the Lease are not compared with it. That
//! it is gone is known only from looking at its Lease for a while. An entry that does not say where its Lease is stays.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use portal_cluster::{
    holder::Holder,
    names::{engine_lease, is_name},
    rules::status::entries,
};
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// How often the Leases of others are looked at, and how long an answer may take.
const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a Lease may stay as it is before its instance counts as gone. Its replicas may all be restarting.
const PATIENCE: Duration = Duration::from_secs(60);

/// An instance: its name, and the namespace of its Lease.
type Instance = (String, String);

/// The other instances that the status of rules names.
#[derive(Debug)]
pub(super) struct Instances {
    own: String,
    /// How many rules name them.
    named: HashMap<Instance, usize>,
    names: watch::Sender<BTreeSet<Instance>>,
    gone: watch::Sender<BTreeSet<Instance>>,
    gone_in: watch::Receiver<BTreeSet<Instance>>,
}

/// Looks at their Leases.
pub(super) struct Lookout {
    client: Client,
    holder: Holder,
    names: watch::Receiver<BTreeSet<Instance>>,
    gone: watch::Sender<BTreeSet<Instance>>,
}

/// What is known of the Leases of others, in one term of our own.
#[derive(Debug, Default)]
struct Leases(HashMap<Instance, Known>);

#[derive(Debug)]
struct Known {
    /// What the Lease said. It is only compared with what the same Lease says later.
    lease: Option<Value>,
    /// When that changed.
    since: Instant,
}

impl Instances {
    pub(super) fn new(own: &str) -> Instances {
        let (gone, gone_in) = watch::channel(BTreeSet::new());
        Instances { own: own.to_owned(), named: HashMap::new(), names: watch::Sender::default(), gone, gone_in }
    }

    /// Makes the lookout, which finds out which of them are gone.
    pub(super) fn lookout(&self, client: Client, holder: Holder) -> Lookout {
        Lookout { client, holder, names: self.names.subscribe(), gone: self.gone.clone() }
    }

    /// Notes the instances that the status of a rule names, instead of those that it named before.
    pub(super) fn note(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let named = |status: Option<&Value>| {
            let others = status.into_iter().flat_map(entries).filter_map(instance);
            others.filter(|(name, _)| *name != self.own).collect::<BTreeSet<_>>()
        };
        let (before, after) = (named(before), named(after));
        for instance in after.difference(&before) {
            *self.named.entry(instance.clone()).or_default() += 1;
        }
        for instance in before.difference(&after) {
            if let Some(count) = self.named.get_mut(instance) {
                *count -= 1;
            }
        }
        if before != after {
            self.named.retain(|_, count| *count > 0);
            self.names.send_if_modified(|names| {
                let is_same = names.len() == self.named.len() && names.iter().all(|name| self.named.contains_key(name));
                if !is_same {
                    *names = self.named.keys().cloned().collect();
                }
                !is_same
            });
        }
    }

    /// Whether the instance of an entry lives, as far as is known.
    pub(super) fn is_alive(&self, entry: &Value) -> bool {
        instance(entry).is_none_or(|instance| !self.gone_in.borrow().contains(&instance))
    }

    /// Waits until an instance is found to be gone, or to be there again.
    pub(super) async fn changed(&mut self) {
        // The sender is ours, so it is there.
        let _ = self.gone_in.changed().await;
    }
}

fn instance(entry: &Value) -> Option<Instance> {
    Some((entry["instance"].as_str()?.to_owned(), entry["namespace"].as_str()?.to_owned()))
}

impl Lookout {
    /// Looks at the Leases again and again, whenever this replica holds its own. Never returns.
    pub(super) async fn look(self) {
        let mut leases = Leases::default();
        let mut term = None;
        loop {
            if self.holder.term() != term {
                // What was seen before says nothing about the time in which nobody looked.
                leases = Leases::default();
                term = self.holder.term();
            }
            let names = self.names.borrow().clone();
            leases.0.retain(|name, _| names.contains(name));
            if term.is_some() {
                for name in names {
                    if let Some(lease) = self.lease(&name).await {
                        leases.see(name, lease);
                    } else {
                        // An error says nothing about the instance.
                        leases.0.remove(&name);
                    }
                }
            }
            let gone = leases.gone();
            self.gone.send_if_modified(|before| {
                let is_changed = *before != gone;
                *before = gone;
                is_changed
            });
            sleep(INTERVAL).await;
        }
    }

    /// The Lease of an instance, if the API server says whether there is one.
    async fn lease(&self, (name, namespace): &Instance) -> Option<Option<Value>> {
        if !is_name(name) || !is_name(namespace) {
            // No instance can have such a name, so that there is no Lease.
            return Some(None);
        }
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let lease = timeout(TIMEOUT, leases.get_opt(&engine_lease(name))).await.ok()?.ok()?;
        Some(lease.and_then(|lease| serde_json::to_value(lease.spec).ok()))
    }
}

impl Leases {
    fn see(&mut self, name: Instance, lease: Option<Value>) {
        let now = Instant::now();
        let known = self.0.entry(name).or_insert_with(|| Known { lease: lease.clone(), since: now });
        if known.lease != lease {
            *known = Known { lease, since: now };
        }
    }

    fn gone(&self) -> BTreeSet<Instance> {
        let gone = self.0.iter().filter(|(_, known)| known.since.elapsed() >= PATIENCE);
        gone.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(name: &str) -> Instance {
        (name.to_owned(), "portal-system".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_lease_that_was_looked_at_and_stood_still_is_gone() {
        let mut leases = Leases::default();
        for second in 0..12 {
            leases.see(instance("still"), Some(json!("renewed once")));
            leases.see(instance("missing"), None);
            leases.see(instance("alive"), Some(json!(second)));
            tokio::time::advance(INTERVAL).await;
            let expected = if second < 5 { vec![] } else { vec![instance("missing"), instance("still")] };
            assert_eq!(leases.gone().into_iter().collect::<Vec<_>>(), expected, "{second}");
        }
        leases.see(instance("still"), Some(json!("renewed again")));
        assert_eq!(leases.gone().into_iter().collect::<Vec<_>>(), [instance("missing")]);
    }

    #[test]
    fn names_are_those_of_the_rules_that_are_known() {
        let mut instances = Instances::new("own");
        let named = instances.names.subscribe();
        instances.gone.send_replace(BTreeSet::from([instance("gone")]));
        let status = |names: &[&str]| {
            let entries = names.iter().map(|name| json!({ "instance": name, "namespace": "portal-system" }));
            json!({ "instances": entries.collect::<Vec<_>>() })
        };
        let (one, two) = (status(&["own", "a"]), status(&["a", "b"]));
        instances.note(None, Some(&one));
        instances.note(None, Some(&two));
        assert_eq!(*named.borrow(), BTreeSet::from([instance("a"), instance("b")]));
        instances.note(Some(&two), None);
        assert_eq!(*named.borrow(), BTreeSet::from([instance("a")]));
        instances.note(Some(&one), Some(&json!(null)));
        assert_eq!(*named.borrow(), BTreeSet::new());
        assert!(!instances.is_alive(&json!({ "instance": "gone", "namespace": "portal-system" })));
        assert!(instances.is_alive(&json!({ "instance": "gone", "namespace": "elsewhere" })));
        assert!(instances.is_alive(&json!({ "instance": "gone" })));
    }
}
