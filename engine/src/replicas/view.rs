//! Which replica runs which version of which rule, as far as the holder knows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use portal_core::rule::source::RuleId;

use super::lacks::Lacking;

/// What is known of the other replicas. Empty in a replica that does not hold the Lease, or has nobody beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// By their addresses.
    pub(super) replicas: BTreeMap<String, Replica>,
}

/// Another replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Replica {
    /// Its name, once it has said it.
    pub(super) identity: Option<String>,
    /// Whether it judges requests.
    pub(super) is_ready: bool,
    pub(super) fingerprint: Option<String>,
    /// The versions of its rules, as it last said. What it ran when it last answered it still runs.
    pub(super) rules: Arc<HashMap<RuleId, String>>,
    /// What keeps rules from being asked there, as it last said.
    pub(super) lacks: Arc<HashMap<RuleId, Lacking>>,
    /// Why it did not answer, if it did not.
    pub(super) problem: Option<String>,
}

/// Where a version of a rule is not in force, or not known to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Whether the replica has said so itself. One that does not answer may run it.
    pub is_certain: bool,
    /// In a word, for machines.
    pub reason: &'static str,
    /// In words.
    pub text: String,
}

impl View {
    /// Why a version of a rule is not in force everywhere, if it is not.
    pub fn gap(&self, rule: &RuleId, version: &str) -> Option<Gap> {
        let lags = |(_, replica): &(&String, &Replica)| {
            replica.is_ready && replica.rules.get(rule).map(String::as_str) != Some(version)
        };
        let lack = |replica: &Replica| replica.lacks.get(rule).filter(|lacking| lacking.is_of(version)).cloned();
        // Of those that say so themselves, first the one that waits for somebody.
        let urgency = |replica: &Replica| {
            let lack = lack(replica);
            let is_refused = lack.as_ref().is_some_and(|lacking| lacking.refusal.is_some());
            (replica.problem.is_some(), !is_refused, lack.is_none())
        };
        let lagging = self.replicas.iter().filter(lags).min_by_key(|(_, replica)| urgency(replica));
        let (address, replica) = lagging?;
        let name = replica.identity.as_ref().unwrap_or(address);
        let until = "until then the version of the rule before this one is in force there, if there was one";
        let (reason, text) = match (&replica.problem, lack(replica)) {
            (Some(problem), _) => {
                ("NotEverywhere", format!("replica {name} is not known to run this version of the rule: {problem}"))
            }
            (None, Some(Lacking { plurals, refusal: Some(refusal), .. })) => {
                let plurals = plurals.join(", ");
                ("PermissionPending", format!("replica {name}: the rule looks up {plurals}: {refusal}; {until}"))
            }
            (None, Some(Lacking { plurals, refusal: None, .. })) => {
                let plurals = plurals.join(", ");
                let text = format!("replica {name}: the rule looks up {plurals}, which are being listed; {until}");
                ("CacheSyncing", text)
            }
            (None, None) => ("NotEverywhere", format!("replica {name} does not run this version of the rule yet")),
        };
        Some(Gap { is_certain: replica.problem.is_none(), reason, text })
    }

    /// Whether no replica beside the holder judges requests, as far as is known.
    pub fn is_empty(&self) -> bool {
        !self.replicas.values().any(|replica| replica.is_ready)
    }

    /// Whether some replica runs other rules than those of this fingerprint.
    pub(super) fn differs(&self, fingerprint: &str) -> bool {
        let differs = |replica: &Replica| replica.is_ready && replica.fingerprint.as_deref() != Some(fingerprint);
        self.replicas.values().any(differs)
    }

    /// The rules about which the other view may say something else. None if that may be all.
    pub fn changed(&self, other: &View) -> Option<BTreeSet<RuleId>> {
        let ready = |view: &View| -> BTreeSet<String> {
            view.replicas.iter().filter(|(_, replica)| replica.is_ready).map(|(address, _)| address.clone()).collect()
        };
        if ready(self) != ready(other) {
            return None;
        }
        let mut changed = BTreeSet::new();
        for (address, replica) in self.replicas.iter().filter(|(_, replica)| replica.is_ready) {
            let Some(other) = other.replicas.get(address) else { continue };
            if replica.problem != other.problem {
                // Words about a replica that lags name its problem.
                return None;
            }
            changed.extend(differing(&replica.rules, &other.rules));
            changed.extend(differing(&replica.lacks, &other.lacks));
        }
        Some(changed)
    }
}

/// The rules of which two replies do not say the same.
fn differing<T: PartialEq>(one: &Arc<HashMap<RuleId, T>>, other: &Arc<HashMap<RuleId, T>>) -> Vec<RuleId> {
    if Arc::ptr_eq(one, other) {
        return Vec::new();
    }
    let differ = [(one, other), (other, one)].into_iter().flat_map(|(one, other)| {
        let differ = one.iter().filter(|(rule, said)| other.get(*rule) != Some(said));
        differ.map(|(rule, _)| rule.clone())
    });
    differ.collect()
}

impl Replica {
    /// Takes the versions of its rules, as it names them.
    pub(super) fn runs(&mut self, rules: BTreeMap<String, String>) {
        self.rules = Arc::new(rules.into_iter().map(|(rule, version)| (RuleId::parse(&rule), version)).collect());
    }

    /// Takes what keeps rules from being asked there.
    pub(super) fn lacks(&mut self, rules: BTreeMap<String, Lacking>) {
        self.lacks = Arc::new(rules.into_iter().map(|(rule, lacking)| (RuleId::parse(&rule), lacking)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(rules: &[(&str, &str)]) -> Replica {
        let mut replica = Replica { is_ready: true, fingerprint: Some("f".to_owned()), ..Replica::default() };
        replica.runs(rules.iter().map(|(rule, version)| (rule.to_string(), version.to_string())).collect());
        replica
    }

    fn view(replicas: Vec<(&str, Replica)>) -> View {
        View { replicas: replicas.into_iter().map(|(name, replica)| (name.to_owned(), replica)).collect() }
    }

    #[test]
    fn a_rule_is_everywhere_when_every_replica_that_is_ready_runs_it() {
        let (rule, other) = (RuleId::parse("a"), RuleId::parse("shop/b"));
        assert_eq!(View::default().gap(&rule, "1"), None);
        let starts = Replica { is_ready: false, ..replica(&[]) };
        let seen = view(vec![("x", replica(&[("a", "1"), ("shop/b", "1")])), ("y", starts)]);
        assert_eq!((seen.gap(&rule, "1"), seen.gap(&other, "1")), (None, None));
        let text = "replica x does not run this version of the rule yet".to_owned();
        assert_eq!(seen.gap(&rule, "2"), Some(Gap { is_certain: true, reason: "NotEverywhere", text }));
        let gone = Replica {
            identity: Some("pod-1".to_owned()),
            problem: Some("no answer".to_owned()),
            ..replica(&[("a", "1")])
        };
        let seen = view(vec![("x", gone)]);
        // What it ran it still runs, as far as anybody knows.
        assert_eq!(seen.gap(&rule, "1"), None);
        let text = "replica pod-1 is not known to run this version of the rule: no answer".to_owned();
        assert_eq!(seen.gap(&rule, "2"), Some(Gap { is_certain: false, reason: "NotEverywhere", text }));
    }

    #[test]
    fn a_replica_that_lacks_what_a_rule_looks_up_says_why_it_does_not_run_it() {
        let rule = RuleId::parse("a");
        let lacks = |generation, refusal: Option<&str>| {
            let mut replica = replica(&[("a", "u/1")]);
            let lacking = Lacking {
                uid: "u".to_owned(),
                generation,
                plurals: vec!["services".to_owned()],
                refusal: refusal.map(str::to_owned),
            };
            replica.lacks([("a".to_owned(), lacking)].into());
            replica
        };
        let told = |replicas, version: &str| {
            let gap = view(replicas).gap(&rule, version).unwrap();
            assert!(gap.is_certain);
            format!("{} {}", gap.reason, gap.text.split(';').next().unwrap())
        };
        let refused = || ("z", lacks(2, Some("services is forbidden")));
        let says = "PermissionPending replica z: the rule looks up services: services is forbidden";
        assert_eq!(told(vec![refused()], "u/2"), says);
        // Whoever waits for somebody is told of first.
        assert_eq!(told(vec![("x", replica(&[])), ("y", lacks(2, None)), refused()], "u/2/category"), says);
        let listed = "CacheSyncing replica y: the rule looks up services, which are being listed";
        assert_eq!(told(vec![("x", replica(&[])), ("y", lacks(2, None))], "u/2"), listed);
        // It was said of another version.
        let yet = "NotEverywhere replica z does not run this version of the rule yet";
        assert_eq!(told(vec![refused()], "u/3"), yet);
        assert_eq!(view(vec![refused()]).gap(&rule, "u/1"), None);
        let (before, after) = (view(vec![("z", lacks(2, None))]), view(vec![refused()]));
        assert_eq!(before.changed(&after), Some([rule.clone()].into()));
        assert_eq!((View::default().is_empty(), after.is_empty()), (true, false));
    }

    #[test]
    fn only_what_changed_is_looked_at_again() {
        let before = view(vec![("x", replica(&[("a", "1"), ("b", "1")]))]);
        assert_eq!(before.changed(&before.clone()), Some(BTreeSet::new()));
        let after = view(vec![("x", replica(&[("a", "2"), ("c", "1")]))]);
        assert_eq!(before.changed(&after), Some([RuleId::parse("a"), RuleId::parse("b"), RuleId::parse("c")].into()));
        let more = view(vec![("x", replica(&[])), ("y", replica(&[]))]);
        assert_eq!(before.changed(&more), None);
        assert!(before.differs("g") && !before.differs("f"));
    }
}
