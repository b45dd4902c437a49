//! What a rule that somebody writes would hit of what is there now, as far as the caches know.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portal_core::{
    evaluate::evaluate,
    event::{Event, Front, Operation},
    kinds::{Kind, Kinds},
    rule::{Rule, RuleSet},
};
use portal_crds::EnforcementAction;
use portal_expr::Moment as Time;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use super::judge::JudgeSettings;
use crate::cache::{
    answers::Answers,
    keeper::Caches,
    moment::{Moment, split},
    store::Seen,
};

/// Tries rules on what is there. A clone takes turns with the others.
#[derive(Clone)]
pub struct Preview {
    caches: Caches,
    settings: Arc<JudgeSettings>,
    /// One rule at a time: whoever writes a thousand of them must not take the processor from requests.
    turn: Arc<Semaphore>,
}

/// What a rule would hit.
#[derive(Debug, Default)]
struct Impact {
    /// What would be done.
    verb: &'static str,
    plurals: BTreeSet<String>,
    /// How many objects the rule was asked about.
    objects: usize,
    hit: usize,
    /// The first of those that it hits.
    examples: Vec<String>,
    failed: usize,
    /// Why it failed first.
    failure: Option<String>,
    /// Whether the time was over before all were looked at.
    is_cut: bool,
}

/// How long it may take. Whoever applies a rule waits, and the API server with them.
const TIME: Duration = Duration::from_millis(500);

/// How many objects are named.
const EXAMPLES: usize = 3;

/// A look at the clock after so many objects.
const OBJECTS_PER_LOOK: usize = 32;

impl Preview {
    /// Tries rules on what these caches have, as requests are judged by these settings.
    pub fn new(caches: Caches, settings: Arc<JudgeSettings>) -> Preview {
        Preview { caches, settings, turn: Arc::new(Semaphore::new(1)) }
    }

    /// What to tell the author of a rule, who may read all that it reads. Nothing if it hits nothing, if that cannot be told, or if others
    /// are waiting for the same.
    pub async fn of(&self, rule: Arc<Rule>, now: Time) -> Vec<String> {
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else { return Vec::new() };
        let preview = self.clone();
        let looking = spawn_blocking(move || {
            let _turn = turn;
            let end = Instant::now() + TIME;
            preview.look(&rule, now, &|| Instant::now() >= end)
        });
        // Threads may be scarce. An error is a panic, which costs the preview and nothing else.
        let looked = timeout(2 * TIME, looking).await;
        looked.ok().and_then(Result::ok).flatten().map(|impact| impact.lines()).unwrap_or_default()
    }

    fn look(&self, rule: &Arc<Rule>, now: Time, is_over: &dyn Fn() -> bool) -> Option<Impact> {
        // What only a request can tell cannot be told of what is there.
        if rule.names_request || !rule.judges_creation() {
            return None;
        }
        let all = |kind: &Kind, namespace: Option<&str>| match self.caches.get(kind, namespace)?.now() {
            Seen::Moment(moment) => Some(moment),
            Seen::NotSynced | Seen::Refused(_) => None,
        };
        if rule.looked_up().any(|(kind, namespace)| all(kind, namespace).is_none()) {
            return None;
        }
        let is_enforced = rule.fronts.contains(&Front::Admission);
        let verb = match self.settings.policy.capped(rule.enforcement) {
            _ if !is_enforced => "find",
            EnforcementAction::Deny => "refuse",
            EnforcementAction::Warn => "warn about",
            EnforcementAction::Dryrun => "record",
        };
        let mut impact = Impact { verb, ..Impact::default() };
        let rules = RuleSet::new(vec![Arc::clone(rule)]);
        let namespaces = Kinds::builtin().get("", "Namespace").and_then(|kind| all(kind, None));
        // What makes pods would be counted with its pods.
        let kinds: BTreeSet<&Arc<Kind>> =
            rule.judged.iter().filter(|judged| !judged.expanded).map(|judged| &judged.kind).collect();
        let own = rule.id.namespace.as_deref();
        let mut looked = 0;
        for kind in kinds {
            let Some(moment) = all(kind, own) else { continue };
            let version = kind.versions.first().map_or("", String::as_str);
            for (name, object) in moment.entries() {
                let (namespace, name) = split(name);
                if own.is_some_and(|own| own != namespace)
                    || self.is_spared(namespace, is_enforced, namespaces.as_deref())
                {
                    continue;
                }
                looked += 1;
                if looked % OBJECTS_PER_LOOK == 0 && is_over() {
                    impact.is_cut = true;
                    return Some(impact);
                }
                let event = Event::of(object.visible(), kind, version, Operation::Create, None, now);
                let answers = Answers::new(&self.caches, None);
                let evaluation = evaluate(&rules, &answers, &event, &self.settings.limits);
                if !evaluation.needs.is_empty() {
                    // It asks the API server, which has better things to do than to answer that for each object.
                    return None;
                }
                if evaluation.asked.is_empty() {
                    continue;
                }
                impact.objects += 1;
                impact.plurals.insert(kind.plural.clone());
                if !evaluation.violations.is_empty() {
                    impact.hit += 1;
                    if impact.examples.len() < EXAMPLES {
                        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
                        impact.examples.push(format!("{place}{name}"));
                    }
                } else if let Some(failure) = evaluation.failures.first() {
                    impact.failed += 1;
                    let words = || failure.to_string().lines().next().unwrap_or_default().to_owned();
                    impact.failure.get_or_insert_with(words);
                }
            }
        }
        Some(impact)
    }

    /// Whether nothing is done about what is in a namespace.
    fn is_spared(&self, namespace: &str, is_enforced: bool, namespaces: Option<&Moment>) -> bool {
        let settings = &self.settings;
        if namespace.is_empty() {
            return false;
        }
        if is_enforced && settings.leaves_alone(namespace) {
            return true;
        }
        let is_served = || {
            let found = namespaces.and_then(|namespaces| namespaces.get(None, namespace));
            let labels = found.and_then(|found| found.root().get_str("metadata")?.get_str("labels"));
            settings.namespace_selector.matches(labels)
        };
        !settings.namespace_selector.is_empty() && !is_served()
    }
}

impl Impact {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.hit > 0 {
            lines.push(self.to_string());
        }
        if let Some(failure) = &self.failure {
            lines.push(format!("it could not be evaluated for {} of {}: {failure}", self.failed, self.all()));
        }
        lines
    }

    /// What was looked at, in words.
    fn all(&self) -> String {
        let first = if self.is_cut { "the first " } else { "" };
        let mut plurals = self.plurals.iter();
        let plural = match (plurals.next(), plurals.next()) {
            (Some(plural), None) => plural,
            _ => "objects",
        };
        format!("{first}{} {plural}", self.objects)
    }
}

impl fmt::Display for Impact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.hit > self.examples.len() { ", …" } else { "" };
        let (verb, hit, all, examples) = (self.verb, self.hit, self.all(), self.examples.join(", "));
        write!(formatter, "the rule would {verb} {hit} of {all} that are there now: {examples}{more}")
    }
}

#[cfg(test)]
mod tests;
