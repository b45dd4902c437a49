//! What is told about an instance, by one function: its conditions, and the rest of its status.

mod parts;
mod summary;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use portal_crds::{CertificatesStatus, ConditionType, ExceptionCounts, PortalInstanceStatus, RuleCounts};

use crate::{
    certificates::State,
    claims::{Taken, taken},
    desired::{EngineState, Phase, engine_states, status_of},
    instance::{Instance, OperatorSettings},
    names::{PAUSED, POD_SECURITY, configuration_name},
    needs::Needs,
    object::{Key, Kind},
    observed::{Failure, NOT_ALLOWED, Observed},
    permissions::Permissions,
};

use self::{
    parts::{admission, audit, certificates, contested, layers, monitoring, rbac, reports, webhook},
    summary::{enforcing, engine_status, replicas, webhook_status},
};

/// What was found while the plan was made.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What keeps the operator from doing anything at all.
    pub blocker: Option<Blocker>,
    /// How the certificates are. None if nobody looked.
    pub certificates: Option<State>,
    /// Whether cert-manager is asked for and not there.
    pub lacks_cert_manager: bool,
    /// The level of Pod Security by which the namespace forbids the network of the node, if the instance asks for it.
    pub forbids_host_network: Option<String>,
    /// How far the Deployments are.
    pub engines: Vec<EngineState>,
    /// Where the webhook configuration is in its life.
    pub phase: Phase,
    /// Whether pods wait until API servers trust what they will show, or know that they go.
    pub is_waiting: bool,
    /// Whether what Prometheus needs is there.
    pub monitoring: Monitoring,
    /// Objects that somebody else changes again and again.
    pub contested: Vec<Key>,
    /// The step that has failed, if it has to be done still.
    pub failure: Option<Failure>,
    /// What was decided of what rules need. None if nobody decided.
    pub permissions: Option<Permissions>,
    /// Whether the operator may do something by a star, and so could hand on anything.
    pub is_ceiling_unbounded: bool,
    /// How many rules there are.
    pub rules: Option<RuleCounts>,
    /// The exceptions that they have. The outer is nothing while not all rules are known.
    pub exceptions: Option<Option<ExceptionCounts>>,
    /// The instance that acts in the place of this one, because both ask for actions and may meet the same objects.
    pub acts_instead: Option<String>,
    /// What is wrong with the ConfigMaps that have rules.
    pub rule_problems: Vec<String>,
    /// Layers that are asked for and do not exist yet.
    pub missing_layers: Vec<&'static str>,
    /// Fields that this version does not know.
    pub unknown_fields: Vec<String>,
    /// The version of the operator.
    pub operator_version: String,
}

/// What keeps the operator from doing anything for an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Blocker {
    /// What the instance asks for cannot be read: another version of Portal knows it.
    SpecNotUnderstood(String),
    /// There is no such namespace.
    NamespaceMissing,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// The operator itself is there.
    NamespaceOfOperator,
    /// The operator may do nothing there: this is what was refused.
    NamespaceNotGranted(String),
    /// Another instance has an object of which there would have to be two.
    NameTaken(Taken),
}

/// Whether what Prometheus needs is there.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Monitoring {
    /// Nobody asked.
    #[default]
    NotWanted,
    /// It is.
    Ready,
    /// These kinds are not served.
    Lacks(Vec<Kind>),
}

/// A condition to be: what holds, why in a word, why in a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Verdict {
    holds: &'static str,
    reason: String,
    message: String,
}

impl Findings {
    /// What can be said before anything is planned.
    pub fn new(
        instance: &Instance,
        needs: Option<&Needs>,
        observed: &Observed,
        operator: &OperatorSettings,
    ) -> Findings {
        let spec = &instance.spec;
        let layers = [("network", spec.network.enabled), ("actions", spec.actions.enabled)];
        Findings {
            blocker: blocker(instance, observed, operator),
            certificates: None,
            lacks_cert_manager: false,
            forbids_host_network: forbids_host_network(instance, observed),
            engines: engine_states(instance, observed),
            phase: Phase::default(),
            is_waiting: false,
            monitoring: Monitoring::default(),
            contested: Vec::new(),
            failure: None,
            permissions: None,
            is_ceiling_unbounded: observed.is_ceiling_unbounded,
            rules: needs.map(|needs| needs.counts),
            exceptions: needs.map(|needs| needs.exceptions.counts(observed.now)),
            acts_instead: instance.acts_instead(&observed.others).map(|other| other.name.clone()),
            rule_problems: needs.map(|needs| needs.problems.clone()).unwrap_or_default(),
            missing_layers: layers.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| name).collect(),
            unknown_fields: instance.unknown_fields.clone(),
            operator_version: operator.version.clone(),
        }
    }
}

fn blocker(instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Option<Blocker> {
    if let Some(problem) = &instance.problem {
        return Some(Blocker::SpecNotUnderstood(problem.clone()));
    }
    if instance.namespace() == operator.namespace {
        return Some(Blocker::NamespaceOfOperator);
    }
    match observed.get(&Key::cluster(Kind::Namespace, instance.namespace())) {
        None => Some(Blocker::NamespaceMissing),
        Some(namespace) if namespace.is_terminating() => Some(Blocker::NamespaceTerminating),
        Some(_) => match &observed.refused {
            Some(refused) => Some(Blocker::NamespaceNotGranted(refused.clone())),
            None => taken(instance, observed, operator).map(Blocker::NameTaken),
        },
    }
}

/// The level of Pod Security by which the namespace forbids what the instance asks for. A level that all namespaces have is not seen here: then
/// the pods that cannot be made tell.
fn forbids_host_network(instance: &Instance, observed: &Observed) -> Option<String> {
    let namespace = observed.get(&Key::cluster(Kind::Namespace, instance.namespace()))?;
    let level = namespace.label(POD_SECURITY).filter(|level| ["baseline", "restricted"].contains(level))?;
    (instance.spec.admission.host_network && instance.layers().admission).then(|| level.to_owned())
}

/// The status of an instance, as it is true now. `is_pending`: something is left to do.
pub fn status(instance: &Instance, observed: &Observed, findings: &Findings, is_pending: bool) -> PortalInstanceStatus {
    let before = status_of(instance);
    let verdicts = verdicts(instance, observed, findings, is_pending, &before.conditions);
    let conditions =
        verdicts.into_iter().map(|(condition, verdict)| verdict.over(condition, instance, observed.now, &before));
    let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
    let configuration = observed.get(&key);
    let certificates = findings.certificates.as_ref().map(|state| CertificatesStatus {
        authority_not_after: state.authority_expires.map(Time),
        not_after: state.expires.map(Time),
    });
    let (observed_generation, operator_version) = (instance.generation, Some(findings.operator_version.clone()));
    if instance.problem.is_some() {
        // Which pods there should be, nobody knows.
        let conditions = conditions.collect();
        return PortalInstanceStatus { observed_generation, conditions, operator_version, ..before };
    }
    PortalInstanceStatus {
        observed_generation,
        conditions: conditions.collect(),
        replicas: Some(replicas(findings)),
        enforcing: Some(enforcing(instance, configuration)),
        operator_version,
        engines: findings.engines.iter().map(|state| engine_status(state, observed, &before)).collect(),
        rules: findings.rules.or(before.rules),
        exceptions: findings.exceptions.clone().unwrap_or(before.exceptions),
        webhook: configuration.map(|found| webhook_status(found, instance)),
        certificates: certificates.or(before.certificates),
    }
}

/// All conditions, in the order in which people read them.
fn verdicts(
    instance: &Instance,
    observed: &Observed,
    findings: &Findings,
    is_pending: bool,
    before: &[Condition],
) -> Vec<(ConditionType, Verdict)> {
    let mut parts: Vec<(ConditionType, Verdict)> = Vec::new();
    if instance.is_paused {
        let message = format!("the operator leaves the instance alone: remove the annotation {PAUSED} to go on");
        parts.push((ConditionType::Paused, Verdict::yes("Paused", message)));
    }
    // What nobody looked at stays as it was.
    if findings.blocker.is_none() && !instance.is_paused {
        parts.push((ConditionType::CertificatesReady, certificates(findings)));
        parts.push((ConditionType::RBACReady, rbac(findings)));
        parts.push((ConditionType::WebhookConfigured, webhook(instance, findings)));
        if instance.layers().admission {
            parts.push((ConditionType::AdmissionAvailable, admission(instance, observed, findings, before)));
        }
        if instance.layers().audit {
            parts.push((ConditionType::AuditAvailable, audit(findings)));
        }
        parts.extend(layers(findings));
        parts.push((ConditionType::ReportsAvailable, reports(instance, findings, observed, before)));
        parts.extend(monitoring(findings));
    } else {
        let kept = [
            ConditionType::CertificatesReady,
            ConditionType::RBACReady,
            ConditionType::WebhookConfigured,
            ConditionType::AdmissionAvailable,
            ConditionType::AuditAvailable,
            ConditionType::ReportsAvailable,
        ];
        parts.extend(kept.into_iter().filter_map(|condition| Some((condition, Verdict::again(condition, before)?))));
    }
    let (ready, is_stalled) = ready(instance, findings, is_pending, &parts);
    let mut verdicts = vec![(ConditionType::Ready, ready.clone())];
    if ready.holds != "True" && !instance.is_paused {
        let condition = if is_stalled { ConditionType::Stalled } else { ConditionType::Reconciling };
        verdicts.push((condition, Verdict { holds: "True", ..ready }));
    }
    verdicts.extend(parts);
    verdicts
}

/// Whether everything that the instance asks for runs, and if not, whether somebody has to do something.
fn ready(
    instance: &Instance,
    findings: &Findings,
    is_pending: bool,
    parts: &[(ConditionType, Verdict)],
) -> (Verdict, bool) {
    let of = |condition: ConditionType| parts.iter().find(|(found, _)| *found == condition).map(|(_, verdict)| verdict);
    let lacks = |condition| of(condition).filter(|verdict| verdict.holds != "True").cloned();
    if instance.is_paused {
        let message = format!("nothing is looked after while the annotation {PAUSED} is there: remove it to go on");
        return (Verdict::unknown("Paused", message), false);
    }
    if let Some(blocker) = &findings.blocker {
        return (blocker.verdict(instance), true);
    }
    if let Some(failure) = &findings.failure {
        let message = format!("{}: {}; it is tried again and again", failure.subject, failure.message);
        // A conflict or an API server that is away mends itself.
        return (Verdict::no(failure.reason, message), failure.reason == NOT_ALLOWED && failure.times > 1);
    }
    if let Some(other) = &findings.acts_instead {
        let message = format!(
            "PortalInstance {other} is older, has `actions.enabled` too, and may meet the same objects by the same rules: only one acts. \
             Set `actions.enabled: false` here, or give the two a `ruleSelector` or a `namespaceSelector` that have nothing in common"
        );
        return (Verdict::no("ActionsElsewhere", message), true);
    }
    if !findings.missing_layers.is_empty() {
        let layers = findings.missing_layers.join(", ");
        let message = format!(
            "this version of Portal does not have what the instance asks for: {layers}; everything else runs. Set `enabled: false` \
             there, or use a version that has it"
        );
        return (Verdict::no("LayerNotAvailable", message), true);
    }
    if let Some(field) = findings.unknown_fields.first() {
        let more = more(findings.unknown_fields.len(), 1);
        let message = format!(
            "this version of Portal does not know `spec.{field}`{more} and does without; everything else runs. Use a version that has it, \
             or take it away"
        );
        return (Verdict::no("FieldsNotKnown", message), true);
    }
    if findings.lacks_cert_manager {
        let message =
            "cert-manager is not installed, or not served yet: install it, or set `certificates.source: Operator`";
        return (Verdict::no("CertManagerMissing", message), true);
    }
    if let Some(level) = &findings.forbids_host_network {
        return (host_network(instance, level), true);
    }
    if let Some(verdict) = lacks(ConditionType::CertificatesReady) {
        // Only what somebody else brings waits for somebody.
        let is_ours = instance.spec.certificates.source == portal_crds::CertificateSource::Operator;
        return (verdict, !is_ours);
    }
    // Whoever changes a Deployment again and again is why its pods are not as they should be.
    if let Some(key) = findings.contested.first() {
        return (contested(key), false);
    }
    if let Some(verdict) = rollout(findings) {
        return (verdict, false);
    }
    if let Some(verdict) = lacks(ConditionType::WebhookConfigured).or_else(|| lacks(ConditionType::AdmissionAvailable))
    {
        return (verdict, false);
    }
    if is_pending || findings.is_waiting {
        return (Verdict::no("Progressing", "the children of the instance are brought to what it says"), false);
    }
    if let Some(problem) = findings.rule_problems.first() {
        let message = format!("{problem}{}; everything else runs", more(findings.rule_problems.len(), 1));
        return (Verdict::no("BootstrapRulesInvalid", message), true);
    }
    if let Some(verdict) = lacks(ConditionType::MonitoringReady) {
        return (verdict, true);
    }
    (Verdict::yes("Ready", "everything that the instance asks for runs"), false)
}

/// What forbids the network of the node, and the way out.
fn host_network(instance: &Instance, level: &str) -> Verdict {
    let namespace = instance.namespace();
    let message = format!(
        "namespace {namespace} has the level {level} of Pod Security, which forbids `admission.hostNetwork`; pods stay as they are. Set \
         `admission.hostNetwork: false`, or `kubectl label namespace {namespace} {POD_SECURITY}=privileged --overwrite`"
    );
    Verdict::no("HostNetworkForbidden", message)
}

/// What is not yet as it should be of the pods.
fn rollout(findings: &Findings) -> Option<Verdict> {
    let state = findings.engines.iter().find(|state| !state.is_rolled_out())?;
    let EngineState { engine, ready, problem, .. } = state;
    let counted = format!("Deployment {}: {ready} of {} pods are ready", engine.name, engine.replicas);
    Some(match problem {
        Some(problem) => Verdict::no("PodsNotReady", format!("{counted}; {problem}")),
        None => Verdict::no("Progressing", format!("{counted}, or are being replaced")),
    })
}

impl Blocker {
    fn verdict(&self, instance: &Instance) -> Verdict {
        let namespace = instance.namespace();
        let grant = format!("portal generate namespace-grant {namespace} | kubectl apply --server-side -f -");
        match self {
            Blocker::SpecNotUnderstood(problem) => Verdict::no(
                "SpecNotUnderstood",
                format!(
                    "this version of Portal does not understand the instance, and leaves everything as it is: {problem}. Use a version \
                     that does, or change it"
                ),
            ),
            Blocker::NamespaceMissing => Verdict::no(
                "NamespaceMissing",
                format!("there is no namespace {namespace}: `kubectl create namespace {namespace}`, then `{grant}`"),
            ),
            Blocker::NamespaceTerminating => Verdict::no(
                "NamespaceTerminating",
                format!(
                    "namespace {namespace} is being deleted, and nothing is enforced: make it anew, or delete the instance"
                ),
            ),
            Blocker::NamespaceOfOperator => Verdict::no(
                "NamespaceOfOperator",
                format!(
                    "the operator itself runs in namespace {namespace}, and its keys must not be where engines run: delete the \
                     instance, and make it with another `namespace`"
                ),
            ),
            Blocker::NamespaceNotGranted(refused) => Verdict::no(
                "NamespaceNotGranted",
                format!(
                    "the operator may do nothing in namespace {namespace}: {refused}; an administrator grants it by `{grant}`"
                ),
            ),
            Blocker::NameTaken(Taken { by, key }) => Verdict::no(
                "NameTaken",
                format!(
                    "the instance needs an object that PortalInstance {by} has, {key}: children are called after their instances. Nothing is \
                     changed for this one until {by} is gone, or needs it no more. Make one of the two anew with another name or in another \
                     `namespace`, or take back what was changed"
                ),
            ),
        }
    }
}

impl Verdict {
    fn new(holds: &'static str, reason: impl Into<String>, message: impl Into<String>) -> Verdict {
        Verdict { holds, reason: reason.into(), message: message.into() }
    }

    fn yes(reason: &str, message: impl Into<String>) -> Verdict {
        Verdict::new("True", reason, message)
    }

    fn no(reason: &str, message: impl Into<String>) -> Verdict {
        Verdict::new("False", reason, message)
    }

    fn unknown(reason: &str, message: impl Into<String>) -> Verdict {
        Verdict::new("Unknown", reason, message)
    }

    /// What was said before.
    fn again(condition: ConditionType, before: &[Condition]) -> Option<Verdict> {
        let found = before.iter().find(|found| found.type_ == condition.to_string())?;
        let holds = ["True", "False"].into_iter().find(|word| *word == found.status).unwrap_or("Unknown");
        Some(Verdict::new(holds, found.reason.clone(), found.message.clone()))
    }

    /// The condition, with the time at which it last changed.
    fn over(
        self,
        condition: ConditionType,
        instance: &Instance,
        now: Timestamp,
        before: &PortalInstanceStatus,
    ) -> Condition {
        let type_ = condition.to_string();
        let known = before.conditions.iter().find(|known| known.type_ == type_ && known.status == self.holds);
        Condition {
            last_transition_time: known.map_or_else(|| Time(seconds(now)), |known| known.last_transition_time.clone()),
            message: self.message,
            observed_generation: Some(instance.generation),
            reason: self.reason,
            status: self.holds.to_owned(),
            type_,
        }
    }
}

fn more(count: usize, shown: usize) -> String {
    if count > shown { format!(" (and {} more)", count - shown) } else { String::new() }
}

/// A moment without fractions of a second, as Kubernetes writes it.
fn seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}
