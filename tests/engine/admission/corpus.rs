//! Requests that try to get past the rules or to break the webhook, sent to it directly: to an engine that fails closed and to one that
//! fails open. Each is answered as `docs/concepts/fail-closed.md` says, and costs nobody else anything.

mod bodies;
mod holes;
mod reviews;
mod sizes;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use expect_test::Expect;
use portal_test_kit::{Cluster, Size};
use serde_json::{Value, json};

use super::asking::{Answer, CLUSTER, Caller, post};
use super::judging::Judging;

/// An engine that fails closed and one that fails open, with the same rules. All of these tests share them.
struct Corpus {
    closed: Asked,
    open: Asked,
    /// The thread that has started the engines ends when this is dropped.
    _end: Sender<()>,
}

/// An engine, and a connection to it that shows after each request that others are answered.
struct Asked {
    judging: Judging,
    other: Mutex<Caller>,
}

/// What is shared for as long as a test has it.
static SHARED: Mutex<Weak<Corpus>> = Mutex::new(Weak::new());

/// More of an answer is not shown.
const SHOWN: usize = 400;

impl Corpus {
    fn shared() -> Arc<Corpus> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(corpus) = shared.upgrade() {
            return corpus;
        }
        // The kernel ends an engine with the thread that has started it, and that of a test ends with the test.
        let (started, corpus) = channel();
        std::thread::spawn(move || {
            let (end, ended) = channel();
            let _ = started.send(Arc::new(Corpus::start(end)));
            // An error says that the corpus is gone, which is what is waited for.
            let _ = ended.recv();
        });
        let corpus = corpus.recv().expect("the engines start");
        *shared = Arc::downgrade(&corpus);
        corpus
    }

    fn start(end: Sender<()>) -> Corpus {
        let cluster = Cluster::shared(Size::Core);
        // There from the second time on.
        let _ = cluster.kubectl(&["create", "namespace", "corpus-guarded"]);
        cluster.kubectl(&["label", "namespace", "corpus-guarded", "guarded=yes", "--overwrite"]).unwrap();
        // A machine may be busy, and what is told must not depend on it.
        let flags = ["--decision-log=off", "--admission-deadline=60000"];
        let [closed, open] = [&[][..], &["--fail-open"]].map(|more| {
            let judging = Judging::start(&cluster.kubeconfig(), RULES, &[&flags[..], more].concat());
            assert_eq!(judging.engine.metric(r#"portal_rules{state="refused"}"#), 0);
            let other = Mutex::new(judging.caller());
            Asked { judging, other }
        });
        Corpus { closed, open, _end: end }
    }

    /// Asserts the answer to a review that is sent to the rules of the cluster.
    #[track_caller]
    fn review(&self, body: impl AsRef<[u8]>, expected: Expect) {
        self.send(&post(CLUSTER, body), expected);
    }

    /// The same, where many reviews have one answer.
    #[track_caller]
    fn all(&self, bodies: impl IntoIterator<Item = String>, expected: &str) {
        for body in bodies {
            assert_eq!(self.answer(&post(CLUSTER, &body)), expected, "{}", shorten(&body));
        }
    }

    #[track_caller]
    fn send(&self, request: &[u8], expected: Expect) {
        expected.assert_eq(&self.answer(request));
    }

    /// What is answered to the bytes of a request. Whatever it is, others are answered after it and both engines are ready.
    fn answer(&self, request: &[u8]) -> String {
        let [closed, open] = [&self.closed, &self.open].map(|Asked { judging, other }| {
            let answer = judging.caller().ask(request).map_or_else(|error| error.to_string(), |answer| told(&answer));
            let next = other.lock().unwrap().review(pod(json!({})).to_string()).unwrap();
            assert_eq!(told(&next), "allowed", "after {}", shorten(&String::from_utf8_lossy(request)));
            assert_eq!(judging.engine.get("/readyz").unwrap().0, 200);
            answer
        });
        if closed == open { closed } else { format!("closed: {closed}\nopen: {open}") }
    }
}

/// An answer as whoever asked reads it.
fn told(answer: &Answer) -> String {
    if answer.status != 200 {
        return shorten(&format!("{}: {}", answer.status, answer.body.trim_end()));
    }
    let response = answer.response();
    assert!(response["uid"].is_string(), "{}", answer.body);
    let mut lines = vec![match response["allowed"].as_bool().unwrap() {
        true => "allowed".to_owned(),
        false => {
            assert_eq!(response["status"]["code"], 403);
            shorten(&format!("denied: {}", response["status"]["message"].as_str().unwrap()))
        }
    }];
    let warnings = response["warnings"].as_array().into_iter().flatten();
    lines.extend(warnings.map(|warning| format!("warning: {}", warning.as_str().unwrap())));
    lines.join("\n")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… and {} bytes", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

/// A review that creates something of the core group.
fn creation(resource: &str, namespace: &str, name: &str, object: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": object["kind"]},
            "resource": {"group": "", "version": "v1", "resource": resource},
            "namespace": namespace,
            "name": name,
            "operation": "CREATE",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": null,
            "dryRun": false,
        },
    })
}

/// A review that creates a pod with one container, and this in its spec.
fn pod(spec: Value) -> Value {
    let mut object = super::pod("web", spec);
    object["metadata"]["namespace"] = json!("default");
    creation("pods", "default", "web", object)
}

/// The same pod, which is changed from one spec to another.
fn pod_update(old: Value, new: Value) -> Value {
    let mut review = pod(new);
    review["request"]["operation"] = json!("UPDATE");
    review["request"]["oldObject"] = pod(old)["request"]["object"].take();
    review
}

/// What violates the rule that every corpus has.
fn bad_pod() -> Value {
    pod(json!({"hostNetwork": true}))
}

/// The rules of both engines. Most are for objects of one name, so that each test meets its own.
const RULES: &str = r#"
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: host-pid
match: {gvk: [{kind: Pod}]}
rule: spec.hostPID
message: "{{ metadata.name }} of {{ metadata.namespace }}"
---
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
---
name: small
match: {gvk: [{kind: Pod}]}
rule: container.resources.limits.memory > "1Gi"
---
name: keep
match: {gvk: [{kind: Pod}], operations: [DELETE]}
rule: metadata.labels.keep == "yes"
---
name: no-exec
match: {gvk: [{kind: Pod}], operations: [CONNECT], subresources: [exec]}
rule: '"sh" in object.command'
---
name: status
match: {gvk: [{kind: Pod}], operations: [UPDATE], subresources: [status]}
rule: object.status.phase == "Failed"
---
name: roles
match: {gvk: [{group: rbac.authorization.k8s.io, kind: ClusterRole}]}
rule: any(object.rules, "*" in .verbs)
---
name: secrets
match: {gvk: [{kind: Secret}]}
rule: object.data != nil
message: "{{ object.data }}"
---
name: guarded
match: {gvk: [{kind: ConfigMap}], names: [selected], namespaceSelector: {matchLabels: {guarded: "yes"}}}
rule: object.data.bad == "yes"
---
name: not-guarded
match:
  gvk: [{kind: ConfigMap}]
  names: [selected]
  namespaceSelector: {matchExpressions: [{key: guarded, operator: DoesNotExist}]}
rule: object.data.worse == "yes"
---
name: excepted
match: {gvk: [{kind: ConfigMap}]}
rule: object.data.excepted == "no"
exceptions:
- {namespaces: [default], names: [one], reason: known}
- {namespaces: [known], reason: known}
- {names: [two], until: "2999-12-31", reason: known}
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: default}
spec:
  match: {gvk: [{kind: ConfigMap}]}
  rule: metadata.name != ""
  message: "{{ metadata.namespace }}"
---
name: text-that-doubles
match: {gvk: [{kind: ConfigMap}], names: [doubles]}
rule: 'len(reduce(1..64, #acc + #acc, "xx")) > 0'
---
name: text-that-is-repeated
match: {gvk: [{kind: ConfigMap}], names: [repeats]}
rule: 'len(repeat(repeat(repeat(object.data.a ?? "", 1000), 1000), 1000)) > 0'
---
name: lists-of-lists
match: {gvk: [{kind: ConfigMap}], names: [lists]}
rule: 'len(map(1..100000, map(1..100000, object.data.a))) > 0'
---
name: a-message-that-grows
match: {gvk: [{kind: ConfigMap}], names: [tells]}
rule: object.data.a != nil
message: '{{ repeat(object.data.a ?? "", 100000) }}{{ object.data.a }}{{ repeat(repeat(object.data.a ?? "", 10000), 10000) }}'
---
name: no-number
match: {gvk: [{kind: ConfigMap}], names: [number]}
rule: int(object.data.a ?? "0") > 0
---
name: no-duration
match: {gvk: [{kind: ConfigMap}], names: [duration]}
rule: duration(object.data.a ?? "0s") > duration("1s")
"#;
