//! What is told of each part of an instance: certificates, rights, the webhook, the layers, reports, monitoring.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portal_crds::{ConditionType, ReportApi};

use super::{Findings, Monitoring, Verdict, seconds};
use crate::{
    desired::Phase,
    instance::Instance,
    names::configuration_name,
    object::{Key, Kind},
    observed::Observed,
    rights::AGGREGATE_LABEL,
};

pub(super) fn certificates(findings: &Findings) -> Verdict {
    match &findings.certificates {
        None => Verdict::unknown("NotLooked", "nobody has looked at the certificates yet"),
        Some(state) => {
            let holds = if state.is_ready { "True" } else { "False" };
            Verdict { holds, reason: state.reason.to_string(), message: state.message.clone() }
        }
    }
}

pub(super) fn rbac(findings: &Findings) -> Verdict {
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

pub(super) fn webhook(instance: &Instance, findings: &Findings) -> Verdict {
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

pub(super) fn contested(key: &Key) -> Verdict {
    let (resource, name) = (key.kind.plural(), &key.name);
    let place = key.namespace.as_deref().map(|namespace| format!(" --namespace {namespace}")).unwrap_or_default();
    let message = format!(
        "somebody changes {key} again and again, and what they change is set right after ever longer pauses: find out who it is by \
         `kubectl get {resource} {name}{place} --show-managed-fields --output yaml`",
    );
    Verdict::no("Contested", message)
}

/// Whether the engine answers through the API server. What was known before an operator started is believed until it has asked itself.
pub(super) fn admission(
    instance: &Instance,
    observed: &Observed,
    findings: &Findings,
    before: &[Condition],
) -> Verdict {
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
pub(super) fn layers(findings: &Findings) -> Vec<(ConditionType, Verdict)> {
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
pub(super) fn audit(findings: &Findings) -> Verdict {
    let audits = findings.engines.iter().find(|state| state.engine.layers.audit);
    match audits {
        Some(state) if state.ready > 0 => Verdict::yes("Running", "what is in the cluster is judged when it changes"),
        Some(_) => Verdict::no("WaitingForPods", "no pod is ready that judges what is in the cluster"),
        None => Verdict::unknown("NotAsked", "it is not known yet which pods there are"),
    }
}

pub(super) fn reports(instance: &Instance, findings: &Findings, observed: &Observed, before: &[Condition]) -> Verdict {
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

pub(super) fn monitoring(findings: &Findings) -> Option<(ConditionType, Verdict)> {
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
