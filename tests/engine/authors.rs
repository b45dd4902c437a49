//! Rules of Portal when they are written: mistakes are answered at once, authors are checked, namespaces have a quota, and the way from
//! the API server to the engine can be tried.

use portal_test_kit::Cluster;
use serde_json::{Value, json};

use super::process::Engine;
use super::webhook::{Files, account, kubectl, port};
use super::{BAD, GOOD, apply, cluster, condition, rule, wait_for};
use crate::core::eventually;

/// An engine that judges rules when they are written.
struct Authoring {
    cluster: Cluster,
    engine: Engine,
}

impl Authoring {
    fn start(flags: &[&str], configured: &[&str]) -> Authoring {
        let cluster = cluster();
        for namespace in ["shop", "bank"] {
            cluster.kubectl(&["create", "namespace", namespace]).unwrap();
        }
        let (files, port) = (Files::new(), port());
        let own = files.flags(port);
        let all: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let engine = Engine::ready(&account(&cluster), &all);
        files.configure(&cluster, &[rule("first", GOOD)], port, None, configured);
        let authoring = Authoring { cluster, engine };
        eventually("the webhook is called", || {
            !authoring.write(&rule("probe", BAD), &["--dry-run=server"]).1.is_empty()
        });
        authoring
    }

    /// Whether a rule is taken, and what its author is told.
    fn write(&self, rule: &Value, flags: &[&str]) -> (bool, String) {
        let output = kubectl(&self.cluster, &[&["apply", "--filename", "-"], flags].concat(), &rule.to_string());
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    }

    #[track_caller]
    fn check(&self, rule: &Value, flags: &[&str], is_allowed: bool, said: &str) {
        let (allowed, told) = self.write(rule, flags);
        assert_eq!((allowed, told.trim_end()), (is_allowed, said), "{rule}");
    }
}

fn own_rule(name: &str, namespace: &str, kind: &str) -> Value {
    let mut rule = rule(name, "metadata.labels.team == nil");
    rule["kind"] = json!("PortalRule");
    rule["metadata"]["namespace"] = json!(namespace);
    rule["spec"]["match"]["gvk"] = json!([{"kind": kind}]);
    rule
}

/// A Lease that is not stored.
fn probe(nonce: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "probe", "namespace": "bank",
            "labels": {"portal.io/probe": "default"}, "annotations": {"portal.io/nonce": nonce},
        },
    })
}

#[test]
fn whoever_writes_a_rule_is_told_what_is_wrong_with_it() {
    let authoring = Authoring::start(&["--rules-per-namespace=2"], &["--probe-namespace=bank"]);
    authoring.check(&rule("good", GOOD), &[], true, "");
    let mistake = "Warning: spec.rule: 1:11: Container has no field `securityContxt`, did you mean `securityContext`?
Warning:  | container.securityContxt.privileged == true
Warning:  |           ^
Warning: the rule judges nothing until this is mended";
    authoring.check(&rule("bad", BAD), &[], true, mistake);
    wait_for(&authoring.cluster, "bad", "False");
    // What leaves the rule as it is needs no words.
    let label = ["label", "pcr", "bad", "team=a"];
    assert_eq!(kubectl(&authoring.cluster, &label, "").stderr, b"");

    // Who may not see secrets is told that the rule would see them for her.
    let grant = ["create", "clusterrolebinding", "alice", "--clusterrole=rules", "--user=alice"];
    let role =
        ["create", "clusterrole", "rules", "--verb=get,create,patch", "--resource=portalclusterrules,portalrules"];
    authoring.cluster.kubectl(&role).unwrap();
    authoring.cluster.kubectl(&grant).unwrap();
    let mut secrets = rule("secrets", "len(object.data) > 9");
    secrets["spec"]["match"]["gvk"] = json!([{"kind": "Secret"}]);
    let words = "Warning: alice may not list secrets in the whole cluster, which the rule does for them";
    authoring.check(&secrets, &["--as=alice"], true, words);
    secrets["metadata"]["name"] = json!("of-the-admin");
    authoring.check(&secrets, &[], true, "");

    // The oldest rules of a namespace stay, and can be changed.
    for name in ["a", "b"] {
        authoring.check(&own_rule(name, "shop", "ConfigMap"), &[], true, "");
    }
    eventually("the engine knows both", || authoring.engine.metric(r#"portal_rules{state="active"}"#) == 5);
    let (allowed, told) = authoring.write(&own_rule("c", "shop", "ConfigMap"), &[]);
    assert!(!allowed && told.contains("namespace shop has 2 rules, and may have 2: delete one"), "{told}");
    authoring.check(&own_rule("a", "shop", "Service"), &[], true, "");
    authoring.check(&own_rule("c", "bank", "ConfigMap"), &[], true, "");

    // One that nobody saw, because the webhook was not there.
    let cluster = &authoring.cluster;
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "portal-default"]).unwrap();
    eventually("nobody asks", || authoring.write(&own_rule("late", "shop", "ConfigMap"), &[]).0);
    let status = || -> Value {
        let text = cluster.kubectl(&["--namespace=shop", "get", "prule", "late", "--output=json"]).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["status"].clone()
    };
    eventually("it is one too many", || {
        let status = status();
        let entry = &status["instances"][0];
        let reason = entry["conditions"].as_array().into_iter().flatten().find(|found| found["type"] == "Active");
        reason.is_some_and(|found| found["reason"] == "OverQuota") && condition(&status, "Stalled") == "True"
    });
    assert_eq!(authoring.engine.metric(r#"portal_rules{state="over-quota"}"#), 1);
    cluster.kubectl(&["--namespace=shop", "delete", "prule", "a"]).unwrap();
    eventually("there is room for it", || authoring.engine.metric(r#"portal_rules{state="over-quota"}"#) == 0);
}

#[test]
fn whoever_writes_a_rule_is_told_what_it_would_hit_if_they_may_know() {
    let authoring = Authoring::start(&["--watched-kinds=configmaps"], &["--probe-namespace=bank"]);
    let cluster = &authoring.cluster;
    for (namespace, name) in [("shop", "a"), ("shop", "b"), ("bank", "c")] {
        cluster.kubectl(&["--namespace", namespace, "create", "configmap", name]).unwrap();
    }
    let rules = ["--verb=get,create,patch", "--resource=portalclusterrules,portalrules"];
    cluster.kubectl(&[&["create", "clusterrole", "rules"], &rules[..]].concat()).unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "alice", "--clusterrole=rules", "--user=alice"]).unwrap();
    let mut maps = rule("maps", "metadata.labels.team == nil");
    maps["spec"]["match"] = json!({"gvk": [{"kind": "ConfigMap"}], "namespaces": {"include": ["shop", "bank"]}});
    // Nobody has listed them for the engine.
    authoring.check(&maps, &["--dry-run=server"], true, "");
    let reader = ["create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=configmaps"];
    cluster.kubectl(&reader).unwrap();
    let account = "--serviceaccount=portal-system:portal-engine";
    cluster.kubectl(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", account]).unwrap();
    let told = "Warning: the rule would refuse 3 of 3 configmaps that are there now: bank/c, shop/a, shop/b\n";
    eventually("it is told", || authoring.write(&maps, &["--dry-run=server"]) == (true, told.to_owned()));
    let words = "Warning: alice may not list configmaps in the whole cluster, which the rule does for them";
    authoring.check(&maps, &["--as=alice", "--dry-run=server"], true, words);
    // What hits nothing is not talked about.
    maps["spec"]["rule"] = json!("metadata.labels.team == 'a'");
    authoring.check(&maps, &[], true, "");
}

#[test]
fn an_author_check_that_is_enforced_refuses() {
    let authoring =
        Authoring::start(&["--author-check=enforce"], &["--author-check=enforce", "--probe-namespace=bank"]);
    let cluster = &authoring.cluster;
    let refused = |rule: &Value, flags: &[&str], words: &str| {
        let (allowed, told) = authoring.write(rule, flags);
        assert!(!allowed && told.contains(words), "{told}");
    };
    refused(&rule("bad", BAD), &[], "so that its author cannot be checked:");
    let role =
        ["create", "clusterrole", "rules", "--verb=get,create,patch", "--resource=portalclusterrules,portalrules"];
    cluster.kubectl(&role).unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "alice", "--clusterrole=rules", "--user=alice"]).unwrap();
    let reader = ["--namespace=shop", "create", "role", "reader", "--verb=list", "--resource=configmaps"];
    cluster.kubectl(&reader).unwrap();
    cluster.kubectl(&["--namespace=shop", "create", "rolebinding", "alice", "--role=reader", "--user=alice"]).unwrap();
    let words = "alice may not list configmaps in namespace bank, which the rule does for them: a rule is written by somebody who may";
    refused(&own_rule("a", "bank", "ConfigMap"), &["--as=alice"], words);
    authoring.check(&own_rule("a", "shop", "ConfigMap"), &["--as=alice"], true, "");
    refused(&own_rule("b", "shop", "Secret"), &["--as=alice"], "alice may not list secrets in namespace shop");
    authoring.check(&rule("good", GOOD), &[], true, "");
    apply(cluster, &own_rule("c", "shop", "Secret"));

    // The way from the API server to the engine is tried by something that is not stored.
    let create = ["create", "--dry-run=server", "--filename", "-"];
    let output = kubectl(cluster, &create, &probe("a-17").to_string());
    let expected = concat!("Warning: portal default answers a-17 as ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert!(cluster.kubectl(&["--namespace=bank", "get", "lease", "probe"]).is_err());

    // Nobody is there: rules cannot be checked, so that they cannot be written, and can be deleted.
    drop(authoring.engine);
    let output = kubectl(cluster, &["apply", "--filename", "-"], &rule("other", GOOD).to_string());
    assert!(!output.status.success());
    cluster.kubectl(&["delete", "pcr", "good"]).unwrap();
    let output = kubectl(cluster, &create, &probe("a-18").to_string());
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("a-18"));
    assert!(is_gone(cluster, "good"));
}

fn is_gone(cluster: &Cluster, name: &str) -> bool {
    cluster.kubectl(&["get", "pcr", name]).is_err()
}
