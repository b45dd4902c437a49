//! The rules that a replica would run if what they look up were at hand. In split mode the holder runs none of the rules that admission
//! alone asks: without this it could tell that a rule is not in force, and not why.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portal_cluster::rules::{Outcome, Report, feeds::Lack};
use portal_core::rule::source::{RuleId, is_version_of};
use serde::{Deserialize, Serialize};

/// What keeps rules of the cluster from being asked in a replica, shared. A clone knows the same.
#[derive(Clone, Debug, Default)]
pub struct Lacks(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    /// Grows with every change.
    number: u64,
    rules: BTreeMap<RuleId, Lacking>,
}

/// What keeps a version of a rule from being asked.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lacking {
    /// The object that is the rule.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// What is not at hand.
    pub plurals: Vec<String>,
    /// Why the API server does not tell, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// What a replica tells of all such rules.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LacksTold {
    /// What tells this from what was told before.
    pub number: u64,
    /// The rules, by their names.
    pub rules: BTreeMap<String, Lacking>,
}

impl Lacks {
    /// Takes what has become of a rule, or that it is gone.
    pub fn hear(&self, id: &RuleId, report: Option<&Report>) {
        let lacking = report.and_then(|report| match &report.outcome {
            Outcome::Syncing(Lack { plurals, refusal }) => Some(Lacking {
                uid: report.uid.clone(),
                generation: report.generation,
                plurals: plurals.clone(),
                refusal: refusal.clone(),
            }),
            _ => None,
        });
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if contents.rules.get(id) == lacking.as_ref() {
            return;
        }
        match lacking {
            Some(lacking) => contents.rules.insert(id.clone(), lacking),
            None => contents.rules.remove(id),
        };
        contents.number += 1;
    }

    /// What there is to tell to somebody who knows what had this number. Nothing if they know it all.
    pub fn told(&self, known: Option<u64>) -> Option<LacksTold> {
        let contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = || contents.rules.iter().map(|(id, lacking)| (id.to_string(), lacking.clone())).collect();
        (known != Some(contents.number)).then(|| LacksTold { number: contents.number, rules: rules() })
    }
}

impl Lacking {
    /// Whether it is about this version of the rule.
    pub(super) fn is_of(&self, version: &str) -> bool {
        is_version_of(version, &self.uid, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replica_lacks_is_told_once_and_again_when_it_is_something_else() {
        let report = |generation, outcome| Report {
            uid: "u".to_owned(),
            generation,
            outcome,
            mode: Vec::new(),
            active_on: Vec::new(),
            warnings: Vec::new(),
        };
        let lack = |refusal: Option<&str>| {
            let plurals = vec!["services".to_owned()];
            Outcome::Syncing(Lack { plurals, refusal: refusal.map(str::to_owned) })
        };
        let (lacks, rule) = (Lacks::default(), RuleId::parse("shop/a"));
        // Who knows nothing is told that there is nothing.
        assert_eq!(lacks.told(None), Some(LacksTold::default()));
        assert_eq!(lacks.told(Some(0)), None);
        lacks.hear(&rule, Some(&report(1, lack(None))));
        lacks.hear(&rule, Some(&report(1, lack(None))));
        let told = lacks.told(Some(0)).unwrap();
        assert_eq!((told.number, told.rules["shop/a"].refusal.as_deref()), (1, None));
        assert_eq!(lacks.told(Some(1)), None);
        lacks.hear(&rule, Some(&report(1, lack(Some("forbidden")))));
        let told = lacks.told(Some(1)).unwrap();
        let lacking = &told.rules["shop/a"];
        assert_eq!(lacking.refusal.as_deref(), Some("forbidden"));
        assert!(lacking.is_of("u/1") && lacking.is_of("u/1/category") && !lacking.is_of("u/2"));
        lacks.hear(&rule, Some(&report(1, Outcome::Active)));
        assert_eq!(lacks.told(Some(2)), Some(LacksTold { number: 3, rules: BTreeMap::new() }));
        lacks.hear(&rule, None);
        assert_eq!(lacks.told(Some(3)), None);
    }
}
