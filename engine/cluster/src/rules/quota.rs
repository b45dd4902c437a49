//! How many rules a namespace may have. Whoever may write rules in a namespace could otherwise make every engine compile and hold as
//! many as they like. The oldest ones stay, so that nobody loses a rule to somebody else's new one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use portal_core::rule::source::RuleId;

/// How many rules a namespace has in the cluster, by its name. Those without any are not in it.
pub type Population = HashMap<String, usize>;

/// How many rules a namespace may have, unless an engine is told otherwise.
pub const RULES_PER_NAMESPACE: usize = 100;

/// The rules of namespaces, by their age.
#[derive(Debug)]
pub struct Quota {
    most: usize,
    /// When each rule was created, as the API server writes it, and its name: of rules of one second the first by name counts as
    /// older.
    by_age: HashMap<String, BTreeSet<(String, String)>>,
    population: Arc<Population>,
}

impl Quota {
    /// A quota of so many rules for each namespace.
    pub fn new(most: usize) -> Quota {
        Quota { most, by_age: HashMap::new(), population: Arc::default() }
    }

    /// How many rules a namespace may have.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How many there are.
    pub(super) fn population(&self) -> &Arc<Population> {
        &self.population
    }

    /// Takes another time of creation of a rule, or none if it is gone. Returns the other rules for which that makes a difference.
    pub fn change(&mut self, id: &RuleId, before: Option<&str>, after: Option<&str>) -> Vec<RuleId> {
        let Some(namespace) = id.namespace.as_ref().filter(|_| before != after) else { return Vec::new() };
        let rules = self.by_age.entry(namespace.clone()).or_default();
        let youngest = |rules: &BTreeSet<(String, String)>| rules.iter().nth(self.most.wrapping_sub(1)).cloned();
        let youngest_before = youngest(rules);
        if let Some(created) = before {
            rules.remove(&(created.to_owned(), id.name.clone()));
        }
        if let Some(created) = after {
            rules.insert((created.to_owned(), id.name.clone()));
        }
        let youngest_after = youngest(rules);
        let count = rules.len();
        let population = Arc::make_mut(&mut self.population);
        if count == 0 {
            self.by_age.remove(namespace);
            population.remove(namespace);
        } else {
            population.insert(namespace.clone(), count);
        }
        if youngest_before == youngest_after {
            return Vec::new();
        }
        let others = youngest_before.into_iter().chain(youngest_after).map(|(_, name)| name);
        others.map(|name| RuleId { namespace: Some(namespace.clone()), name }).collect()
    }

    /// Whether a rule is one too many.
    pub fn is_over(&self, id: &RuleId, created: &str) -> bool {
        let rules = id.namespace.as_ref().and_then(|namespace| self.by_age.get(namespace));
        let Some(rules) = rules.filter(|rules| rules.len() > self.most) else { return false };
        !rules.iter().take(self.most).any(|(other, name)| other == created && *name == id.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> RuleId {
        RuleId { namespace: Some("shop".to_owned()), name: name.to_owned() }
    }

    #[test]
    fn the_oldest_rules_of_a_namespace_stay() {
        let mut quota = Quota::new(2);
        assert_eq!(quota.change(&id("b"), None, Some("12:00")), []);
        quota.change(&id("c"), None, Some("12:01"));
        assert!(!quota.is_over(&id("c"), "12:01"));
        // A younger one changes nothing for the others.
        assert_eq!(quota.change(&id("d"), None, Some("12:02")), []);
        assert!(quota.is_over(&id("d"), "12:02") && !quota.is_over(&id("c"), "12:01"));
        // An older one, such as by a list that comes in another order, takes the place of the youngest.
        let touched = quota.change(&id("a"), None, Some("12:00"));
        assert_eq!(touched, [id("c"), id("b")]);
        assert!(quota.is_over(&id("c"), "12:01") && !quota.is_over(&id("b"), "12:00"));
        assert_eq!(quota.population()["shop"], 4);
        // Another namespace has its own.
        let other = RuleId { namespace: Some("bank".to_owned()), name: "z".to_owned() };
        assert_eq!(quota.change(&other, None, Some("12:09")), []);
        assert!(!quota.is_over(&other, "12:09"));
        // One goes, and the next comes in.
        assert_eq!(quota.change(&id("a"), Some("12:00"), None), [id("b"), id("c")]);
        assert!(!quota.is_over(&id("c"), "12:01") && quota.is_over(&id("d"), "12:02"));
        for (name, created) in [("b", "12:00"), ("c", "12:01"), ("d", "12:02")] {
            quota.change(&id(name), Some(created), None);
        }
        assert_eq!(quota.population().get("shop"), None);
    }

    #[test]
    fn rules_of_the_cluster_are_not_counted() {
        let mut quota = Quota::new(0);
        let id = RuleId { namespace: None, name: "a".to_owned() };
        assert_eq!(quota.change(&id, None, Some("12:00")), []);
        assert!(!quota.is_over(&id, "12:00"));
    }
}
