//! Which requests a rule is for, against a second answer to that question that shares nothing with the first: it reads the
//! rule and the request as JSON and takes all the time it wants.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use portal_core::evaluate::evaluate;
use portal_core::event::{Event, Front};
use portal_core::kinds::Kinds;
use portal_core::lookup::{Answer, Filter, Lookup, Query};
use portal_core::object::Object;
use portal_core::review::Review;
use portal_expr::{Limits, Moment};
use serde_json::{Value, json};

use super::cases::{ENDS, RESOURCES, Resource, case};
use super::{document, hold, rules};

/// The kinds that make pods.
const CONTROLLERS: [&str; 2] = ["Deployment", "CronJob"];

/// The subresources by which a running pod changes, which only pods have.
const RUNNING: [&str; 2] = ["ephemeralcontainers", "resize"];

/// Whether a rule is for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Matches,
    Differs,
    /// It depends on a namespace that nobody knows.
    Unknown,
}

/// What a rule asks of a request, each with whether it is so.
type Criteria = Vec<(&'static str, bool)>;

/// Namespaces with labels. Others are not known yet.
struct Namespaces<'a>(&'a Value);

impl Lookup for Namespaces<'_> {
    fn answer(&self, query: &Query) -> Answer {
        let Filter::Name(name) = &query.filter else { panic!("a namespace is asked for by its name") };
        match self.0.get(name) {
            Some(labels) => {
                let namespace = document(&json!({"metadata": {"name": name, "labels": labels}}));
                Answer::Found(vec![Arc::new(Object::kept(namespace.root(), &query.kind))])
            }
            None => Answer::NotSynced,
        }
    }
}

#[test]
fn a_rule_is_for_what_its_match_says() {
    let verdicts: RefCell<BTreeMap<String, usize>> = RefCell::default();
    hold(5_000, case, |case| {
        let Ok(rules) = rules(&case["rules"]) else { return Ok(()) };
        let review = document(
            &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": case["request"]}),
        );
        let Ok(review) = Review::of(review.root(), Kinds::builtin()) else { return Ok(()) };
        let Some(event) = event(case, &review) else { return Ok(()) };
        let evaluation = evaluate(&rules, &Namespaces(&case["namespaces"]), &event, &Limits::default());
        let found = match (&evaluation.violations[..], &evaluation.failures[..]) {
            ([], []) => Verdict::Differs,
            ([_], []) => Verdict::Matches,
            ([], [_]) => Verdict::Unknown,
            _ => return Err("the rule is judged more than once".to_owned()),
        };
        let Some((expected, criteria)) = verdict(&case["rules"][0], case) else { return Ok(()) };
        let mut verdicts = verdicts.borrow_mut();
        *verdicts.entry(format!("{expected:?}")).or_default() += 1;
        if let [(only, _)] = criteria.iter().filter(|(_, holds)| !holds).collect::<Vec<_>>()[..] {
            *verdicts.entry(format!("only {only} differs")).or_default() += 1;
        }
        if found == expected { Ok(()) } else { Err(format!("{found:?}, expected {expected:?}: {criteria:?}")) }
    });
    // Each part of `match` decides in some case, or the test shows nothing about it.
    let verdicts = verdicts.into_inner();
    let expected = [
        "Differs",
        "Matches",
        "Unknown",
        "only exceptions differs",
        "only kind differs",
        "only labels differs",
        "only labels of the namespace differs",
        "only mode differs",
        "only name differs",
        "only namespace differs",
        "only operation differs",
        "only own namespace differs",
        "only subresource differs",
        "only switch differs",
    ];
    assert_eq!(verdicts.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{verdicts:?}");
    assert!(verdicts.values().all(|count| *count >= 10), "{verdicts:?}");
}

/// The event of a case.
pub(super) fn event<'a>(case: &Value, review: &'a Review<'_>) -> Option<Event<'a>> {
    let now = Moment::new(case["now"].as_i64()?, 0);
    let mut event = review.event(now);
    event.front = match case["front"].as_str()? {
        "admission" => Some(Front::Admission),
        "audit" => Some(Front::Audit),
        _ => None,
    };
    Some(event)
}

/// Whether a rule is for the request of a case, and why. Nothing if the case says too little.
pub(super) fn verdict(rule: &Value, case: &Value) -> Option<(Verdict, Criteria)> {
    let request = &case["request"];
    let (spec, own) = (&rule["spec"], rule["metadata"]["namespace"].as_str());
    let (matching, operation) = (&spec["match"], request["operation"].as_str()?);
    let resource = RESOURCES.iter().find(|resource| {
        (Some(resource.group), Some(resource.plural))
            == (request["resource"]["group"].as_str(), request["resource"]["resource"].as_str())
    })?;
    let object = if operation == "DELETE" { &request["oldObject"] } else { &request["object"] };
    let name = ["/name", "/object/metadata/name", "/object/metadata/generateName"]
        .iter()
        .find_map(|place| request.pointer(place)?.as_str())
        .unwrap_or_default();
    object["kind"].as_str()?;
    let namespace = request["namespace"].as_str();
    let subresource = request["subResource"].as_str();
    let holds_word = |list: &Value, word: &str, default: &[&str]| match list.as_array() {
        Some(list) => list.iter().any(|known| known == word),
        None => default.contains(&word),
    };
    let mut criteria = vec![
        ("switch", spec["enabled"] != json!(false)),
        ("kind", is_for_kind(spec, resource, request)),
        (
            "mode",
            match case["front"].as_str()? {
                "nobody" => true,
                front => holds_word(&spec["mode"], front, &["admission", "audit"]),
            },
        ),
        ("operation", holds_word(&matching["operations"], operation, &["CREATE", "UPDATE"])),
        (
            "subresource",
            subresource.is_none_or(|name| RUNNING.contains(&name) || holds_word(&matching["subresources"], name, &[])),
        ),
        ("own namespace", own.is_none() || own == namespace),
        ("namespace", is_in_namespace(&matching["namespaces"], namespace)),
        ("name", texts(&matching["names"]).is_empty() || fits_any(&matching["names"], name)),
        (
            "labels",
            [&request["object"], &request["oldObject"]]
                .into_iter()
                .any(|object| !object.is_null() && selects(&matching["labelSelector"], labels(spec, resource, object))),
        ),
        (
            "exceptions",
            !spec["exceptions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|exception| is_excepted(exception, namespace, name, case["now"].as_i64().unwrap_or_default())),
        ),
    ];
    let selector = &matching["namespaceSelector"];
    let fits = criteria.iter().all(|(_, holds)| *holds);
    let labels = match (resource.kind, namespace) {
        _ if selector.is_null() => return Some((if fits { Verdict::Matches } else { Verdict::Differs }, criteria)),
        (_, None) => None,
        ("Namespace", _) => Some(&object["metadata"]["labels"]),
        (_, Some(namespace)) => match case["namespaces"].get(namespace) {
            None if fits => return Some((Verdict::Unknown, criteria)),
            known => known,
        },
    };
    criteria.push(("labels of the namespace", labels.is_some_and(|labels| selects(selector, labels))));
    let fits = criteria.iter().all(|(_, holds)| *holds);
    Some((if fits { Verdict::Matches } else { Verdict::Differs }, criteria))
}

/// The labels that an object is selected by: those of its pods, if it is judged for them.
fn labels<'a>(spec: &Value, resource: &Resource, object: &'a Value) -> &'a Value {
    match resource.kind {
        _ if is_named(spec, resource) => &object["metadata"]["labels"],
        "Deployment" => &object["spec"]["template"]["metadata"]["labels"],
        "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"],
        _ => &object["metadata"]["labels"],
    }
}

fn is_named(spec: &Value, resource: &Resource) -> bool {
    named(spec, resource).next().is_some()
}

/// What the rule says of a kind.
fn named<'a>(spec: &'a Value, resource: &'a Resource) -> impl Iterator<Item = &'a Value> {
    spec["match"]["gvk"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|gvk| gvk["kind"] == resource.kind && gvk["group"].as_str().unwrap_or_default() == resource.group)
}

fn is_for_kind(spec: &Value, resource: &Resource, request: &Value) -> bool {
    if is_named(spec, resource) {
        let version = &request["resource"]["version"];
        return named(spec, resource).any(|gvk| gvk["version"].is_null() || gvk["version"] == *version);
    }
    let mut kinds = spec["match"]["gvk"].as_array().into_iter().flatten();
    kinds.any(|gvk| gvk["kind"] == "Pod")
        && CONTROLLERS.contains(&resource.kind)
        && spec["match"]["podControllers"] != json!(false)
        && !spec["rule"].as_str().unwrap_or_default().contains("object")
        && request["subResource"].is_null()
}

fn is_in_namespace(globs: &Value, namespace: Option<&str>) -> bool {
    let is_included = texts(&globs["include"]).is_empty();
    match namespace {
        Some(namespace) => {
            (is_included || fits_any(&globs["include"], namespace)) && !fits_any(&globs["exclude"], namespace)
        }
        None => is_included,
    }
}

fn is_excepted(exception: &Value, namespace: Option<&str>, name: &str, now: i64) -> bool {
    let has_ended = exception["until"].as_str().is_some_and(|until| {
        let end = ENDS.iter().find(|(text, _)| *text == until).map(|(_, end)| *end);
        end.is_none_or(|end| end <= now)
    });
    let fits =
        |globs: &Value, text: Option<&str>| texts(globs).is_empty() || text.is_some_and(|text| fits_any(globs, text));
    !has_ended && fits(&exception["namespaces"], namespace) && fits(&exception["names"], Some(name))
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| labels[key] == *value)
        && expressions.into_iter().all(|expression| {
            let label = &labels[expression["key"].as_str().unwrap_or_default()];
            let is_among = expression["values"].as_array().is_some_and(|values| values.contains(label));
            match expression["operator"].as_str() {
                Some("In") => is_among,
                Some("NotIn") => !is_among,
                Some("Exists") => !label.is_null(),
                _ => label.is_null(),
            }
        })
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn fits_any(globs: &Value, text: &str) -> bool {
    texts(globs).iter().any(|glob| fits(glob.as_bytes(), text.as_bytes()))
}

/// A glob by its definition.
fn fits(glob: &[u8], text: &[u8]) -> bool {
    match (glob.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', glob_rest)), _) => (0..=text.len()).any(|taken| fits(glob_rest, &text[taken..])),
        (Some((b'?', glob_rest)), Some((_, text_rest))) => fits(glob_rest, text_rest),
        (Some((one, glob_rest)), Some((other, text_rest))) => one == other && fits(glob_rest, text_rest),
        _ => false,
    }
}
