//! Rules and requests, made up so that about half of the requests fit a rule.

use serde_json::{Map, Value, json};

use crate::chance::Random;

/// A kind, as far as requests need it.
pub(super) struct Resource {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) versions: &'static [&'static str],
    pub(super) namespaced: bool,
    /// Subresources, and what can be done with each.
    pub(super) subresources: &'static [(&'static str, &'static str)],
}

pub(super) const RESOURCES: [Resource; 7] = [
    Resource {
        group: "",
        kind: "Pod",
        plural: "pods",
        versions: &["v1"],
        namespaced: true,
        subresources: &[
            ("ephemeralcontainers", "UPDATE"),
            ("resize", "UPDATE"),
            ("exec", "CONNECT"),
            ("eviction", "CREATE"),
            ("status", "UPDATE"),
        ],
    },
    Resource {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        versions: &["v1"],
        namespaced: true,
        subresources: &[("scale", "UPDATE"), ("status", "UPDATE")],
    },
    Resource {
        group: "batch",
        kind: "CronJob",
        plural: "cronjobs",
        versions: &["v1"],
        namespaced: true,
        subresources: &[("status", "UPDATE")],
    },
    Resource {
        group: "autoscaling",
        kind: "HorizontalPodAutoscaler",
        plural: "horizontalpodautoscalers",
        versions: &["v1", "v2"],
        namespaced: true,
        subresources: &[],
    },
    Resource {
        group: "",
        kind: "ConfigMap",
        plural: "configmaps",
        versions: &["v1"],
        namespaced: true,
        subresources: &[],
    },
    Resource {
        group: "",
        kind: "Node",
        plural: "nodes",
        versions: &["v1"],
        namespaced: false,
        subresources: &[("proxy", "CONNECT"), ("status", "UPDATE")],
    },
    Resource {
        group: "",
        kind: "Namespace",
        plural: "namespaces",
        versions: &["v1"],
        namespaced: false,
        subresources: &[("status", "UPDATE")],
    },
];

pub(super) const NAMESPACES: [&str; 4] = ["prod", "prod-eu", "dev", "d"];
const NAMES: [&str; 4] = ["api", "api-1", "web", "w"];
const NAMESPACE_GLOBS: [&str; 9] = ["prod", "prod*", "prod-*", "*d*", "?", "d??", "*", "*-eu", "nowhere"];
const NAME_GLOBS: [&str; 7] = ["api", "api*", "api-?", "*", "w?b", "?", "*-*1"];
const KEYS: [&str; 3] = ["app", "tier", "example.com/team"];
const VALUES: [&str; 3] = ["api", "web", ""];

/// When exceptions end, as rules say it and in seconds.
pub(super) const ENDS: [(&str, i64); 4] = [
    ("2027-01-14", 1_799_971_200),
    ("2027-01-15", 1_800_057_600),
    ("2027-01-15T08:00:00Z", 1_800_000_000),
    ("2027-01-15T10:00:01+02:00", 1_800_000_001),
];

/// The moments at which requests come: the one that exceptions end at, and those around it.
const MOMENTS: [i64; 4] = [1_799_999_999, 1_800_000_000, 1_799_971_200, 1_800_057_600];

/// One rule, one request, and the namespaces that are known.
pub(super) fn case(random: &mut Random) -> Value {
    let request = request(random);
    let rule = rule(random, &request);
    let mut namespaces = json!({});
    for name in NAMESPACES {
        let labels = labels(random);
        some(random, 85, &mut namespaces, name, labels);
    }
    json!({
        "rules": [rule],
        "namespaces": namespaces,
        "front": random.pick(&["admission", "admission", "admission", "audit", "nobody"]),
        "now": random.pick(&MOMENTS),
        "request": request,
    })
}

/// A rule that is violated by everything that it is for, which is most of the time the kind of the request.
pub(super) fn rule(random: &mut Random, request: &Value) -> Value {
    let own = random.percent(20).then(|| *random.pick(&NAMESPACES));
    let mut spec = json!({
        "match": matching(random, own.is_some()),
        // Only the first is widened to what makes pods.
        "rule": random.pick(&["true", "object.kind != nil"]),
    });
    let resource = RESOURCES.iter().find(|known| request["resource"]["resource"] == known.plural).unwrap();
    if random.percent(80) && (own.is_none() || resource.namespaced) {
        spec["match"]["gvk"][0] = json!({"group": resource.group, "kind": resource.kind});
    }
    let exceptions: Vec<Value> = (0..random.below(3)).map(|_| exception(random, own.is_some())).collect();
    let mode = random.pick(&[json!(["admission"]), json!(["audit"]), json!(["admission", "audit"])]).clone();
    some(random, 30, &mut spec, "mode", mode);
    some(random, 40, &mut spec, "exceptions", exceptions.into());
    some(random, 5, &mut spec, "enabled", false.into());
    match own {
        Some(own) => json!({
            "apiVersion": "portal.io/v1alpha1",
            "kind": "PortalRule",
            "metadata": {"name": "r", "namespace": own},
            "spec": spec,
        }),
        None => json!({
            "apiVersion": "portal.io/v1alpha1",
            "kind": "PortalClusterRule",
            "metadata": {"name": "r"},
            "spec": spec,
        }),
    }
}

fn matching(random: &mut Random, is_own: bool) -> Value {
    let resources: Vec<&Resource> = RESOURCES.iter().filter(|resource| resource.namespaced || !is_own).collect();
    let gvk = |random: &mut Random| {
        let resource = *random.pick(&resources);
        let mut gvk = json!({"group": resource.group, "kind": resource.kind});
        let version = *random.pick(resource.versions);
        some(random, 40, &mut gvk, "version", version.into());
        gvk
    };
    let kinds: Vec<Value> = (0..2 + random.below(2)).map(|_| gvk(random)).collect();
    let mut matching = json!({ "gvk": kinds });
    let mut operations = subset(random, &["CREATE", "UPDATE", "DELETE"]);
    operations = if operations.is_empty() { vec!["CREATE".into()] } else { operations };
    let subresources =
        subset(random, &["exec", "status", "scale", "eviction", "proxy", "ephemeralcontainers", "resize"]);
    if random.percent(40) && !subresources.is_empty() {
        operations.push("CONNECT".into());
        matching["subresources"] = subresources.into();
    }
    some(random, 60, &mut matching, "operations", operations.into());
    let names = subset(random, &NAME_GLOBS);
    some(random, 30, &mut matching, "names", names.into());
    let selector_of_objects = selector(random);
    some(random, 30, &mut matching, "labelSelector", selector_of_objects);
    some(random, 20, &mut matching, "podControllers", false.into());
    if !is_own {
        let globs =
            json!({"include": subset(random, &NAMESPACE_GLOBS), "exclude": subset(random, &["d", "*-eu", "?rod"])});
        some(random, 40, &mut matching, "namespaces", globs);
        let selector_of_namespaces = selector(random);
        some(random, 30, &mut matching, "namespaceSelector", selector_of_namespaces);
    }
    matching
}

fn selector(random: &mut Random) -> Value {
    let mut selector = json!({});
    let wanted: Map<String, Value> =
        [*random.pick(&KEYS)].into_iter().map(|key| (key.to_owned(), Value::from(*random.pick(&VALUES)))).collect();
    some(random, 40, &mut selector, "matchLabels", wanted.into());
    let expression = |random: &mut Random| {
        let operator = *random.pick(&["In", "NotIn", "Exists", "DoesNotExist"]);
        let mut expression = json!({"key": random.pick(&KEYS), "operator": operator});
        if operator.ends_with("In") {
            let values = subset(random, &VALUES);
            expression["values"] = if values.is_empty() { json!(["api"]) } else { values.into() };
        }
        expression
    };
    let expressions: Vec<Value> = (0..1 + random.below(2)).map(|_| expression(random)).collect();
    some(random, 60, &mut selector, "matchExpressions", expressions.into());
    selector
}

fn exception(random: &mut Random, is_own: bool) -> Value {
    let mut exception = json!({"reason": "known", "names": [random.pick(&NAME_GLOBS)]});
    if !is_own && random.percent(50) {
        exception["namespaces"] = json!([random.pick(&NAMESPACE_GLOBS)]);
        if random.percent(50) {
            exception.as_object_mut().unwrap().remove("names");
        }
    }
    let until = random.pick(&ENDS).0;
    some(random, 60, &mut exception, "until", until.into());
    exception
}

/// The request of an AdmissionReview.
pub(super) fn request(random: &mut Random) -> Value {
    let resource = random.pick(&RESOURCES);
    let version = *random.pick(resource.versions);
    let name = *random.pick(&NAMES);
    let namespace = match (resource.namespaced, resource.kind) {
        (true, _) => Some(*random.pick(&NAMESPACES)),
        (false, "Namespace") => Some(name),
        _ => None,
    };
    let (subresource, operation) = match random.below(3) {
        0 if !resource.subresources.is_empty() => {
            let (name, operation) = *random.pick(resource.subresources);
            (Some(name), operation)
        }
        _ => (None, *random.pick(&["CREATE", "UPDATE", "DELETE"])),
    };
    let is_named = operation != "CREATE" || subresource.is_some() || random.percent(80);
    let object = |random: &mut Random| {
        let mut metadata = json!({"labels": labels(random), if is_named { "name" } else { "generateName" }: name});
        if let Some(namespace) = namespace.filter(|_| resource.namespaced) {
            metadata["namespace"] = namespace.into();
        }
        // Every kind has annotations.
        metadata["annotations"] = json!({"target": random.pick(&NAMESPACES)});
        let mut spec = json!({});
        let template = json!({"metadata": {"labels": labels(random)}});
        match resource.kind {
            "Deployment" => spec["template"] = template,
            "CronJob" => spec["jobTemplate"] = json!({"spec": {"template": template}}),
            _ => {}
        }
        json!({"apiVersion": version, "kind": resource.kind, "metadata": metadata, "spec": spec})
    };
    let mut request = json!({
        "operation": operation,
        "resource": {"group": resource.group, "version": version, "resource": resource.plural},
    });
    if operation != "DELETE" {
        request["object"] = object(random);
    }
    if operation == "UPDATE" || operation == "DELETE" {
        request["oldObject"] = object(random);
    }
    for (field, text) in [("namespace", namespace), ("name", is_named.then_some(name)), ("subResource", subresource)] {
        if let Some(text) = text {
            request[field] = text.into();
        }
    }
    request
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({});
    for key in KEYS {
        let value = *random.pick(&VALUES);
        some(random, 50, &mut labels, key, value.into());
    }
    labels
}

fn subset(random: &mut Random, from: &[&str]) -> Vec<Value> {
    from.iter().filter(|_| random.percent(40)).map(|text| (*text).into()).collect()
}

/// Sets a field so many times in a hundred.
fn some(random: &mut Random, percent: usize, object: &mut Value, field: &str, value: Value) {
    if random.percent(percent) {
        object[field] = value;
    }
}
