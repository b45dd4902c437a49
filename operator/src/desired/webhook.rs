//! The life of the webhook configuration: nothing, the probe's entry alone, and the entries for rules once the probe has come back.

use jiff::SignedDuration;
use k8s_openapi::{ByteString, api::admissionregistration::v1::ValidatingWebhookConfiguration};
use portal_core::{requirements::Requirements, webhook::configuration};
use serde_json::{Value, json};

use super::{Certificates, draft::Draft};
use crate::{
    children::webhook::{Around, webhook_settings},
    conditions::Findings,
    instance::{Instance, OperatorSettings},
    names::{self, BUNDLE_SINCE, configuration_name},
    needs::Needs,
    object::{Key, Kind, Object},
    observed::Observed,
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

pub(super) fn plan(
    instance: &Instance,
    needs: Option<&Needs>,
    observed: &Observed,
    operator: &OperatorSettings,
    certificates: &Certificates,
    draft: &mut Draft<'_>,
    findings: &mut Findings,
) {
    let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
    let found = observed.get(&key);
    if !instance.layers().admission {
        findings.phase = Phase::Off;
        draft.delete_configuration(instance);
        return;
    }
    let can_answer = findings.engines.iter().any(|state| state.engine.layers.admission && state.ready > 0);
    let is_trusted = !certificates.judgement.bundle.is_empty();
    if found.is_none() && !(can_answer && is_trusted) {
        findings.phase = Phase::WaitingForPods;
        return;
    }
    let was_enforcing = found.is_some_and(|found| is_enforcing(found, &instance.name));
    // An answer by another configuration says nothing about this one.
    let has_answered = found
        .zip(observed.memory.probe.as_ref())
        .is_some_and(|(found, probe)| probe.answer.is_ok() && probe.configuration == found.uid());
    let build = |requirements: &Requirements, enforces: bool| {
        build(instance, requirements, enforces, observed, operator, certificates)
    };
    // Nobody knows what the machine of an API server trusts, and pods serve what they have.
    if is_trusted {
        let wanted = match (needs, was_enforcing || (found.is_some() && has_answered)) {
            (Some(needs), true) => Some((Phase::Enforcing, build(&needs.requirements, true))),
            (None, true) => Some((Phase::WaitingForRules, found.map(|found| with_bundle(found, certificates)))),
            (_, false) => Some((Phase::WaitingForProbe, build(&Requirements::default(), false))),
        };
        if let Some((phase, wanted)) = wanted {
            findings.phase = phase;
            draft.ensure_all(wanted.into_iter().collect());
        }
    } else {
        findings.phase = if was_enforcing { Phase::Enforcing } else { Phase::WaitingForPods };
    }
    if found.is_some() {
        probe(observed, was_enforcing, draft);
    }
}

/// Tries the way through the API server, if it is time.
fn probe(observed: &Observed, was_enforcing: bool, draft: &mut Draft<'_>) {
    let last = observed.memory.probe.as_ref();
    let is_calm = was_enforcing && last.is_some_and(|probe| probe.answer.is_ok());
    let next = last.map(|probe| probe.at + if is_calm { PROBE_EVERY } else { PROBE_SOON });
    match next.filter(|next| *next > observed.now) {
        Some(next) => draft.look_again(next),
        None => draft.push(Step::Probe),
    }
}

/// The configuration: with the entries for rules, or with the probe's alone.
fn build(
    instance: &Instance,
    requirements: &Requirements,
    enforces: bool,
    observed: &Observed,
    operator: &OperatorSettings,
    certificates: &Certificates,
) -> Option<Object> {
    let namespace = observed.get(&Key::cluster(Kind::Namespace, instance.namespace()))?;
    let around = Around {
        instances: &observed.others,
        operator,
        ca_bundle: &certificates.judgement.bundle,
        namespace_uid: namespace.uid(),
    };
    let mut settings = webhook_settings(instance, &around);
    if !enforces {
        settings.own_rules = None;
    }
    Some(finish(configuration(requirements, &settings), instance, certificates))
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
    entries.map(|entry| &entry["name"]).any(|name| *name != Value::from(probe.as_str()))
}
