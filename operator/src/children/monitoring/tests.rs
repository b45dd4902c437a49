//! The alerts as Prometheus itself reads and evaluates them.

use std::fs;
use std::path::Path;

use expect_test::{ExpectFile, expect_file};
use portal_test_kit::prometheus::{self, Alert};
use serde_json::json;

use super::alerts::PAGE;
use super::*;
use crate::children::tests::{every_field, instance};

/// An instance with every layer and every sink, of which all alerts are.
fn whole() -> Instance {
    instance(json!({
        "audit": { "enabled": true },
        "sinks": { "alertmanager": { "urls": ["http://alertmanager.monitoring:9093"] } },
    }))
}

fn file(instance: &Instance) -> String {
    serde_saphyr::to_string(&json!({ "groups": groups(instance) })).unwrap()
}

#[test]
fn prometheus_takes_the_alerts_and_they_are_made_of_metrics_that_exist() {
    let alone = instance(json!({ "admission": { "enabled": false }, "audit": { "enabled": true } }));
    for instance in [instance(json!({})), alone, whole(), instance(every_field()["spec"].clone())] {
        let rules = prometheus::rules(&file(&instance)).unwrap();
        assert_eq!(rules.len(), alerts(&instance).len());
        let expressions: Vec<String> = rules.into_iter().map(|rule| rule.expression).collect();
        assert_eq!(prometheus::problems(&expressions).unwrap(), [""; 0]);
    }
}

#[test]
fn the_page_has_a_section_for_each_alert_which_names_it() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(repository.join(PAGE)).expect("alerts name a page that is there");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let names: Vec<&str> = alerts(&whole()).iter().map(|alert| alert.name).collect();
    assert_eq!(sections, names, "docs/operator/alerts.md has the alerts in their order");
    let url = "https://docs.example.org/a/";
    let linked = instance(json!({ "monitoring": { "runbookUrl": url } }));
    for (instance, annotation, page, other) in
        [(whole(), "runbook", PAGE, "runbook_url"), (linked, "runbook_url", url, "runbook")]
    {
        for (alert, name) in alerts(&instance).iter().zip(&names) {
            let annotations = &alert.rule(&instance)["annotations"];
            assert_eq!(annotations[annotation], format!("{page}#{}", name.to_lowercase()));
            assert_eq!(annotations[other], Value::Null);
        }
    }
}

/// For whoever has Prometheus and not its operator.
#[test]
fn the_file_of_rules_in_the_documentation_is_that_of_an_instance_with_everything() {
    let file =
        format!("# The alerts of an instance that is called default, with audit and Alertmanager.\n{}", file(&whole()));
    expected_file().assert_eq(&file);
}

fn expected_file() -> ExpectFile {
    expect_file!["../../../../docs/operator/alert-rules.yaml"]
}

/// Which alerts fire at some minutes, by the name and what tells them apart.
#[track_caller]
fn check(series: &[(&str, &str)], minutes: &[u32], expected: &[&str]) {
    let shown = |alert: &Alert| {
        let own = ["alertname", "severity", "portal_instance", "job", "pod"];
        let labels = alert.labels.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let labels: Vec<&str> = labels.map(|(_, value)| value.as_str()).collect();
        format!("{} {}", alert.alert, labels.join(" ")).trim_end().to_owned()
    };
    // Nothing else is wrong.
    let healthy = [
        (r#"portal_rules{job="portal-default-pods",pod="one",state="active"}"#, "5x120"),
        (r#"portal_lease_held{job="portal-default-pods",pod="one"}"#, "1x120"),
        (r#"portal_lease_held{job="portal-default-pods",pod="two"}"#, "0x120"),
        (r#"portal_rules{job="another",state="refused"}"#, "9x120"),
    ];
    let given: Vec<String> =
        series.iter().map(|(name, _)| name.replace("{$", r#"{job="portal-default-pods""#)).collect();
    let told = given.iter().map(String::as_str).zip(series.iter().map(|(_, values)| *values));
    let metric = |name: &str| name.split_once(",pod").map_or(name, |(name, _)| name).to_owned();
    let replaced: Vec<String> = given.iter().map(|name| metric(name)).collect();
    let rest = healthy.into_iter().filter(|(name, _)| !replaced.contains(&metric(name)));
    let all: Vec<(&str, &str)> = told.chain(rest).collect();
    let firing = prometheus::firing(&file(&whole()), &all, minutes).unwrap();
    let firing: Vec<String> =
        firing.iter().map(|alerts| alerts.iter().map(shown).collect::<Vec<_>>().join(", ")).collect();
    assert_eq!(firing, expected);
}

#[test]
fn nothing_fires_while_all_is_well() {
    check(&[], &[0, 10, 60, 110], &["", "", "", ""]);
}

#[test]
fn an_instance_that_is_gone_is_noticed_after_five_minutes() {
    let gone = [
        ("portal_rules{$,pod=\"one\",state=\"active\"}", "5x10"),
        ("portal_lease_held{$,pod=\"one\"}", "1x10"),
        ("portal_lease_held{$,pod=\"two\"}", "0x10"),
    ];
    // Prometheus knows a series for five minutes after its last sample.
    check(&gone, &[10, 18, 22], &["", "", "PortalDown"]);
}

#[test]
fn a_pod_that_is_missing_and_a_lease_that_nobody_holds_are_noticed() {
    check(&[("portal_lease_held{$,pod=\"one\"}", "1x60")], &[10, 20], &["", "PortalReplicasMissing"]);
    let nobody = [("portal_lease_held{$,pod=\"one\"}", "0x60"), ("portal_lease_held{$,pod=\"two\"}", "0x60")];
    check(&nobody, &[3, 10], &["", "PortalNobodyWritesStatus"]);
}

#[test]
fn rules_that_are_not_in_force_or_fail_are_named() {
    let refused = [("portal_rules{$,state=\"refused\"}", "0x5 2x60")];
    check(&refused, &[5, 30], &["", "PortalRulesNotInForce refused"]);
    let fails = [("portal_rule_evaluations_total{$,rule=\"shop/hosts\",result=\"failed\"}", "0x5 1+1x30 31x60")];
    check(&fails, &[4, 20, 60], &["", "PortalRuleFails shop/hosts", ""]);
    let passes = [("portal_rule_evaluations_total{$,rule=\"shop/hosts\",result=\"passed\"}", "0+50x60")];
    check(&passes, &[20], &[""]);
}

#[test]
fn what_is_counted_once_is_noticed() {
    let lost = [("portal_alerts_lost_total{$,reason=\"no-room\"}", "0x10 1x60")];
    check(&lost, &[9, 13, 40], &["", "PortalAlertsLost no-room", ""]);
    // The first request that is passed by makes the series.
    let passed = [("portal_admission_bypass_total{$,namespace=\"shop\"}", "_x10 1x60")];
    check(&passed, &[9, 13, 40], &["", "PortalBypassUsed shop", ""]);
    let again = [("portal_admission_bypass_total{$,namespace=\"shop\"}", "3x30 4x60")];
    check(&again, &[29, 33], &["", "PortalBypassUsed shop"]);
}

#[test]
fn a_certificate_that_ends_is_noticed_in_time() {
    // It has 30 days, is replaced after 20, and is late after 25.
    let day = 24 * 3600;
    let ends = |days: u64| (days * day).to_string() + "x60";
    let name = "portal_admission_certificate_expiry_timestamp_seconds{$}";
    check(&[(name, &ends(6))], &[30], &[""]);
    check(&[(name, &ends(4))], &[30], &["PortalCertificateExpires"]);
}

/// Answers that take as long as this, in the bounds that engines have.
fn answers(metric: &str, seconds: f64) -> Vec<(String, &'static str)> {
    let bounds =
        [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 5.0, 10.0, 30.0, f64::INFINITY];
    let series = bounds.into_iter().map(|bound| {
        let le = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
        (format!("{metric}_bucket{{$,le=\"{le}\"}}"), if seconds <= bound { "0+60x60" } else { "0x60" })
    });
    series.collect()
}

#[test]
fn slow_answers_and_a_slow_audit_are_noticed() {
    let see = |metric, seconds, expected| {
        let series = answers(metric, seconds);
        let series: Vec<(&str, &str)> = series.iter().map(|(name, values)| (name.as_str(), *values)).collect();
        check(&series, &[5, 40], &["", expected]);
    };
    see("portal_admission_latency_seconds", 0.3, "");
    see("portal_admission_latency_seconds", 4.0, "PortalAdmissionSlow");
    see("portal_audit_latency_seconds", 4.0, "");
    see("portal_audit_latency_seconds", 20.0, "PortalAuditSlow");
    see("portal_audit_latency_seconds", 300.0, "PortalAuditSlow");
}

#[test]
fn reports_and_alerts_that_do_not_get_through_are_noticed() {
    let reports = [("portal_report_writes_total{$,result=\"failed\"}", "0x5 1+1x90")];
    check(&reports, &[10, 40], &["", "PortalReportsFail"]);
    let full = [("portal_report_results_left_out{$,pod=\"one\"}", "0x5 7x90")];
    check(&full, &[10, 40], &["", "PortalReportsFull"]);
    // One failure is tried again, and is no reason to tell anybody.
    let once = [("portal_alert_failures_total{$,reason=\"unreachable\"}", "0x10 1x90")];
    check(&once, &[20, 40], &["", ""]);
    let down = [("portal_alert_failures_total{$,reason=\"unreachable\"}", "0x10 2+2x90")];
    check(&down, &[15, 40], &["", "PortalAlertsNotTaken unreachable"]);
}

#[test]
fn lookups_that_are_forgotten_or_wait_are_noticed() {
    let forgotten = [("portal_lookup_dependencies_forgotten_total{$}", "0x5 1+9x90")];
    check(&forgotten, &[10, 40], &["", "PortalLookupsForgotten"]);
    let waits = [("portal_lookup_cycle_suppressed_total{$}", "0x5 1+9x90")];
    check(&waits, &[20, 60], &["", "PortalLookupsChangeTooOften"]);
}
