//! Environments: objects as clusters have them, with what is wrong with some of them.

use serde_json::{Map, Value, json};

use crate::chance::Random;

/// Texts that a program may stumble over.
const ODD: [&str; 22] = [
    "",
    " ",
    "\t\r\n",
    "\0",
    "a\0b",
    "é",
    "e\u{301}",
    "ß",
    "İstanbul",
    "日本語",
    "😀👨\u{200d}👩",
    "\u{feff}bom",
    "\u{fffd}",
    "\\ud800",
    "%s%d",
    "'\"`",
    "</script>&",
    "\u{2028}",
    "nil",
    "١٢٣",
    "0x1F",
    "ǅ",
];

const QUANTITIES: [&str; 12] = ["100m", "1", "0.5", "1Gi", "512Mi", "1e3", "2k", "1500m", "0", "-1", "1_000", "1.5Ti"];

const NAMES: [&str; 8] = ["web", "api", "db-0", "kube-system", "a", "x.example.com", "WEB", "web-7d4b9c6f5-abcde"];

const IMAGES: [&str; 6] =
    ["nginx", "nginx:latest", "registry.example.com:5000/team/app:v1.2.3", "redis@sha256:0123", "", ":latest"];

const KEYS: [&str; 8] = ["app", "tier", "app.kubernetes.io/name", "kubernetes.io/metadata.name", "env", "a b", "", "é"];

const TIMES: [&str; 4] = ["2026-03-01T12:30:15Z", "2024-02-29T23:59:59+02:00", "1970-01-01T00:00:00Z", "2026-03-01"];

/// A name, and what makes the value that it stands for.
type Named = (&'static str, fn(&mut Random) -> Value);

/// An environment, the same for the same random numbers.
pub(super) fn environment(random: &mut Random) -> Map<String, Value> {
    let mut environment = Map::new();
    environment.insert("object".to_owned(), object(random));
    let others: [Named; 8] = [
        ("oldObject", |random| if random.percent(50) { Value::Null } else { object(random) }),
        ("pods", |random| list(random, 2, pod)),
        ("namespace", namespace),
        ("labels", labels),
        ("numbers", |random| list(random, 7, number)),
        ("odd", |random| list(random, 5, text)),
        ("nested", |random| nested(random, 3)),
        ("quantities", |random| json!({"cpu": quantity(random), "memory": quantity(random), "n": number(random)})),
    ];
    for (name, make) in others {
        if random.percent(50) {
            environment.insert(name.to_owned(), make(random));
        }
    }
    for value in environment.values_mut() {
        damage(value, random);
    }
    environment
}

/// Takes fields away, and makes others nil or empty.
fn damage(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, _| !random.percent(5));
            fields.values_mut().for_each(|value| damage(value, random));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|value| damage(value, random)),
        _ => {}
    }
    match random.below(120) {
        0 | 1 => *value = Value::Null,
        2 => *value = json!([]),
        3 => *value = json!({}),
        4 => *value = json!(text(random)),
        _ => {}
    }
}

fn object(random: &mut Random) -> Value {
    match random.below(5) {
        0 | 1 => pod(random),
        2 => json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(random),
            "spec": {
                "replicas": number(random),
                "selector": {"matchLabels": labels(random)},
                "template": {"metadata": {"labels": labels(random)}, "spec": pod_spec(random)},
            },
        }),
        3 => json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(random),
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": list(random, 3, |random| json!({
                    "from": list(random, 2, |random| json!({"namespaceSelector": {"matchLabels": labels(random)}})),
                    "ports": list(random, 2, |random| json!({"port": port(random), "protocol": "TCP"})),
                })),
            },
        }),
        _ => namespace(random),
    }
}

fn pod(random: &mut Random) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(random),
        "spec": pod_spec(random),
        "status": {"phase": *random.pick(&["Running", "Pending", "Failed"]), "startTime": *random.pick(&TIMES)},
    })
}

fn pod_spec(random: &mut Random) -> Value {
    json!({
        "containers": list(random, 2, container),
        "hostNetwork": random.percent(50),
        "nodeSelector": labels(random),
        "tolerations": list(random, 2, |random| json!({"operator": "Exists", "tolerationSeconds": number(random)})),
    })
}

fn container(random: &mut Random) -> Value {
    json!({
        "name": *random.pick(&NAMES),
        "image": *random.pick(&IMAGES),
        "args": list(random, 3, text),
        "ports": list(random, 3, |random| json!({"containerPort": port(random)})),
        "resources": {"limits": {"cpu": quantity(random), "memory": quantity(random)}},
        "securityContext": {
            "privileged": random.percent(50),
            "runAsUser": *random.pick(&[0, 1000, 65534]),
            "capabilities": {"add": list(random, 2, |random| json!(*random.pick(&["NET_ADMIN", "SYS_TIME", "ALL"])))},
        },
    })
}

fn namespace(random: &mut Random) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(random)})
}

fn metadata(random: &mut Random) -> Value {
    json!({
        "name": *random.pick(&NAMES),
        "namespace": *random.pick(&NAMES),
        "labels": labels(random),
        "annotations": {"note": text(random)},
        "creationTimestamp": *random.pick(&TIMES),
        "generation": number(random),
    })
}

fn labels(random: &mut Random) -> Value {
    (0..random.below(4)).map(|_| ((*random.pick(&KEYS)).to_owned(), text(random))).collect::<Map<_, _>>().into()
}

fn port(random: &mut Random) -> Value {
    if random.percent(20) { json!("http") } else { json!(random.below(65536)) }
}

fn quantity(random: &mut Random) -> Value {
    match random.below(6) {
        0 => number(random),
        _ => json!(*random.pick(&QUANTITIES)),
    }
}

fn text(random: &mut Random) -> Value {
    match random.below(100) {
        0 => json!(random.pick(&ODD).repeat(1 + random.below(300))),
        1..30 => json!(format!("{}{}", random.pick(&NAMES), random.pick(&ODD))),
        30..60 => json!(*random.pick(&ODD)),
        _ => json!(*random.pick(&NAMES)),
    }
}

fn number(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!(*random.pick(&[i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1, 1 << 53, (1 << 53) + 1])),
        1 => json!(*random.pick(&[u64::MAX, 1 << 63])),
        2 => json!(*random.pick(&[
            0.1,
            -0.0,
            1.5,
            1e21,
            1e-7,
            1e308,
            5e-324,
            3.0,
            0.30000000000000004,
            1e15,
            123456789.125
        ])),
        3 => json!(random.integer() >> random.below(64)),
        _ => json!(random.below(12) as i64 - 3),
    }
}

fn nested(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 3 } else { 5 }) {
        0 => number(random),
        1 => text(random),
        2 => json!(*random.pick(&[Some(true), Some(false), None])),
        _ => list(random, 4, |random| nested(random, depth - 1)),
    }
}

fn list(random: &mut Random, most: usize, mut make: impl FnMut(&mut Random) -> Value) -> Value {
    (0..random.below(most + 1)).map(|_| make(random)).collect()
}
