//! Holes that other policy engines have had, one test for each kind. None of them is one here.

use expect_test::expect;
use portal_test_kit::{Cluster, Size};
use serde_json::{Value, json};

use super::{Corpus, RULES, bad_pod, creation, pod, pod_update};
use crate::engine::admission::asking::post;
use crate::engine::admission::judging::{Files, Judging};

fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data});
    creation("configmaps", namespace, name, object)
}

#[test]
fn before_rules_are_loaded_nothing_is_admitted() {
    let files = Files::new(RULES);
    // A folder that is not there yet: its rules may be on their way.
    let rules = files.path("rules");
    std::fs::rename(&rules, files.path("later")).unwrap();
    let kubeconfig = Cluster::shared(Size::Core).kubeconfig();
    let judging = files.judge_soon(None, &kubeconfig, &["--fail-open"]);
    // What rules look up is known once there are rules.
    let awaited = ["[-]folder", "[-]caches"];
    crate::core::eventually("everything but the folder is there", || {
        judging.engine.get("/readyz?verbose").is_some_and(|(_, text)| {
            let mut missing = text.lines().filter(|line| line.starts_with("[-]"));
            missing.all(|line| awaited.iter().any(|part| line.starts_with(part)))
        })
    });
    for review in [pod(json!({})), bad_pod(), config_map("kube-system", "a", json!({}))] {
        let answer = judging.caller().review(review.to_string()).unwrap();
        assert_eq!(
            (answer.status, &*answer.body),
            (503, "this replica has not loaded its rules yet: /readyz of it says what it waits for\n")
        );
    }
    std::fs::rename(judging.files().path("later"), rules).unwrap();
    crate::core::eventually("it judges", || judging.caller().review(bad_pod().to_string()).unwrap().status == 200);
    assert_eq!(judging.caller().review(bad_pod().to_string()).unwrap().response()["allowed"], false);
}

/// API servers keep their connections: of two replicas one may get all requests until it goes, and the other the next one when it goes too.
#[test]
fn a_replica_that_nobody_has_asked_yet_answers_while_it_ends() {
    let kubeconfig = Cluster::shared(Size::Core).kubeconfig();
    let judging = Judging::start(
        &kubeconfig,
        "name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork",
        &["--admission-drain=20"],
    );
    judging.engine.signal("-TERM");
    let is_unready = || judging.engine.get("/readyz").is_some_and(|(code, _)| code == 503);
    crate::core::eventually("it is not ready any more", is_unready);
    assert_eq!(judging.caller().review(bad_pod().to_string()).unwrap().response()["allowed"], false);
}

#[test]
fn an_object_that_is_being_deleted_is_judged_as_any_other() {
    let corpus = Corpus::shared();
    let terminating = |review: &Value, finalizers: &[&str]| {
        let mut review = review.clone();
        for object in ["object", "oldObject"] {
            review["request"][object]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            review["request"][object]["metadata"]["finalizers"] = json!(["a.io/b", "a.io/c"]);
        }
        review["request"]["object"]["metadata"]["finalizers"] = json!(finalizers);
        review.to_string()
    };
    let (good, bad) = (json!({}), json!({"hostNetwork": true}));
    // It becomes worse.
    corpus.review(
        terminating(&pod_update(good.clone(), bad.clone()), &["a.io/b"]),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    // It was so before, and only the finalizer goes.
    corpus.review(
        terminating(&pod_update(bad.clone(), bad.clone()), &["a.io/b"]),
        expect![[r#"
        allowed
        warning: host-network, as before this change: spec.hostNetwork is true"#]],
    );
    corpus.review(
        terminating(&pod_update(bad.clone(), bad.clone()), &[]),
        expect![[r#"
        allowed
        warning: host-network, as before this change: spec.hostNetwork is true"#]],
    );
    // It becomes better.
    corpus.review(terminating(&pod_update(bad, good), &[]), expect!["allowed"]);
}

#[test]
fn no_way_to_change_an_object_is_left_out() {
    let corpus = Corpus::shared();
    let by = |subresource: &str, spec: Value| {
        let mut review = pod_update(json!({}), spec);
        review["request"]["subResource"] = json!(subresource);
        review
    };
    let privileged = json!([{"name": "debug", "image": "a:1", "securityContext": {"privileged": true}}]);
    let large = json!([{"name": "app", "image": "acme.io/app:1", "resources": {"limits": {"memory": "2Gi"}}}]);
    corpus.review(
        pod_update(json!({}), json!({"hostNetwork": true})).to_string(),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    corpus.review(
        by("ephemeralcontainers", json!({"ephemeralContainers": privileged})).to_string(),
        expect!["denied: privileged: container debug: securityContext.privileged is true"],
    );
    corpus.review(
        by("resize", json!({"containers": large})).to_string(),
        expect![[r#"denied: small: container app: resources.limits.memory is "2Gi""#]],
    );
    for kind in ["initContainers", "ephemeralContainers", "containers"] {
        let denied = "denied: privileged: container debug: securityContext.privileged is true";
        corpus.all([pod(json!({kind: privileged})).to_string()], denied);
    }
    let mut status = by("status", json!({}));
    status["request"]["object"]["status"] = json!({"phase": "Failed"});
    corpus.review(status.to_string(), expect![[r#"denied: status: status.phase is "Failed""#]]);
    let mut delete = pod(json!({}));
    delete["request"]["operation"] = json!("DELETE");
    delete["request"]["oldObject"] = delete["request"]["object"].take();
    delete["request"]["oldObject"]["metadata"]["labels"] = json!({"keep": "yes"});
    corpus.review(delete.to_string(), expect![[r#"denied: keep: metadata.labels.keep is "yes""#]]);
    // What is deleted must be there to be judged.
    delete["request"]["oldObject"] = json!(null);
    corpus.review(
        delete.to_string(),
        expect![[r#"
        closed: denied: keep could not be evaluated: `request.oldObject` is missing, and the rule needs the object
        open: allowed
        warning: keep could not be evaluated: `request.oldObject` is missing, and the rule needs the object"#]],
    );
    let mut exec = pod(json!({}));
    exec["request"]["operation"] = json!("CONNECT");
    exec["request"]["subResource"] = json!("exec");
    exec["request"]["object"] = json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]});
    corpus.review(exec.to_string(), expect![[r#"denied: no-exec: command[0] is "sh""#]]);
}

#[test]
fn a_namespace_that_cannot_be_read_is_a_failure_and_never_one_without_labels() {
    let corpus = Corpus::shared();
    let sent = |namespace: &str, key: &str| config_map(namespace, "selected", json!({key: "yes"})).to_string();
    corpus.review(sent("corpus-guarded", "bad"), expect![[r#"denied: guarded: data.bad is "yes""#]]);
    corpus.review(sent("corpus-guarded", "worse"), expect!["allowed"]);
    corpus.review(sent("default", "bad"), expect!["allowed"]);
    corpus.review(sent("default", "worse"), expect![[r#"denied: not-guarded: data.worse is "yes""#]]);
    corpus.review(sent("nowhere", "bad"), expect![[r#"
        closed: denied: 2 rules refuse this:
        - guarded could not be evaluated: namespace nowhere could not be read: could not get namespace nowhere: namespaces "nowhere" not found (404)
        - not-guarded could not be evaluated: namespace nowhere could not be read: could not get namespace nowhere: namespaces "nowhere" not found (404)
        open: allowed
        warning: guarded could not be evaluated: namespace nowhere could not be read: could not get namespace nowhere: namespaces "nowhere" not found (404)
        warning: not-guarded could not be evaluated: namespace nowhere could not be read: could not get namespace nowhere: namespaces "nowhere" not found (404)"#]]);
    // Names that lead elsewhere when they are put into a path: the labels of something else would count.
    for name in [
        "default/configmaps/kube-root-ca.crt",
        "../namespaces/default",
        "default?x=",
        "default#",
        "Default",
        "%64efault",
        "a b",
    ] {
        let fails = |rule: &str| {
            format!(
                "{rule} could not be evaluated: namespace {name} could not be read: {name:?} is no name of a namespace"
            )
        };
        let (one, other) = (fails("guarded"), fails("not-guarded"));
        let closed = format!("closed: denied: 2 rules refuse this:\n- {one}\n- {other}");
        let open = format!("open: allowed\nwarning: {one}\nwarning: {other}");
        corpus.all([sent(name, "worse")], &format!("{closed}\n{open}"));
    }
}

#[test]
fn two_exceptions_do_not_combine_into_a_third() {
    let corpus = Corpus::shared();
    let sent = |namespace: &str, name: &str| config_map(namespace, name, json!({"excepted": "no"})).to_string();
    corpus.review(sent("default", "one"), expect!["allowed"]);
    corpus.review(sent("known", "three"), expect!["allowed"]);
    corpus.review(sent("default", "two"), expect!["allowed"]);
    // The namespace of one and the name of another, or half of either.
    corpus.review(sent("default", "three"), expect![[r#"denied: excepted: data.excepted is "no""#]]);
    corpus.review(sent("other", "one"), expect![[r#"denied: excepted: data.excepted is "no""#]]);
    corpus.review(sent("default", "one,two"), expect![[r#"denied: excepted: data.excepted is "no""#]]);
    // Names are of the request and not of what the object says.
    let mut review = config_map("default", "three", json!({"excepted": "no"}));
    review["request"]["object"]["metadata"]["name"] = json!("one");
    corpus.review(review.to_string(), expect![[r#"denied: excepted: data.excepted is "no""#]]);
}

#[test]
fn a_rule_of_a_namespace_judges_nothing_outside_of_it() {
    let corpus = Corpus::shared();
    let send = |review: &Value, expected| corpus.send(&post("/validate/namespace", review.to_string()), expected);
    send(&config_map("default", "a", json!({})), expect![[r#"denied: default/own: default (metadata.name is "a")"#]]);
    send(&config_map("other", "a", json!({})), expect!["allowed"]);
    send(&config_map("", "a", json!({})), expect!["allowed"]);
    let mut claims = config_map("other", "a", json!({}));
    claims["request"]["object"]["metadata"]["namespace"] = json!("default");
    send(&claims, expect!["allowed"]);
    // The rules of the cluster are not asked on this way, and it is not asked on theirs.
    send(&bad_pod(), expect!["allowed"]);
    corpus.review(config_map("default", "a", json!({})).to_string(), expect!["allowed"]);
}

#[test]
fn a_rule_that_takes_too_much_or_meets_what_it_cannot_work_with_fails_alone() {
    let corpus = Corpus::shared();
    for name in ["doubles", "repeats", "lists", "tells", "number", "duration"] {
        let expected = match name {
            "doubles" => expect![[r#"
                closed: denied: text-that-doubles could not be evaluated: 1:24: out of memory: an evaluation may make 16777216 bytes of text, lists and maps
                 | len(reduce(1..64, #acc + #acc, "xx")) > 0
                 |                        ^
                open: allowed
                warning: text-that-doubles could not be evaluated: 1:24: out of memory: an evaluation may make 16777216 bytes of text, lists and maps"#]],
            "repeats" => expect![[r#"
                closed: denied: text-that-is-repeated could not be evaluated: 1:19: too many elements: an evaluation may make fewer than 1000000
                 | len(repeat(repeat(repeat(object.data.a ?? "", 1000), 1000), 1000)) > 0
                 |                   ^
                open: allowed
                warning: text-that-is-repeated could not be evaluated: 1:19: too many elements: an evaluation may make fewer than 1000000"#]],
            "lists" => expect![[r#"
                closed: denied: lists-of-lists could not be evaluated: 1:25: too many elements: an evaluation may make fewer than 1000000
                 | len(map(1..100000, map(1..100000, object.data.a))) > 0
                 |                         ^
                open: allowed
                warning: lists-of-lists could not be evaluated: 1:25: too many elements: an evaluation may make fewer than 1000000"#]],
            "tells" => expect![[
                r#"denied: a-message-that-grows: ?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…? (data.a is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… and 27 bytes"#
            ]],
            "number" => expect![[r#"
                closed: denied: no-number could not be evaluated: 1:1: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… is not an int
                 | int(object.data.a ?? "0") > 0
                 | ^
                open: allowed
                warning: no-number could not be evaluated: 1:1: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… is not an int"#]],
            _ => expect![[r#"
                closed: denied: no-duration could not be evaluated: 1:1: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… is not a duration such as 1h30m
                 | duration(object.data.a ?? "0s") > duration("1s")
                 | ^
                open: allowed
                warning: no-duration could not be evaluated: 1:1: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… is not a duration such as 1h30m"#]],
        };
        corpus.review(config_map("default", name, json!({"a": "x".repeat(1000)})).to_string(), expected);
    }
}
