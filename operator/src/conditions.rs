//! What is told about an instance, by one function: its conditions, and the rest of its status.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use portal_crds::{
    CertificatesStatus, ConditionType, EnforcementAction, EngineStatus, ExceptionCounts, PortalInstanceStatus,
    ReportApi, RuleCounts, WebhookStatus,
};

use crate::{
    certificates::State,
    desired::{EngineState, Phase, engine_states, is_enforcing, status_of},
    instance::{Instance, OperatorSettings},
    names::{PAUSED, configuration_name},
    needs::Needs,
    object::{Key, Kind, Object},
    observed::{Failure, NOT_ALLOWED, Observed},
    permissions::Permissions,
    rights::AGGREGATE_LABEL,
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
        Some(_) => observed.refused.clone().map(Blocker::NamespaceNotGranted),
    }
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

fn certificates(findings: &Findings) -> Verdict {
    match &findings.certificates {
        None => Verdict::unknown("NotLooked", "nobody has looked at the certificates yet"),
        Some(state) => {
            let holds = if state.is_ready { "True" } else { "False" };
            Verdict { holds, reason: state.reason.to_string(), message: state.message.clone() }
        }
    }
}

fn rbac(findings: &Findings) -> Verdict {
    if let Some(failure) = findings.failure.as_ref().filter(|failure| failure.subject.contains("Role")) {
        return Verdict::no(failure.reason, &failure.message);
    }
    let Some(permissions) = &findings.permissions else {
        return Verdict::unknown("NotLooked", "nobody has worked out yet what rules need");
    };
    if !permissions.refused.is_empty() {
        return Verdict::no("PermissionRefused", permissions.refusals());
    }
    if permissions.is_incomplete {
        return Verdict::unknown("Asking", "the API server has not told yet what can be granted");
    }
    if findings.is_ceiling_unbounded {
        let (label, value) = AGGREGATE_LABEL;
        let message = format!(
            "the engine may do what its rules need, and nothing else; but a role of the operator has a star, so that rules could be \
             granted anything but what is refused by default: find it by `kubectl get clusterroles --selector {label}={value}`, and \
             name there what rules may need"
        );
        return Verdict::yes("CeilingUnbounded", message);
    }
    Verdict::yes("InSync", "the engine may do what its rules need, and nothing else")
}

fn webhook(instance: &Instance, findings: &Findings) -> Verdict {
    if let Some(key) = findings.contested.iter().find(|key| key.kind == Kind::ValidatingWebhookConfiguration) {
        return contested(key);
    }
    match findings.phase {
        Phase::Off => Verdict::yes("AdmissionDisabled", "the instance judges no requests, and none are sent to it"),
        Phase::WaitingForPods => Verdict::no("WaitingForPods", "no pod can answer yet, and nothing is enforced"),
        Phase::WaitingForProbe => Verdict::no(
            "WaitingForProbe",
            "nothing is enforced before a request of the operator has come through the API server to the engine and back",
        ),
        Phase::WaitingForRules => {
            Verdict::unknown("WaitingForRules", "not all rules are known yet; what was enforced before is enforced")
        }
        Phase::Enforcing => {
            let name = configuration_name(&instance.name);
            Verdict::yes(
                "Configured",
                format!("ValidatingWebhookConfiguration {name} sends what rules judge to the engine"),
            )
        }
    }
}

fn contested(key: &Key) -> Verdict {
    let (resource, name) = (key.kind.plural(), &key.name);
    let place = key.namespace.as_deref().map(|namespace| format!(" --namespace {namespace}")).unwrap_or_default();
    let message = format!(
        "somebody changes {key} again and again, and what they change is set right after ever longer pauses: find out who it is by \
         `kubectl get {resource} {name}{place} --show-managed-fields --output yaml`",
    );
    Verdict::no("Contested", message)
}

/// Whether the engine answers through the API server. What was known before an operator started is believed until it has asked itself.
fn admission(instance: &Instance, observed: &Observed, findings: &Findings, before: &[Condition]) -> Verdict {
    let way_out = "if that goes on, see the page on recovery; `kubectl delete validatingwebhookconfiguration` ends all enforcement";
    match &observed.memory.probe {
        Some(probe) => match &probe.answer {
            Ok(version) if *version == findings.operator_version => {
                Verdict::yes("Answered", "the engine answers through the API server")
            }
            Ok(version) => {
                let operator = &findings.operator_version;
                let message = format!(
                    "the engine answers through the API server; it is version {version}, and the operator is version {operator}"
                );
                Verdict::yes("OtherVersion", message)
            }
            Err(problem) => {
                let last =
                    probe.answered_at.map(|at| format!("; it last answered at {}", seconds(at))).unwrap_or_default();
                let name = configuration_name(&instance.name);
                Verdict::no(
                    "NoAnswer",
                    format!("the engine does not answer through the API server: {problem}{last}; {way_out} {name}"),
                )
            }
        },
        None if findings.phase == Phase::WaitingForPods => {
            Verdict::no("WaitingForPods", "no pod can answer yet, and nothing is enforced")
        }
        None => Verdict::again(ConditionType::AdmissionAvailable, before)
            .unwrap_or_else(|| Verdict::unknown("NotAsked", "nobody has asked the engine through the API server yet")),
    }
}

/// The layers that are asked for and do not exist yet.
fn layers(findings: &Findings) -> Vec<(ConditionType, Verdict)> {
    let condition = |layer: &str| match layer {
        "network" => ConditionType::NetworkAvailable,
        _ => ConditionType::ActionsAvailable,
    };
    let missing = findings.missing_layers.iter().map(|layer| {
        let message = format!("this version of Portal has no {layer}: set `{layer}.enabled: false`");
        (condition(layer), Verdict::no("LayerNotAvailable", message))
    });
    missing.collect()
}

/// Whether pods run that judge what is in the cluster. One of them tells of it; the others are ready to take over.
fn audit(findings: &Findings) -> Verdict {
    let audits = findings.engines.iter().find(|state| state.engine.layers.audit);
    match audits {
        Some(state) if state.ready > 0 => Verdict::yes("Running", "what is in the cluster is judged when it changes"),
        Some(_) => Verdict::no("WaitingForPods", "no pod is ready that judges what is in the cluster"),
        None => Verdict::unknown("NotAsked", "it is not known yet which pods there are"),
    }
}

fn reports(instance: &Instance, findings: &Findings, observed: &Observed, before: &[Condition]) -> Verdict {
    let kind = match instance.spec.sinks.policy_report.api {
        ReportApi::None => return Verdict::no("ReportsDisabled", "the instance asks for no reports"),
        ReportApi::PolicyReport => Kind::PolicyReport,
        ReportApi::OpenReports => Kind::Report,
    };
    if !instance.layers().audit {
        return Verdict::no(
            "AuditDisabled",
            "reports are audit's, which is off; decisions are in the log and in the metrics",
        );
    }
    if observed.served.contains(&kind) {
        let message = format!("what audit finds is in objects of the kind {kind} in {}", kind.group());
        return Verdict::yes("Available", message);
    }
    // Before the kinds are known nothing is served.
    if findings.rules.is_none() {
        return Verdict::again(ConditionType::ReportsAvailable, before)
            .unwrap_or_else(|| Verdict::unknown("NotAsked", "it is not known yet which kinds the API server serves"));
    }
    let message = format!(
        "the API server does not serve {kind} of {}: apply what `portal generate report-crds` prints, and reports are written at once; \
         or set `sinks.policyReport.api: None`",
        kind.group()
    );
    Verdict::no("DefinitionsMissing", message)
}

fn monitoring(findings: &Findings) -> Option<(ConditionType, Verdict)> {
    let verdict = match &findings.monitoring {
        Monitoring::NotWanted => return None,
        Monitoring::Ready => Verdict::yes("Ready", "what Prometheus needs is there"),
        Monitoring::Lacks(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            let message = format!(
                "the API server does not serve {}: install the definitions of the Prometheus operator, or switch `monitoring` off",
                kinds.join(" and ")
            );
            Verdict::no("DefinitionsMissing", message)
        }
    };
    Some((ConditionType::MonitoringReady, verdict))
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

/// How many pods are ready of those that there should be.
fn replicas(findings: &Findings) -> String {
    let ready: i32 = findings.engines.iter().map(|state| state.ready).sum();
    let wanted: u32 = findings.engines.iter().map(|state| state.engine.replicas).sum();
    format!("{ready}/{wanted}")
}

/// What happens to requests that violate a rule.
fn enforcing(instance: &Instance, configuration: Option<&Object>) -> String {
    let is_on = configuration.is_some_and(|found| is_enforcing(found, &instance.name));
    let word = match instance.spec.admission.max_enforcement {
        _ if !is_on => "no",
        EnforcementAction::Deny => "deny",
        EnforcementAction::Warn => "warn",
        EnforcementAction::Dryrun => "dryrun",
    };
    word.to_owned()
}

fn engine_status(state: &EngineState, observed: &Observed, before: &PortalInstanceStatus) -> EngineStatus {
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

fn webhook_status(found: &Object, instance: &Instance) -> WebhookStatus {
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

fn more(count: usize, shown: usize) -> String {
    if count > shown { format!(" (and {} more)", count - shown) } else { String::new() }
}

/// A moment without fractions of a second, as Kubernetes writes it.
fn seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}
