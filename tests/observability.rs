//! What operators are given to watch Portal by: Prometheus reads it, and it asks for what Portal tells.

use std::collections::BTreeSet;

use portal_test_kit::{prometheus, repository};
use serde_json::{Value, json};

/// The dashboard, beside the page that tells of it.
const DASHBOARD: &str = "docs/operator/grafana-dashboard.json";

/// The page.
const PAGE: &str = "docs/operator/observability.md";

fn dashboard() -> Value {
    let text = std::fs::read_to_string(repository().join(DASHBOARD)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The panels, without the rows that divide them.
fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row").collect()
}

/// An expression with what Grafana would put in for its variables.
fn filled(expression: &Value) -> String {
    let text = expression.as_str().unwrap();
    let text = text.replace("$__rate_interval", "5m").replace("$job", "portal-default-pods");
    assert!(!text.contains('$'), "nobody fills this in: {text}");
    text
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist_as_prometheus_wants_to_be_asked() {
    let dashboard = dashboard();
    let mut expressions = Vec::new();
    for panel in panels(&dashboard) {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        expressions.extend(targets.iter().map(|target| filled(&target["expr"])));
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(values) = variable["definition"].as_str() else { continue };
        assert_eq!(variable["query"]["query"], values);
        let inner = values.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (metric, label) = inner.and_then(|inner| inner.split_once(", ")).unwrap();
        expressions.push(format!("count by ({label}) ({metric})"));
    }
    assert_eq!(prometheus::problems(&expressions).unwrap(), [""; 0]);
}

#[test]
fn the_panels_of_the_dashboard_lie_side_by_side() {
    let dashboard = dashboard();
    let (mut taken, mut numbers, mut titles) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "two panels have the number {}", panel["id"]);
        assert!(titles.insert(panel["title"].as_str().unwrap()), "two panels are called {}", panel["title"]);
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{} is wider than the page", panel["title"]);
        for place in (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{} lies on another panel", panel["title"]);
        }
    }
}

/// What audit and admission tell that nothing on the dashboard or among the alerts asks for would be looked at by nobody.
#[test]
fn every_metric_of_audit_and_of_its_sinks_is_on_the_dashboard() {
    let dashboard = std::fs::read_to_string(repository().join(DASHBOARD)).unwrap();
    let page = std::fs::read_to_string(repository().join("docs/reference/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let wanted = ["portal_audit_", "portal_lookup_", "portal_report_writ", "portal_alert"];
    // How many alerts were taken says nothing: one that fires is sent again every minute.
    let names = rows.map(|(name, _)| name).filter(|name| *name != "portal_alerts_sent_total");
    let missing: Vec<&str> =
        names.filter(|name| wanted.iter().any(|start| name.starts_with(start)) && !dashboard.contains(*name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_rules_on_the_page_are_as_prometheus_wants_them() {
    let page = std::fs::read_to_string(repository().join(PAGE)).unwrap();
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let mut expressions = Vec::new();
    for block in blocks.iter().filter(|block| block.contains("expr:")) {
        let rules = prometheus::rules(block).unwrap();
        expressions.extend(rules.into_iter().map(|rule| rule.expression));
    }
    // What stands in the table of questions, without the names of labels that are written there alone.
    let quoted = page.split('`').skip(1).step_by(2).filter(|code| code.starts_with("max by"));
    expressions.extend(quoted.map(str::to_owned));
    assert!(expressions.len() >= 2, "{expressions:?}");
    assert_eq!(prometheus::problems(&expressions).unwrap(), [""; 0]);
}

/// The alert of the page that people will take as an example, as Prometheus evaluates it.
#[test]
fn the_alert_about_violations_fires_once_for_each_rule() {
    let page = std::fs::read_to_string(repository().join(PAGE)).unwrap();
    let block = page.split("```yaml\n").find(|block| block.contains("PolicyViolated")).unwrap();
    let file = block.split("```").next().unwrap();
    let series = [
        (
            r#"portal_audit_violations{job="portal-default-pods",pod="one",rule="no-privileged",severity="critical"}"#,
            "0x5 3x60",
        ),
        (
            r#"portal_audit_violations{job="portal-default-pods",pod="two",rule="no-privileged",severity="critical"}"#,
            "0x5 3x60",
        ),
        (r#"portal_audit_violations{job="portal-default-pods",pod="one",rule="team",severity="low"}"#, "9x65"),
    ];
    let firing = prometheus::firing(file, &series, &[4, 60]).unwrap();
    assert_eq!(firing[0], []);
    let told: Vec<Value> =
        firing[1].iter().map(|alert| json!([alert.labels["rule"], alert.annotations["summary"]])).collect();
    assert_eq!(told, [json!(["no-privileged", "3 objects violate no-privileged."])]);
}
