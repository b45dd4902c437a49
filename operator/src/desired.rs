//! What should be, and the steps that lead there: a function of the instance, of what its rules need, and of what is known of the cluster.
//!
//! The order of the steps is the order of this file. Nothing enforces before everything that it stands on is there, and a plan ends where
//! something has to be waited for.

mod certificates;
mod draft;
mod readiness;
mod teardown;
mod webhook;

use std::collections::BTreeSet;

use portal_crds::PortalInstanceStatus;
use serde_json::Value;

use crate::{
    children,
    conditions::{self, Blocker, Findings, Monitoring},
    instance::{Engine, Instance, OperatorSettings},
    names::{INSTANCE_LABEL, MANAGED_BY},
    needs::Needs,
    object::{Key, Kind, Object},
    observed::Observed,
    permissions::{GRACE, Permissions},
    plan::{Plan, Step},
};

use self::draft::Draft;
use self::webhook::Webhook;

pub use self::certificates::{Certificates, resolve};
pub use self::readiness::{EngineState, engine_states};
pub use self::webhook::{Phase, is_enforcing};

/// The kinds of children that go when nobody wants them any more, in the order in which they go.
const PRUNED: [Kind; 14] = [
    Kind::ServiceMonitor,
    Kind::PrometheusRule,
    Kind::NetworkPolicy,
    Kind::PodDisruptionBudget,
    Kind::Deployment,
    Kind::Service,
    Kind::Certificate,
    Kind::Secret,
    Kind::ConfigMap,
    Kind::RoleBinding,
    Kind::Role,
    Kind::ClusterRoleBinding,
    Kind::ClusterRole,
    Kind::ServiceAccount,
];

/// What is to be done for an instance. `needs` is nothing while not all rules are known.
pub fn desired(instance: &Instance, needs: Option<&Needs>, observed: &Observed, operator: &OperatorSettings) -> Plan {
    if instance.is_deleted {
        return teardown::plan(instance, observed, operator);
    }
    // Of what cannot be read nobody knows what it needs.
    let needs = needs.filter(|_| instance.problem.is_none());
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
    draft.ensure_all(owned(children::accounts(instance)));
    let permissions = needs.map(|needs| Permissions::judge(instance, needs, observed)).unwrap_or_default();
    let is_decided = needs.is_some() && !permissions.is_incomplete;
    // What is moved from one role to another is given there before it is taken away here.
    let engines = engines(instance, observed);
    let roles = owned(engines.iter().flat_map(|engine| children::roles(instance, engine, &permissions)).collect());
    let (widened, narrowed): (Vec<_>, Vec<_>) = roles.into_iter().partition(|role| !is_narrower(role, observed));
    for role in widened.into_iter().chain(narrowed) {
        grant(role, is_decided, instance, observed, draft);
    }
    if !is_decided {
        let roles = observed.of_kind(Kind::Role).chain(observed.of_kind(Kind::RoleBinding));
        roles.for_each(|object| draft.want(object.key.clone()));
    }
    let is_needed = |layer: &str, need| needs.is_some_and(|needs| needs.needs(layer, need));
    let gone = observed.memory.needed.iter().filter(|((layer, need), _)| !is_needed(layer, need));
    if let Some(moment) = gone.map(|(_, at)| *at).min() {
        draft.look_again(moment + GRACE);
    }
    findings.permissions = Some(permissions);
    if let Some(end) = needs.and_then(|needs| needs.exceptions.next_end(observed.now)) {
        draft.look_again(end);
    }

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
    draft.ensure_all(certificates.marks(instance, observed, operator));

    draft.ensure_all(owned(children::authorities(instance)));
    draft.ensure_all(owned(children::services(instance)));
    draft.ensure_all(owned(children::budgets(instance)));

    // One that is there comes before pods: API servers trust what pods will show before they show it.
    let mut webhook = Webhook::new(instance, needs, observed, operator, &certificates, findings);
    if webhook.is_there() || !instance.layers().admission {
        webhook.plan(draft, findings);
    }
    let mut deployments = owned(children::deployments(instance, operator));
    if findings.forbids_host_network.is_some() {
        // Each pod that ends would be lost. Those that run stay as they are.
        let is_forbidden = |object: &Object| object.value["spec"]["template"]["spec"]["hostNetwork"] == true;
        let (forbidden, allowed): (Vec<_>, Vec<_>) = deployments.into_iter().partition(is_forbidden);
        draft.want_all(&forbidden);
        deployments = allowed;
    }
    match webhook.pods_may_change(&deployments, draft) {
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
        prune(instance, observed, &engines, draft);
    }
}

/// Whether a role takes something away that it gives now.
fn is_narrower(role: &Object, observed: &Observed) -> bool {
    let rights = |role: &Object| -> BTreeSet<[String; 3]> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let mut rights = BTreeSet::new();
        for rule in role.value["rules"].as_array().into_iter().flatten() {
            let [groups, resources, verbs] = ["apiGroups", "resources", "verbs"].map(|field| texts(&rule[field]));
            for (group, resource) in
                groups.iter().flat_map(|group| resources.iter().map(move |resource| (group, resource)))
            {
                rights.extend(verbs.iter().map(|verb| [group.clone(), resource.clone(), verb.clone()]));
            }
        }
        rights
    };
    observed.get(&role.key).is_some_and(|known| !rights(known).is_subset(&rights(role)))
}

/// Sees to it that a role, or its binding, is as it should be. As long as not everything is decided, no role is made narrower: what rules need
/// may be in it. In a namespace that ends, or is not there, nothing can be made: whoever makes it is an event.
fn grant(role: Object, is_decided: bool, instance: &Instance, observed: &Observed, draft: &mut Draft<'_>) {
    let namespace = role.key.namespace.as_deref().filter(|namespace| *namespace != instance.namespace());
    let is_place = |namespace: &str| {
        let place = observed.get(&Key::cluster(Kind::Namespace, namespace));
        place.is_some_and(|place| !place.is_terminating())
    };
    let is_role = matches!(role.key.kind, Kind::ClusterRole | Kind::Role);
    let is_left = is_role && !is_decided && observed.get(&role.key).is_some();
    match is_left || !namespace.is_none_or(is_place) {
        true => draft.want(role.key),
        false => draft.ensure(role),
    }
}

/// The sets of pods that there should be, and those that go: of Deployments whose successors do not run yet, and of pods that still answer after
/// their Deployment is gone. Until then they need what their layers need: a rule that cannot read what it needs refuses.
pub fn engines(instance: &Instance, observed: &Observed) -> Vec<Engine> {
    let mut engines = instance.engines();
    let deployments = observed.of_kind(Kind::Deployment).map(|object| (object, object.key.name.as_str()));
    let is_over = |pod: &Object| matches!(pod.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let pods = observed.of_kind(Kind::Pod).filter(|pod| !is_over(pod));
    let pods = pods.filter_map(|pod| Some((pod, pod.value["spec"]["serviceAccountName"].as_str()?)));
    let accounts = deployments.chain(pods).filter(|(object, _)| is_child(object, instance)).map(|(_, account)| account);
    for account in accounts.collect::<BTreeSet<_>>() {
        if engines.iter().all(|engine| engine.name != account) {
            engines.extend(instance.leaving(account));
        }
    }
    engines
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
fn prune(instance: &Instance, observed: &Observed, engines: &[Engine], draft: &mut Draft<'_>) {
    for kind in PRUNED {
        for object in observed.of_kind(kind).filter(|object| is_child(object, instance)) {
            let is_account = |engine: &Engine| engine.name == object.key.name;
            let is_needed = kind == Kind::ServiceAccount && engines.iter().any(is_account);
            if !draft.is_wanted(&object.key) && !object.is_terminating() && !is_needed {
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
