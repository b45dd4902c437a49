//! Rules that refuse too much: the ways out that `docs/operator/recovery-from-self-lockout.md` names, each taken.

use std::fs;

use portal_test_kit::Cluster;
use serde_json::{Value, json};

use super::judging::Guarded;
use super::{config_map, pod};
use crate::core::eventually;
use crate::engine::apply;

/// Whoever wrote it wanted something else. It is about namespaces, too, and about each request: what was there before excuses nothing.
const EVERYTHING: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: everything}
spec:
  match:
    gvk: [{kind: Pod}, {kind: ConfigMap}, {kind: Namespace}]
    operations: [CREATE, UPDATE, DELETE]
  rule: request.name != "nobody"
  message: nothing goes
"#;

/// One that is about less.
const TOO_MUCH: &str = r#"
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: too-much}
spec:
  match: {gvk: [{kind: Pod}, {kind: ConfigMap}]}
  rule: metadata.name != ""
  message: nothing goes
"#;

/// A cluster in which a rule of the cluster refuses everything that it is about.
fn locked(cluster: Cluster, rule: &str) -> Guarded {
    let definition =
        fs::read_to_string(portal_test_kit::repository().join("crds/yaml/portal.io_portalclusterrules.yaml")).unwrap();
    cluster.kubectl_with_input(&["apply", "--filename", "-"], rule).unwrap();
    let guarded = Guarded::without_configuration(cluster, "", &[], &["--rules-from-cluster"]);
    let files = guarded.judging.files();
    fs::write(files.path("definitions/rules.yaml"), definition).unwrap();
    fs::create_dir(files.path("wanted")).unwrap();
    fs::write(files.path("wanted/rule.yaml"), rule).unwrap();
    guarded.configure_for("wanted", &[]);
    guarded.wait_until_refused("shop");
    guarded
}

/// Whether an object can be made.
fn makes(guarded: &Guarded, namespace: &str, object: &Value) -> bool {
    let create = ["--namespace", namespace, "create", "--dry-run=server", "--filename", "-"];
    guarded.kubectl(&create, &object.to_string()).status.success()
}

#[test]
fn the_ways_out_of_rules_that_refuse_too_much_work_and_no_rule_bars_its_own_end() {
    let cluster = the_ways_out_work(Guarded::prepare(&[]));
    cluster.kubectl(&["delete", "pcr", "too-much"]).unwrap();
    no_rule_bars_its_own_end(cluster);
}

fn the_ways_out_work(cluster: Cluster) -> Cluster {
    let guarded = locked(cluster, TOO_MUCH);
    let (one, other) = (config_map("one"), pod("other", json!({})));
    assert!(!makes(&guarded, "shop", &one) && !makes(&guarded, "shop", &other));
    let switch = |is_on: bool| {
        let patch = json!({"spec": {"enabled": is_on}}).to_string();
        guarded.check(&["patch", "pcr", "too-much", "--type", "merge", "-p", &patch], "", true, &[]);
        eventually("the rule follows", || makes(&guarded, "shop", &one) != is_on);
    };
    switch(false);
    switch(true);
    // One namespace.
    guarded.check(&["annotate", "namespace", "shop", "portal.io/bypass=true"], "", true, &[]);
    eventually("the namespace is passed by", || makes(&guarded, "shop", &one));
    assert!(!makes(&guarded, "bank", &one));
    guarded.check(&["annotate", "namespace", "shop", "portal.io/bypass-"], "", true, &[]);
    eventually("the namespace is judged", || !makes(&guarded, "shop", &one));

    // All rules, by a flag of the engine.
    let Guarded { cluster, judging } = guarded;
    let (files, port) = judging.stop();
    let judging = files.judge(Some(port), &cluster.kubeconfig(), &["--rules-from-cluster", "--max-enforcement=warn"]);
    let guarded = Guarded { judging, cluster };
    guarded.create("shop", &one, true, &["Warning: too-much: nothing goes"]);

    // No replica answers: what heals a cluster goes on, and so does everything without the configuration.
    let Guarded { cluster, judging } = guarded;
    let (files, port) = judging.stop();
    let dry = |namespace: &str| {
        let create = ["--namespace", namespace, "create", "--dry-run=server", "--filename", "-"];
        cluster.kubectl_with_input(&create, &other.to_string())
    };
    assert!(dry("shop").unwrap_err().to_string().contains("failed calling webhook"));
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "portal-system"] {
        dry(namespace).unwrap();
    }
    // Either the engine comes back, or the configuration goes.
    let judging = files.judge(Some(port), &cluster.kubeconfig(), &["--rules-from-cluster", "--max-enforcement=warn"]);
    dry("shop").unwrap();
    drop(judging);
    assert!(dry("shop").is_err());
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "portal-default"]).unwrap();
    eventually("nobody is asked", || dry("shop").is_ok());
    cluster
}

fn no_rule_bars_its_own_end(cluster: Cluster) {
    let guarded = locked(cluster, EVERYTHING);
    // Such a rule bars the bypass.
    let barred = ["everything: nothing goes", "(Forbidden)"];
    guarded.check(&["annotate", "namespace", "shop", "portal.io/bypass=true"], "", false, &barred);
    assert!(!makes(&guarded, "shop", &config_map("two")));
    // No rule may be about rules, so that none keeps anybody from switching it off.
    let about_rules =
        EVERYTHING.replace("everything", "rules").replace("kind: Pod", "group: portal.io, kind: PortalClusterRule");
    let told = "no rule may judge `PortalClusterRule`: a rule about rules could keep everybody from mending it";
    guarded.check(&["create", "--filename", "-"], &about_rules, true, &[told]);
    let off = r#"{"spec": {"enabled": false}}"#;
    guarded.check(&["patch", "pcr", "everything", "--type", "merge", "-p", off], "", true, &[]);
    eventually("the rule follows", || makes(&guarded, "shop", &config_map("two")));
    let on = r#"{"spec": {"enabled": true}}"#;
    guarded.check(&["patch", "pcr", "everything", "--type", "merge", "-p", on], "", true, &[]);
    eventually("the rule follows", || !makes(&guarded, "shop", &config_map("two")));

    guarded.check(&["delete", "validatingwebhookconfiguration", "portal-default"], "", true, &[]);
    eventually("nobody is asked", || makes(&guarded, "shop", &config_map("two")));
    // Mended, and applied again.
    guarded.check(&["delete", "pcr", "everything", "rules"], "", true, &[]);
    let host_network = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": "host-network"},
        "spec": {"match": {"gvk": [{"kind": "Pod"}]}, "rule": "spec.hostNetwork"},
    });
    apply(&guarded.cluster, &host_network);
    fs::write(guarded.judging.files().path("wanted/rule.yaml"), host_network.to_string()).unwrap();
    guarded.configure_for("wanted", &[]);
    guarded.wait_until_refused("shop");
    guarded.create("shop", &pod("good", json!({})), true, &[]);
}
