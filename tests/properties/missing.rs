//! A rule that compiles cannot fail because something is missing: generated rules, on pods with any part taken away that
//! Kubernetes does not require.

use std::cell::Cell;

use portal_core::evaluate::evaluate;
use portal_core::event::{Event, Front, Operation};
use portal_core::kinds::Kinds;
use portal_core::object::Object;
use portal_expr::{Limits, Moment};
use serde_json::{Value, json};

use super::{document, expansion::Empty, hold, rules, smaller};
use crate::chance::Random;

const TEXTS: [&str; 16] = [
    "metadata.labels.app",
    "metadata.annotations['example.com/team']",
    "metadata.name",
    "metadata.ownerReferences[0].kind",
    "spec.nodeName",
    "spec.volumes[0].name",
    "container.image",
    "container.image.tag",
    "container.name",
    "container.args[0]",
    "first(container.args)",
    "find(container.args, # startsWith '-')",
    "container.securityContext.seccompProfileType",
    "container.livenessProbe.httpGet.path",
    "object.metadata.labels.tier",
    "split(container.image, ':')[1]",
];

const NUMBERS: [&str; 8] = [
    "spec.priority",
    "spec.terminationGracePeriodSeconds",
    "container.securityContext.runAsUser",
    "container.ports[0].containerPort",
    "container.livenessProbe.periodSeconds",
    "len(container.args)",
    "max(map(container.ports, .hostPort ?? 0))",
    "findIndex(container.args, # == '-v')",
];

const QUANTITIES: [&str; 4] = [
    "container.resources.limits.memory",
    "container.resources.requests.memory",
    "container.resources.limits.cpu",
    "max(values(container.resources.limits))",
];

const LISTS: [&str; 8] = [
    "container.args",
    "container.ports",
    "spec.containers",
    "spec.volumes",
    "metadata.ownerReferences",
    "keys(metadata.labels)",
    "container.securityContext.capabilities.drop",
    "map(spec.containers, .image)",
];

/// Annotations whose values can be read as something, with what stands for one that is missing, and expressions that do so.
const READINGS: [(&str, &str, &[&str]); 9] = [
    (
        "version",
        "'0'",
        &[
            "semver({}) < '1.2'",
            "semver({}) == '1'",
            "semver({}) in '>=1 <2'",
            "semver({}) in ['1', '2.0.0-rc.1']",
            "'1.0.0-rc.1' < semver({})",
        ],
    ),
    (
        "range",
        "'10.0.0.0/8'",
        &[
            "'10.0.0.1' in cidr({})",
            "'10.0.0.1' in cidr(({} ?? []))",
            "cidr({}) == '10.0.0.0/8'",
            "'fd00::/16' not in cidr([{}])",
        ],
    ),
    (
        "ip",
        "nil",
        &["{} in cidr('10.0.0.0/8')", "{} not in cidr(['10.0.0.0/8', 'fd00::/8'])", "{} in [cidr('10.0.0.0/8')]"],
    ),
    (
        "date",
        "'1970-01-01'",
        &[
            "date({}) < now()",
            "date({}).Year() > 2000",
            "now() - date({}) > duration('1h')",
            "date({}).Add(duration('1h')).After(now())",
            "date({}).Format('2006') == '2026'",
        ],
    ),
    ("wait", "'0s'", &["duration({}) > duration('1h')", "duration({}).Hours() > 1", "now().Add(duration({})) > now()"]),
    ("size", "'0'", &["quantity({}) > '1Gi'", "quantity({}) == quantity('2Gi')"]),
    (
        "yaml",
        "''",
        &["fromYAML({}).version == 'a'", "semver(fromYAML({}).version ?? '0') > '1'", "len(fromYAML({}).list) > 0"],
    ),
    (
        "image",
        "''",
        &["image({}).registry == 'docker.io'", "upper(image({}).tag ?? '') == 'V1'", "image({}).name != ''"],
    ),
    ("pem", "''", &["any(certificates({}), .notAfter > now())", "len(certificates({})) == 1"]),
];

/// Questions, which may be asked of anything, and what is asked behind them.
const QUESTIONS: [(&str, &str); 5] = [
    ("isSemver({})", "semver({}) < '1.2'"),
    ("isIP({})", "{} in cidr('10.0.0.0/8')"),
    ("isCIDR({})", "'10.0.0.1' in cidr({})"),
    ("isQuantity({})", "quantity({}) < '1Gi'"),
    ("{} != nil", "glob({}, 'a*')"),
];

/// A condition that reads a text as something else.
fn reading(random: &mut Random) -> String {
    if random.below(3) == 0 {
        let (question, then) = *random.pick(&QUESTIONS);
        let (path, other) = (*random.pick(&TEXTS), *random.pick(&TEXTS));
        let asked = if random.below(4) == 0 { other } else { path };
        return format!("({} && {})", question.replace("{}", asked), then.replace("{}", path));
    }
    let (name, default, expressions) = *random.pick(&READINGS);
    let path = match random.below(4) {
        0 => format!("object.metadata.annotations['{name}']"),
        1 => format!("find([metadata.annotations.{name}], # != nil)"),
        _ => format!("metadata.annotations.{name}"),
    };
    let expression = random.pick(expressions);
    match random.below(3) {
        0 => expression.replace("{}", &format!("({path} ?? {default})")),
        1 => format!("({path} != nil && {})", expression.replace("{}", &path)),
        _ => expression.replace("{}", &path),
    }
}

fn text(random: &mut Random, depth: usize) -> String {
    let path = *random.pick(&TEXTS);
    match random.below(9) {
        _ if depth == 0 => path.to_owned(),
        0 => format!("lower({})", text(random, depth - 1)),
        1 => format!("({} ?? \"\")", text(random, depth - 1)),
        2 => format!("trimPrefix({}, \"v\")", text(random, depth - 1)),
        3 => format!("({} + \"x\")", text(random, depth - 1)),
        4 => format!("({} ? {path} : \"a\")", condition(random, depth - 1)),
        5 => format!("split({}, \"-\")[0]", text(random, depth - 1)),
        _ => path.to_owned(),
    }
}

fn number(random: &mut Random, depth: usize) -> String {
    let path = *random.pick(&NUMBERS);
    match random.below(9) {
        _ if depth == 0 => path.to_owned(),
        // The length of something may be 0, and the remainder by that fails for what is there too.
        6 => format!("(100 % (spec.priority ?? {}))", random.pick(&["0", "1"])),
        0 => format!("({} + 1)", number(random, depth - 1)),
        1 => format!("({} ?? 0)", number(random, depth - 1)),
        2 => format!("-{}", number(random, depth - 1)),
        3 => format!("len({})", list(random)),
        4 => format!("count({}, # != nil)", list(random)),
        5 => format!("sum(spec.containers, .ports[0].containerPort ?? {})", number(random, depth - 1)),
        _ => path.to_owned(),
    }
}

fn amount(random: &mut Random) -> String {
    let path = *random.pick(&QUANTITIES);
    let default = *random.pick(&["0", "0.5", "\"0\"", "\"\"", "spec.priority"]);
    match random.below(8) {
        0 => format!("({path} ?? {default})"),
        1 => format!("sum(spec.containers, .resources.limits.cpu ?? {default})"),
        2 => format!("sum(map(spec.containers, .resources.requests.memory), # ?? {default})"),
        3 => format!("(({path} ?? {default}) + ({} ?? {default}))", random.pick(&QUANTITIES)),
        4 => format!("({path} * ({} / {path}))", random.pick(&QUANTITIES)),
        _ => path.to_owned(),
    }
}

fn list(random: &mut Random) -> &'static str {
    random.pick::<&str>(&LISTS)
}

/// A condition, often behind a guard that may be for something else.
fn condition(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return simple(random, 0);
    }
    match random.below(12) {
        0 => format!("({} && {})", condition(random, depth - 1), condition(random, depth - 1)),
        1 => format!("({} || {})", condition(random, depth - 1), condition(random, depth - 1)),
        2 => format!("not ({})", condition(random, depth - 1)),
        3 | 4 => {
            let path = *random.pick(&TEXTS);
            let guard = random.pick(&["!= nil &&", "== nil ||", "!= \"\" &&", "== \"a\" &&"]);
            format!("({path} {guard} upper({path}) == \"A\")")
        }
        5 => {
            let path = *random.pick(&NUMBERS);
            format!("({path} {} {path} + 1 > 5)", random.pick(&["!= nil &&", "> 3 &&", "== nil ||", "== 0 ||"]))
        }
        6 => format!("any({}, {})", list(random), random.pick(&["# != nil", "# == \"a\" || true", "true"])),
        7 => format!("let x = {}; x != nil && lower(x) == \"a\"", random.pick(&TEXTS)),
        8..=10 => reading(random),
        _ => simple(random, depth),
    }
}

fn simple(random: &mut Random, depth: usize) -> String {
    let order = *random.pick(&["<", "<=", ">", ">=", "==", "!="]);
    match random.below(6) {
        0 => format!("{} {order} \"abc\"", text(random, depth)),
        1 => format!("{} {order} {}", text(random, depth), text(random, depth)),
        2 => format!("{} {order} 1000", number(random, depth)),
        3 => format!("{} {order} {}", number(random, depth), number(random, depth)),
        4 => {
            let other = match random.below(3) {
                0 => amount(random),
                _ => (*random.pick(&["\"1Gi\"", "\"100m\""])).to_owned(),
            };
            format!("{} {order} {other}", amount(random))
        }
        _ => format!("{} {} nil", list(random), random.pick(&["==", "!="])),
    }
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "api", "namespace": "shop", "labels": {"app": "api", "tier": "web"},
            "annotations": {
                "example.com/team": "shop", "version": "v1.2.3", "range": "10.0.0.0/8", "ip": "10.1.2.3",
                "date": "2026-01-02T03:04:05Z", "wait": "1h30m", "size": "2Gi", "yaml": "version: 1.2.3\nlist: [1]",
                "image": "web:v1", "pem": include_str!("../../engine/core/src/context/certificate/leaf.pem"),
            },
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-1", "uid": "1"}],
        },
        "spec": {
            "nodeName": "node", "priority": 5, "terminationGracePeriodSeconds": 30,
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [
                {
                    "name": "app", "image": "web:v1", "args": ["-v", "A"],
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "livenessProbe": {"periodSeconds": 5, "httpGet": {"path": "/", "port": 80}},
                    "resources": {"limits": {"memory": "1Gi", "cpu": 1}, "requests": {"memory": "512Mi"}},
                    "securityContext": {
                        "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}, "capabilities": {"drop": ["ALL"]},
                    },
                },
                {"name": "log", "image": "log"},
            ],
        },
    })
}

/// Whether everything is there that Kubernetes requires.
fn is_complete(pod: &Value) -> bool {
    let all = |list: &Value, fields: &[&str]| {
        list.as_array().into_iter().flatten().all(|item| fields.iter().all(|field| !item[*field].is_null()))
    };
    let metadata = &pod["metadata"];
    let containers = &pod["spec"]["containers"];
    !metadata["name"].is_null()
        && !metadata["namespace"].is_null()
        && containers.is_array()
        && pod["kind"] == "Pod"
        && all(&metadata["ownerReferences"], &["apiVersion", "kind", "name", "uid"])
        && all(containers, &["name", "image"])
        && all(&pod["spec"]["volumes"], &["name"])
        && containers.as_array().into_iter().flatten().all(|container| {
            let get = &container["livenessProbe"]["httpGet"];
            all(&container["ports"], &["containerPort"])
                && (get.is_null() || !get["port"].is_null())
                && (container["securityContext"]["seccompProfile"].is_null()
                    || !container["securityContext"]["seccompProfile"]["type"].is_null())
        })
}

fn case(random: &mut Random) -> Value {
    let mut pod = pod();
    for _ in 0..random.below(6) {
        let mut without: Vec<Value> = smaller(&pod).into_iter().filter(is_complete).collect();
        pod = without.swap_remove(random.below(without.len()));
    }
    json!({"rule": condition(random, 3), "object": pod})
}

#[test]
fn a_rule_that_compiles_does_not_fail_because_something_is_missing() {
    let (compiled, violated) = (Cell::new(0), Cell::new(0));
    hold(6_000, case, |case| {
        let rule = json!([{"name": "r", "match": {"gvk": [{"kind": "Pod"}]}, "rule": case["rule"]}]);
        let (Ok(rules), true) = (rules(&rule), is_complete(&case["object"])) else { return Ok(()) };
        compiled.set(compiled.get() + 1);
        let (object, kind) = (document(&case["object"]), Kinds::builtin().get("", "Pod").unwrap());
        let object = Object::of(object.root(), kind);
        let now = Moment::default();
        let event = Event::of(object.visible(), kind, "v1", Operation::Create, Some(Front::Audit), now);
        let evaluation = evaluate(&rules, &Empty, &event, &Limits::default());
        violated.set(violated.get() + evaluation.violations.len());
        match evaluation.failures.first() {
            Some(failure) => Err(failure.to_string()),
            None => Ok(()),
        }
    });
    // A generator whose rules are all refused, or never true, would show nothing.
    assert!(
        compiled.get() > 1_000 && violated.get() > 1_000,
        "{} compiled, {} violated",
        compiled.get(),
        violated.get()
    );
}
