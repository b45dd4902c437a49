//! The rules by which findings are told of, and since when each is as it is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use portal_cluster::rules::snapshot::Snapshot;
use portal_core::rule::{Rule, source::RuleId};

use super::{RuleNo, is_told_of};

/// The rules by which findings are told of. Each has a number, which stays the same while the rule changes.
#[derive(Default)]
pub(super) struct Rules {
    numbers: HashMap<RuleId, RuleNo>,
    /// By their numbers, from 1 on.
    pub(super) known: Vec<Option<Known>>,
}

pub(super) struct Known {
    pub(super) rule: Arc<Rule>,
    /// The epoch from which on it is to be asked as it is.
    pub(super) since: u64,
}

impl Rules {
    /// Takes the rules of a snapshot. Returns those that have to be asked again, and those that are gone.
    pub(super) fn follow(&mut self, snapshot: &Snapshot, epoch: u64) -> (HashSet<RuleNo>, HashSet<RuleNo>) {
        let mut renewed = HashSet::new();
        let mut there = HashSet::new();
        if self.known.is_empty() {
            // The number of the instance itself.
            self.known.push(None);
        }
        for rule in snapshot.rules.rules().iter().filter(|rule| is_told_of(rule)) {
            let number = match self.numbers.get(&rule.id) {
                Some(number) => *number,
                None => {
                    self.known.push(None);
                    let number = (self.known.len() - 1) as RuleNo;
                    self.numbers.insert(rule.id.clone(), number);
                    number
                }
            };
            there.insert(number);
            let known = &mut self.known[number as usize];
            let since = match known {
                Some(known) if is_same_rule(&known.rule, rule) => known.since,
                _ => {
                    renewed.insert(number);
                    epoch
                }
            };
            *known = Some(Known { rule: Arc::clone(rule), since });
        }
        let gone: HashSet<RuleNo> = self.numbers.values().copied().filter(|number| !there.contains(number)).collect();
        self.numbers.retain(|_, number| !gone.contains(number));
        for number in &gone {
            self.known[*number as usize] = None;
        }
        (renewed, gone)
    }

    pub(super) fn get(&self, number: RuleNo) -> Option<&Known> {
        self.known.get(number as usize)?.as_ref()
    }

    /// The number of a rule, if it is in force in this version.
    pub(super) fn number(&self, rule: &Rule) -> Option<RuleNo> {
        self.number_of(&rule.id, &rule.version)
    }

    /// The number of the rule of a name, if it is in force in this version.
    pub(super) fn number_of(&self, id: &RuleId, version: &str) -> Option<RuleNo> {
        let number = *self.numbers.get(id)?;
        self.get(number).filter(|known| known.rule.version == version).map(|_| number)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (RuleNo, &Known)> {
        self.known.iter().enumerate().filter_map(|(number, known)| Some((number as RuleNo, known.as_ref()?)))
    }
}

/// Whether two rules say the same of every object. A rule is compiled again when the kinds change.
fn is_same_rule(one: &Rule, other: &Rule) -> bool {
    let judges = |rule: &Rule| -> Vec<_> {
        let judged = rule.judged.iter();
        judged
            .map(|judged| {
                (judged.kind.group.clone(), judged.kind.kind.clone(), judged.versions.clone(), judged.expanded)
            })
            .collect()
    };
    one.version == other.version && judges(one) == judges(other)
}
