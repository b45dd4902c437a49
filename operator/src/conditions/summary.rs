//! What the status of an instance has beside its conditions: pods, what is enforced, what the webhook configuration has.

use portal_crds::{EnforcementAction, EngineStatus, PortalInstanceStatus, WebhookStatus};

use super::Findings;
use crate::{
    desired::{EngineState, is_enforcing},
    instance::Instance,
    object::Object,
    observed::Observed,
};

/// How many pods are ready of those that there should be.
pub(super) fn replicas(findings: &Findings) -> String {
    let ready: i32 = findings.engines.iter().map(|state| state.ready).sum();
    let wanted: u32 = findings.engines.iter().map(|state| state.engine.replicas).sum();
    format!("{ready}/{wanted}")
}

/// What happens to requests that violate a rule.
pub(super) fn enforcing(instance: &Instance, configuration: Option<&Object>) -> String {
    let is_on = configuration.is_some_and(|found| is_enforcing(found, &instance.name));
    let word = match instance.spec.admission.max_enforcement {
        _ if !is_on => "no",
        EnforcementAction::Deny => "deny",
        EnforcementAction::Warn => "warn",
        EnforcementAction::Dryrun => "dryrun",
    };
    word.to_owned()
}

pub(super) fn engine_status(state: &EngineState, observed: &Observed, before: &PortalInstanceStatus) -> EngineStatus {
    let layers = state.engine.layers;
    let said = observed.memory.probe.as_ref().and_then(|probe| probe.answer.as_ref().ok()).filter(|_| layers.admission);
    // An operator that has just started believes the one before, as long as the image is the same.
    let known = before.engines.iter().find(|known| known.name == state.engine.name && known.image == state.image);
    let names = [
        ("admission", layers.admission),
        ("audit", layers.audit),
        ("network", layers.network),
        ("actions", layers.actions),
    ];
    let names: Vec<&str> = names.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
    EngineStatus {
        name: state.engine.name.clone(),
        layers: names.join(","),
        image: state.image.clone(),
        version: said.cloned().or_else(|| known.and_then(|known| known.version.clone())),
        replicas: i32::try_from(state.engine.replicas).unwrap_or(i32::MAX),
        ready_replicas: state.ready,
        updated_replicas: state.updated,
    }
}

pub(super) fn webhook_status(found: &Object, instance: &Instance) -> WebhookStatus {
    let probe = format!("probe.{}.portal.io", instance.name);
    let entries: Vec<_> = found.value["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| entry["name"] != probe.as_str())
        .collect();
    let rules = entries.iter().flat_map(|entry| entry["rules"].as_array().into_iter().flatten());
    let resources = rules.map(|rule| rule["resources"].as_array().map_or(0, Vec::len)).sum::<usize>();
    WebhookStatus { configuration: found.key.name.clone(), entries: entries.len() as i64, resources: resources as i64 }
}
