//! Judges one object, away from the lock of the ledger.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portal_core::{
    evaluate::{Evaluation, evaluate_each},
    event::{Event, Front, Operation},
    lookup::{Answer, Filter, Lookup as _, Query},
    rule::Rule,
    selector::Selector,
};
use portal_document::Node;
use portal_expr::Limits;
use tokio::runtime::Handle;

use super::{
    ledger::{Job, Judged, OfRule},
    time_now,
};
use crate::{
    cache::{answers::Answers, fresh::Fresh, keeper::Caches},
    findings::Finding,
    metrics::{AuditEvaluation, EngineMetrics},
    tally::Tallies,
};

/// What a worker judges with.
pub(super) struct Judge {
    pub(super) caches: Caches,
    pub(super) fresh: Fresh,
    /// The namespaces that the instance serves.
    pub(super) namespaces: Selector,
    pub(super) limits: Limits,
    /// Where fresh reads are done.
    pub(super) runtime: Handle,
}

/// How often a rule may ask for something fresh because of what it has read.
const ROUNDS: usize = 3;

/// How long the fresh reads of an object may take. Nobody waits for the answer.
const FRESH: Duration = Duration::from_secs(10);

impl Judge {
    pub(super) fn judge(&self, job: &Job, tallies: &Tallies, metrics: &EngineMetrics) -> Judged {
        let event =
            Event::of(job.object.visible(), &job.kind, &job.version, Operation::Create, Some(Front::Audit), time_now());
        let mut judged = Judged::default();
        let mut answers = Answers::new(&self.caches, None);
        let rules = job.snapshot.rules.rules();
        let mut wanted = job.asked.clone();
        let (mut affected, mut skipped) = (Vec::new(), 0);
        for place in &job.doubtful {
            let rule = &rules[*place as usize];
            let is_unaffected = |before: Node<'_>| rule.is_unaffected(&job.kind, before, job.object.root());
            match job.before.as_ref().is_some_and(|before| is_unaffected(before.root())) {
                true => skipped += 1,
                false => affected.push(*place),
            }
        }
        wanted.extend(affected);
        wanted.sort_unstable();
        metrics.audit_evaluations.at(&AuditEvaluation::Skipped).inc_by(skipped);
        if !wanted.is_empty() && !self.serves(&event, &answers, &mut judged.reads) {
            let nothing = |place: &u32| OfRule { place: *place, ..OfRule::default() };
            judged.rules = wanted.iter().map(nothing).collect();
            judged.basis = answers.into_basis();
            return judged;
        }
        let mut unanswered = HashSet::new();
        for round in 0..=ROUNDS {
            if round == ROUNDS {
                answers.end_reading();
            }
            let mut needs = BTreeSet::new();
            let mut incomplete = Vec::new();
            let mut take = |place: usize, evaluation: Evaluation| {
                if !evaluation.needs.is_empty() {
                    incomplete.push(place as u32);
                    needs.extend(evaluation.needs);
                    return;
                }
                let result = match (evaluation.violations.is_empty(), evaluation.failures.is_empty()) {
                    (_, false) => AuditEvaluation::Failed,
                    (false, true) => AuditEvaluation::Violated,
                    (true, true) => AuditEvaluation::Passed,
                };
                if !evaluation.asked.is_empty() {
                    metrics.audit_evaluations.at(&result).inc();
                    tallies.count(&job.snapshot, &evaluation);
                }
                judged.rules.push(of_rule(place, &rules[place], evaluation, &unanswered));
            };
            let is_wanted = |place: usize| wanted.binary_search(&(place as u32)).is_ok();
            evaluate_each(&job.snapshot.rules, &is_wanted, &answers, &event, &self.limits, &mut take);
            if incomplete.is_empty() {
                break;
            }
            let deadline = tokio::time::Instant::now() + FRESH;
            let read = self.runtime.block_on(self.fresh.read(needs, deadline));
            unanswered.extend(read.iter().filter(|(_, answer)| answer.is_err()).map(|(query, _)| query.clone()));
            answers.add(read);
            wanted = incomplete;
        }
        judged.basis = answers.into_basis();
        judged
    }

    /// Whether the instance serves the namespace of an object. Objects that are in none are served by all.
    fn serves(&self, event: &Event<'_>, answers: &Answers<'_>, reads: &mut Vec<Query>) -> bool {
        let Some(namespace) = event.namespace.filter(|_| !self.namespaces.is_empty()) else { return true };
        if event.is_of_namespace() {
            return self.namespaces.matches(event.judged().and_then(labels));
        }
        let kind = portal_core::kinds::Kinds::builtin().get("", "Namespace").expect("the table of Kubernetes has it");
        let query = Query {
            kind: Arc::clone(kind),
            namespace: None,
            filter: Filter::Name(namespace.to_owned()),
            consistent: false,
        };
        let answer = answers.answer(&query);
        reads.push(query);
        match answer {
            Answer::Found(found) => self.namespaces.matches(found.first().and_then(|found| labels(found.root()))),
            // It is asked again when the Namespace is seen.
            Answer::NotSynced | Answer::Failed(_) | Answer::Needs => false,
        }
    }
}

fn of_rule(place: usize, rule: &Arc<Rule>, evaluation: Evaluation, unanswered: &HashSet<Query>) -> OfRule {
    let since = Timestamp::UNIX_EPOCH;
    let failures = evaluation.failures.iter().map(|failure| Finding {
        rule: Arc::clone(rule),
        container: failure.container.clone(),
        is_failure: true,
        message: failure.to_string(),
        saw: None,
        since,
    });
    let failures: Vec<Finding> = failures.collect();
    let is_met = !evaluation.asked.is_empty() && evaluation.violations.is_empty() && failures.is_empty();
    let is_unanswered = !failures.is_empty() && evaluation.reads.iter().any(|query| unanswered.contains(query));
    let violations = evaluation.violations.into_iter().map(|violation| Finding {
        rule: Arc::clone(rule),
        container: violation.container,
        is_failure: false,
        saw: violation.saw.filter(|saw| *saw != violation.message),
        message: violation.message,
        since,
    });
    let mut findings: Vec<Finding> = violations.chain(failures).collect();
    findings.sort_by(|one, other| one.container.cmp(&other.container));
    let mut reads = evaluation.reads;
    reads.sort();
    reads.dedup();
    // What is read afresh is not followed: nobody tells when it changes.
    reads.retain(|query| !query.consistent);
    OfRule { place: place as u32, findings, is_met, reads, is_unanswered }
}

fn labels(object: Node<'_>) -> Option<Node<'_>> {
    object.get_str("metadata")?.get_str("labels")
}
