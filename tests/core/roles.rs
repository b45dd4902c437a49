//! The roles that follow from the rules of the library and from ten that look things up, as text that people read, and what they come to on
//! a real API server.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use portal_core::kinds::Kinds;
use portal_core::language::ExprEngine;
use portal_core::manifest::Manifest;
use portal_core::rule::RuleSet;
use portal_core::rule::compile::compile;
use portal_core::rule::file;
use portal_operator::children::children;
use portal_operator::instance::Instance;
use portal_operator::names::account;
use portal_operator::needs::Needs;
use portal_operator::object::{Kind, Object};
use portal_operator::permissions::{Held, Permissions, has_everybody};
use portal_test_kit::{Cluster, repository};
use serde_json::{Value, json};

use super::children::operator;
use super::install::{client_of, cluster, make, may};

/// The folders and files with the rules.
const RULES: [&str; 3] =
    ["docs/library/pod-security/baseline", "docs/library/pod-security/restricted", "tests/core/roles/lookups.yaml"];

/// The roles, as they are committed, and the instances that they are of.
fn instances() -> [(&'static str, Instance); 2] {
    let split = json!({ "mode": "split", "audit": { "enabled": true } });
    [
        ("tests/core/roles/roles.yaml", instance("golden", json!({}))),
        ("tests/core/roles/split.yaml", instance("golden-split", split)),
    ]
}

/// What an account may do: resource, names of objects, verb.
type Abilities = BTreeSet<(String, String, String)>;

fn rules() -> RuleSet {
    let mut sources = Vec::new();
    let mut read = |path: std::path::PathBuf| {
        let manifest = Manifest::new(path.display().to_string(), std::fs::read(&path).unwrap());
        let found = file::read(&manifest);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        sources.extend(found.sources);
    };
    for path in RULES.map(|path| repository().join(path)) {
        if path.is_file() {
            read(path);
            continue;
        }
        let mut files: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")).for_each(&mut read);
    }
    let (rules, diagnostics) = compile(&sources, Kinds::builtin(), &ExprEngine);
    assert_eq!(rules.rules().len(), sources.len(), "{diagnostics:?}");
    let mut rules = rules.rules().to_vec();
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    RuleSet::new(rules)
}

fn instance(name: &str, spec: Value) -> Instance {
    let metadata = json!({ "name": name, "uid": "6f1c0f2e-0000-4000-8000-000000000001" });
    let object =
        json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": spec });
    Instance::read(&object).unwrap()
}

fn is_of_roles(object: &&Object) -> bool {
    matches!(object.key.kind, Kind::ClusterRole | Kind::Role | Kind::ClusterRoleBinding | Kind::RoleBinding)
}

#[tokio::test]
async fn the_roles_of_the_library_are_those_that_people_have_read_and_give_just_that() {
    let cluster = cluster();
    cluster.kubectl(&["create", "namespace", "golden"]).unwrap();
    let client = client_of(cluster, &account("portal-operator", "portal-operator")).await;
    for (path, instance) in instances() {
        check(cluster, &client, path, &instance).await;
    }
}

async fn check(cluster: &Cluster, client: &Client, path: &str, instance: &Instance) {
    let needs = Needs::of(&rules(), instance, &instance.engines(), Kinds::builtin());
    let mut held = Held::new();
    for need in needs.grants.keys().filter(|need| !has_everybody(need)) {
        let place = need.1.as_deref().unwrap_or_default();
        held.insert(need.clone(), may(client, need.0.verb, &need.0.name(), place).await);
    }
    let permissions = Permissions::decide(instance, &needs, &held, &BTreeMap::new());
    let refused: BTreeSet<String> = permissions.refused.keys().map(|(permission, _)| permission.name()).collect();
    assert_eq!(Vec::from_iter(refused), ["leases.coordination.k8s.io", "secrets"]);
    let children = children(instance, &permissions, &operator());
    let objects: Vec<&Object> = children.iter().filter(is_of_roles).collect();
    let text: Vec<String> = objects.iter().map(|object| serde_saphyr::to_string(&object.value).unwrap()).collect();
    compare(path, &text.join("---\n"));

    // The operator may hand all of it on.
    for object in &objects {
        assert_eq!(make(client, object).await, Ok(()), "{}", object.key);
    }
    // Each account has what its own roles give, and nothing of those of the others.
    for engine in instance.engines() {
        for place in ["portal-system", "golden", "default"] {
            let mut expected = abilities(cluster, &account("default", "somebody"), place);
            let roles = objects.iter().filter(|object| matches!(object.key.kind, Kind::ClusterRole | Kind::Role));
            for role in roles.filter(|role| role.key.name == engine.name) {
                if role.key.namespace.as_deref().is_none_or(|namespace| namespace == place) {
                    expected.extend(given(&role.value));
                }
            }
            let what = format!("what {} may do in {place}", engine.name);
            let account = account("portal-system", &engine.name);
            super::eventually(&what, || abilities(cluster, &account, place) == expected);
        }
    }
}

/// What a role gives.
fn given(role: &Value) -> Abilities {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut abilities = Abilities::new();
    for rule in role["rules"].as_array().unwrap() {
        for (group, resource) in texts(&rule["apiGroups"]).iter().zip(&texts(&rule["resources"])) {
            let (plural, subresource) =
                resource.split_once('/').map_or((resource.as_str(), None), |(plural, rest)| (plural, Some(rest)));
            let mut name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
            if let Some(subresource) = subresource {
                name = format!("{name}/{subresource}");
            }
            for verb in texts(&rule["verbs"]) {
                abilities.insert((name.clone(), texts(&rule["resourceNames"]).join(" "), verb));
            }
        }
    }
    abilities
}

/// What `kubectl auth can-i --list` says of an account: a line is a resource, and URLs, names and verbs in brackets.
fn abilities(cluster: &Cluster, account: &str, namespace: &str) -> Abilities {
    let who = format!("--as={account}");
    let groups = ["--as-group=system:serviceaccounts", "--as-group=system:authenticated"];
    let place = format!("--namespace={namespace}");
    let said = cluster.kubectl(&[&["auth", "can-i", "--list", &who, &place][..], &groups].concat()).unwrap();
    let mut abilities = Abilities::new();
    for line in said.lines().skip(1) {
        let (resource, rest) = line.split_once('[').expect("URLs are in brackets");
        let brackets: Vec<&str> = rest.split('[').map(|part| part.split(']').next().unwrap_or_default()).collect();
        let [urls, names, verbs] = brackets[..] else { panic!("{line}") };
        let subject = if resource.trim().is_empty() { urls } else { resource.trim() };
        abilities.extend(verbs.split(' ').map(|verb| (subject.to_owned(), names.to_owned(), verb.to_owned())));
    }
    assert!(!abilities.is_empty(), "{said}");
    abilities
}

#[track_caller]
fn compare(file: &str, text: &str) {
    let path = repository().join(file);
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let differs = committed.lines().zip(text.lines()).find(|(one, other)| one != other);
    assert!(
        committed == text,
        "{file} is not what the rules lead to, beginning with {differs:?}: run PORTAL_UPDATE=1 make test SUITE=core"
    );
}
