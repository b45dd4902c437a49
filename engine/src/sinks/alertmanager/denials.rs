//! The alerts of what admission refuses. They are sent by whoever refused, so that one refusal is one alert, and end by themselves.

use std::sync::Arc;

use jiff::Timestamp;
use portal_cluster::metrics::Counters;
use portal_core::{
    decide::{Decision, Finding},
    evaluate::Evaluation,
    rule::{Rule, RuleSet},
};
use portal_crds::Front;
use portal_document::{Array, Node};
use tokio::sync::mpsc;

use super::alert::{Alert, Subject, actions, of_subject};
use crate::metrics::AlertLoss;

/// Takes denials. A clone hands them to the same sender.
#[derive(Clone, Debug)]
pub struct Denials {
    pub(super) queue: mpsc::Sender<Alert>,
    pub(super) instance: Arc<str>,
    pub(super) lost: Counters<AlertLoss>,
}

/// What was refused. One alert is for all that have the same: a controller tries again and again, under another name each time.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// Its namespace, if its kind has one.
    pub namespace: Option<&'a str>,
    /// Its kind.
    pub kind: &'a str,
    /// Who it belongs to, as [`owner`] tells.
    pub owner: &'a str,
}

/// How many denials may wait for the task that sends them. It only has to note them.
pub(super) const QUEUE: usize = 1024;

impl Denials {
    /// Tells of a request that was refused. Never waits: what a full queue has no place for is counted. Not to be called for dry runs.
    pub fn refused(&self, refused: Refused<'_>, rules: &RuleSet, evaluation: &Evaluation, decision: &Decision) {
        for rule in evaluation.asked.iter().filter_map(|place| rules.rules().get(*place)) {
            let is_reason =
                decision.denials.iter().any(|reason| reason.rule == rule.id && reason.finding == Finding::Violation);
            if !is_reason {
                continue;
            }
            let violation = evaluation.violations.iter().find(|violation| violation.rule == rule.id);
            let message = violation.map_or("", |violation| violation.message.as_str());
            self.denied(rule, refused, message, violation.and_then(|violation| violation.saw.as_deref()));
        }
    }

    /// Tells of one rule that refused something, and what people were told. Never waits.
    pub fn denied(&self, rule: &Rule, refused: Refused<'_>, message: &str, saw: Option<&str>) {
        if actions(rule, Front::Admission).next().is_none() {
            return;
        }
        let Refused { namespace, kind, owner } = refused;
        let since = Timestamp::now();
        let subject = Subject { rule, namespace, kind, name: owner, container: None, message, saw, since };
        for alert in of_subject(subject, Front::Admission, &self.instance) {
            if self.queue.try_send(alert).is_err() {
                self.lost.at(&AlertLoss::Queue).inc();
            }
        }
    }
}

/// Who an object belongs to that is to be made or changed: what controls it, or what its name begins with, or itself. Nothing is looked
/// up for that: of a ReplicaSet's pod the Deployment is known by the hash that both names have.
pub fn owner(object: Node<'_>) -> Option<String> {
    let metadata = object.get_str("metadata")?;
    let text = |node: Node<'_>, field: &str| node.get_str(field).and_then(Node::as_str).map(str::to_owned);
    let mut owners = metadata.get_str("ownerReferences").and_then(Node::as_array).into_iter().flat_map(Array::iter);
    let controller = owners.find(|owner| owner.get_str("controller").and_then(Node::as_bool) == Some(true));
    if let Some(owner) = controller {
        let name = text(owner, "name")?;
        let hash = metadata.get_str("labels").and_then(|labels| text(labels, "pod-template-hash"));
        let deployment = hash.and_then(|hash| Some(name.strip_suffix(&hash)?.strip_suffix('-')?.to_owned()));
        return Some(deployment.unwrap_or(name));
    }
    let is_some = |name: &String| !name.is_empty();
    text(metadata, "generateName").filter(is_some).or_else(|| text(metadata, "name").filter(is_some))
}
