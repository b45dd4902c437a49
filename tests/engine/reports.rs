//! Policy reports on a real API server: they say what the board says, whoever writes them and whatever happens meanwhile.
//!
//! The tests are audit: they put on the board what is wrong. Reports are found by their instance, and each test has a cluster of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use portal_cluster::{
    health::Health,
    holder::{Candidacy, Holder, Timing},
    kinds,
    metrics::{Metrics, Registry, text},
    rules::{intake::Intake, intake::QUEUE, quota::RULES_PER_NAMESPACE, snapshot::InForce},
    runtime::Runtime,
};
use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    layers::Layers,
    manifest::Manifest,
    rule::{Rule, compile::compile, file},
};
use portal_engine::{
    findings::{Board, Finding, Offender},
    metrics::EngineMetrics,
    sinks::report::{self, ReportSettings, Reporting, Writer},
};
use portal_test_kit::audit_log::AuditEvent;
use portal_test_kit::{Cluster, Size, policy_reports as readers};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::core::install::{apply, generate};

/// What happens by itself happens within this time, on a machine that does much else.
const SOON: Duration = Duration::from_secs(40);

/// Who the writers are for the API server.
const GROUPS: [&str; 1] = ["system:masters"];

/// A cluster that serves reports.
fn cluster() -> Cluster {
    let cluster = Cluster::start(Size::Core).unwrap();
    define(&cluster);
    cluster
}

pub(super) fn define(cluster: &Cluster) {
    let manifest = generate(&["report-crds"]);
    apply(cluster, &manifest);
    let waits = ["wait", "--for=condition=Established", "--timeout=30s", "--filename", "-"];
    cluster.kubectl_with_input(&waits, &manifest).unwrap();
}

/// An engine, as far as its reports know it.
struct Replica {
    board: Board,
    state: watch::Receiver<Reporting>,
    registry: Registry,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Replica {
    /// One that writes reports of a kind in the name of a user, once it holds the Lease.
    async fn start(cluster: &Cluster, user: &str, api: report::Api) -> Replica {
        Replica::looking(cluster, user, api, report::LOOK).await
    }

    /// The same, which looks this often whether all reports are as it left them.
    async fn looking(cluster: &Cluster, user: &str, api: report::Api, look: Duration) -> Replica {
        let (client, shutdown) = (cluster.client_as(user, &GROUPS).await, CancellationToken::new());
        let timing = Timing::default();
        let candidacy = Candidacy {
            namespace: "default".to_owned(),
            name: "portal-engine-stable".to_owned(),
            identity: user.to_owned(),
            address: None,
            owner: None,
            timing,
        };
        let (holder, electing) = Holder::start(client.clone(), &candidacy, shutdown.clone());
        let registry = Registry::new();
        let (metrics, health) = (Metrics::register(&registry), Health::default());
        let runtime = Runtime { client, health: health.clone(), metrics: metrics.clone(), shutdown: shutdown.clone() };
        let (updates, updates_in) = mpsc::channel(QUEUE);
        let (reports, mut reports_in) = mpsc::channel(QUEUE);
        let (waiting, waiting_in) = watch::channel(false);
        let in_force = InForce::default();
        let intake = Intake {
            layers: Layers::default(),
            other_layers: Default::default(),
            rules_per_namespace: RULES_PER_NAMESPACE,
            in_force: in_force.clone(),
            reports,
            waiting,
            health,
            metrics,
        };
        let (board, engine_metrics) = (Board::default(), EngineMetrics::register(&registry));
        let settings = ReportSettings {
            instance: "stable".to_owned(),
            instance_uid: Some("11111111-2222-4333-8444-555555555555".to_owned()),
            api,
            timeout: timing.action_timeout(),
            look,
        };
        let (writer, state) = Writer::new(runtime.clone(), engine_metrics, settings, holder, board.outlet(), in_force);
        let tasks = vec![
            tokio::spawn(writer.run()),
            tokio::spawn(kinds::follow(runtime, updates, waiting_in)),
            tokio::spawn(intake.run(updates_in, shutdown.clone())),
            tokio::spawn(async move { while reports_in.recv().await.is_some() {} }),
            electing,
        ];
        Replica { board, state, registry, shutdown, tasks }
    }

    /// The same, which has judged everything.
    async fn complete(cluster: &Cluster, user: &str) -> Replica {
        let replica = Replica::start(cluster, user, report::Api::PolicyReport).await;
        replica.board.set_complete();
        replica.is(|state| *state == Reporting::Available).await;
        replica
    }

    /// Waits until it says so.
    async fn is(&self, expected: impl Fn(&Reporting) -> bool) -> Reporting {
        let mut state = self.state.clone();
        let found = tokio::time::timeout(SOON, state.wait_for(|state| expected(state))).await;
        found.unwrap_or_else(|_| panic!("it says {:?}", *self.state.borrow())).unwrap().clone()
    }

    /// Ends it as SIGTERM does.
    async fn stop(mut self) {
        self.shutdown.cancel();
        for task in std::mem::take(&mut self.tasks) {
            task.await.unwrap();
        }
    }

    fn metric(&self, name: &str) -> u64 {
        let text = text(&self.registry);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

static RULES: LazyLock<BTreeMap<String, Arc<Rule>>> = LazyLock::new(rules);

fn rules() -> BTreeMap<String, Arc<Rule>> {
    let rule = |name: &str, action: &str| {
        format!(
            "name: {name}\ncategory: Pod Security\nseverity: high\nenforcementAction: {action}\n\
             match: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n---\n"
        )
    };
    let text = [rule("denies", "deny"), rule("warns", "warn"), rule("records", "dryrun")].concat();
    let file = file::read(&Manifest::new("rules.yaml", text.as_bytes()));
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    assert!(file.problems.is_empty() && diagnostics.is_empty());
    rules.rules().iter().map(|rule| (rule.id.name.clone(), Arc::clone(rule))).collect()
}

/// A pod that violates rules, with a message for each.
fn pod(name: &str, namespace: Option<&str>, findings: &[(&str, &str)]) -> Option<Offender> {
    let finding = |(rule, message): &(&str, &str)| Finding {
        rule: Arc::clone(&RULES[*rule]),
        container: None,
        is_failure: false,
        message: (*message).to_owned(),
        saw: None,
        since: jiff::Timestamp::now(),
    };
    Some(Offender {
        uid: format!("uid-of-{name}"),
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        findings: findings.iter().map(finding).collect(),
        passes: Vec::new(),
    })
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn policy_reports(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource("wgpolicyk8s.io", "v1alpha2", "PolicyReport"))
}

async fn stored(reports: &Api<DynamicObject>) -> Vec<Value> {
    let reports = reports.list(&ListParams::default()).await.unwrap().items;
    reports.into_iter().map(|report| serde_json::to_value(report).unwrap()).collect()
}

/// What reports say: the name of the object, the rule, the outcome and the message. What is told twice is in it twice.
fn told(reports: &[Value]) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |report: &Value| report["results"].as_array().cloned().unwrap_or_default();
    let result = |result: Value| {
        [&result["resources"][0]["name"], &result["policy"], &result["result"], &result["message"]].map(text)
    };
    let mut told: Vec<_> = reports.iter().flat_map(of).map(result).collect();
    told.sort();
    told
}

/// What tools that show reports see in one that tells of one object: the types that they are compiled with have a field for all of it.
#[track_caller]
fn tools_see(report: &Value, name: &str, object: &str) {
    let seen = readers::see(std::slice::from_ref(report)).unwrap().remove(0);
    assert_eq!((seen.report.as_str(), seen.scope.as_str(), seen.counted()), (name, "", seen.summary));
    assert_eq!(seen.results.len(), report["results"].as_array().unwrap().len());
    let ids: BTreeSet<&str> = seen.results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids.len(), seen.results.len(), "{ids:?}");
    for result in &seen.results {
        let said = [&result.source, &result.severity, &result.category, &result.resource].map(String::as_str);
        assert_eq!(said, ["portal", "high", "Pod Security", object], "{report}");
        let expected = match result.policy.as_str() {
            "warns" => ("warn", true),
            "records" => ("fail", false),
            _ => ("fail", true),
        };
        assert_eq!((result.result.as_str(), result.scored), expected);
        assert!(!result.message.is_empty() && result.seconds > 1_700_000_000, "{report}");
    }
}

/// Waits until the reports of a namespace say just this.
async fn says(reports: &Api<DynamicObject>, expected: &[[&str; 4]]) -> Vec<Value> {
    let mut expected: Vec<[String; 4]> = expected.iter().map(|result| result.map(str::to_owned)).collect();
    expected.sort();
    until("the reports say it", async || {
        let stored = stored(reports).await;
        (told(&stored) == expected).then_some(stored)
    })
    .await
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a user wrote of reports, and what came of it.
async fn writes(cluster: &Cluster, user: &str) -> Vec<(String, u16)> {
    let is_report = |event: &&AuditEvent| event.object_ref.resource.ends_with("policyreports") && event.is_write();
    let events = cluster.audit_events().await.unwrap();
    let own = events.iter().filter(|event| event.user() == user).filter(is_report);
    own.map(|event| (format!("{} {}", event.verb, event.object_ref.name), event.code())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_appears_changes_and_clears() {
    let cluster = cluster();
    let client = cluster.client().await;
    let replica = Replica::complete(&cluster, "one").await;
    let reports = policy_reports(&client, "default");
    replica.board.put(1, pod("web", Some("default"), &[("denies", "a"), ("warns", "b"), ("records", "c")]));
    let all = [["web", "denies", "fail", "a"], ["web", "records", "fail", "c"], ["web", "warns", "warn", "b"]];
    let report = says(&reports, &all).await.remove(0);
    assert_eq!(report["metadata"]["name"], "portal-stable");
    assert_eq!(
        report["metadata"]["labels"],
        json!({ "app.kubernetes.io/managed-by": "portal", "portal.io/instance": "stable" })
    );
    assert_eq!(
        report["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "name": "stable",
            "uid": "11111111-2222-4333-8444-555555555555",
        }])
    );
    assert_eq!(report["summary"], json!({ "pass": 0, "fail": 2, "warn": 1, "error": 0, "skip": 0 }));
    let result = &report["results"][0];
    assert_eq!((&result["source"], &result["category"]), (&json!("portal"), &json!("Pod Security")));
    assert_eq!(result["properties"]["instance"], "stable");
    tools_see(&report, "default/portal-stable", "v1 Pod default/web uid-of-web");
    let table = cluster.kubectl(&["get", "polr", "--namespace", "default"]).unwrap();
    let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[..6], ["portal-stable", "0", "2", "1", "0", "0"]);

    // What another one adds is no reason to write, and is no way to keep us from writing.
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "team": "a" } }, "summary": { "fail": 99 } }));
    reports.patch("portal-stable", &PatchParams::default(), &patch).await.unwrap();
    replica.board.put(1, pod("web", Some("default"), &[("denies", "other")]));
    replica.board.put(2, pod("node", None, &[("denies", "of the cluster")]));
    let report = says(&reports, &[["web", "denies", "fail", "other"]]).await.remove(0);
    assert_eq!(report["summary"]["fail"], 1);
    let cluster_reports: Api<DynamicObject> =
        Api::all_with(client.clone(), &resource("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport"));
    let report = says(&cluster_reports, &[["node", "denies", "fail", "of the cluster"]]).await.remove(0);
    tools_see(&report, "/portal-stable", "v1 Pod /node uid-of-node");
    let table = cluster.kubectl(&["get", "cpolr"]).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with("portal-stable"), "{table}");
    assert!(writes(&cluster, "one").await.contains(&("update portal-stable".to_owned(), 409)));

    // Deleted by somebody, it comes back with the next change.
    reports.delete("portal-stable", &DeleteParams::default()).await.unwrap();
    replica.board.put(1, pod("web", Some("default"), &[("denies", "third")]));
    says(&reports, &[["web", "denies", "fail", "third"]]).await;

    replica.board.put(1, None);
    replica.board.put(2, None);
    until("they are gone", async || {
        (stored(&reports).await.is_empty() && stored(&cluster_reports).await.is_empty()).then_some(())
    })
    .await;
    until("it is counted", async || (replica.metric("portal_reports") == 0).then_some(())).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_openreports_say_the_same() {
    let cluster = cluster();
    let client = cluster.client().await;
    let replica = Replica::start(&cluster, "one", report::Api::OpenReports).await;
    let of = |kind| resource("openreports.io", "v1alpha1", kind);
    let reports: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &of("Report"));
    replica.board.put(1, pod("web", Some("default"), &[("denies", "a"), ("records", "c")]));
    replica.board.put(2, pod("node", None, &[("warns", "b")]));
    let all = [["web", "denies", "fail", "a"], ["web", "records", "fail", "c"]];
    let report = says(&reports, &all).await.remove(0);
    assert_eq!(report["source"], "portal");
    tools_see(&report, "default/portal-stable", "v1 Pod default/web uid-of-web");
    let cluster_reports: Api<DynamicObject> = Api::all_with(client.clone(), &of("ClusterReport"));
    let report = says(&cluster_reports, &[["node", "warns", "warn", "b"]]).await.remove(0);
    tools_see(&report, "/portal-stable", "v1 Pod /node uid-of-node");
    for (short, expected) in [("reps", ["0", "2", "0"]), ("creps", ["0", "0", "1"])] {
        let table = cluster.kubectl(&["get", short]).unwrap();
        let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells[1..4], expected);
    }
    assert!(stored(&policy_reports(&client, "default")).await.is_empty());
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_what_is_not_judged_yet_and_writes_what_has_changed() {
    let cluster = cluster();
    let client = cluster.client().await;
    let reports = policy_reports(&client, "default");
    let one = Replica::complete(&cluster, "one").await;
    let wrong = |name: &str| pod(name, Some("default"), &[("denies", "a")]);
    one.board.put(1, wrong("stays"));
    one.board.put(2, wrong("mended-meanwhile"));
    let both = [["stays", "denies", "fail", "a"], ["mended-meanwhile", "denies", "fail", "a"]];
    let before = says(&reports, &both).await;
    one.stop().await;

    let two = Replica::start(&cluster, "two", report::Api::PolicyReport).await;
    two.is(|state| *state == Reporting::Available).await;
    two.board.put(70, wrong("stays"));
    two.board.put(71, wrong("new"));
    let three = [both[0], both[1], ["new", "denies", "fail", "a"]];
    let after = says(&reports, &three).await;
    let time = |reports: &[Value]| {
        let results = reports[0]["results"].as_array().unwrap();
        results.iter().find(|result| result["resources"][0]["name"] == "stays").unwrap()["timestamp"].clone()
    };
    assert_eq!(time(&after), time(&before));
    two.board.set_complete();
    says(&reports, &[both[0], three[2]]).await;
    two.stop().await;
    assert_eq!(writes(&cluster, "two").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_holder_takes_over_without_a_write_and_goes_on() {
    let cluster = cluster();
    let client = cluster.client().await;
    let reports = policy_reports(&client, "default");
    let one = Replica::complete(&cluster, "one").await;
    let two = Replica::start(&cluster, "two", report::Api::PolicyReport).await;
    two.board.set_complete();
    for board in [&one.board, &two.board] {
        board.put(1, pod("web", Some("default"), &[("denies", "a")]));
    }
    says(&reports, &[["web", "denies", "fail", "a"]]).await;
    assert_eq!(*two.state.borrow(), Reporting::Standby);
    // It ends while there is much to write.
    for id in 2..400 {
        let offender = pod(&format!("web-{id}"), Some("default"), &[("denies", "a")]);
        one.board.put(id, offender.clone());
        two.board.put(id, offender);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    one.stop().await;
    two.is(|state| *state == Reporting::Available).await;
    let names: Vec<String> = (2..400).map(|id| format!("web-{id}")).chain(["web".to_owned()]).collect();
    let all: Vec<[&str; 4]> = names.iter().map(|name| [name.as_str(), "denies", "fail", "a"]).collect();
    says(&reports, &all).await;
    // A third one, which finds everything as it should be.
    let board = two.board.clone();
    two.stop().await;
    let three = Replica::start(&cluster, "three", report::Api::PolicyReport).await;
    for (id, offender) in board.offenders() {
        three.board.put(id, Some(Offender::clone(&offender)));
    }
    three.board.set_complete();
    three.is(|state| *state == Reporting::Available).await;
    three.board.put(1, None);
    says(&reports, &all[..all.len() - 1]).await;
    three.stop().await;
    let writes = writes(&cluster, "three").await;
    assert_eq!(writes.len(), 1, "{writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_come_later_are_noticed() {
    let cluster = Cluster::start(Size::Core).unwrap();
    let client = cluster.client().await;
    let replica = Replica::start(&cluster, "one", report::Api::PolicyReport).await;
    replica.board.put(1, pod("web", Some("default"), &[("denies", "a")]));
    let state = replica.is(|state| matches!(state, Reporting::NotServed(_))).await;
    let Reporting::NotServed(problem) = state else { unreachable!() };
    assert_eq!(
        problem,
        "the API server does not know policyreports.wgpolicyk8s.io in version v1alpha2: install the definitions with \
         `portal generate report-crds | kubectl apply --server-side -f -`"
    );
    define(&cluster);
    // It is asked again after a minute. This is sooner: the API server says that it knows more kinds.
    replica.is(|state| *state == Reporting::Available).await;
    let reports = policy_reports(&client, "default");
    says(&reports, &[["web", "denies", "fail", "a"]]).await;
    // They go, and come back.
    cluster.kubectl(&["delete", "customresourcedefinition", "policyreports.wgpolicyk8s.io"]).unwrap();
    replica.board.put(1, pod("web", Some("default"), &[("denies", "b")]));
    replica.is(|state| matches!(state, Reporting::NotServed(_))).await;
    define(&cluster);
    says(&reports, &[["web", "denies", "fail", "b"]]).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_objects_are_told_in_shards_and_one_fix_rewrites_one() {
    let cluster = cluster();
    let client = cluster.client().await;
    let reports = policy_reports(&client, "default");
    let replica = Replica::complete(&cluster, "one").await;
    let template = pod("web", Some("default"), &[("denies", "a"), ("warns", "b")]).unwrap();
    for id in 0..5_000 {
        let (name, uid) = (format!("web-{id}"), format!("uid-of-web-{id}"));
        replica.board.put(id, Some(Offender { name, uid, ..template.clone() }));
    }
    let results =
        |reports: &[Value]| -> usize { reports.iter().map(|report| report["results"].as_array().unwrap().len()).sum() };
    let all = until("all of it is told once", async || {
        let stored = stored(&reports).await;
        (results(&stored) == 10_000 && stored.len() == 256).then_some(stored)
    })
    .await;
    let results_of_each: BTreeSet<_> = told(&all).into_iter().collect();
    assert_eq!(results_of_each.len(), 10_000);
    let largest = all.iter().map(|report| report.to_string().len()).max().unwrap();
    assert!(largest < 128 << 10, "{largest}");
    let before = writes(&cluster, "one").await.len();
    replica.board.put(77, None);
    until("it is cleared", async || (results(&stored(&reports).await) == 9_998).then_some(())).await;
    // Whatever would be written with it is written within this time.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = writes(&cluster, "one").await;
    assert_eq!(after.len(), before + 1, "{:?}", &after[before..]);
    until("it is counted", async || (replica.metric("portal_reports") == 256).then_some(())).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_others_are_left_alone() {
    let cluster = cluster();
    let client = cluster.client().await;
    let reports = policy_reports(&client, "default");
    let report = |name: &str, labels: Value| -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
            "metadata": { "name": name, "labels": labels },
            "results": [{ "policy": "theirs", "result": "pass" }],
        }))
        .unwrap()
    };
    let labels = |manager: &str, instance: &str| json!({ "app.kubernetes.io/managed-by": manager, "portal.io/instance": instance });
    let foreign = [
        report("kyverno", json!({})),
        report("portal-stable", labels("somebody", "stable")),
        report("portal-canary", labels("portal", "canary")),
        report("portal-stable-copy", labels("portal", "stable")),
    ];
    let mut created = Vec::new();
    for report in &foreign {
        created.push(reports.create(&PostParams::default(), report).await.unwrap());
    }
    let replica = Replica::complete(&cluster, "one").await;
    replica.board.put(1, pod("web", Some("default"), &[("denies", "a")]));
    let state = replica.is(|state| matches!(state, Reporting::Failing(_))).await;
    let problem =
        "the PolicyReport default/portal-stable was not made by this instance: delete it, so that its name is free";
    assert_eq!(state, Reporting::Failing(problem.to_owned()));
    // Elsewhere nothing is in the way.
    cluster.kubectl(&["create", "namespace", "shop"]).unwrap();
    replica.board.put(2, pod("web", Some("shop"), &[("denies", "a")]));
    says(&policy_reports(&client, "shop"), &[["web", "denies", "fail", "a"]]).await;
    for before in &created {
        assert_eq!(&reports.get(before.metadata.name.as_ref().unwrap()).await.unwrap(), before);
    }
    reports.delete("portal-stable", &DeleteParams::default()).await.unwrap();
    replica.is(|state| *state == Reporting::Available).await;
    let own = reports.get("portal-stable").await.unwrap();
    assert_eq!(told(&[serde_json::to_value(own).unwrap()]).len(), 1);
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_to_reports_is_undone() {
    let cluster = cluster();
    let client = cluster.client().await;
    let (reports, api) = (policy_reports(&client, "default"), report::Api::PolicyReport);
    let replica = Replica::looking(&cluster, "one", api, Duration::from_secs(1)).await;
    replica.board.put(1, pod("web", Some("default"), &[("denies", "a")]));
    let own = says(&reports, &[["web", "denies", "fail", "a"]]).await;
    reports.delete("portal-stable", &DeleteParams::default()).await.unwrap();
    let again = says(&reports, &[["web", "denies", "fail", "a"]]).await;
    assert_ne!(again[0]["metadata"]["uid"], own[0]["metadata"]["uid"]);
    assert_eq!(again[0]["results"], own[0]["results"]);
    let patch = json!({ "results": [{ "policy": "denies", "result": "pass" }] });
    reports.patch("portal-stable", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    says(&reports, &[["web", "denies", "fail", "a"]]).await;
    // One that says what is not so any more, as an engine could have left it that was cut off.
    let mut left: DynamicObject = serde_json::from_value(again[0].clone()).unwrap();
    left.metadata.name = Some("portal-stable.16-03".to_owned());
    left.metadata.resource_version = None;
    reports.create(&PostParams::default(), &left).await.unwrap();
    let all = until("it is told once, in the smaller report", async || {
        let stored = stored(&reports).await;
        (stored.len() == 1 && stored[0]["metadata"]["name"] != "portal-stable").then_some(stored)
    })
    .await;
    assert_eq!(told(&all).len(), 1);
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_is_no_problem() {
    let cluster = cluster();
    let replica = Replica::complete(&cluster, "one").await;
    // Without controllers, it never ends to be deleted.
    cluster.kubectl(&["create", "namespace", "going"]).unwrap();
    cluster.kubectl(&["delete", "namespace", "going", "--wait=false"]).unwrap();
    replica.board.put(1, pod("web", Some("going"), &[("denies", "a")]));
    replica.board.put(2, pod("web", Some("gone"), &[("denies", "a")]));
    replica.board.put(3, pod("web", Some("default"), &[("denies", "a")]));
    let reports = policy_reports(&cluster.client().await, "default");
    says(&reports, &[["web", "denies", "fail", "a"]]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    replica.is(|state| *state == Reporting::Available).await;
    let refused = writes(&cluster, "one").await.into_iter().filter(|(_, code)| *code >= 400).count();
    // After half a second, after one more, and so on, in each of the two.
    assert!((4..=16).contains(&refused), "{refused}");
    replica.board.put(1, None);
    replica.board.put(2, None);
    replica.stop().await;
}
