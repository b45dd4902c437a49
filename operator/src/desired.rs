//! What should be, and the steps that lead there: a function of the instance, of what its rules need, and of what is known of the cluster.
//!
//! The order of the steps is the order of this file. Nothing enforces before everything that it stands on is there, and a plan ends where
//! something has to be waited for.

mod certificates;
mod draft;
mod readiness;
mod teardown;
mod webhook;

use jiff::SignedDuration;
use portal_crds::PortalInstanceStatus;

use crate::{
    children,
    conditions::{self, Blocker, Findings, Monitoring},
    instance::{Instance, OperatorSettings},
    names::{INSTANCE_LABEL, MANAGED_BY},
    needs::Needs,
    object::{Key, Kind, Object},
    observed::Observed,
    plan::{Plan, Step},
};

use self::draft::Draft;
use self::webhook::Webhook;

pub use self::certificates::{Certificates, resolve};
pub use self::readiness::{EngineState, engine_states};
pub use self::webhook::{Phase, is_enforcing};

/// The kinds of children that go when nobody wants them any more, in the order in which they go.
const PRUNED: [Kind; 13] = [
    Kind::ServiceMonitor,
    Kind::PrometheusRule,
    Kind::NetworkPolicy,
    Kind::PodDisruptionBudget,
    Kind::Deployment,
    Kind::Service,
    Kind::Certificate,
    Kind::Secret,
    Kind::RoleBinding,
    Kind::Role,
    Kind::ClusterRoleBinding,
    Kind::ClusterRole,
    Kind::ServiceAccount,
];

/// How long engines go on after the webhook configuration is gone: other API servers hear of it later.
const LINGER: SignedDuration = SignedDuration::from_secs(5);

/// What is to be done for an instance. `needs` is nothing while not all rules are known.
pub fn desired(instance: &Instance, needs: Option<&Needs>, observed: &Observed, operator: &OperatorSettings) -> Plan {
    if instance.is_deleted {
        return teardown::plan(instance, observed, operator);
    }
    let mut draft = Draft::new(observed);
    let mut findings = Findings::new(instance, needs, observed, operator);
    if !instance.is_paused {
        match &findings.blocker {
            None => build(instance, needs, observed, operator, &mut draft, &mut findings),
            // Where no engine can be, nothing may ask for its answers.
            Some(Blocker::NamespaceMissing | Blocker::NamespaceTerminating) => draft.delete_configuration(instance),
            Some(_) => {}
        }
    }
    findings.contested = draft.contested.clone();
    findings.failure = draft.failure().cloned();
    let status = conditions::status(instance, observed, &findings, draft.is_pending());
    draft.finish(instance, Some(status))
}

/// What is to be done for the guard of the bypass, which is there once for all instances and outlives them.
pub fn guard(observed: &Observed) -> Plan {
    let mut draft = Draft::new(observed);
    draft.ensure_all(children::guard());
    draft.finish_shared()
}

fn build(
    instance: &Instance,
    needs: Option<&Needs>,
    observed: &Observed,
    operator: &OperatorSettings,
    draft: &mut Draft<'_>,
    findings: &mut Findings,
) {
    if !instance.is_kept {
        draft.push(Step::Keep(true));
    }
    let Some(owners) = draft::Owners::of(instance, observed) else { return };
    let owned = |objects: Vec<_>| objects.into_iter().map(|object| owners.own(object)).collect::<Vec<_>>();
    let leaving = leaving(instance, observed);
    draft.ensure_all(owned(children::accounts(instance)));
    draft.ensure_all(owned(with_accounts(children::roles(instance), &leaving)));

    let certificates = Certificates::judge(instance, observed, operator);
    findings.certificates = Some(certificates.judgement.state.clone());
    draft.look_again(certificates.judgement.look_again);
    if let Some(request) = certificates.request(instance) {
        match observed.served.contains(&Kind::Certificate) {
            true => draft.ensure(owners.own(request)),
            false => findings.lacks_cert_manager = true,
        }
    }
    if let Some(action) = certificates.judgement.action {
        draft.push(Step::Certificate(action));
    }
    for key in certificates.secrets(instance, operator) {
        draft.want(key);
    }

    draft.ensure_all(owned(children::authorities(instance)));
    draft.ensure_all(owned(children::services(instance)));
    draft.ensure_all(owned(children::budgets(instance)));

    // One that is there comes before pods: API servers trust what pods will show before they show it.
    let mut webhook = Webhook::new(instance, needs, observed, operator, &certificates, findings);
    if webhook.is_there() || !instance.layers().admission {
        webhook.plan(draft, findings);
    }
    let deployments = owned(children::deployments(instance, operator));
    match webhook.pods_may_change(&deployments) {
        // Without its Secret a pod would wait, and nobody could tell why.
        Ok(()) if certificates.is_missing => draft.want_all(&deployments),
        Ok(()) => draft.ensure_all(deployments),
        Err(moment) => {
            draft.look_again(moment);
            draft.want_all(&deployments);
            findings.is_waiting = true;
        }
    }
    draft.ensure_all(owned(children::network_policies(instance)));
    if !webhook.is_there() && instance.layers().admission {
        webhook.plan(draft, findings);
    }
    webhook.probe(draft);

    findings.monitoring = monitoring(instance, observed, &owners, draft);
    let are_pods_right = findings.engines.iter().all(EngineState::is_rolled_out) && !draft.changes(Kind::Deployment);
    if are_pods_right && !certificates.is_missing && !findings.is_waiting {
        prune(instance, observed, draft);
    }
}

/// The accounts of Deployments that go as soon as their successors run. Until then they need what they have.
fn leaving(instance: &Instance, observed: &Observed) -> Vec<String> {
    let engines = instance.engines();
    let deployments = observed.of_kind(Kind::Deployment).filter(|object| is_child(object, instance));
    let names = deployments.map(|object| object.key.name.clone());
    names.filter(|name| engines.iter().all(|engine| engine.name != *name)).collect()
}

/// Roles whose bindings have further accounts.
fn with_accounts(mut roles: Vec<Object>, accounts: &[String]) -> Vec<Object> {
    for subjects in roles.iter_mut().filter_map(|object| object.value["subjects"].as_array_mut()) {
        let Some(first) = subjects.first().cloned() else { continue };
        subjects.extend(accounts.iter().map(|account| {
            let mut subject = first.clone();
            subject["name"] = account.as_str().into();
            subject
        }));
    }
    roles
}

/// What Prometheus needs, if its kinds are served.
fn monitoring(instance: &Instance, observed: &Observed, owners: &draft::Owners, draft: &mut Draft<'_>) -> Monitoring {
    let wanted = children::monitoring(instance);
    if wanted.is_empty() {
        return Monitoring::NotWanted;
    }
    let mut missing = Vec::new();
    for object in wanted {
        match observed.served.contains(&object.key.kind) {
            true => draft.ensure(owners.own(object)),
            false => missing.push(object.key.kind),
        }
    }
    if missing.is_empty() { Monitoring::Ready } else { Monitoring::Lacks(missing) }
}

/// Deletes what belongs to the instance and is not wanted any more. What runs goes when its successor runs.
fn prune(instance: &Instance, observed: &Observed, draft: &mut Draft<'_>) {
    for kind in PRUNED {
        for object in observed.of_kind(kind).filter(|object| is_child(object, instance)) {
            if !draft.is_wanted(&object.key) && !object.is_terminating() {
                draft.push(Step::Delete(object.key.clone(), object.uid().to_owned()));
            }
        }
    }
}

/// Whether an object is one that the operator made for an instance.
fn is_child(object: &Object, instance: &Instance) -> bool {
    object.label(MANAGED_BY.0) == Some(MANAGED_BY.1) && object.label(INSTANCE_LABEL) == Some(&instance.name)
}

/// The status that an instance has, as far as it can be read.
pub(crate) fn status_of(instance: &Instance) -> PortalInstanceStatus {
    serde_json::from_value(instance.status.clone()).unwrap_or_default()
}

/// The Secret that pods mount.
pub fn mounted_secret(instance: &Instance) -> Key {
    Key::namespaced(Kind::Secret, instance.namespace(), &instance.certificate_secret())
}
