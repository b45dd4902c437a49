//! Pairs of instances of which one may not be built.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    children::tests::{every_field, operator},
    names::labels,
    observed::Memory,
};

const OLD: &str = "2026-01-01T00:00:00Z";
const YOUNG: &str = "2026-06-01T00:00:00Z";

fn instance(name: &str, created: &str, spec: Value) -> Instance {
    let metadata = json!({ "name": name, "uid": name, "creationTimestamp": created });
    Instance::read(&json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// What is in the cluster, and who has it.
fn observed(others: Vec<Instance>, objects: &[(Kind, &str, &str)]) -> Observed {
    let object = |(kind, name, of): &(Kind, &str, &str)| {
        let metadata = json!({ "name": name, "namespace": "portal-system", "labels": labels(of) });
        let object = Object::from_value(*kind, json!({ "metadata": metadata }));
        (object.key.clone(), Arc::new(object))
    };
    Observed {
        now: "2027-01-01T00:00:00Z".parse().unwrap(),
        uptime: Duration::ZERO,
        objects: objects.iter().map(object).collect::<BTreeMap<_, _>>(),
        others,
        refused: None,
        served: Vec::new(),
        shown: BTreeMap::new(),
        held: BTreeMap::new(),
        is_ceiling_unbounded: false,
        memory: Memory::default(),
    }
}

/// What an instance lacks, and who has it.
fn lacks(instance: &Instance, others: &[&Instance], objects: &[(Kind, &str, &str)]) -> Option<String> {
    let observed = observed(others.iter().copied().cloned().collect(), objects);
    taken(instance, &observed, &operator()).map(|Taken { by, key }| format!("{by} has {key}"))
}

/// Of two instances the younger one lacks something, or neither does.
#[track_caller]
fn check((name, spec): (&str, Value), (other_name, other_spec): (&str, Value), expected: Option<&str>) {
    let (old, young) = (instance(name, OLD, spec.clone()), instance(other_name, YOUNG, other_spec.clone()));
    let expected = expected.map(|key| format!("{name} has {key}"));
    assert_eq!((lacks(&old, &[&young], &[]), lacks(&young, &[&old], &[])), (None, expected.clone()));
    // It is the age that decides, and not who is asked first.
    let (young, old) = (instance(name, YOUNG, spec), instance(other_name, OLD, other_spec));
    let lacked = [lacks(&young, &[&old], &[]), lacks(&old, &[&young], &[])];
    assert_eq!(lacked.map(|lacked| lacked.is_some()), [expected.is_some(), false]);
}

fn split() -> Value {
    json!({ "mode": "split" })
}

#[test]
fn a_name_has_one_owner() {
    let account = Some("ServiceAccount portal-system/portal-a-admission");
    let elsewhere = json!({ "namespace": "elsewhere" });
    let cert_manager = |secret: Value| {
        let issuer = json!({ "name": "issuer" });
        json!({ "certificates": { "source": "CertManager", "secretName": secret, "issuerRef": issuer } })
    };
    let brought = json!({ "certificates": { "source": "Secret", "secretName": "portal-a-tls" } });
    let audits = json!({ "mode": "split", "audit": { "enabled": true } });
    for (one, other, expected) in [
        (("a", split()), ("a-admission", json!({})), account),
        // Its pods are called `portal-a-admission-admission`.
        (("a", split()), ("a-admission", split()), None),
        (("a", audits), ("a-audit", json!({})), Some("ServiceAccount portal-system/portal-a-audit")),
        // A layer that is off has no children.
        (("a", split()), ("a-audit", json!({})), None),
        (("a", json!({})), ("a-admission", json!({})), None),
        (("a", split()), ("b", split()), None),
        (("a", split()), ("a-admissions", json!({})), None),
        // In another namespace all names are free but those of roles of the whole cluster.
        (("a", split()), ("a-admission", elsewhere.clone()), Some("ClusterRole portal-a-admission")),
        (("a", elsewhere), ("a-admission", split()), None),
        // Two Services of one name.
        (("a", json!({})), ("a-pods", json!({})), Some("Service portal-system/portal-a-pods")),
        // Secrets that are written.
        (("a", cert_manager(Value::Null)), ("a-issued", json!({})), Some("Secret portal-system/portal-a-issued-tls")),
        (("a", cert_manager("x".into())), ("b", cert_manager("x".into())), Some("Secret portal-system/x")),
        (("a", cert_manager("x".into())), ("b", cert_manager("y".into())), None),
        // One that is only read may be another's.
        (("a", json!({})), ("b", brought), None),
    ] {
        check(one, other, expected);
    }
}

#[test]
fn whoever_has_an_object_keeps_it() {
    let (old, young) = (instance("a", OLD, split()), instance("a-admission", YOUNG, json!({})));
    let of = |name| (Kind::Deployment, "portal-a-admission", name);
    // The younger one runs, and the older one is changed so that it needs the name.
    let has = Some("a-admission has ServiceAccount portal-system/portal-a-admission".to_owned());
    assert_eq!(lacks(&old, &[&young], &[of("a-admission")]), has);
    assert_eq!(lacks(&young, &[&old], &[of("a-admission")]), None);
    assert_eq!(lacks(&old, &[&young], &[of("a")]), None);
    // Both have some.
    let account = (Kind::ServiceAccount, "portal-a-admission", "a");
    let is_lacking = |one, other| lacks(one, &[other], &[of("a-admission"), account]).is_some();
    assert_eq!((is_lacking(&old, &young), is_lacking(&young, &old)), (false, true));
    // What somebody else has is no reason.
    assert_eq!(lacks(&old, &[&young], &[of("another")]), None);
}

#[test]
fn a_secret_is_that_of_the_instance_whose_certificate_names_it() {
    let issued = |name: &str, created: &str| {
        let certificates = json!({ "source": "CertManager", "secretName": "x", "issuerRef": { "name": "issuer" } });
        instance(name, created, json!({ "certificates": certificates }))
    };
    let (old, young) = (issued("a", OLD), issued("b", YOUNG));
    let mut observed = observed(vec![young.clone()], &[(Kind::Certificate, "portal-b-tls", "b")]);
    assert_eq!(taken(&old, &observed, &operator()), None, "its certificate names another one");
    for object in observed.objects.values_mut() {
        Arc::make_mut(object).value["spec"]["secretName"] = "x".into();
    }
    assert!(taken(&old, &observed, &operator()).is_some());
    observed.others = vec![old];
    assert_eq!(taken(&young, &observed, &operator()), None);
}

/// Two names that the definition takes never meet, whatever the two instances ask for.
#[test]
fn the_definition_refuses_every_name_by_which_two_instances_meet() {
    let definition = serde_json::to_string(&portal_crds::PortalInstance::crd()).unwrap();
    let told = definition.split("use one that does not end with ").nth(1).unwrap();
    let told = &told[..told.find('"').unwrap()];
    let every = |mode: &str, source: &str| {
        let mut spec = every_field()["spec"].clone();
        spec["mode"] = mode.into();
        spec["namespace"] = "portal-system".into();
        let issuer = (source == "CertManager").then(|| json!({ "name": "issuer" }));
        spec["certificates"] = json!({ "source": source, "issuerRef": issuer });
        spec
    };
    let modes = ["combined", "split"].into_iter();
    let specs: Vec<Value> =
        modes.flat_map(|mode| ["Operator", "CertManager"].map(|source| every(mode, source))).collect();
    let mut met = BTreeSet::new();
    for one in &specs {
        let one = instance("a", OLD, one.clone());
        for key in claims(&one, &operator()) {
            let Some(rest) = key.name.strip_prefix("portal-a-") else { continue };
            for (place, _) in rest.match_indices('-').chain([(rest.len(), "")]) {
                let word = &rest[..place];
                let meets = specs.iter().any(|other| {
                    let other = instance(&format!("a-{word}"), YOUNG, other.clone());
                    lacks(&other, &[&one], &[]).is_some()
                });
                assert!(!meets || told.contains(&format!("-{word}")), "a and a-{word} meet in {key}");
                met.extend(meets.then(|| word.to_owned()));
            }
        }
    }
    assert!(met.len() >= 4, "{met:?}");
}

#[test]
fn an_instance_that_ends_has_what_is_there_and_wants_nothing() {
    let (mut old, young) = (instance("a", OLD, split()), instance("a-admission", YOUNG, json!({})));
    old.is_deleted = true;
    let deployment = (Kind::Deployment, "portal-a-admission", "a");
    assert!(lacks(&young, &[&old], &[deployment]).is_some());
    assert_eq!(lacks(&young, &[&old], &[]), None);
}
