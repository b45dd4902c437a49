//! What makes pods is judged as the pods that it makes: the same violations, of the same containers, in the same words.

use std::cell::Cell;
use std::fs;

use portal_core::evaluate::evaluate;
use portal_core::event::{Event, Front, Operation};
use portal_core::kinds::Kinds;
use portal_core::lookup::{Answer, Lookup, Query};
use portal_core::object::Object;
use portal_core::rule::RuleSet;
use portal_document::{Options, from_yaml};
use portal_expr::{Limits, Moment};
use portal_test_kit::repository;
use serde_json::{Value, json};

use super::{document, hold, rules};
use crate::chance::Random;
use crate::conformance::pod_security::pods::Pods;

/// What makes pods, and where its template is.
const CONTROLLERS: [(&str, &str, &str); 8] = [
    ("apps", "Deployment", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("batch", "Job", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
    ("", "ReplicationController", "/spec/template"),
    ("", "PodTemplate", "/template"),
];

/// Conditions on what every pod has. Some fail for some pods.
const CONDITIONS: [&str; 22] = [
    "container.image.tag == 'latest'",
    "container.image.registry != 'docker.io'",
    "container.containerType == 'init'",
    "container.containerType != 'standard'",
    "container.securityContext.privileged",
    "(container.securityContext.runAsUser ?? 0) < 1000",
    "container.name startsWith 'app'",
    "'ALL' not in container.securityContext.capabilities.drop",
    "container.securityContext.seccompProfileType == 'Unconfined'",
    "any(container.ports, .hostPort > 0)",
    "spec.hostNetwork",
    "len(spec.containers) > 1",
    "any(spec.initContainers, .containerType == 'init')",
    "any(spec.volumes, .hostPath != nil)",
    "securityContext.runAsNonRoot != true",
    "securityContext.seccompProfileType",
    "metadata.labels.tier == 'web'",
    "metadata.annotations.owner == nil",
    "metadata.name == 'api' && metadata.namespace == 'shop'",
    "fromJSON(container.name) == 1",
    "len(cluster.services.list(metadata.namespace, metadata.labels)) == 0",
    "cluster.serviceaccounts.byName(metadata.namespace, metadata.name) == nil",
];

/// What people are told.
const MESSAGES: [&str; 3] = [
    "{{ metadata.namespace }}/{{ metadata.name }}: {{ metadata.labels }}",
    "{{ spec.containers[0].name }} of {{ len(spec.containers) }}",
    "{{ securityContext }} {{ spec.hostNetwork ?? 'unset' }}",
];

/// A cluster with nothing in it.
pub(super) struct Empty;

impl Lookup for Empty {
    fn answer(&self, _: &Query) -> Answer {
        Answer::Found(Vec::new())
    }
}

#[test]
fn what_makes_pods_is_judged_as_the_pods_that_it_makes() {
    let (pods, library) = (Pods::new(), library());
    let (violations, failures) = (Cell::new(0), Cell::new(0));
    let make = |random: &mut Random| case(random, &pods, &library);
    hold(1_500, make, |case| {
        let Ok(rules) = rules(&case["rules"]) else { return Ok(()) };
        let (Some(template), Some(labels)) = (case.get("template"), case.get("labels")) else { return Ok(()) };
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": made_metadata(template), "spec": template["spec"]});
        let expected = judge(&rules, "", "Pod", &pod);
        violations.set(violations.get() + expected.iter().filter(|line| !line.contains(" failed: ")).count());
        failures.set(failures.get() + expected.iter().filter(|line| line.contains(" failed: ")).count());
        for (group, kind, place) in CONTROLLERS {
            let mut owner = json!({"kind": kind, "metadata": {"name": "api", "namespace": "shop", "labels": labels}});
            let template = ["metadata", "spec"]
                .into_iter()
                .filter_map(|part| Some((part.to_owned(), template.get(part)?.clone())));
            put(&mut owner, place, Value::Object(template.collect()));
            // What is told is told by where it is in the owner.
            let way = place.trim_start_matches('/').replace('/', ".") + ".";
            let found: Vec<String> =
                judge(&rules, group, kind, &owner).into_iter().map(|line| line.replace(&way, "")).collect();
            if found != expected {
                return Err(format!("{kind}: {found:#?}, its pod: {expected:#?}"));
            }
        }
        Ok(())
    });
    let counts = [violations.get(), failures.get()];
    assert!(counts.iter().all(|count| *count > 100), "violations, failures: {counts:?}");
}

/// The metadata of the pod that a template makes: a pod has the name and the namespace that its owner gives it, whatever
/// the template says.
fn made_metadata(template: &Value) -> Value {
    let mut metadata = template.get("metadata").filter(|metadata| metadata.is_object()).cloned().unwrap_or(json!({}));
    metadata["name"] = "api".into();
    metadata["namespace"] = "shop".into();
    metadata
}

/// Everything that comes of judging the creation of an object.
fn judge(rules: &RuleSet, group: &str, kind: &str, object: &Value) -> Vec<String> {
    let (object, kind) = (document(object), Kinds::builtin().get(group, kind).unwrap());
    let object = Object::of(object.root(), kind);
    let now = Moment::new(1_800_000_000, 0);
    let event = Event::of(object.visible(), kind, "v1", Operation::Create, Some(Front::Admission), now);
    let evaluation = evaluate(rules, &Empty, &event, &Limits::default());
    let violations = evaluation.violations.iter().map(|found| {
        let (container, saw) = (found.container.as_deref(), found.saw.as_deref());
        format!("{} {container:?}: {} ({saw:?})", found.rule, found.message)
    });
    let failures = evaluation.failures.iter().map(|failed| {
        let container = failed.container.as_deref();
        format!("{} {container:?} failed: {}", failed.rule, failed.error)
    });
    let reads = evaluation.reads.iter().map(|query| format!("asked: {query:?}"));
    violations.chain(failures).chain(reads).collect()
}

/// A template, the labels of who has it, and rules: one that is made up, and one of the library.
fn case(random: &mut Random, pods: &Pods, library: &[Value]) -> Value {
    let mut template = pods.pod(random);
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    for (field, value) in [
        ("name", json!("other")),
        ("namespace", json!("elsewhere")),
        ("labels", json!({"tier": random.pick(&["web", "db"])})),
        ("annotations", json!({"owner": "me"})),
    ] {
        if random.percent(40) {
            template["metadata"][field] = value;
        }
    }
    let mut rule = json!({"name": "r", "match": {"gvk": [{"kind": "Pod"}]}, "rule": condition(random, 2)});
    if random.percent(40) {
        let selectors = [
            json!({"matchLabels": {"tier": "web"}}),
            json!({"matchLabels": {"of": "owner"}}),
            json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
            json!({"matchExpressions": [{"key": "of", "operator": "NotIn", "values": ["owner"]}]}),
        ];
        rule["match"]["labelSelector"] = random.pick(&selectors).clone();
    }
    if random.percent(50) {
        rule["message"] = (*random.pick(&MESSAGES)).into();
    }
    json!({
        "rules": [rule, random.pick(library)],
        "template": template,
        "labels": {"tier": random.pick(&["web", "db"]), "of": "owner"},
    })
}

fn condition(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 1 } else { 4 }) {
        1 => format!("({}) && ({})", condition(random, depth - 1), condition(random, depth - 1)),
        2 => format!("({}) || ({})", condition(random, depth - 1), condition(random, depth - 1)),
        3 => format!("not ({})", condition(random, depth - 1)),
        _ => (*random.pick(&CONDITIONS)).to_owned(),
    }
}

/// Every rule of the library.
fn library() -> Vec<Value> {
    let mut rules = Vec::new();
    for level in ["baseline", "restricted"] {
        let mut files: Vec<_> = fs::read_dir(repository().join("docs/library/pod-security").join(level))
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            let text = fs::read_to_string(file).unwrap();
            let documents = from_yaml(&text, &Options::default()).unwrap();
            rules.extend(documents.iter().map(|found| serde_json::from_str(&found.document.to_json()).unwrap()));
        }
    }
    rules
}

/// Puts a value where a JSON pointer says.
fn put(object: &mut Value, place: &str, value: Value) {
    let mut at = object;
    for name in place.split('/').skip(1) {
        at = &mut at[name];
    }
    *at = value;
}
