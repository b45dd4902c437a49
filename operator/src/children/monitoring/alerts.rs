//! The alerts about Portal itself: what is worth waking somebody up, by what an instance asks for.

use portal_crds::{CertificateSource, ReportApi};
use serde_json::{Value, json};

use crate::instance::Instance;
use crate::names::pods_service;

/// Something that is wrong with Portal itself.
pub(super) struct Alert {
    /// Its name: a heading of the page of alerts too.
    pub(super) name: &'static str,
    severity: Severity,
    /// How long it has to last.
    lasts: &'static str,
    /// What is true then, in PromQL. `$` is the selector of the instance's pods.
    expression: String,
    summary: &'static str,
    description: &'static str,
}

/// Who has to look: somebody at once, somebody today, or whoever wants to know.
#[derive(Clone, Copy)]
enum Severity {
    Critical,
    Warning,
    Info,
}

use Severity::{Critical, Info, Warning};

/// The page of the documentation with a section for each alert.
pub(super) const PAGE: &str = "docs/operator/alerts.md";

impl Alert {
    /// The rule of Prometheus.
    pub(super) fn rule(&self, instance: &Instance) -> Value {
        let pods = format!("job=\"{}\"", pods_service(&instance.name));
        let (runbook, page) = match &instance.spec.monitoring.runbook_url {
            Some(page) => ("runbook_url", page.as_str()),
            None => ("runbook", PAGE),
        };
        json!({
            "alert": self.name,
            "expr": self.expression.replace('$', &pods),
            "for": self.lasts,
            "labels": {
                "severity": match self.severity {
                    Critical => "critical",
                    Warning => "warning",
                    Info => "info",
                },
                "portal_instance": instance.name,
            },
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                runbook: format!("{page}#{}", self.name.to_lowercase()),
            },
        })
    }
}

/// What is worth an alert. Numbers that depend on what the instance says are worked out from it.
pub(super) fn alerts(instance: &Instance) -> Vec<Alert> {
    let layers = instance.layers();
    let mut alerts = of_every_engine(instance);
    if layers.admission {
        alerts.extend(of_admission(instance));
    }
    if layers.audit {
        alerts.extend(of_audit(instance));
    }
    if instance.spec.sinks.alertmanager.is_some() {
        alerts.extend(of_alertmanager());
    }
    alerts
}

fn alert(
    name: &'static str,
    severity: Severity,
    lasts: &'static str,
    expression: impl Into<String>,
    summary: &'static str,
    description: &'static str,
) -> Alert {
    Alert { name, severity, lasts, expression: expression.into(), summary, description }
}

fn of_every_engine(instance: &Instance) -> Vec<Alert> {
    let replicas: u32 = instance.engines().iter().map(|engine| engine.replicas).sum();
    vec![
        alert(
            "PortalDown",
            Critical,
            "5m",
            "absent(portal_rules{$})",
            "No engine of the instance is seen.",
            "No pod of the engine gives metrics. If the instance fails closed, requests that rules judge are refused.",
        ),
        alert(
            "PortalReplicasMissing",
            Warning,
            "15m",
            format!("count(portal_lease_held{{$}}) < {replicas}"),
            "Fewer pods of the engine run than the instance asks for.",
            "{{ $value }} pods of the engine give metrics. The next one that ends may be the last.",
        ),
        alert(
            "PortalNobodyWritesStatus",
            Warning,
            "5m",
            "sum(portal_lease_held{$}) == 0",
            "No pod of the engine holds the Lease.",
            "Rules are in force, and their status is not written: nobody learns what becomes of a rule.",
        ),
        alert(
            "PortalStatusWritesFail",
            Warning,
            "15m",
            "sum(increase(portal_status_writes_total{$,result=\"failed\"}[15m])) > 0",
            "The status of rules cannot be written.",
            "Rules are in force, and what their status says is out of date.",
        ),
        alert(
            "PortalRulesNotInForce",
            Warning,
            "15m",
            "max by (state) (portal_rules{$,state=~\"refused|waiting|syncing\"}) > 0",
            "Rules are not in force.",
            "{{ $value }} rules are not in force: they are {{ $labels.state }}. Their status says why.",
        ),
        alert(
            "PortalRuleFilesBroken",
            Warning,
            "10m",
            "max(portal_rule_files_with_problems{$}) > 0",
            "Bootstrap rules cannot be used as they are.",
            "The newest version of {{ $value }} files of rules cannot be used. The version before stays in force, if there was one.",
        ),
        alert(
            "PortalRuleFails",
            Warning,
            "5m",
            "sum by (rule) (rate(portal_rule_evaluations_total{$,result=\"failed\"}[5m])) > 0",
            "A rule cannot be evaluated.",
            "The rule {{ $labels.rule }} fails for some objects. Reports have them as errors, and an instance that fails closed refuses them.",
        ),
        alert(
            "PortalFreshReadsFail",
            Warning,
            "10m",
            "sum by (result) (rate(portal_fresh_reads_total{$,result!=\"answered\"}[5m])) > 0",
            "What rules read by `consistentCluster` is not at hand.",
            "Reads of the API server end as {{ $labels.result }}, and the rules that need them fail.",
        ),
        alert(
            "PortalWatchesBreak",
            Warning,
            "15m",
            "sum by (watch) (increase(portal_watch_errors_total{$}[15m])) > 10",
            "A watch breaks again and again.",
            "The watch {{ $labels.watch }} broke {{ $value | humanize }} times in 15 minutes. Rules go on with what was known last.",
        ),
    ]
}

fn of_admission(instance: &Instance) -> Vec<Alert> {
    let spec = &instance.spec;
    // A certificate of the operator is replaced when two thirds of its days are over. Half of the rest is late.
    let late = match spec.certificates.source {
        CertificateSource::Operator => spec.certificates.leaf_days * 24 / 6,
        CertificateSource::CertManager | CertificateSource::Secret => 7 * 24,
    };
    vec![
        alert(
            "PortalCertificateExpires",
            Critical,
            "15m",
            format!("min(portal_admission_certificate_expiry_timestamp_seconds{{$}}) - time() < {late} * 3600"),
            "The certificate of the webhook expires soon.",
            "It ends in {{ $value | humanizeDuration }}, and should have been replaced before. Then nobody can be answered.",
        ),
        alert(
            "PortalCertificateRefused",
            Warning,
            "15m",
            "sum(increase(portal_admission_certificate_loads_total{$,result=\"refused\"}[1h])) > 0",
            "A new certificate cannot be used.",
            "The one before stays in use until it expires. The log of the pods says what is wrong with the new one.",
        ),
        alert(
            "PortalRequestsUnanswered",
            Critical,
            "10m",
            "sum by (reason) (rate(portal_admission_requests_refused_total{$}[5m])) > 0",
            "Requests get no decision.",
            "Requests are answered without a decision: {{ $labels.reason }}. The API server does with them what `failClosed` says.",
        ),
        alert(
            "PortalAdmissionSlow",
            Warning,
            "10m",
            format!(
                "histogram_quantile(0.99, sum by (le) (rate(portal_admission_latency_seconds_bucket{{$}}[5m]))) > {}",
                f64::from(spec.admission.timeout_seconds) / 2.0
            ),
            "Decisions take half of the time that they may.",
            "One in a hundred takes longer than {{ $value | humanizeDuration }}. Who takes too long is not heard.",
        ),
        alert(
            "PortalRecordsLost",
            Warning,
            "5m",
            "sum by (sink) (increase(portal_sink_records_lost_total{$}[15m])) > 0",
            "Records of decisions are lost.",
            "{{ $labels.sink }} is too slow for the records of decisions. No decision waits for it.",
        ),
        alert(
            "PortalBypassUsed",
            Info,
            "1m",
            // A namespace has no series before its first request is passed by, and growth is only seen from the second on.
            "sum by (namespace) (increase(portal_admission_bypass_total{$}[15m]) > 0 \
             or (portal_admission_bypass_total{$} unless portal_admission_bypass_total{$} offset 15m)) > 0",
            "A namespace is passed by.",
            "No rule is asked about what is in the namespace {{ $labels.namespace }}: its annotation `portal.io/bypass` says so.",
        ),
    ]
}

fn of_audit(instance: &Instance) -> Vec<Alert> {
    let mut alerts = vec![
        alert(
            "PortalAuditSlow",
            Warning,
            "15m",
            "histogram_quantile(0.99, sum by (le) (rate(portal_audit_latency_seconds_bucket{$}[5m]))) > 10",
            "Audit is behind the cluster.",
            "One change in a hundred is judged {{ $value | humanizeDuration }} after it was seen, or later. What is reported and alerted is that old.",
        ),
        alert(
            "PortalLookupsChangeTooOften",
            Info,
            "30m",
            "sum(increase(portal_lookup_cycle_suppressed_total{$}[15m])) > 0",
            "What a rule looks up changes all the time.",
            "Objects wait before they are judged again, because what their rules look up changes more often than `lookups.reevaluations` allows. The log says which rule and which object.",
        ),
        alert(
            "PortalLookupsForgotten",
            Warning,
            "15m",
            "sum(increase(portal_lookup_dependencies_forgotten_total{$}[15m])) > 0",
            "Rules look up more than is remembered.",
            "A change of what rules look up may be noticed only when all is judged again. Raise `lookups.maxDependencies`, and the memory of the pods.",
        ),
    ];
    if instance.spec.sinks.policy_report.api != ReportApi::None {
        alerts.extend([
            alert(
                "PortalReportsFail",
                Warning,
                "15m",
                "sum(increase(portal_report_writes_total{$,result=\"failed\"}[15m])) > 0",
                "Policy reports cannot be written.",
                "What reports say is out of date. The condition `ReportsAvailable` of the instance and the log of the pods say why.",
            ),
            alert(
                "PortalReportsFull",
                Info,
                "15m",
                "max(portal_report_results_left_out{$}) > 0",
                "Policy reports have no room for all results.",
                "{{ $value }} results are in the summaries of reports alone, because no report may be larger than 1 MB.",
            ),
        ]);
    }
    alerts
}

fn of_alertmanager() -> [Alert; 2] {
    [
        alert(
            "PortalAlertsNotTaken",
            Warning,
            "10m",
            "sum by (reason) (increase(portal_alert_failures_total{$}[10m])) > 5",
            "An Alertmanager does not take alerts.",
            "Messages to an Alertmanager fail again and again: {{ $labels.reason }}. The log of the pods says which one and why.",
        ),
        alert(
            "PortalAlertsLost",
            Warning,
            "1m",
            "sum by (reason) (increase(portal_alerts_lost_total{$}[15m])) > 0",
            "Alerts are lost.",
            "An Alertmanager was not told of alerts: {{ $labels.reason }}.",
        ),
    ]
}
