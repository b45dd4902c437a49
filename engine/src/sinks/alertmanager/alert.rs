//! The alert of a finding or of a denial, as Alertmanager is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use portal_core::{
    alert::{Blank, fill, label_name},
    rule::Rule,
};
use portal_crds::{Action, ActionType, Front, Severity};
use serde::Serialize;

use crate::findings::{Finding, Offender};

/// An alert. It is told from others by its labels alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Alert {
    /// Its labels as JSON, in the order of their names.
    pub(super) labels: Arc<str>,
    /// Its annotations as JSON.
    pub(super) annotations: Box<str>,
    /// Since when it fires.
    pub(super) starts: Timestamp,
}

/// What an alert is about.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) rule: &'a Rule,
    pub(super) namespace: Option<&'a str>,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) saw: Option<&'a str>,
    pub(super) since: Timestamp,
}

/// What of an alert takes memory beside its texts.
const OVERHEAD: usize = 256;

/// What the labels of every alert of a rule hold that cannot be told about an object now, because it could not be evaluated.
pub(super) fn unknown(offender: &Offender) -> Vec<String> {
    let failed = offender.findings.iter().filter(|found| found.is_failure);
    // In JSON no value can look so: its quotes are escaped.
    failed.map(|found| format!(r#""rule":{}"#, json(&found.rule.id.to_string()))).collect()
}

/// The alerts of what is wrong with an object. A rule that could not be evaluated has none: whether it is violated is not known.
pub(super) fn of_offender(offender: &Offender, instance: &str) -> Vec<Alert> {
    let mut alerts: Vec<Alert> = Vec::new();
    for Finding { rule, container, message, saw, since, .. } in
        offender.findings.iter().filter(|found| !found.is_failure)
    {
        let subject = Subject {
            rule,
            namespace: offender.namespace.as_deref(),
            kind: &offender.kind,
            name: &offender.name,
            container: container.as_deref(),
            message,
            saw: saw.as_deref(),
            since: *since,
        };
        // Of a rule that audit never asks admission has told.
        let front = if rule.is_audited() { Front::Audit } else { Front::Admission };
        for alert in of_subject(subject, front, instance) {
            match alerts.iter_mut().find(|known| known.labels == alert.labels) {
                Some(known) => known.starts = known.starts.min(alert.starts),
                None => alerts.push(alert),
            }
        }
    }
    alerts
}

/// The alerts of a subject, one for each action of the rule that sends one from this loop.
pub(super) fn of_subject(subject: Subject<'_>, front: Front, instance: &str) -> Vec<Alert> {
    let actions = actions(subject.rule, front);
    actions.map(|action| subject.alert(action, front, instance)).collect()
}

/// What a rule alerts by, from this loop.
pub(super) fn actions(rule: &Rule, front: Front) -> impl Iterator<Item = &Action> {
    let alerts = rule.actions.iter().filter(|action| action.action_type == ActionType::Alertmanager);
    alerts.filter(move |action| action.on.is_empty() || action.on.contains(&front))
}

impl Subject<'_> {
    fn alert(&self, action: &Action, front: Front, instance: &str) -> Alert {
        let Subject { rule, namespace, kind, name, container, message, saw, since } = *self;
        let id = rule.id.to_string();
        let severity = severity(rule.severity);
        let fill = |text: &str| {
            fill(text, |blank| match blank {
                Blank::Message => message,
                Blank::Saw => saw.unwrap_or_default(),
                Blank::Rule => &id,
                Blank::Severity => severity,
                Blank::Namespace => namespace.unwrap_or_default(),
                Blank::Kind => kind,
                Blank::Name => name,
                Blank::Container => container.unwrap_or_default(),
            })
        };
        let filled = |texts: &BTreeMap<String, String>| {
            texts.iter().map(|(name, text)| (label_name(name), fill(text))).collect::<Vec<_>>()
        };
        let mut labels = BTreeMap::from([("severity".to_owned(), severity.to_owned())]);
        labels.extend(filled(&action.labels));
        let mode = front.to_string();
        let own = [
            ("alertname", action.template.as_deref().unwrap_or(&rule.id.name)),
            ("container", container.unwrap_or_default()),
            ("instance", instance),
            ("kind", kind),
            ("mode", &mode),
            ("name", name),
            ("namespace", namespace.unwrap_or_default()),
            ("rule", &id),
            ("source", "portal"),
        ];
        labels.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // Alertmanager takes an empty label for none.
        labels.retain(|_, value| !value.is_empty());
        let mut annotations = BTreeMap::from([("summary".to_owned(), message.to_owned())]);
        annotations.extend(saw.map(|saw| ("description".to_owned(), saw.to_owned())));
        annotations.extend(filled(&action.annotations));
        annotations.retain(|_, value| !value.is_empty());
        Alert { labels: json(&labels).into(), annotations: json(&annotations).into(), starts: since }
    }
}

impl Alert {
    /// The memory that it takes.
    pub(super) fn size(&self) -> usize {
        self.labels.len() + self.annotations.len() + OVERHEAD
    }

    /// Adds it to a message, with the time at which it ends unless it is sent again. An end before the beginning would be refused: clocks are
    /// set back.
    pub(super) fn write(&self, ends: Timestamp, body: &mut String) {
        let Alert { labels, annotations, starts } = self;
        let ends = ends.max(*starts);
        let times = format!(r#""startsAt":"{starts}","endsAt":"{ends}""#);
        body.push_str(&format!(r#"{{"labels":{labels},"annotations":{annotations},{times}}}"#));
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
        Severity::Info => "info",
    }
}

fn json(texts: &impl Serialize) -> String {
    serde_json::to_string(texts).expect("texts are always JSON")
}
