//! What the operator writes into the status of rules: whether the engine of each instance may do what the rule needs. And what it takes
//! out of it: the entries of instances that are gone, if nobody is left who would.

mod writer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use portal_cluster::rules::{
    cluster::SeenRule,
    status::{condition, entries},
};
use portal_core::rule::source::{RuleId, is_version_of};
use portal_crds::ConditionType;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::permissions::Verdicts;

pub use self::writer::Writer;

/// What is said of rules and what is to be said, shared. A clone sees the same.
#[derive(Clone, Debug, Default)]
pub struct RuleStatuses {
    contents: Arc<Mutex<Contents>>,
    /// Grows with every change.
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct Contents {
    /// What the status of each rule says. Written by the watches of rules.
    said: BTreeMap<RuleId, Said>,
    /// The names of instances and of their namespaces: there are few, and thousands of rules have them.
    names: BTreeSet<Arc<str>>,
    /// What was found out for each instance. Written by its caretaker.
    verdicts: BTreeMap<String, Verdicts>,
}

/// What the status of a rule says, as far as the operator has to know it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Said {
    uid: String,
    generation: i64,
    entries: Vec<Entry>,
}

/// What is said of a rule in an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Entry {
    instance: Arc<str>,
    /// Where the Lease of the instance is.
    namespace: Option<Arc<str>>,
    /// The condition that the operator writes, unless only the engine has.
    granted: Option<Kept>,
}

/// A condition as it is kept: nearly all of them say the same.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Kept {
    /// It is granted: the generation, and since when.
    Granted(i64, Timestamp),
    /// Anything else.
    Other(Box<Told>),
}

/// A condition.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Told {
    holds: String,
    reason: String,
    message: String,
    generation: i64,
    since: String,
}

/// What is said of a rule whose engine may do what it needs.
const GRANTED: [&str; 3] = ["True", "Granted", "the engine may do what the rule needs"];

/// What is said of a rule that was granted what it needs, while no role gives it.
const GRANTING: [&str; 3] = ["Unknown", "Granting", "the role that gives the engine what the rule needs is not there"];

/// What an engine says of a condition that an operator has yet to decide.
const NOT_DECIDED: &str = "NotDecided";

impl RuleStatuses {
    /// Tells when something has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes what the status of a rule says, or that the rule is gone.
    pub fn saw(&self, id: RuleId, seen: Option<&SeenRule>) {
        let mut contents = self.lock();
        let said = seen.map(|seen| Said::of(seen, &mut contents.names));
        if contents.said.get(&id) == said.as_ref() {
            return;
        }
        match said {
            Some(said) => contents.said.insert(id, said),
            None => contents.said.remove(&id),
        };
        drop(contents);
        self.tell();
    }

    /// Takes that those of these rules that were not seen are gone.
    pub fn retain(&self, is_there: impl Fn(&RuleId) -> bool) {
        self.lock().said.retain(|id, _| is_there(id));
    }

    /// Takes what was found out for an instance, or that the instance is gone.
    pub fn set(&self, instance: &str, verdicts: Option<Verdicts>) {
        let mut contents = self.lock();
        match verdicts {
            Some(verdicts) => {
                let before = contents.verdicts.insert(instance.to_owned(), verdicts.clone());
                let is_same = |before: &Verdicts| {
                    Arc::ptr_eq(&before.rules, &verdicts.rules)
                        && (&before.denied, &before.pending) == (&verdicts.denied, &verdicts.pending)
                };
                if before.as_ref().is_some_and(is_same) {
                    return;
                }
            }
            None => drop(contents.verdicts.remove(instance)),
        }
        drop(contents);
        self.tell();
    }

    /// What is to be applied to the status of rules, one after the other. `instances` are those that are there.
    fn due(&self, instances: &BTreeSet<String>, now: Timestamp) -> Vec<(RuleId, Value)> {
        let contents = self.lock();
        let due = contents.said.iter().filter_map(|(id, said)| {
            let applied = said.applied(id, &contents.verdicts, instances, now)?;
            Some((id.clone(), applied))
        });
        due.collect()
    }

    /// The instances that rules name and that are not there, with the namespace of their Lease, and the rules that name each.
    fn left_behind(&self, instances: &BTreeSet<String>) -> BTreeMap<(String, String), Vec<RuleId>> {
        let mut left: BTreeMap<_, Vec<RuleId>> = BTreeMap::new();
        for (id, said) in &self.lock().said {
            for entry in said.entries.iter().filter(|entry| !instances.contains(&*entry.instance)) {
                if let Some(namespace) = &entry.namespace {
                    left.entry((entry.instance.to_string(), namespace.to_string())).or_default().push(id.clone());
                }
            }
        }
        left
    }

    fn tell(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Said {
    fn of(seen: &SeenRule, names: &mut BTreeSet<Arc<str>>) -> Said {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut known = |name: &str| {
            let found = names.get(name).cloned();
            found.unwrap_or_else(|| {
                let name: Arc<str> = name.into();
                names.insert(Arc::clone(&name));
                name
            })
        };
        let entry = |entry: &Value| {
            let conditions = entry["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = condition(conditions, ConditionType::PermissionGranted);
            let decided = found.filter(|found| found["reason"] != NOT_DECIDED);
            Entry {
                instance: known(entry["instance"].as_str().unwrap_or_default()),
                namespace: entry["namespace"].as_str().map(&mut known),
                granted: decided.map(|found| {
                    Kept::of(Told {
                        holds: text(&found["status"]),
                        reason: text(&found["reason"]),
                        message: text(&found["message"]),
                        generation: found["observedGeneration"].as_i64().unwrap_or_default(),
                        since: text(&found["lastTransitionTime"]),
                    })
                }),
            }
        };
        Said { uid: seen.uid.clone(), generation: seen.generation, entries: entries(&seen.status).map(entry).collect() }
    }

    /// What is to be applied, with everything that the operator has said before and that is still so: what is left out would go. Nothing
    /// if the status says it.
    fn applied(
        &self,
        id: &RuleId,
        verdicts: &BTreeMap<String, Verdicts>,
        instances: &BTreeSet<String>,
        now: Timestamp,
    ) -> Option<Value> {
        let mut is_changed = false;
        let mut told: Vec<(&str, Told)> = Vec::new();
        for entry in self.entries.iter().filter(|entry| instances.contains(&*entry.instance)) {
            let before = entry.granted.as_ref().map(Kept::told);
            let verdict = self.decide(id, verdicts.get(&*entry.instance));
            // What is on its way is there a moment later, and is told then. What was there and is gone is told now.
            let was_granted =
                before.as_ref().is_some_and(|before| before.holds == "True" && before.generation == self.generation);
            let verdict = verdict.filter(|verdict| verdict.holds != "Unknown" || was_granted);
            let next = verdict.map(|verdict| verdict.over(before.as_ref(), self, now));
            is_changed |= next.is_some() && next != before;
            told.extend(next.or(before).map(|next| (&*entry.instance, next)));
        }
        // An engine that has said nothing yet may never do so, for the very reason that it may not.
        for (instance, verdicts) in verdicts.iter().filter(|(name, _)| instances.contains(*name)) {
            let is_new = self.entries.iter().all(|entry| *entry.instance != **instance);
            let verdict = self.decide(id, Some(verdicts)).filter(|verdict| is_new && verdict.holds == "False");
            is_changed |= verdict.is_some();
            told.extend(verdict.map(|verdict| (instance.as_str(), verdict.over(None, self, now))));
        }
        is_changed.then(|| self.object(id, &told))
    }

    /// What holds of this version of the rule, if that is known.
    fn decide<'a>(&self, id: &RuleId, verdicts: Option<&'a Verdicts>) -> Option<Verdict<'a>> {
        let verdicts = verdicts?;
        let rule = verdicts.rule(id)?;
        if !is_version_of(&rule.version, &self.uid, self.generation) {
            return None;
        }
        Some(match verdicts.denied.get(id) {
            Some(told) => Verdict { holds: "False", reason: "NotGranted", message: told },
            None if verdicts.pending.contains(id) => {
                let [holds, reason, message] = GRANTING;
                Verdict { holds, reason, message }
            }
            None => {
                let [holds, reason, message] = GRANTED;
                Verdict { holds, reason, message }
            }
        })
    }

    fn object(&self, id: &RuleId, told: &[(&str, Told)]) -> Value {
        let entry = |(instance, told): &(&str, Told)| {
            json!({ "instance": instance, "conditions": [{
                "type": ConditionType::PermissionGranted.to_string(),
                "status": told.holds,
                "reason": told.reason,
                "message": told.message,
                "observedGeneration": told.generation,
                "lastTransitionTime": told.since,
            }] })
        };
        // Another rule of this name, made meanwhile, is not meant.
        let mut metadata = json!({ "name": id.name, "uid": self.uid });
        let kind = match &id.namespace {
            Some(namespace) => {
                metadata["namespace"] = json!(namespace);
                "PortalRule"
            }
            None => "PortalClusterRule",
        };
        json!({
            "apiVersion": "portal.io/v1alpha1", "kind": kind, "metadata": metadata,
            "status": { "instances": told.iter().map(entry).collect::<Vec<_>>() },
        })
    }
}

impl Kept {
    fn of(told: Told) -> Kept {
        match told.since.parse() {
            Ok(since) if [&*told.holds, &*told.reason, &*told.message] == GRANTED => {
                Kept::Granted(told.generation, since)
            }
            _ => Kept::Other(Box::new(told)),
        }
    }

    fn told(&self) -> Told {
        match self {
            Kept::Granted(generation, since) => {
                let [holds, reason, message] = GRANTED.map(str::to_owned);
                Told { holds, reason, message, generation: *generation, since: time(*since) }
            }
            Kept::Other(told) => (**told).clone(),
        }
    }
}

/// A time as conditions have it.
fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A condition to be.
struct Verdict<'a> {
    holds: &'static str,
    reason: &'static str,
    message: &'a str,
}

impl Verdict<'_> {
    /// The condition after one that was there. Its time is that of the last change of its status.
    fn over(&self, before: Option<&Told>, said: &Said, now: Timestamp) -> Told {
        let since = before.filter(|before| before.holds == self.holds).map(|before| before.since.clone());
        Told {
            holds: self.holds.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message.to_owned(),
            generation: said.generation,
            since: since.unwrap_or_else(|| time(now)),
        }
    }
}
