//! Many requests, sent to the webhook directly, while everything around it changes and fails: rules, certificate, watches, the API
//! server, other clients. Each answer is compared with what the rules of its moment come to, and none is lost.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use portal_core::decide::{Decision, Policy};
use portal_core::evaluate::evaluate;
use portal_core::event::{Entry, Event};
use portal_core::kinds::Kinds;
use portal_core::language::ExprEngine;
use portal_core::lookup::{Answer as Looked, Lookup, Query};
use portal_core::object::Object;
use portal_core::review::Review;
use portal_core::rule::compile::compile;
use portal_core::rule::load::load;
use portal_core::rule::source::Origin;
use portal_core::rule::{Rule, RuleSet};
use portal_crds::EnforcementAction;
use portal_document::{Document, Options, from_yaml};
use portal_expr::{Limits, Moment};
use portal_test_kit::fault_proxy::{Fault, FaultProxy, Requests, Verb};
use portal_test_kit::{Cluster, share};
use serde_json::{Value, json};

use super::asking::{CLUSTER, Caller, post};
use super::judging::Judging;
use super::pod;
use crate::core::eventually;
use crate::engine::{create, rules_api};

/// Rules that stay as they are, from a folder.
const RULES: &str = r#"
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
message: "container {{ container.name }} is privileged"
---
name: latest
enforcementAction: warn
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == "latest"
---
name: of-the-team
match: {gvk: [{kind: Pod}], namespaceSelector: {matchLabels: {team: load}}}
rule: spec.hostNetwork
---
name: of-others
match: {gvk: [{kind: Pod}], namespaceSelector: {matchLabels: {team: other}}}
rule: spec.hostNetwork
---
name: fails
match: {gvk: [{kind: Pod}], names: [fails]}
rule: int(metadata.name) > 1
"#;

const NAMESPACE: &str = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"load","labels":{"team":"load"}}}"#;

/// How many clients ask at a time.
const CLIENTS: usize = 4;

/// How many rules change all the time, each by itself.
const CHANGING: usize = 2;

/// The versions of the rules that change.
type Versions = [u64; CHANGING];

/// A client connects anew after so many requests.
const PER_CONNECTION: u64 = 250;

/// A rule of the cluster of which each version says so, and refuses or warns by its number.
fn versioned(rule: usize, version: u64) -> Value {
    json!({
        "apiVersion": "portal.io/v1alpha1",
        "kind": "PortalClusterRule",
        "metadata": {"name": format!("versioned-{rule}")},
        "spec": {
            "match": {"gvk": [{"kind": "Pod"}]},
            "enforcementAction": if version.is_multiple_of(3) { "deny" } else { "warn" },
            "rule": "metadata.name != ''",
            "message": format!("version {version} met {{{{ metadata.name }}}}"),
        },
    })
}

/// What the clients have seen and what the others have done, for the span of a test.
struct Load {
    /// How many requests there are to be.
    total: u64,
    /// The next one.
    next: AtomicU64,
    /// For each rule, the newest version that somebody has begun to write.
    begun: [AtomicU64; CHANGING],
    /// For each rule, the newest version that an answer was given by.
    seen: [AtomicU64; CHANGING],
    certificates: Mutex<BTreeSet<Vec<u8>>>,
    is_over: AtomicBool,
    /// What the rules of some versions come to for each of the pods, worked out here.
    expected: Mutex<HashMap<Versions, Vec<Value>>>,
}

/// Ends the load when the thread that has it panics: the others would go on for long.
struct EndOfAll<'a>(&'a Load);

/// The one namespace that there is.
struct Known(Arc<Object<'static>>);

impl Lookup for Known {
    fn answer(&self, _: &Query) -> Looked {
        Looked::Found(vec![Arc::clone(&self.0)])
    }
}

impl Load {
    fn new(total: u64) -> Load {
        Load {
            total,
            next: AtomicU64::new(0),
            begun: Default::default(),
            seen: Default::default(),
            certificates: Mutex::default(),
            is_over: AtomicBool::new(false),
            expected: Mutex::default(),
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(SeqCst)
    }

    /// How much of it is done, of a hundred.
    fn percent(&self) -> u64 {
        self.next.load(SeqCst).min(self.total) * 100 / self.total
    }

    /// Asks until there have been enough requests.
    fn ask(&self, connect: impl Fn() -> Caller) {
        let _end = EndOfAll(self);
        let mut connection: Option<Caller> = None;
        let mut asked = 0;
        while self.goes_on() {
            let number = self.next.fetch_add(1, SeqCst);
            if number >= self.total {
                return;
            }
            let caller = connection.get_or_insert_with(&connect);
            let body = review(number).to_string();
            let oldest = self.seen.each_ref().map(|version| version.load(SeqCst));
            let answer = caller.review(&body).unwrap_or_else(|error| panic!("request {number} is lost: {error}"));
            let newest = self.begun.each_ref().map(|version| version.load(SeqCst));
            assert_eq!(answer.status, 200, "request {number}: {}", answer.body);
            self.check(number, &body, &answer.body, oldest, newest);
            asked += 1;
            if asked % PER_CONNECTION == 0 {
                self.certificates.lock().unwrap().extend(caller.certificate());
                connection = None;
            }
        }
    }

    /// Checks an answer: each version by which it was given was in force at some moment since the request was sent, and it is what the
    /// rules of these versions come to.
    fn check(&self, number: u64, body: &str, answer: &str, oldest: Versions, newest: Versions) {
        let mut answer: Value = serde_json::from_str(answer).unwrap();
        let versions = versions_of(&answer).unwrap_or_else(|| panic!("request {number}: no versions in {answer:#}"));
        for rule in 0..CHANGING {
            assert!(
                (oldest[rule]..=newest[rule]).contains(&versions[rule]),
                "request {number} was judged by {versions:?}, and {oldest:?} to {newest:?} were possible"
            );
            self.seen[rule].fetch_max(versions[rule], SeqCst);
        }
        assert_eq!(answer["response"]["uid"].take(), uid(number));
        let mut expected = self.expected.lock().unwrap();
        let expected = expected.entry(versions).or_insert_with(|| expected_of(versions));
        assert_eq!(answer, expected[(number % PODS) as usize], "request {number} by {versions:?}: {body}");
    }
}

impl Drop for EndOfAll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, SeqCst);
        }
    }
}

/// What the rules of some versions come to for each of the pods. It shares the evaluation with the engine, and nothing else.
fn expected_of(versions: Versions) -> Vec<Value> {
    let rules = rules_of(versions);
    let namespace = Kinds::builtin().get("", "Namespace").unwrap();
    let known = Known(Arc::new(Object::parse(NAMESPACE.as_bytes(), namespace, &Options::default()).unwrap()));
    let limits = Limits::default();
    let policy = Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true };
    let expected = (0..PODS).map(|number| {
        let body = review(number).to_string();
        let document = Document::parse(body.as_bytes(), &Options::default()).unwrap();
        let review = Review::of(document.root(), Kinds::builtin()).unwrap();
        let entry = Some(Entry { namespaced: false, pinned: false });
        let event = Event { entry, ..review.event(Moment::default()) };
        let evaluation = evaluate(&rules, &known, &event, &limits);
        let decision = Decision::of(&evaluation, &rules, &known, &event, &limits, policy, &|| false);
        let mut answer = decision.response("");
        answer["response"]["uid"].take();
        answer
    });
    expected.collect()
}

/// The rules that are in force with some versions, in the order of their names as in the engine.
fn rules_of(versions: Versions) -> RuleSet {
    static UNCHANGING: LazyLock<Vec<Arc<Rule>>> = LazyLock::new(|| compiled(RULES));
    let changing = (0..CHANGING).flat_map(|rule| compiled(&versioned(rule, versions[rule]).to_string()));
    let mut rules: Vec<Arc<Rule>> = UNCHANGING.iter().cloned().chain(changing).collect();
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    RuleSet::new(rules)
}

fn compiled(yaml: &str) -> Vec<Arc<Rule>> {
    let documents = from_yaml(yaml, &Options::default()).unwrap();
    let origin = || Origin::File { path: String::new(), line: 1 };
    let load = |document: &Document| load(document.root(), origin(), Vec::new()).unwrap();
    let sources: Vec<_> = documents.iter().map(|found| load(&found.document)).collect();
    let (rules, problems) = compile(&sources, Kinds::builtin(), &ExprEngine);
    assert!(problems.is_empty(), "{problems:?}");
    rules.rules().to_vec()
}

/// The versions that an answer tells, one for each of the rules that change.
fn versions_of(answer: &Value) -> Option<Versions> {
    let response = &answer["response"];
    let causes = response["status"]["details"]["causes"].as_array().into_iter().flatten();
    let causes = causes.filter_map(|cause| cause["message"].as_str());
    let warnings = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut versions = [None; CHANGING];
    for (rest, (rule, version)) in causes.chain(warnings).filter_map(|text| Some((text, told_version(text)?))) {
        assert!(rule < CHANGING && versions[rule].replace(version).is_none(), "{rest}");
    }
    versions.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// The number and the version of a rule in what it says: `versioned-2: version 17 met web`. Of an object that violated before, some words
/// stand between.
fn told_version(text: &str) -> Option<(usize, u64)> {
    let (rule, rest) = text.strip_prefix("versioned-")?.split_once(": version ")?;
    Some((rule.split(',').next()?.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
}

fn uid(number: u64) -> String {
    format!("request-{number}")
}

/// How many different pods there are.
const PODS: u64 = 6;

/// One of some pods, each of which means something else to the rules.
fn review(number: u64) -> Value {
    let bad = |context: Value| json!([{"name": "app", "image": "acme.io/app:1", "securityContext": context}]);
    let (name, spec) = match number % PODS {
        0 => ("good", json!({})),
        1 => ("privileged", json!({"containers": bad(json!({"privileged": true}))})),
        2 => ("latest", json!({"containers": [{"name": "app", "image": "acme.io/app"}]})),
        3 => ("host", json!({"hostNetwork": true})),
        4 => ("fails", json!({})),
        _ => ("updated", json!({"hostNetwork": true, "containers": bad(json!({"privileged": true}))})),
    };
    let mut object = pod(name, spec);
    object["metadata"]["namespace"] = json!("load");
    let mut request = json!({
        "uid": uid(number),
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "load", "name": name, "operation": "CREATE",
        "userInfo": {"username": "jane"}, "object": object,
    });
    if name == "updated" {
        request["operation"] = json!("UPDATE");
        request["oldObject"] = request["object"].clone();
        request["object"]["metadata"]["labels"] = json!({"a": number.to_string()});
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// Writes a version of a rule again and again: those of all rules are a hundred a second, if the API server is as fast. Returns how many
/// were written.
async fn keep_changing(load: &Load, rule: usize, rules: &Api<DynamicObject>) -> u64 {
    let mut ticks = tokio::time::interval(Duration::from_millis(10 * CHANGING as u64));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut written = 0;
    while load.goes_on() {
        ticks.tick().await;
        // Whether it was done, if there is no answer, nobody knows.
        written += u64::from(change(load, rule, rules).await.is_ok());
    }
    written
}

/// Writes the next version of a rule.
async fn change(load: &Load, rule: usize, rules: &Api<DynamicObject>) -> kube::Result<u64> {
    let version = load.begun[rule].fetch_add(1, SeqCst) + 1;
    let patch = Patch::Merge(json!({"spec": versioned(rule, version)["spec"]}));
    rules.patch(&format!("versioned-{rule}"), &PatchParams::default(), &patch).await.map(|_| version)
}

/// Clients that begin and go no further. Those whose time was up before they came so far are not among them.
fn half_open(judging: &Judging) -> (Vec<TcpStream>, Vec<Caller>) {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], judging.port));
    let silent = (0..40).map(|number| {
        let mut stream = TcpStream::connect(address)?;
        if number % 2 == 0 {
            // The beginning of a handshake.
            stream.write_all(&[0x16, 0x03, 0x01, 0x02])?;
        }
        Ok(stream)
    });
    let trust = judging.files().trust();
    let begun = (0..20).map(|number| {
        let mut caller = trust.connect(judging.port)?;
        let request = post(CLUSTER, review(0).to_string());
        caller.send(&request[..if number % 2 == 0 { 30 } else { request.len() / 2 }])?;
        Ok(caller)
    });
    let (silent, begun): (Vec<io::Result<_>>, Vec<io::Result<_>>) = (silent.collect(), begun.collect());
    (silent.into_iter().flatten().collect(), begun.into_iter().flatten().collect())
}

/// Lets one thing after the other go wrong.
fn disturb(load: &Load, judging: &Judging, proxy: &FaultProxy, cluster: &Cluster) {
    let mut clients = half_open(judging);
    let mut restart_at = 40;
    for step in 0_u64.. {
        if !load.goes_on() {
            break;
        }
        match step % 4 {
            0 => proxy.cut(&Requests::all().verbs(&[Verb::Watch])),
            1 => judging.files().renew(),
            2 => clients = half_open(judging),
            _ => {
                let _partition = proxy.inject(Fault::Refuse.on(Requests::all()));
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        if load.percent() >= restart_at {
            cluster.restart_api_server().unwrap();
            restart_at += 40;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(clients);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_that_of_the_rules_of_its_moment_whatever_else_happens() {
    let load = Load::new(share::times(10_000, 100_000));
    let cluster = crate::engine::cluster();
    crate::engine::apply(&cluster, &serde_json::from_str(NAMESPACE).unwrap());
    let rules = rules_api(cluster.client().await);
    for rule in 0..CHANGING {
        create(&rules, versioned(rule, 0)).await;
    }
    let proxy = FaultProxy::start(&cluster, 1).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    // A machine may be busy, and what is answered must not depend on it.
    let flags = ["--rules-from-cluster", "--decision-log=off", "--admission-deadline=60000"];
    let judging = Judging::start(client.kubeconfig(), RULES, &flags);
    let trust = judging.files().trust();
    let connect = || trust.connect(judging.port).unwrap();
    let sets_before = judging.engine.metric("portal_rule_sets_total");
    let began = Instant::now();
    let runtime = tokio::runtime::Handle::current();
    let written = std::thread::scope(|scope| {
        let changing = (0..CHANGING).map(|rule| keep_changing(&load, rule, &rules));
        let changing = futures_util::future::join_all(changing);
        let changing = scope.spawn(|| runtime.block_on(changing).into_iter().sum::<u64>());
        let disturbing = scope.spawn(|| disturb(&load, &judging, &proxy, &cluster));
        let looking = scope.spawn(|| judging.engine.stays_ready_while(|| load.goes_on()));
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| load.ask(connect))).collect();
        let ended: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        load.is_over.store(true, SeqCst);
        ended.into_iter().for_each(|ended| ended.unwrap());
        looking.join().unwrap();
        disturbing.join().unwrap();
        changing.join().unwrap()
    });
    let seconds = began.elapsed().as_secs_f64();
    let sets = judging.engine.metric("portal_rule_sets_total") - sets_before;
    let (seen, certificates) = (load.expected.lock().unwrap().len(), load.certificates.lock().unwrap().len());
    println!(
        "{} requests in {seconds:.1} s; {written} versions written, {sets} sets of rules in force, {seen} seen in answers; \
         {certificates} certificates",
        load.total
    );
    assert!(seen > 30 && certificates > 1, "{seen} sets of rules, {certificates} certificates");
    // Once all is quiet, the newest versions are in force.
    let last = futures_util::future::join_all((0..CHANGING).map(|rule| change(&load, rule, &rules))).await;
    let last: Vec<u64> = last.into_iter().map(Result::unwrap).collect();
    eventually("the last versions are in force", || {
        let answer = connect().review(review(0).to_string()).unwrap();
        versions_of(&serde_json::from_str(&answer.body).unwrap()).is_some_and(|versions| versions[..] == last)
    });
}
