//! Every setting of the engine is a field of PortalInstance, or there is a reason why not.

use clap::CommandFactory as _;
use serde_json::Value;

use crate::command_line::CommandLine;

/// Where the value of a setting comes from.
enum From {
    /// From this field, as it is: the defaults are the same.
    Field(&'static str),
    /// From this field, in another form.
    Made(&'static str),
    /// From nowhere in the spec, because of this.
    Fixed(&'static str),
}
use From::{Field, Fixed, Made};

const SETTINGS: &[(&str, From)] = &[
    ("config", Fixed("flags say all, so that a change of a setting is a change of the Deployment")),
    ("rules-from-cluster", Fixed("an instance serves the rules of its cluster")),
    ("rule-selector", Made("ruleSelector")),
    ("rules-per-namespace", Field("rulesPerNamespace")),
    ("rules-folder", Made("bootstrapRules.configMaps")),
    ("watched-kinds", Made("watchedGvks")),
    ("instance", Fixed("the name of the instance")),
    ("namespace", Field("namespace")),
    ("identity", Fixed("the name of the pod")),
    ("listen", Fixed("others know the port of health and metrics")),
    ("address", Fixed("the address of the pod")),
    ("kubeconfig", Fixed("a pod has its ServiceAccount")),
    ("log", Made("log")),
    ("lease-duration", Fixed("how fast a replica takes over is promised by the documentation")),
    ("lease-renew-deadline", Fixed("it belongs to the duration of the Lease")),
    ("lease-retry", Fixed("it belongs to the duration of the Lease")),
    ("admission", Made("admission.enabled")),
    ("tls-cert", Made("certificates.source")),
    ("tls-key", Made("certificates.source")),
    ("client-ca", Made("admission.clients.configMap")),
    ("client-name", Field("admission.clients.name")),
    ("admission-listen", Made("admission.port")),
    ("fail-open", Made("admission.failClosed")),
    ("max-enforcement", Field("admission.maxEnforcement")),
    ("existing-violations", Field("admission.existingViolations")),
    ("namespace-selector", Made("namespaceSelector")),
    ("exclude-namespaces", Made("admission.excludeNamespaces")),
    ("admission-deadline", Made("admission.timeoutSeconds")),
    ("rule-steps", Field("admission.ruleSteps")),
    ("admission-connections", Field("admission.connections")),
    ("admission-memory", Field("admission.memoryMib")),
    ("admission-drain", Field("admission.drainSeconds")),
    ("author-check", Made("rbac.authorCheck")),
    ("decision-log", Made("sinks.stdout")),
    ("peers-service", Fixed("the Service over the pods of the instance")),
    ("peers", Fixed("replicas find each other by their Service")),
    ("peer-name", Fixed("the name in the certificate of the instance")),
    ("peer-ca", Fixed("the authority of the instance")),
    ("peer-token", Fixed("a token of the pod's ServiceAccount, for nothing else")),
    ("peer-accounts", Fixed("the accounts of the instance's layers")),
    ("audit", Made("audit.enabled")),
    ("network", Made("network.enabled")),
    ("actions", Made("actions.enabled")),
];

#[test]
fn every_setting_is_a_field_of_the_instance_or_says_why_not() {
    let command = CommandLine::command();
    let arguments = command.find_subcommand("engine").unwrap().get_arguments();
    let definition = serde_json::to_value(&portal_crds::definitions()[0]).unwrap();
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut seen = Vec::new();
    for argument in arguments {
        let flag = argument.get_long().unwrap();
        let (_, from) =
            SETTINGS.iter().find(|(name, _)| *name == flag).unwrap_or_else(|| panic!("--{flag}: add it to SETTINGS"));
        seen.push(flag.to_owned());
        let (Field(path) | Made(path)) = from else {
            let Fixed(reason) = from else { unreachable!() };
            assert!(!reason.is_empty());
            continue;
        };
        let field = path.split('.').fold(spec, |schema, name| &schema["properties"][name]);
        assert!(field.is_object(), "--{flag}: an instance has no {path}");
        if let Field(_) = from {
            let default: Vec<String> =
                argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
            let word = match &field["default"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(default, [word], "--{flag} and {path} have other defaults");
        }
    }
    let known: Vec<&str> = SETTINGS.iter().map(|(flag, _)| *flag).collect();
    assert_eq!(seen.len(), known.len(), "settings that are gone: {known:?}");
}
