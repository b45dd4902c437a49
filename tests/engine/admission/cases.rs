//! The cases of `tests/cases` on a real API server: whatever `check` says of an object, whoever creates it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use expect_test::expect;
use http::Request;
use kube::Client;
use kube::client::Body;
use portal_core::kinds::Kinds;
use portal_document::{Options, from_yaml};
use portal_test_kit::repository;
use serde_json::{Value, json};

use super::asking::post;
use super::judging::Guarded;
use crate::core::eventually;
use crate::engine::definition;

/// What is said about an object: a line for each rule that has something to say.
type Verdict = Vec<Line>;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Line {
    action: String,
    rule: String,
    /// Not told of warnings, and of what is only recorded.
    container: Option<String>,
    /// Not told of what is only recorded.
    text: Option<String>,
}

/// An object or a review of a case, or a rule.
struct Input {
    value: Value,
    /// The same as JSON with its keys in the order of the file, which messages show.
    json: String,
    line: u64,
}

/// What can be told neither way, and why.
const NEITHER: [(&str, &str); 6] = [
    ("requests:57", "no review that can be answered: `check` says so too"),
    ("unknown-kinds:1", "no API server serves the version, so that the rule waits for it"),
    ("unknown-kinds:9", "no API server serves the version, so that the rule waits for it"),
    ("unknown-kinds:33", "no kind that anybody knows"),
    ("unknown-kinds:37", "no kind that anybody knows"),
    ("unknown-kinds:41", "no kind that anybody knows"),
];

/// The kinds of the cases that Kubernetes does not serve.
fn definitions() -> Vec<Value> {
    let kind = |group: &str, version: &str, kind: &str, plural: &str| {
        let mut definition = definition(plural, kind);
        definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
        definition["spec"]["group"] = json!(group);
        definition["spec"]["versions"][0]["name"] = json!(version);
        definition
    };
    vec![
        kind("acme.io", "v1", "Widget", "widgets"),
        kind("argoproj.io", "v1alpha1", "Rollout", "rollouts"),
        kind("example.com", "v1", "Runner", "runners"),
        kind("ray.io", "v1", "RayJob", "rayjobs"),
    ]
}

/// Asks about everything that is created, in one go.
fn configuration(guarded: &Guarded) -> Value {
    let ca: Value =
        serde_json::to_value(k8s_openapi::ByteString(fs::read(guarded.judging.files().path("ca.crt")).unwrap()))
            .unwrap();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "everything"},
        "webhooks": [{
            "name": "everything.portal.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "clientConfig": {"url": format!("https://127.0.0.1:{}/validate", guarded.judging.port), "caBundle": ca},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
        }],
    })
}

/// The documents of a text, as JSON.
fn documents(text: &str) -> Vec<Input> {
    let found = from_yaml(text, &Options::default()).unwrap().into_iter();
    let found = found.map(|found| {
        let json = found.document.to_json();
        Input { value: serde_json::from_str(&json).unwrap(), json, line: found.line as u64 }
    });
    found.filter(|input| !input.value.is_null()).collect()
}

/// What `check` says, by the line of the object.
fn checked(case: &Path) -> BTreeMap<u64, Verdict> {
    let file = |name: &str| case.join(name).to_str().unwrap().to_owned();
    let mut arguments = vec!["check".to_owned(), "--output=json".to_owned(), "--rules".to_owned(), file("rules.yaml")];
    if case.join("cluster.yaml").exists() {
        arguments.extend(["--cluster".to_owned(), file("cluster.yaml")]);
    }
    arguments.push(file("input.yaml"));
    let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut verdicts: BTreeMap<u64, Verdict> = BTreeMap::new();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    for result in report["results"].as_array().unwrap() {
        let line = Line {
            action: text(&result["action"]).unwrap(),
            rule: text(&result["rule"]).unwrap(),
            container: text(&result["container"]),
            text: text(&result["message"]),
        };
        verdicts.entry(result["line"].as_u64().unwrap()).or_default().push(line);
    }
    for failure in report["failures"].as_array().unwrap().iter().filter(|failure| failure["kind"].is_string()) {
        let (rule, error) = (text(&failure["rule"]).unwrap(), text(&failure["error"]));
        let line = Line { action: "deny".to_owned(), rule, container: None, text: error };
        verdicts.entry(failure["line"].as_u64().unwrap()).or_default().push(line);
    }
    for verdict in verdicts.values_mut() {
        verdict.sort();
    }
    verdicts
}

/// Its objects refer to others by their uids, which a cluster gives out itself. `admission::lookups` has references on an API server.
const OF_FILES_ALONE: &str = "references";

/// Whether a rule of a case looks objects up.
fn looks_up(case: &Path) -> bool {
    let text = |rule: &Value| rule.get("spec").unwrap_or(rule)["rule"].to_string();
    rules(case).iter().map(text).any(|text| text.contains("cluster.") || text.contains("consistentCluster"))
}

/// Stores what the rules of a case can see: its cluster, and its objects, which see each other. Nobody guards the cluster yet. What the API server
/// does not take is left out.
fn store(guarded: &Guarded, case: &Path) -> Vec<Input> {
    let files = ["cluster.yaml", "input.yaml"].map(|name| fs::read_to_string(case.join(name)).unwrap_or_default());
    let objects = files.iter().flat_map(|text| documents(text));
    // A namespace would never be gone again: nobody empties it.
    let objects = objects.filter(|object| object.value["kind"] != "Namespace");
    let is_stored = |object: &Input| guarded.kubectl(&["create", "--filename", "-"], &object.json).status.success();
    objects.filter(is_stored).collect()
}

fn rules(case: &Path) -> Vec<Value> {
    let text = fs::read_to_string(case.join("rules.yaml")).unwrap_or_default();
    documents(&text).into_iter().map(|rule| rule.value).collect()
}

fn name_of(rule: &Value) -> String {
    match (&rule["metadata"]["namespace"], &rule["metadata"]["name"], &rule["name"]) {
        (Value::String(namespace), Value::String(name), _) => format!("{namespace}/{name}"),
        (_, Value::String(name), _) | (_, _, Value::String(name)) => name.clone(),
        _ => String::new(),
    }
}

/// Puts the rules of a case in force, in place of those of the one before. Each has a file of its own, as one that is wrong keeps those
/// beside it out.
fn put_in_force(guarded: &Guarded, case: &Path) {
    let name = case.file_name().unwrap().to_str().unwrap();
    let files = guarded.judging.files();
    let next = PathBuf::from(files.path("next"));
    fs::create_dir(&next).unwrap();
    for (number, rule) in rules(case).into_iter().enumerate() {
        fs::write(next.join(format!("{number}.yaml")), rule.to_string()).unwrap();
    }
    let marker = format!(
        "name: marker\nmatch: {{gvk: [{{kind: ConfigMap}}], names: [marker]}}\nrule: metadata.name != ''\nmessage: {name}\n"
    );
    fs::write(next.join("marker.yaml"), marker).unwrap();
    for before in fs::read_dir(files.path("rules")).unwrap() {
        let before = before.unwrap().path();
        let _ = fs::remove_dir_all(&before).or_else(|_| fs::remove_file(&before));
    }
    fs::rename(next, files.path(&format!("rules/{name}"))).unwrap();
    let marker = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marker", "namespace": "default"}}"#;
    let marker = review(&documents(marker)[0], "configmaps");
    eventually(&format!("the rules of {name} are in force"), || {
        let answer = guarded.judging.caller().ask(&post("/validate", &marker)).unwrap();
        answer.body.contains(&format!("marker: {name}"))
    });
}

/// The plural of an object's kind, if it is served in the object's version.
fn plural(object: &Value) -> Option<String> {
    let (group, version) = group_version(object);
    let own = definitions().into_iter().find(|definition| {
        definition["spec"]["group"] == *group && definition["spec"]["names"]["kind"] == object["kind"]
    });
    if let Some(own) = own {
        return own["spec"]["names"]["plural"].as_str().map(str::to_owned);
    }
    let kind = Kinds::builtin().get(group, object["kind"].as_str()?)?;
    kind.versions.iter().any(|served| served == version).then(|| kind.plural.clone())
}

fn group_version(object: &Value) -> (&str, &str) {
    let text = object["apiVersion"].as_str().unwrap();
    text.split_once('/').unwrap_or(("", text))
}

fn is_namespaced(object: &Value) -> bool {
    let kind = Kinds::builtin().get(group_version(object).0, object["kind"].as_str().unwrap());
    kind.is_none_or(|kind| kind.namespaced)
}

/// The review that the creation of an object would be.
fn review(input: &Input, plural: &str) -> String {
    let Input { value: object, json, .. } = input;
    let (group, version) = group_version(object);
    let (mut json, mut namespace) = (json.clone(), object["metadata"]["namespace"].clone());
    if is_namespaced(object) && namespace.is_null() {
        namespace = json!("default");
        let mut object = object.clone();
        object["metadata"]["namespace"] = namespace.clone();
        json = object.to_string();
    }
    if object["kind"] == "Namespace" {
        namespace = object["metadata"]["name"].clone();
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1",
        "kind": {"group": group, "version": version, "kind": object["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "name": object["metadata"]["name"], "namespace": namespace, "operation": "CREATE",
        "userInfo": {"username": "admin"}, "object": "OBJECT", "dryRun": true,
    }});
    review.to_string().replace("\"OBJECT\"", &json)
}

/// Creates an object without storing it. Nothing if the API server does not take it, for another reason than the rules.
async fn create(guarded: &Guarded, client: &Client, object: &Value, plural: &str) -> Option<Verdict> {
    // The API server asks no webhook about these.
    if object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration")) {
        return None;
    }
    let (group, version) = group_version(object);
    let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let path = match is_namespaced(object) {
        true => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            format!("{base}/namespaces/{namespace}/{plural}")
        }
        false => format!("{base}/{plural}"),
    };
    let logged = guarded.engine().log().len();
    let request = Request::post(format!("{path}?dryRun=All&fieldValidation=Ignore"));
    let request = request.header("Content-Type", "application/json").body(Body::from(object.to_string().into_bytes()));
    let answer = client.send(request.unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
    let warnings = parts.headers.get_all("warning").iter().map(|value| unquoted(value.to_str().unwrap()));
    let warnings: Vec<String> = warnings.collect();
    let is_by_rules = body["message"].as_str().is_some_and(|message| message.contains("everything.portal.io"));
    match parts.status.as_u16() {
        // It is there already; whether it may be was asked before.
        201 | 409 => {}
        403 if is_by_rules => {}
        _ => return None,
    }
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let recorded = recorded(&guarded.engine().log()[logged..]);
    Some(verdict(&causes, &warnings, &recorded))
}

/// The text of a warning in the header of an answer: `299 - "text"`.
fn unquoted(warning: &str) -> String {
    let text = warning.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"')).unwrap_or(warning);
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// The rules that the log of decisions says have only recorded.
fn recorded(log: &str) -> Vec<String> {
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let names = records.filter_map(|record| record["rules"]["recorded-by"].as_str().map(str::to_owned));
    names.flat_map(|names| names.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Sends a review to the engine. Nothing if there is no answer to it.
fn ask(guarded: &Guarded, review: &str) -> Option<Verdict> {
    let answer = guarded.judging.caller().ask(&post("/validate", review)).unwrap();
    if answer.status != 200 {
        return None;
    }
    let response = answer.response();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let warnings =
        list(&response["warnings"]).iter().map(|warning| warning.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let recorded = response["auditAnnotations"]["recorded-by"].as_str().unwrap_or_default().to_owned();
    let recorded: Vec<String> = recorded.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(verdict(&list(&response["status"]["details"]["causes"]), &warnings, &recorded))
}

fn verdict(causes: &[Value], warnings: &[String], recorded: &[String]) -> Verdict {
    let line = |action: &str, told: &str, container: Option<String>| {
        let (rule, text) = told.split_once(" could not be evaluated: ").or_else(|| told.split_once(": ")).unwrap();
        Line { action: action.to_owned(), rule: rule.to_owned(), container, text: Some(text.to_owned()) }
    };
    let causes = causes.iter().map(|cause| {
        let container = cause["field"].as_str().and_then(|field| field.strip_prefix("container "));
        line("deny", cause["message"].as_str().unwrap(), container.map(str::to_owned))
    });
    let warnings = warnings.iter().map(|warning| line("warn", warning, None));
    let recorded = recorded.iter().map(|rule| Line {
        action: "dryrun".to_owned(),
        rule: rule.clone(),
        container: None,
        text: None,
    });
    let mut verdict: Verdict = causes.chain(warnings).chain(recorded).collect();
    verdict.sort();
    verdict
}

/// Whether two verdicts are one, as far as the second tells. What shows a whole object may be filled in.
fn is_same(checked: &Verdict, told: &Verdict, may_be_filled_in: bool) -> bool {
    checked.len() == told.len()
        && checked.iter().zip(told).all(|(checked, told)| {
            let is_told = match (&checked.text, &told.text) {
                (Some(checked), Some(told)) => {
                    let is_filled_in = may_be_filled_in && checked.contains("{\"");
                    told == checked || told.starts_with(&format!("{checked} (")) || is_filled_in
                }
                _ => told.text.is_none(),
            };
            (&checked.action, &checked.rule) == (&told.action, &told.rule)
                && is_told
                && (told.container.is_none() || told.container == checked.container)
        })
}

/// What whoever creates an object is told, and whether the API server has taken part in that.
async fn tell(guarded: &Guarded, client: &Client, input: &Input, plural: Option<&str>) -> Option<(Verdict, bool)> {
    let by_api_server = match plural {
        Some(plural) => create(guarded, client, &input.value, plural).await,
        None => None,
    };
    if let Some(told) = by_api_server {
        return Some((told, true));
    }
    let told = match plural {
        Some(plural) => ask(guarded, &review(input, plural)),
        None if input.value["kind"] == "AdmissionReview" => ask(guarded, &input.json),
        None => None,
    };
    told.map(|told| (told, false))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_creates_an_object_is_told_what_check_says_of_it() {
    let definitions = definitions();
    let guarded =
        Guarded::without_configuration(Guarded::prepare(&definitions), "", &definitions, &["--decision-log=all"]);
    for (namespace, labels) in [("other", ""), ("prod-eu", "team=shop"), ("prod-us", ""), ("prod-test", "")] {
        guarded.cluster.kubectl(&["create", "namespace", namespace]).unwrap();
        if !labels.is_empty() {
            guarded.cluster.kubectl(&["label", "namespace", namespace, labels]).unwrap();
        }
    }
    crate::engine::apply(&guarded.cluster, &configuration(&guarded));
    let client = guarded.cluster.client().await;
    let mut summary = String::new();
    let (mut different, mut neither) = (Vec::new(), Vec::new());
    let cases = fs::read_dir(repository().join("tests/cases")).unwrap().map(|case| case.unwrap().path());
    for case in cases.collect::<BTreeSet<_>>() {
        let names: BTreeSet<String> = rules(&case).iter().map(name_of).collect();
        let name = case.file_name().unwrap().to_str().unwrap();
        if name == OF_FILES_ALONE {
            continue;
        }
        let looks_up = looks_up(&case);
        let mut stored = Vec::new();
        if looks_up {
            put_in_force(&guarded, Path::new("nothing"));
            stored = store(&guarded, &case);
        }
        put_in_force(&guarded, &case);
        let verdicts = checked(&case);
        let (mut created, mut filled_in, mut reviewed) = (0, 0, 0);
        for input in documents(&fs::read_to_string(case.join("input.yaml")).unwrap()) {
            let place = format!("{name}:{}", input.line);
            let checked = verdicts.get(&input.line).cloned().unwrap_or_default();
            let plural = plural(&input.value);
            let mut tries = if looks_up { 50 } else { 1 };
            let told = loop {
                let mut told = tell(&guarded, &client, &input, plural.as_deref()).await;
                // The API server has warnings of its own.
                told.iter_mut().for_each(|(told, _)| told.retain(|line| names.contains(&line.rule)));
                tries -= 1;
                // What was stored a moment ago is seen a moment later.
                if tries == 0 || told.as_ref().is_none_or(|(told, is_created)| is_same(&checked, told, *is_created)) {
                    break told;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            let Some((told, is_created)) = told else {
                neither.push(place);
                continue;
            };
            if !is_same(&checked, &told, is_created) {
                different.push(format!("{place}: check says {checked:#?}\nwhoever creates it is told {told:#?}"));
            }
            created += u32::from(is_created);
            reviewed += u32::from(!is_created);
            filled_in += u32::from(!is_same(&checked, &told, false));
        }
        if !stored.is_empty() {
            let objects: Vec<&str> = stored.iter().map(|object| object.json.as_str()).collect();
            guarded.kubectl(&["delete", "--wait=false", "--filename", "-"], &objects.join("\n---\n"));
        }
        let _ = writeln!(summary, "{name}: {created} created ({filled_in} shown filled in), {reviewed} in reviews");
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert_eq!(neither, NEITHER.map(|(place, _)| place));
    expect![[r#"
        containers-of-every-kind: 0 created (0 shown filled in), 1 in reviews
        fields-of-an-object: 3 created (1 shown filled in), 2 in reviews
        functions-of-rules: 9 created (0 shown filled in), 3 in reviews
        lookups: 1 created (0 shown filled in), 4 in reviews
        messages-name-the-offender: 2 created (0 shown filled in), 0 in reviews
        mistakes-in-rules: 0 created (0 shown filled in), 1 in reviews
        pod-templates: 3 created (0 shown filled in), 1 in reviews
        requests: 0 created (0 shown filled in), 8 in reviews
        rules-of-a-namespace: 3 created (0 shown filled in), 0 in reviews
        rules-that-fail: 1 created (0 shown filled in), 0 in reviews
        secrets-stay-secret: 2 created (2 shown filled in), 3 in reviews
        unknown-kinds: 2 created (0 shown filled in), 4 in reviews
        what-is-left-out: 6 created (0 shown filled in), 2 in reviews
        what-makes-pods: 1 created (0 shown filled in), 2 in reviews
        which-objects-match: 5 created (0 shown filled in), 0 in reviews
        whole-groups: 2 created (0 shown filled in), 5 in reviews
    "#]]
    .assert_eq(&summary);
}
