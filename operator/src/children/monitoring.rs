//! What Prometheus is told: where the pods are, and when something is wrong with Portal itself.

use portal_crds::CertificateSource;
use serde_json::{Value, json};

use crate::children::child;
use crate::instance::Instance;
use crate::names::{INSTANCE_LABEL, METRICS_PORT, configuration_name, pods_service};
use crate::object::{Kind, Object};

/// Something that is wrong with Portal itself.
struct Alert {
    /// Its name: a heading of the page of alerts too.
    name: &'static str,
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

/// A ServiceMonitor and a PrometheusRule, if the instance asks for them. Their kinds are not Kubernetes' own, and may not be served.
pub fn monitoring(instance: &Instance) -> Vec<Object> {
    if instance.engines().is_empty() {
        return Vec::new();
    }
    let name = configuration_name(&instance.name);
    let wanted = &instance.spec.monitoring;
    let monitor =
        wanted.service_monitor.then(|| child(instance, Kind::ServiceMonitor, &name, service_monitor(instance)));
    let rule = wanted.prometheus_rule.then(|| child(instance, Kind::PrometheusRule, &name, prometheus_rule(instance)));
    monitor.into_iter().chain(rule).collect()
}

/// Of the Services of an instance, the one over all pods alone has the port.
fn service_monitor(instance: &Instance) -> Value {
    json!({ "spec": {
        "selector": { "matchLabels": { INSTANCE_LABEL: instance.name } },
        "targetLabels": [INSTANCE_LABEL],
        // The label `namespace` of a metric means the namespace that it is about, and not that of the pod.
        "endpoints": [{ "port": METRICS_PORT.0, "honorLabels": true }],
    } })
}

fn prometheus_rule(instance: &Instance) -> Value {
    let rules: Vec<Value> = alerts(instance).iter().map(|alert| alert.rule(instance)).collect();
    json!({ "spec": { "groups": [{ "name": configuration_name(&instance.name), "rules": rules }] } })
}

impl Alert {
    fn rule(&self, instance: &Instance) -> Value {
        let pods = format!("job=\"{}\"", pods_service(&instance.name));
        json!({
            "alert": self.name,
            "expr": self.expression.replace('$', &pods),
            "for": self.lasts,
            "labels": {
                "severity": match self.severity {
                    Severity::Critical => "critical",
                    Severity::Warning => "warning",
                    Severity::Info => "info",
                },
                "portal_instance": instance.name,
            },
            "annotations": {
                "summary": self.summary,
                "description": self.description,
            },
        })
    }
}

/// What is worth an alert. Numbers that depend on what the instance says are worked out from it.
fn alerts(instance: &Instance) -> Vec<Alert> {
    use Severity::{Critical, Info, Warning};
    let spec = &instance.spec;
    let replicas: u32 = instance.engines().iter().map(|engine| engine.replicas).sum();
    // A certificate of the operator is replaced when two thirds of its days are over. Half of the rest is late.
    let late = match spec.certificates.source {
        CertificateSource::Operator => spec.certificates.leaf_days * 24 / 6,
        CertificateSource::CertManager | CertificateSource::Secret => 7 * 24,
    };
    let alert = |name, severity, lasts, expression: String, summary, description| Alert {
        name,
        severity,
        lasts,
        expression,
        summary,
        description,
    };
    let mut alerts = vec![
        alert(
            "PortalDown",
            Critical,
            "5m",
            "absent(portal_rules{$})".to_owned(),
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
            "sum(portal_lease_held{$}) == 0".to_owned(),
            "No pod of the engine holds the Lease.",
            "Rules are in force, and their status is not written: nobody learns what becomes of a rule.",
        ),
        alert(
            "PortalStatusWritesFail",
            Warning,
            "15m",
            "sum(increase(portal_status_writes_total{$,result=\"failed\"}[15m])) > 0".to_owned(),
            "The status of rules cannot be written.",
            "Rules are in force, and what their status says is out of date.",
        ),
        alert(
            "PortalRulesNotInForce",
            Warning,
            "15m",
            "max by (state) (portal_rules{$,state=~\"refused|waiting|syncing\"}) > 0".to_owned(),
            "Rules are not in force.",
            "{{ $value }} rules are not in force: they are {{ $labels.state }}. Their status says why.",
        ),
        alert(
            "PortalRuleFilesBroken",
            Warning,
            "10m",
            "max(portal_rule_files_with_problems{$}) > 0".to_owned(),
            "Bootstrap rules cannot be used as they are.",
            "The newest version of {{ $value }} files of rules cannot be used. The version before stays in force, if there was one.",
        ),
        alert(
            "PortalWatchesBreak",
            Warning,
            "15m",
            "sum by (watch) (increase(portal_watch_errors_total{$}[15m])) > 10".to_owned(),
            "A watch breaks again and again.",
            "The watch {{ $labels.watch }} broke {{ $value }} times in 15 minutes. Rules go on with what was known last.",
        ),
    ];
    if instance.layers().admission {
        alerts.extend([
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
                "sum(increase(portal_admission_certificate_loads_total{$,result=\"refused\"}[1h])) > 0".to_owned(),
                "A new certificate cannot be used.",
                "The one before stays in use until it expires. The log of the pods says what is wrong with the new one.",
            ),
            alert(
                "PortalRequestsUnanswered",
                Critical,
                "10m",
                "sum by (reason) (rate(portal_admission_requests_refused_total{$}[5m])) > 0".to_owned(),
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
                "One in a hundred takes longer than {{ $value }} seconds. Who takes too long is not heard.",
            ),
            alert(
                "PortalRuleFails",
                Warning,
                "5m",
                "sum by (rule) (rate(portal_rule_evaluations_total{$,result=\"failed\"}[5m])) > 0".to_owned(),
                "A rule cannot be evaluated.",
                "The rule {{ $labels.rule }} fails for some objects. If the instance fails closed, they are refused.",
            ),
            alert(
                "PortalFreshReadsFail",
                Warning,
                "10m",
                "sum by (result) (rate(portal_fresh_reads_total{$,result!=\"answered\"}[5m])) > 0".to_owned(),
                "What rules read by `consistentCluster` is not at hand.",
                "Reads of the API server end as {{ $labels.result }}, and the rules that need them fail.",
            ),
            alert(
                "PortalRecordsLost",
                Warning,
                "5m",
                "sum by (sink) (increase(portal_sink_records_lost_total{$}[15m])) > 0".to_owned(),
                "Records of decisions are lost.",
                "{{ $labels.sink }} is too slow for the records of decisions. No decision waits for it.",
            ),
            alert(
                "PortalBypassUsed",
                Info,
                "1m",
                "sum by (namespace) (increase(portal_admission_bypass_total{$}[15m])) > 0".to_owned(),
                "A namespace is passed by.",
                "No rule is asked about what is in the namespace {{ $labels.namespace }}: its annotation `portal.io/bypass` says so.",
            ),
        ]);
    }
    alerts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::tests::instance;

    #[test]
    fn alerts_are_made_of_metrics_that_exist_and_have_a_section_each() {
        let metrics = include_str!("../../../docs/reference/metrics.md");
        let page = include_str!("../../../docs/operator/alerts.md");
        let instance = instance(json!({}));
        let mut names = Vec::new();
        for alert in alerts(&instance) {
            let words = alert.expression.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
            let used: Vec<&str> = words.filter(|word| word.starts_with("portal_")).collect();
            assert!(!used.is_empty(), "{}", alert.name);
            for metric in used {
                let metric = metric.trim_end_matches("_bucket");
                assert!(metrics.contains(&format!("| `{metric}` |")), "{}: {metric}", alert.name);
            }
            assert!(
                page.contains(&format!("\n## {}\n", alert.name)),
                "docs/operator/alerts.md has no section {}",
                alert.name
            );
            assert!(!alert.rule(&instance)["expr"].as_str().unwrap().contains('$'));
            names.push(alert.name);
        }
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, names, "the page has the alerts in their order");
    }
}
