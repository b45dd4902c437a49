//! What is in the cluster is judged by the engine of an instance, and told in reports.

use serde_json::{Value, json};

use super::{Installation, cluster, portal};

/// What the report of the instance in the namespace whose objects it judges says, a line for each result.
fn reported(installation: &Installation) -> Vec<String> {
    let namespace = format!("--namespace={}", installation.work());
    let reports = installation.cluster.kubectl(&[&namespace, "get", "policyreports", "--output=json"]).unwrap();
    let reports: Value = serde_json::from_str(&reports).unwrap();
    let results = reports["items"].as_array().unwrap().iter().flat_map(|report| report["results"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |result: &Value| {
        let resource = &result["resources"][0];
        [&result["result"], &result["policy"], &resource["kind"], &resource["name"]].map(text).join(" ")
    };
    results.map(line).collect()
}

fn label(installation: &Installation, name: &str, label: &str) {
    let namespace = format!("--namespace={}", installation.work());
    installation.cluster.kubectl(&[&namespace, "label", "configmap", name, label, "--overwrite"]).unwrap();
}

#[test]
fn what_violates_is_reported_and_gone_with_its_fix() {
    let (cluster, _operator) = cluster();
    cluster
        .kubectl_with_input(&["apply", "--server-side", "--filename=-"], &portal(&["generate", "report-crds"]))
        .unwrap();
    let installation = Installation::new(cluster, "audit", json!({ "audit": { "enabled": true } }));
    installation.ready();
    installation.says("AuditAvailable", "True Running");
    installation.says("ReportsAvailable", "True Available");
    // It is there before the rule is.
    let namespace = format!("--namespace={}", installation.work());
    cluster.kubectl(&[&namespace, "create", "configmap", "old"]).unwrap();
    label(&installation, "old", "bad=yes");
    installation.refuse_bad();
    let found = ["fail audit ConfigMap old"];
    installation.eventually("it is reported", || reported(&installation) == found);
    installation.eventually("it is counted", || {
        let count = cluster.kubectl(&["get", "pcr", "audit", "--output=jsonpath={.status.violationCount}"]);
        count.unwrap() == "1"
    });
    let role = cluster.kubectl(&["get", "clusterrole", &installation.child(), "--output=yaml"]).unwrap();
    assert!(role.contains("clusterpolicyreports") && role.contains("- configmaps") && !role.contains("openreports"));
    label(&installation, "old", "bad-");
    installation.eventually("it is reported no more", || reported(&installation).is_empty());

    // With pods of its own for each layer, it is the same.
    installation.apply(json!({ "mode": "split", "audit": { "enabled": true, "replicas": 1 } }));
    installation.ready();
    // What admission would refuse is not sent to it by somebody who passes rules by.
    cluster.kubectl(&["annotate", "namespace", &installation.work(), "portal.io/bypass=true"]).unwrap();
    installation.eventually("it is passed by", || {
        cluster.kubectl(&[&namespace, "label", "configmap", "old", "bad=yes", "--overwrite"]).is_ok()
    });
    installation.eventually("it is reported again", || reported(&installation) == found);

    cluster.kubectl(&["delete", "portal", installation.name, "--timeout=180s"]).unwrap();
    installation.eventually("reports go with the instance", || reported(&installation).is_empty());
}
