//! The pods that the operator makes keep to Portal's own rules.

use std::fs;
use std::process::Command;

use portal_operator::children::children;
use portal_operator::instance::{Instance, OperatorSettings};
use portal_operator::permissions::Permissions;
use portal_test_kit::repository;
use serde_json::{Value, json};

/// Who runs the operator, in tests.
fn operator() -> OperatorSettings {
    OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "registry.example/portal:v1".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

/// The instance with all defaults.
fn default_instance() -> Value {
    let metadata = json!({ "name": "default", "uid": "default-uid", "generation": 1 });
    json!({ "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": metadata, "spec": {} })
}

/// The instance that says something in every field.
fn every_field() -> Value {
    let path = repository().join("operator/src/children/tests/every-field.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn pods_of_the_engine_have_the_restricted_level_of_pod_security() {
    let folder = tempfile::tempdir().unwrap();
    let mut in_the_pod_network = every_field();
    in_the_pod_network["spec"]["admission"]["hostNetwork"] = false.into();
    for (name, instance) in [("default", default_instance()), ("every", in_the_pod_network)] {
        let children = children(&Instance::read(&instance).unwrap(), &Permissions::default(), &operator());
        for (number, deployment) in children.deployments.iter().enumerate() {
            fs::write(folder.path().join(format!("{name}-{number}.json")), deployment.value.to_string()).unwrap();
        }
    }
    let rules = repository().join("docs/library/pod-security/restricted");
    let mut portal = Command::new(env!("CARGO_BIN_EXE_portal"));
    let output = portal.arg("check").arg("--rules").arg(rules).arg(folder.path()).output().unwrap();
    let (said, problems) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("3 objects"), "{said}{problems}");
}
