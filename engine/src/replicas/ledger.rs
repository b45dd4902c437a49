//! What replicas have counted and no status says yet.
//!
//! A replica's counters only grow, and the replica remembers how much of them a status says already. So a holder needs no memory: what
//! one holder has written, the next one does not write again, and what it has not, the next one does. What is lost is what a replica
//! that is killed has counted since it was last asked; what is counted twice is what a holder that is killed has written and not yet
//! told, at most the evaluations of a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portal_core::rule::source::RuleId;

use super::Evaluations;

/// What replicas have counted. A clone is the same ledger.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Replicas>>);

/// By the process of the replica.
type Replicas = HashMap<String, Replica>;

#[derive(Debug, Default)]
struct Replica {
    counted: HashMap<RuleId, Evaluations>,
    /// What the replica has to be told: its evaluations of rules whose status has been written since it was asked.
    owed: BTreeMap<RuleId, u64>,
}

/// Evaluations that are to be added to the status of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// How many.
    pub evaluations: u64,
    /// By which processes, each with its total.
    parts: Vec<(String, u64)>,
}

impl Ledger {
    /// Takes what a replica has counted. `told` is what it was told before it answered. Returns the rules of which there is more now.
    pub(super) fn take(
        &self,
        process: &str,
        counted: &BTreeMap<String, Evaluations>,
        told: &BTreeMap<String, u64>,
    ) -> Vec<RuleId> {
        let mut replicas = self.replicas();
        let replica = replicas.entry(process.to_owned()).or_default();
        for (rule, total) in told {
            let rule = RuleId::parse(rule);
            if replica.owed.get(&rule) == Some(total) {
                replica.owed.remove(&rule);
            }
        }
        replica.counted = counted.iter().map(|(rule, evaluations)| (RuleId::parse(rule), *evaluations)).collect();
        for (rule, total) in &replica.owed {
            if let Some(evaluations) = replica.counted.get_mut(rule) {
                evaluations.accounted = evaluations.accounted.max(*total);
            }
        }
        let more = replica.counted.iter().filter(|(_, evaluations)| evaluations.total > evaluations.accounted);
        more.map(|(rule, _)| rule.clone()).collect()
    }

    /// What a replica has to be told.
    pub(super) fn owed(&self, process: &str) -> BTreeMap<String, u64> {
        let replicas = self.replicas();
        let owed = replicas.get(process).into_iter().flat_map(|replica| &replica.owed);
        owed.map(|(rule, total)| (rule.to_string(), *total)).collect()
    }

    /// Forgets the replicas that are gone.
    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.replicas().retain(|process, _| is_there(process));
    }

    /// What is to be added to the status of a rule, if anything is.
    pub fn claim(&self, rule: &RuleId) -> Option<Claim> {
        let (mut evaluations, mut parts) = (0, Vec::new());
        for (process, replica) in self.replicas().iter() {
            if let Some(Evaluations { total, accounted }) = replica.counted.get(rule)
                && total > accounted
            {
                evaluations += total - accounted;
                parts.push((process.clone(), *total));
            }
        }
        (evaluations > 0).then_some(Claim { evaluations, parts })
    }

    /// The status of a rule says what was claimed.
    pub fn settle(&self, rule: &RuleId, claim: &Claim) {
        let mut replicas = self.replicas();
        for (process, total) in &claim.parts {
            let Some(replica) = replicas.get_mut(process) else { continue };
            if let Some(evaluations) = replica.counted.get_mut(rule) {
                evaluations.accounted = evaluations.accounted.max(*total);
            }
            let owed = replica.owed.entry(rule.clone()).or_default();
            *owed = (*owed).max(*total);
        }
    }

    fn replicas(&self) -> MutexGuard<'_, Replicas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(total: u64, accounted: u64) -> BTreeMap<String, Evaluations> {
        [("shop/a".to_owned(), Evaluations { total, accounted })].into()
    }

    #[test]
    fn what_is_written_is_told_and_never_written_again() {
        let (ledger, rule, nothing) = (Ledger::default(), RuleId::parse("shop/a"), BTreeMap::new());
        assert_eq!(ledger.claim(&rule), None);
        assert_eq!(ledger.take("p", &counted(10, 4), &nothing), std::slice::from_ref(&rule));
        ledger.take("q", &counted(3, 0), &nothing);
        let claim = ledger.claim(&rule).unwrap();
        assert_eq!(claim.evaluations, 9);
        // They go on counting while the status is written.
        ledger.take("p", &counted(12, 4), &nothing);
        ledger.settle(&rule, &claim);
        assert_eq!(ledger.claim(&rule).unwrap().evaluations, 2);
        // Until a replica has been told, it repeats what it knew.
        let owed = ledger.owed("p");
        assert_eq!(owed, [("shop/a".to_owned(), 10)].into());
        ledger.take("p", &counted(12, 4), &nothing);
        assert_eq!(ledger.claim(&rule).unwrap().evaluations, 2);
        ledger.take("p", &counted(12, 10), &owed);
        assert_eq!((ledger.owed("p"), ledger.claim(&rule).unwrap().evaluations), (BTreeMap::new(), 2));
        // Who is gone takes along what it counted since.
        ledger.retain(|process| process == "q");
        assert_eq!(ledger.claim(&rule), None);
        // What was claimed of it is of no interest any more.
        ledger.settle(&rule, &claim);
        assert_eq!(ledger.owed("p"), BTreeMap::new());
    }
}
