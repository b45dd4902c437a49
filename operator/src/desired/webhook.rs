//! The life of the webhook configuration: nothing, the probe's entry alone, and the entries for rules once the probe has come back.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::admissionregistration::v1::ValidatingWebhookConfiguration};
use portal_core::{requirements::Requirements, webhook::configuration};
use serde_json::{Value, json};

use super::{Certificates, draft::Draft, is_child};
use crate::{
    certificates::PROPAGATION,
    children::webhook::{Around, webhook_settings},
    conditions::Findings,
    instance::{Instance, OperatorSettings},
    names::{self, BUNDLE_SINCE, configuration_name},
    needs::Needs,
    object::{Key, Kind, Object},
    observed::{LINGER, Observed},
    plan::Step,
};

/// Where the webhook configuration is in its life.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Phase {
    /// The instance judges no requests.
    Off,
    /// There is none, because no pod could answer.
    #[default]
    WaitingForPods,
    /// The probe's entry is there, and the engine has not answered through the API server yet.
    WaitingForProbe,
    /// Not all rules are known yet. What was there stays.
    WaitingForRules,
    /// The entries for rules are there, or are about to be written.
    Enforcing,
}

/// How often the way through the API server is tried.
const PROBE_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How often it is tried while something waits for it, or while it does not answer.
const PROBE_SOON: SignedDuration = SignedDuration::from_secs(5);

/// The webhook configuration of an instance, and what it depends on.
pub(super) struct Webhook<'a> {
    instance: &'a Instance,
    needs: Option<&'a Needs>,
    observed: &'a Observed,
    operator: &'a OperatorSettings,
    certificates: &'a Certificates,
    /// As it is.
    found: Option<&'a Object>,
    /// Whether a pod is ready that can answer.
    can_answer: bool,
}

impl<'a> Webhook<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        needs: Option<&'a Needs>,
        observed: &'a Observed,
        operator: &'a OperatorSettings,
        certificates: &'a Certificates,
        findings: &Findings,
    ) -> Webhook<'a> {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        let can_answer = findings.engines.iter().any(|state| state.engine.layers.admission && state.ready > 0);
        Webhook { instance, needs, observed, operator, certificates, found: observed.get(&key), can_answer }
    }

    /// Whether there is one.
    pub(super) fn is_there(&self) -> bool {
        self.found.is_some()
    }

    fn was_enforcing(&self) -> bool {
        self.found.is_some_and(|found| is_enforcing(found, &self.instance.name))
    }

    /// Whether Deployments may become what they should be, or when. What pods will show has to be trusted before, by every API server,
    /// and as long as requests may come, pods stay.
    pub(super) fn pods_may_change(&self, wanted: &[Object], draft: &mut Draft<'_>) -> Result<(), Timestamp> {
        let now = self.observed.now;
        let there: Vec<&Object> =
            self.observed.of_kind(Kind::Deployment).filter(|object| is_child(object, self.instance)).collect();
        let moment = if !self.instance.layers().admission && !there.is_empty() {
            let gone_for = draft.look_for_configuration(self.instance).unwrap_or_default();
            now + LINGER.saturating_sub(gone_for)
        } else {
            let known: Vec<&Value> = there.iter().flat_map(|object| secrets_of(object)).collect();
            let is_same = wanted.iter().flat_map(secrets_of).all(|secret| known.contains(&secret));
            if is_same || self.found.is_none() {
                return Ok(());
            }
            self.certificates.judgement.since + PROPAGATION
        };
        if moment <= now { Ok(()) } else { Err(moment) }
    }

    /// Sees to it that the configuration is what it should be.
    pub(super) fn plan(&mut self, draft: &mut Draft<'_>, findings: &mut Findings) {
        if !self.instance.layers().admission {
            findings.phase = Phase::Off;
            draft.delete_configuration(self.instance);
            return;
        }
        let is_trusted = !self.certificates.judgement.bundle.is_empty();
        // Pods of a rollout may show what nobody is told to trust.
        if self.found.is_none() && !(self.can_answer && self.certificates.judgement.can_begin) {
            findings.phase = Phase::WaitingForPods;
            draft.look_again(self.observed.now + PROBE_SOON * 2);
            return;
        }
        let was_enforcing = self.was_enforcing();
        // Nobody knows what the machine of an API server trusts, and pods serve what they have.
        if !is_trusted {
            findings.phase = if was_enforcing { Phase::Enforcing } else { Phase::WaitingForPods };
            return;
        }
        // An answer by another configuration says nothing about this one.
        let has_answered = self
            .found
            .zip(self.observed.memory.probe.as_ref())
            .is_some_and(|(found, probe)| probe.answer.is_ok() && probe.configuration == found.uid());
        let as_it_is = || self.found.map(|found| with_bundle(found, self.certificates));
        let (phase, wanted) = match (self.needs, was_enforcing || has_answered) {
            (Some(needs), true) => {
                let wanted = self.build(&needs.requirements, true);
                // Where no pod can answer, nothing further may be refused for it. What is less is right at any time.
                let is_more = |wanted: &Object| self.found.is_none_or(|found| !is_within(wanted, found));
                let waits = !self.can_answer && wanted.as_ref().is_some_and(is_more);
                (Phase::Enforcing, if waits { as_it_is() } else { wanted })
            }
            (None, true) => (Phase::WaitingForRules, as_it_is()),
            (_, false) => (Phase::WaitingForProbe, self.build(&Requirements::default(), false)),
        };
        findings.phase = phase;
        draft.ensure_all(wanted.into_iter().collect());
    }

    /// Tries the way through the API server, if it is time.
    pub(super) fn probe(&self, draft: &mut Draft<'_>) {
        if self.found.is_none() || !self.instance.layers().admission {
            return;
        }
        let last = self.observed.memory.probe.as_ref();
        let is_calm = self.was_enforcing() && last.is_some_and(|probe| probe.answer.is_ok());
        let next = last.map(|probe| probe.at + if is_calm { PROBE_EVERY } else { PROBE_SOON });
        // A clock that was set back makes no pause longer.
        let is_early = |next: &Timestamp| *next > self.observed.now && *next - PROBE_EVERY <= self.observed.now;
        match next.filter(is_early) {
            Some(next) => draft.look_again(next),
            None => draft.push(Step::Probe),
        }
    }

    /// The configuration: with the entries for rules, or with the probe's alone.
    fn build(&self, requirements: &Requirements, enforces: bool) -> Option<Object> {
        let Webhook { instance, observed, certificates, .. } = self;
        let namespace = observed.get(&Key::cluster(Kind::Namespace, instance.namespace()))?;
        let around = Around {
            instances: &observed.others,
            operator: self.operator,
            ca_bundle: &certificates.judgement.bundle,
            namespace_uid: namespace.uid(),
        };
        let mut settings = webhook_settings(instance, &around);
        if !enforces {
            settings.own_rules = None;
        }
        Some(finish(configuration(requirements, &settings), instance, certificates))
    }
}

/// The Secrets that the pods of a Deployment mount.
fn secrets_of(deployment: &Object) -> Vec<&Value> {
    let volumes = deployment.value["spec"]["template"]["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.map(|volume| &volume["secret"]["secretName"]).filter(|name| !name.is_null()).collect()
}

/// Whether nothing is refused by one configuration that is not refused by another, if no engine answers.
fn is_within(configuration: &Object, other: &Object) -> bool {
    let closed = |object: &'_ Object| -> Vec<Value> {
        let entries = object.value["webhooks"].as_array().cloned().unwrap_or_default();
        entries.into_iter().filter(|entry| entry["failurePolicy"] == "Fail").collect()
    };
    let others = closed(other);
    closed(configuration).iter().all(|entry| others.iter().any(|other| is_entry_within(entry, other)))
}

fn is_entry_within(entry: &Value, other: &Value) -> bool {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let is_part = |part: &Value, whole: &Value| list(part).iter().all(|value| list(whole).contains(value));
    let is_rule_within = |rule: &Value| {
        let parts = ["apiGroups", "apiVersions", "operations", "resources"];
        list(&rule["resources"]).into_iter().all(|resource| {
            let one = json!({
                "apiGroups": rule["apiGroups"], "apiVersions": rule["apiVersions"], "operations": rule["operations"],
                "resources": [resource],
            });
            list(&other["rules"]).iter().any(|other| parts.iter().all(|part| is_part(&one[*part], &other[*part])))
        })
    };
    let is_selected_within = |selector: &str| {
        let (selector, other) = (&entry[selector], &other[selector]);
        let has = |label: (&String, &Value)| selector["matchLabels"][label.0] == *label.1;
        let is_kept = |expression: &Value| {
            list(&selector["matchExpressions"]).iter().any(|found| {
                let is_same = ["key", "operator"].iter().all(|part| found[*part] == expression[*part]);
                let is_narrower = match expression["operator"].as_str() {
                    Some("NotIn") => is_part(&expression["values"], &found["values"]),
                    Some("In") => is_part(&found["values"], &expression["values"]),
                    _ => true,
                };
                is_same && is_narrower
            })
        };
        other["matchLabels"].as_object().into_iter().flatten().all(has)
            && list(&other["matchExpressions"]).iter().all(is_kept)
    };
    let names = |entry: &Value| -> Vec<Value> {
        list(&entry["matchConditions"]).iter().map(|condition| condition["name"].clone()).collect()
    };
    list(&entry["rules"]).iter().all(is_rule_within)
        && ["namespaceSelector", "objectSelector"].into_iter().all(is_selected_within)
        && names(other).iter().all(|name| names(entry).contains(name))
}

/// The same entries with other authorities, while nobody knows which entries there should be.
fn with_bundle(found: &Object, certificates: &Certificates) -> Object {
    let mut object = found.clone();
    for entry in object.value["webhooks"].as_array_mut().into_iter().flatten() {
        entry["clientConfig"]["caBundle"] = json!(ByteString(certificates.judgement.bundle.clone()));
    }
    object.value["metadata"]["annotations"][BUNDLE_SINCE] = certificates.judgement.since.to_string().into();
    if let Some(metadata) = object.value["metadata"].as_object_mut() {
        metadata.retain(|name, _| ["name", "labels", "annotations", "ownerReferences"].contains(&name.as_str()));
    }
    object
}

/// A configuration with our labels, and every field that the API server would fill in.
fn finish(configuration: ValidatingWebhookConfiguration, instance: &Instance, certificates: &Certificates) -> Object {
    let mut object = Object::of(Kind::ValidatingWebhookConfiguration, &configuration);
    for entry in object.value["webhooks"].as_array_mut().into_iter().flatten() {
        for selector in ["namespaceSelector", "objectSelector"] {
            if entry[selector].is_null() {
                entry[selector] = json!({});
            }
        }
    }
    let metadata = &mut object.value["metadata"];
    for (key, value) in names::labels(&instance.name) {
        metadata["labels"][key] = value.into();
    }
    metadata["annotations"][BUNDLE_SINCE] = certificates.judgement.since.to_string().into();
    object
}

/// Whether a configuration has more than the probe's entry.
pub fn is_enforcing(configuration: &Object, instance: &str) -> bool {
    let probe = format!("probe.{instance}.portal.io");
    let entries = configuration.value["webhooks"].as_array().into_iter().flatten();
    entries.map(|entry| &entry["name"]).any(|name| *name != probe.as_str())
}
