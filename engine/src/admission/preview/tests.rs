//! Rules that are tried on some pods.

use std::cell::Cell;

use expect_test::{Expect, expect};
use portal_cluster::rules::feeds::FeedId;
use portal_core::{
    language::ExprEngine,
    manifest::Manifest,
    object::Object,
    rule::{compile::compile, file},
    selector::Selector,
};
use portal_document::{Interning, Options};
use serde_json::{Value, json};

use super::*;
use crate::{cache::store::Store, testing::rules::settings};

/// What is there: pods of some namespaces, one of which nobody touches, and two namespaces.
fn caches() -> Caches {
    let pods = [("bank", "a", true), ("kube-system", "b", true), ("shop", "c", false), ("shop", "d", true)];
    let more = (0..5).map(|number| ("shop", format!("e{number}"), true));
    let pods = pods.map(|(namespace, name, is_bad)| (namespace, name.to_owned(), is_bad)).into_iter().chain(more);
    let pod = |(namespace, name, is_bad): (&str, String, bool)| {
        json!({
            "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}},
            "spec": {"hostNetwork": is_bad, "containers": [{"name": "app", "image": "x"}]},
        })
    };
    let namespace = |(name, team): (&str, &str)| json!({"metadata": {"name": name, "labels": {"team": team}}});
    let namespaces = [("bank", "a"), ("kube-system", "a"), ("shop", "b")].map(namespace);
    [store("Pod", pods.map(pod)), store("Namespace", namespaces)].into_iter().collect()
}

fn store(kind: &str, objects: impl IntoIterator<Item = Value>) -> (FeedId, crate::cache::store::Shown) {
    let kind = Kinds::builtin().get("", kind).unwrap();
    let mut store = Store::default();
    store.begin_list();
    for object in objects {
        let (metadata, parsed) =
            (&object["metadata"], Object::parse(object.to_string().as_bytes(), kind, &Options::default()));
        let parsed = parsed.unwrap().with_type(kind, "v1", Interning::Add);
        store.list(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap(), Ok(parsed));
    }
    store.end_list();
    (FeedId::of(kind, None), store.shown())
}

fn rule(yaml: &str) -> Arc<Rule> {
    let file = file::read(&Manifest::new("rules.yaml", format!("name: r\n{yaml}").into_bytes()));
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    rules.rules().first().cloned().unwrap_or_else(|| panic!("{:?} {diagnostics:?}", file.problems))
}

const HOST: &str = "match: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork == true\n";

#[track_caller]
fn check_in(settings: JudgeSettings, yaml: &str, expected: Expect) {
    let preview = Preview::new(caches(), Arc::new(settings));
    let impact = preview.look(&rule(yaml), Time::default(), &|| false);
    expected.assert_eq(&impact.map_or("not told".to_owned(), |impact| impact.lines().join("\n")));
}

#[track_caller]
fn check(yaml: &str, expected: Expect) {
    check_in(settings(), yaml, expected);
}

#[test]
fn what_would_be_done_is_told_with_examples() {
    check(HOST, expect!["the rule would refuse 7 of 8 pods that are there now: bank/a, shop/d, shop/e0, …"]);
    let warn = format!("{HOST}enforcementAction: warn\n");
    check(&warn, expect!["the rule would warn about 7 of 8 pods that are there now: bank/a, shop/d, shop/e0, …"]);
    // What audit alone finds it finds everywhere.
    let audit = format!("{HOST}mode: [audit]\n");
    check(&audit, expect!["the rule would find 8 of 9 pods that are there now: bank/a, kube-system/b, shop/d, …"]);
    let mut day_one = settings();
    day_one.policy.max_enforcement = EnforcementAction::Dryrun;
    check_in(
        day_one,
        HOST,
        expect!["the rule would record 7 of 8 pods that are there now: bank/a, shop/d, shop/e0, …"],
    );
    let one = HOST.replace("Pod}]", "Pod}], namespaces: {include: [bank]}");
    check(&one, expect!["the rule would refuse 1 of 1 pods that are there now: bank/a"]);
    check(&HOST.replace("Network", "IPC"), expect![""]);
    let broken = "match: {gvk: [{kind: Pod}]}\nrule: int(metadata.labels.app ?? '0') > 1\n";
    check(broken, expect![[r#"it could not be evaluated for 8 of 8 pods: 1:1: "a" is not an int"#]]);
}

#[test]
fn namespaces_that_the_instance_does_not_serve_are_not_counted() {
    let labels = Some([("team".to_owned(), "a".to_owned())].into());
    let selector =
        k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector { match_labels: labels, match_expressions: None };
    let served = JudgeSettings { namespace_selector: Selector::of(&selector).unwrap(), ..settings() };
    check_in(served, HOST, expect!["the rule would refuse 1 of 1 pods that are there now: bank/a"]);
}

#[test]
fn what_cannot_be_told_of_what_is_there_is_not_told() {
    for expression in ["request.userInfo.username == 'eve'", "len(cluster.services.list(metadata.namespace)) > 0"] {
        check(&format!("match: {{gvk: [{{kind: Pod}}]}}\nrule: {expression}\n"), expect!["not told"]);
    }
    let gone = "match: {gvk: [{kind: Pod}], operations: [DELETE]}\nrule: spec.hostNetwork == true\n";
    check(gone, expect!["not told"]);
    let fresh = "match: {gvk: [{kind: Pod}]}\nrule: len(consistentCluster.pods.list(metadata.namespace)) > 5\n";
    check(fresh, expect!["not told"]);
    // Nobody watches these.
    check("match: {gvk: [{kind: Service}]}\nrule: metadata.name != ''\n", expect![""]);
    // A lookup of what is at hand is answered.
    let lookup = "match: {gvk: [{kind: Pod}]}\nrule: len(cluster.pods.list(metadata.namespace)) > 5\n";
    check(lookup, expect!["the rule would refuse 7 of 8 pods that are there now: shop/c, shop/d, shop/e0, …"]);
}

#[test]
fn when_the_time_is_over_it_is_told_how_far_it_came() {
    let pod = |number| json!({"metadata": {"namespace": "shop", "name": format!("p{number:03}")}, "spec": {"hostNetwork": true}});
    let caches: Caches = [store("Pod", (0..200).map(pod))].into_iter().collect();
    let (preview, looks) = (Preview::new(caches, Arc::new(settings())), Cell::new(0));
    let is_over = || looks.replace(looks.get() + 1) == 2;
    let impact = preview.look(&rule(HOST), Time::default(), &is_over).unwrap();
    expect!["the rule would refuse 95 of the first 95 pods that are there now: shop/p000, shop/p001, shop/p002, …"]
        .assert_eq(&impact.to_string());
}

#[tokio::test]
async fn others_are_not_told_while_one_waits() {
    let preview = Preview::new(caches(), Arc::new(settings()));
    let turn = Arc::clone(&preview.turn).try_acquire_owned().unwrap();
    assert!(preview.of(rule(HOST), Time::default()).await.is_empty());
    drop(turn);
    assert_eq!(preview.of(rule(HOST), Time::default()).await.len(), 1);
}
