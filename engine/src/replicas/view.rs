//! Which replica runs which version of which rule, as far as the holder knows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use portal_core::rule::source::RuleId;

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
    /// Why it did not answer, if it did not.
    pub(super) problem: Option<String>,
}

/// Where a version of a rule is not in force, or not known to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// Whether the replica has said so itself. One that does not answer may run it.
    pub is_certain: bool,
    /// In words.
    pub text: String,
}

impl View {
    /// Why a version of a rule is not in force everywhere, if it is not.
    pub fn gap(&self, rule: &RuleId, version: &str) -> Option<Gap> {
        let lags = |(_, replica): &(&String, &Replica)| {
            replica.is_ready && replica.rules.get(rule).map(String::as_str) != Some(version)
        };
        let lagging: Vec<_> = self.replicas.iter().filter(lags).collect();
        let certain = lagging.iter().find(|(_, replica)| replica.problem.is_none());
        let (address, replica) = certain.or(lagging.first())?;
        let name = replica.identity.as_ref().unwrap_or(address);
        let text = match &replica.problem {
            Some(problem) => format!("replica {name} is not known to run this version of the rule: {problem}"),
            None => format!("replica {name} does not run this version of the rule yet"),
        };
        Some(Gap { is_certain: replica.problem.is_none(), text })
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
            if Arc::ptr_eq(&replica.rules, &other.rules) {
                continue;
            }
            for (one, another) in [(&replica.rules, &other.rules), (&other.rules, &replica.rules)] {
                let differ = one.iter().filter(|(rule, version)| another.get(*rule) != Some(version));
                changed.extend(differ.map(|(rule, _)| rule.clone()));
            }
        }
        Some(changed)
    }
}

impl Replica {
    /// Takes the versions of its rules, as it names them.
    pub(super) fn runs(&mut self, rules: BTreeMap<String, String>) {
        self.rules = Arc::new(rules.into_iter().map(|(rule, version)| (RuleId::parse(&rule), version)).collect());
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
        assert_eq!(seen.gap(&rule, "2"), Some(Gap { is_certain: true, text }));
        let gone = Replica {
            identity: Some("pod-1".to_owned()),
            problem: Some("no answer".to_owned()),
            ..replica(&[("a", "1")])
        };
        let seen = view(vec![("x", gone)]);
        // What it ran it still runs, as far as anybody knows.
        assert_eq!(seen.gap(&rule, "1"), None);
        let text = "replica pod-1 is not known to run this version of the rule: no answer".to_owned();
        assert_eq!(seen.gap(&rule, "2"), Some(Gap { is_certain: false, text }));
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
