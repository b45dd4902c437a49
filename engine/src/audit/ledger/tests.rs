//! Whatever happened, and in whatever order workers came to it: once all is quiet, the board says what a fresh start would say.

pub(crate) mod histories;
mod outcomes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use portal_cluster::{
    metrics::Registry,
    rules::{feeds::FeedId, snapshot::Snapshot},
};
use portal_core::{
    kinds::{Kind, Kinds},
    language::ExprEngine,
    layers::Layers,
    manifest::Manifest,
    object::Object,
    rule::{RuleSet, compile::compile_rule, file},
    selector::Selector,
};
use portal_document::{Interning, Options};
use portal_expr::Limits;
use serde_json::Value;
use tokio::runtime::Handle;

use super::{Judged, Ledger};
use crate::{
    audit::{budget::Allowance, judge::Judge},
    cache::{changes::Place, fresh::Fresh, keeper::Caches, store::Store},
    findings::{Board, Offender, Outlet},
    metrics::EngineMetrics,
    tally::Tallies,
    testing::api::ApiServer,
};

/// Objects of some kinds, and a ledger that is told of them.
pub(crate) struct Scene {
    kinds: Vec<(Arc<Kind>, Store)>,
    caches: Caches,
    pub(super) ledger: Ledger,
    pub(crate) board: Board,
    judge: Judge,
    metrics: EngineMetrics,
    tallies: Tallies,
    rules: String,
    number: u64,
    version: u64,
    pub(crate) now: Instant,
    /// Whether all that rules need is taken to be known once they are in force.
    pub(crate) settles_by_itself: bool,
    /// A worker has these in hand.
    pub(crate) in_hand: Vec<InHand>,
}

/// A job, and what came of it.
pub(crate) struct InHand(super::Job, Judged);

/// The kinds of every scene, the one of namespaces first.
pub(crate) const KINDS: [(&str, &str); 7] = [
    ("", "Namespace"),
    ("", "Pod"),
    ("apps", "ReplicaSet"),
    ("apps", "Deployment"),
    ("policy", "PodDisruptionBudget"),
    ("", "Service"),
    ("", "ConfigMap"),
];

impl Scene {
    pub(crate) fn new(allowance: Allowance, namespaces: Selector) -> Scene {
        let kinds: Vec<(Arc<Kind>, Store)> = KINDS
            .map(|(group, kind)| (Arc::clone(Kinds::builtin().get(group, kind).unwrap()), Store::default()))
            .into();
        let caches = Caches::from_iter(kinds.iter().map(|(kind, store)| (FeedId::of(kind, None), store.shown())));
        let board = Board::default();
        let metrics = EngineMetrics::register(&Registry::new());
        let judge = Judge {
            caches: caches.clone(),
            fresh: Fresh::new(ApiServer::saying(404, "{}").client(), metrics.clone()),
            namespaces,
            limits: Limits::default(),
            runtime: Handle::current(),
        };
        Scene {
            kinds,
            caches,
            ledger: Ledger::new(board.clone(), 10_000, allowance),
            board,
            judge,
            metrics,
            tallies: Tallies::default(),
            rules: String::new(),
            number: 0,
            version: 0,
            now: Instant::now(),
            settles_by_itself: true,
            in_hand: Vec::new(),
        }
    }

    /// From here on, fresh reads are answered by another API server.
    fn ask(&mut self, api_server: &ApiServer) {
        self.judge.fresh = Fresh::new(api_server.client(), self.metrics.clone());
    }

    /// Puts rules in force.
    pub(crate) fn rules(&mut self, yaml: &str) {
        self.rules = yaml.to_owned();
        self.number += 1;
        let file = file::read(&Manifest::new("rules.yaml", yaml.as_bytes().to_vec()));
        assert!(file.problems.is_empty(), "{:?}", file.problems);
        let kinds = Kinds::builtin();
        let mut rules: Vec<_> = file
            .sources
            .iter()
            .map(|source| {
                let (rule, diagnostics) = compile_rule(source, kinds, &ExprEngine);
                Arc::new(rule.unwrap_or_else(|| panic!("{diagnostics:?}")))
            })
            .collect();
        rules.sort_by(|one, other| one.id.cmp(&other.id));
        let mut snapshot =
            Snapshot::new(RuleSet::new(rules), Arc::new(kinds.clone()), Layers { audit: true, ..Layers::default() });
        snapshot.number = self.number;
        self.ledger.follow(Arc::new(snapshot), &self.caches);
        if self.settles_by_itself {
            self.settle();
        }
    }

    /// All that the rules need is known.
    pub(crate) fn settle(&mut self) {
        self.ledger.settle(Some(self.number));
    }

    fn place(kind: &Kind) -> Place<'_> {
        Place { kind, namespace: None }
    }

    fn store(&mut self, kind: &str) -> &mut (Arc<Kind>, Store) {
        self.kinds.iter_mut().find(|(known, _)| known.kind == kind).unwrap()
    }

    /// Makes or changes an object. It gets a new version.
    pub(crate) fn apply(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell(&object);
    }

    /// A watch tells of an object that was made or changed.
    pub(crate) fn tell(&mut self, object: &Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let (kind, store) = self.store(&kind);
        let metadata = &object["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap());
        let change = store.apply(namespace, name, Ok(read(kind, object)));
        let kind = Arc::clone(kind);
        self.ledger.changed(Scene::place(&kind), &change, self.now);
    }

    pub(crate) fn delete(&mut self, kind: &str, namespace: Option<&str>, name: &str) {
        let (kind, store) = self.store(kind);
        let change = store.delete(namespace, name);
        let kind = Arc::clone(kind);
        self.ledger.changed(Scene::place(&kind), &change, self.now);
    }

    /// The objects of a kind are listed: whatever was not told before is told by that.
    pub(crate) fn list(&mut self, kind: &str, objects: &[Value]) {
        let (kind, store) = self.store(kind);
        store.begin_list();
        for object in objects {
            let metadata = &object["metadata"];
            store.list(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap(), Ok(read(kind, object)));
        }
        let before = store.end_list();
        let (kind, after) = (Arc::clone(kind), store.shown().moment().unwrap());
        self.ledger.listed(Scene::place(&kind), before.as_deref(), &after, self.now);
    }

    /// The API server refuses to tell of a kind, or tells again.
    pub(crate) fn refuse(&mut self, kind: &str, is_refused: bool) {
        let (_, store) = self.store(kind);
        store.set_refusal(is_refused.then(|| "not allowed".to_owned()));
        if !is_refused {
            self.ledger.ask_failed_again(self.now);
        }
    }

    /// A version that no object has.
    pub(crate) fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// A worker takes a job, judges it, and keeps what came of it. Returns whether there was one.
    pub(crate) fn begin(&mut self) -> bool {
        let Some(job) = self.ledger.take(self.now) else { return false };
        let judged = self.judge.judge(&job, &self.tallies, &self.metrics);
        self.in_hand.push(InHand(job, judged));
        true
    }

    /// A worker hands a job back.
    pub(crate) fn end(&mut self, place: usize) {
        let InHand(job, judged) = self.in_hand.swap_remove(place);
        self.ledger.finish(job, judged, Timestamp::UNIX_EPOCH, self.now);
    }

    /// Lets workers come to the end of everything, that included which has to wait.
    pub(crate) fn quiet(&mut self) {
        loop {
            while !self.in_hand.is_empty() {
                self.end(0);
            }
            if self.begin() {
                continue;
            }
            match self.ledger.next_wake() {
                Some(wake) if wake > self.now => self.now = wake,
                Some(_) => {}
                None => break,
            }
        }
        assert!(self.ledger.is_quiet());
    }

    /// What is on the board, a line for each finding.
    pub(crate) fn shown(&self) -> String {
        let mut lines: Vec<String> = self
            .board
            .offenders()
            .iter()
            .flat_map(|(_, offender)| {
                offender.findings.iter().map(move |finding| {
                    let container = finding.container.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
                    let namespace = offender.namespace.as_deref().map(|name| format!("{name}/")).unwrap_or_default();
                    let kind = &offender.kind;
                    let sign = if finding.is_failure { "!" } else { "" };
                    format!(
                        "{}{sign} {kind} {namespace}{}{container}: {}\n",
                        finding.rule.id, offender.name, finding.message
                    )
                })
            })
            .collect();
        lines.sort();
        lines.concat()
    }

    /// What a ledger shows that begins with what is there.
    pub(crate) fn fresh(&mut self) -> String {
        let mut fresh =
            Scene::new(Allowance { times: 1000, window: Duration::from_secs(1) }, self.judge.namespaces.clone());
        fresh.number = self.number;
        for (kind, store) in &self.kinds {
            let objects: Vec<Value> = store
                .shown()
                .moment()
                .iter()
                .flat_map(|moment| moment.iter())
                .map(|object| serde_json::from_str(&object.root().to_json()).unwrap())
                .collect();
            fresh.list(&kind.kind, &objects);
        }
        if !self.rules.is_empty() {
            fresh.rules(&self.rules.clone());
        }
        fresh.quiet();
        fresh.shown()
    }
}

fn read(kind: &Kind, object: &Value) -> Object<'static> {
    let object = Object::parse(object.to_string().as_bytes(), kind, &Options::default()).unwrap();
    object.with_type(kind, &kind.versions[0], Interning::Add)
}

fn generous() -> Allowance {
    Allowance { times: 1000, window: Duration::from_secs(10) }
}

fn pod(namespace: &str, name: &str, owner: Option<&str>, is_privileged: bool) -> Value {
    let owners: Vec<Value> = owner
        .map(|uid| serde_json::json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true}))
        .into_iter()
        .collect();
    serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("pod-{namespace}-{name}"), "ownerReferences": owners},
        "spec": {"containers": [{"name": "app", "image": "nginx:1", "securityContext": {"privileged": is_privileged}}]},
    })
}

fn controller(kind: &str, namespace: &str, name: &str, owner: Option<&str>, is_privileged: bool) -> Value {
    let template = pod(namespace, name, None, is_privileged);
    let mut object = pod(namespace, name, owner, false);
    object["apiVersion"] = "apps/v1".into();
    object["kind"] = kind.into();
    object["metadata"]["uid"] = format!("{kind}-{namespace}-{name}").into();
    object["spec"] = serde_json::json!({"template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}});
    object
}

const PRIVILEGED: &str = "
name: no-privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged == true
message: container {{ container.name }} is privileged
";

#[tokio::test]
async fn a_finding_appears_changes_and_clears() {
    let mut scene = Scene::new(generous(), Selector::default());
    scene.list("Pod", &[]);
    scene.rules(PRIVILEGED);
    scene.apply(pod("shop", "web", None, true));
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Pod shop/web/app: container app is privileged\n");
    assert!(*scene.board.is_complete().borrow());
    let mut outlet = scene.board.outlet();
    assert_eq!(outlet.take().len(), 1);
    // Nothing that the rule reads.
    let mut same = pod("shop", "web", None, true);
    same["status"] = serde_json::json!({"phase": "Running"});
    scene.apply(same);
    scene.quiet();
    assert!(outlet.take().is_empty());
    scene.apply(pod("shop", "web", None, false));
    scene.quiet();
    assert_eq!(scene.shown(), "");
    assert!(outlet.take()[0].1.is_none());
}

#[tokio::test]
async fn pods_fold_under_what_made_them() {
    let mut scene = Scene::new(generous(), Selector::default());
    scene.rules(PRIVILEGED);
    scene.apply(controller("Deployment", "shop", "web", None, true));
    scene.apply(controller("ReplicaSet", "shop", "web-1", Some("Deployment-shop-web"), true));
    scene.apply(pod("shop", "web-1-a", Some("ReplicaSet-shop-web-1"), true));
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Deployment shop/web/app: container app is privileged\n");
    // The Deployment was mended. The old ReplicaSet stays, and so does its pod for a while.
    scene.apply(controller("Deployment", "shop", "web", None, false));
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Pod shop/web-1-a/app: container app is privileged\n");
    scene.delete("Pod", Some("shop"), "web-1-a");
    scene.quiet();
    assert_eq!(scene.shown(), "");
    // What nobody made is told of by itself.
    scene.delete("Deployment", Some("shop"), "web");
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged ReplicaSet shop/web-1/app: container app is privileged\n");
}

#[tokio::test]
async fn pods_fold_under_what_made_them_also_if_the_rule_names_it() {
    let mut scene = Scene::new(generous(), Selector::default());
    scene.rules(&PRIVILEGED.replace("[{kind: Pod}]", "[{kind: Pod}, {group: apps, kind: Deployment}]"));
    let told = "no-privileged Deployment shop/web/app: container app is privileged\n";
    scene.apply(controller("Deployment", "shop", "web", None, true));
    scene.apply(controller("ReplicaSet", "shop", "web-1", Some("Deployment-shop-web"), true));
    scene.apply(pod("shop", "web-1-a", Some("ReplicaSet-shop-web-1"), true));
    scene.quiet();
    assert_eq!(scene.shown(), told);
    // The Deployment was mended, and keeps the ReplicaSet for a way back.
    scene.apply(controller("Deployment", "shop", "web", None, false));
    scene.delete("Pod", Some("shop"), "web-1-a");
    scene.quiet();
    assert_eq!(scene.shown(), "");
}

#[tokio::test]
async fn what_rules_are_met_is_told_to_whoever_wants_to_know() {
    let mut scene = Scene::new(generous(), Selector::default());
    scene.ledger = Ledger::new(scene.board.clone(), 10_000, generous()).telling_passes();
    let (mut all, mut wrong) = (scene.board.outlet_with_passes(), scene.board.outlet());
    let mut told = |scene: &mut Scene| {
        scene.quiet();
        let told = |outlet: &mut Outlet| {
            let changes = outlet.take().into_iter().map(|(_, offender)| match offender.as_deref() {
                Some(Offender { kind, name, findings, passes, .. }) => format!("{kind} {name} {findings:?} {passes:?}"),
                None => "nothing".to_owned(),
            });
            changes.collect::<Vec<_>>()
        };
        (told(&mut all), told(&mut wrong))
    };
    scene.rules(&format!("{PRIVILEGED}---\nname: other\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n"));
    let nothing = Vec::<String>::new();
    scene.apply(controller("Deployment", "shop", "web", None, false));
    let both = "Deployment web [] [no-privileged, other]";
    assert_eq!(told(&mut scene), (vec![both.to_owned()], nothing.clone()));
    // Of what it makes it is told there.
    scene.apply(controller("ReplicaSet", "shop", "web-1", Some("Deployment-shop-web"), false));
    scene.apply(pod("shop", "web-1-a", Some("ReplicaSet-shop-web-1"), false));
    assert_eq!(told(&mut scene), (nothing.clone(), nothing.clone()));
    scene.apply(controller("Deployment", "shop", "web", None, true));
    let bad = r#"Deployment web [no-privileged Some("app") false "container app is privileged"]"#;
    assert_eq!(told(&mut scene), (vec![format!("{bad} [other]")], vec![format!("{bad} [other]")]));
    // A rule that is not asked any more is not met.
    scene.rules(PRIVILEGED);
    assert_eq!(told(&mut scene), (vec![format!("{bad} []")], nothing));
    scene.apply(controller("Deployment", "shop", "web", None, false));
    let met = "Deployment web [] [no-privileged]".to_owned();
    assert_eq!(told(&mut scene), (vec![met], vec!["nothing".to_owned()]));
    assert!(scene.board.offenders().is_empty() && scene.board.counts().is_empty());
}

#[tokio::test]
async fn only_the_namespaces_that_are_served_are_judged() {
    let namespace = |name: &str, team: &str| serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": {"team": team}}});
    let selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
        match_labels: Some([("team".to_owned(), "a".to_owned())].into()),
        match_expressions: None,
    };
    let mut scene = Scene::new(generous(), Selector::of(&selector).unwrap());
    scene.list("Namespace", &[namespace("shop", "a"), namespace("bank", "b")]);
    scene.rules(PRIVILEGED);
    scene.apply(pod("shop", "web", None, true));
    scene.apply(pod("bank", "web", None, true));
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Pod shop/web/app: container app is privileged\n");
    scene.apply(namespace("bank", "a"));
    scene.apply(namespace("shop", "b"));
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Pod bank/web/app: container app is privileged\n");
}

#[tokio::test]
async fn a_rule_whose_lookups_change_all_the_time_waits_and_is_right_in_the_end() {
    let mut scene = Scene::new(Allowance { times: 3, window: Duration::from_secs(10) }, Selector::default());
    scene.rules(
        "
name: even
match: {gvk: [{kind: ConfigMap}], names: [judged]}
rule: cluster.configmaps.byName('shop', 'hot').data.odd == 'true'
message: odd
",
    );
    let map = |name: &str, odd: bool| serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "uid": name}, "data": {"odd": odd.to_string()}});
    scene.apply(map("judged", false));
    let mut judged = 0;
    for round in 0..100 {
        scene.apply(map("hot", round % 2 == 0));
        while scene.begin() {
            judged +=
                scene.in_hand.iter().filter(|InHand(job, _)| job.object.root().to_json().contains("judged")).count();
            scene.end(0);
        }
    }
    // Once when both were there, and thrice within the window.
    assert_eq!((judged, scene.ledger.counted.suppressed), (4, 96));
    scene.apply(map("hot", true));
    scene.quiet();
    assert_eq!(scene.shown(), "even ConfigMap shop/judged: odd\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_read_that_fails_is_tried_again_until_it_is_answered() {
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    let api_server = ApiServer::new(move |_| match answers.load(Ordering::Relaxed) {
        true => (200, r#"{"metadata": {}, "items": []}"#.to_owned()),
        false => (500, r#"{"code": 500, "message": "not now"}"#.to_owned()),
    });
    let mut scene = Scene::new(generous(), Selector::default());
    scene.ask(&api_server);
    scene.rules(
        "
name: has-budget
match: {gvk: [{kind: ConfigMap}]}
rule: len(consistentCluster.poddisruptionbudgets.list(metadata.namespace)) == 0
message: no budget
",
    );
    // Judging waits for the answers of the API server, which this test must not.
    tokio::task::block_in_place(|| {
        let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "shop", "uid": "one"}});
        scene.apply(object);
        let judge = |scene: &mut Scene| {
            let is_asked = scene.begin();
            (0..scene.in_hand.len()).for_each(|_| scene.end(0));
            is_asked
        };
        assert!(judge(&mut scene));
        assert!(scene.shown().starts_with("has-budget! ConfigMap shop/one"), "{}", scene.shown());
        // Nothing is asked before its time, and everything is judged nevertheless.
        assert!(!judge(&mut scene) && *scene.board.is_complete().borrow());
        for _ in 0..3 {
            scene.now = scene.ledger.next_wake().expect("it is tried again");
            assert!(judge(&mut scene));
        }
        assert_eq!(api_server.asked().len(), 4);
        is_well.store(true, Ordering::Relaxed);
        scene.now = scene.ledger.next_wake().expect("it is tried again");
        assert!(judge(&mut scene));
        assert_eq!(scene.shown(), "has-budget ConfigMap shop/one: no budget\n");
        assert_eq!(scene.ledger.next_wake(), None);
    });
}

#[tokio::test]
async fn an_exception_that_ends_is_noticed() {
    let mut scene = Scene::new(generous(), Selector::default());
    let time = |text: &str| {
        let moment: Timestamp = text.parse().unwrap();
        portal_expr::Moment::new(moment.as_second(), 0)
    };
    // Judging takes the time of the clock, and this has ended for it.
    scene.rules(&format!("{PRIVILEGED}exceptions: [{{namespaces: [shop], until: 2020-01-31, reason: test}}]\n"));
    scene.apply(pod("shop", "web", None, true));
    scene.quiet();
    assert_eq!(scene.ledger.next_expiry(time("2020-01-30T00:00:00Z")), Some(time("2020-02-01T00:00:00Z")));
    assert_eq!(scene.ledger.next_expiry(time("2020-02-01T00:00:00Z")), None);
    scene.ledger.expire(time("2020-01-30T00:00:00Z"), time("2020-01-31T23:59:59Z"));
    assert!(!scene.begin());
    scene.ledger.expire(time("2020-01-30T00:00:00Z"), time("2020-02-01T00:00:00Z"));
    assert!(scene.begin());
    scene.quiet();
    assert_eq!(scene.shown(), "no-privileged Pod shop/web/app: container app is privileged\n");
}
