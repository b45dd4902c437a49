//! How an instance judges what is about to enter the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::EnforcementAction;
use crate::schema::{must, object_name};

/// Judges what is about to enter the cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "!self.enabled || !self.failClosed || self.replicas >= 2",
        "with one replica that fails closed, every request that rules judge is refused while the pod restarts: set `replicas` to 2 or \
         more, or `failClosed: false`",
    ),
])))]
pub struct AdmissionSpec {
    /// Whether the layer is on.
    pub enabled: bool,

    /// How many pods answer the API server.
    #[schemars(range(min = 1, max = 50))]
    pub replicas: u32,

    /// Whether requests are refused that nobody answers, or that a rule cannot judge. If not, they are let in with a warning.
    pub fail_closed: bool,

    /// The strictest that any rule may be. `warn` and `dryrun` are for the first days, and for bad ones: nothing is refused.
    pub max_enforcement: EnforcementAction,

    /// How many seconds the API server waits for an answer. The engine ends its own work well before.
    #[schemars(range(min = 2, max = 30))]
    pub timeout_seconds: u32,

    /// What happens to a change of an object that violated a rule before, if nothing changes that the rule reads: `admit` lets it in with a
    /// warning, `deny` refuses it as if the object were new.
    pub existing_violations: ExistingViolations,

    /// Namespaces that are left alone, by their names, beside kube-system, kube-public, kube-node-lease and those of Portal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = must(&[(
            "self.all(name, name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'))",
            "write the names of namespaces; for patterns use `match.namespaces.exclude` of a rule, for labels `namespaceSelector`",
        )])),
    )]
    pub exclude_namespaces: Vec<String>,

    /// Whether the pods have the network of their nodes, for clusters whose API server reaches no pod. Then no two of them run on a node.
    pub host_network: bool,

    /// The port that the pods listen on.
    #[schemars(range(min = 1024, max = 65535), extend("x-kubernetes-validations" = must(&[(
        "self != 8080",
        "the pods have health and metrics on port 8080: use another one",
    )])))]
    pub port: u16,

    /// The certificate that the API server has to show, if it was told to show one. Unset: whoever asks is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsSpec>,

    /// How many steps a rule may take for an object. A rule that takes more fails.
    #[schemars(range(min = 1000, max = 1000000000))]
    pub rule_steps: u64,

    /// How many connections a pod has at a time.
    #[schemars(range(min = 16, max = 65536))]
    pub connections: u32,

    /// How many MiB the bodies of all requests to a pod may hold together.
    #[schemars(range(min = 8, max = 4096))]
    pub memory_mib: u32,

    /// How many seconds a pod that ends goes on to answer, until API servers have learnt that it goes.
    #[schemars(range(min = 0, max = 120))]
    pub drain_seconds: u32,
}

/// What happens to a change of an object that violated a rule before.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum ExistingViolations {
    #[default]
    Admit,
    Deny,
}

/// The certificate that clients of the webhook have to show.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientsSpec {
    /// The ConfigMap in the engine's namespace whose key `ca.crt` has the authorities, in PEM.
    #[schemars(schema_with = "object_name")]
    pub config_map: String,

    /// The common name or a DNS name that the certificate must have.
    #[serde(default = "api_server")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

fn api_server() -> String {
    "kube-apiserver".to_owned()
}

impl Default for AdmissionSpec {
    fn default() -> Self {
        AdmissionSpec {
            enabled: true,
            replicas: 2,
            fail_closed: true,
            max_enforcement: EnforcementAction::Deny,
            timeout_seconds: 5,
            existing_violations: ExistingViolations::default(),
            exclude_namespaces: Vec::new(),
            host_network: false,
            port: 8443,
            clients: None,
            rule_steps: 1_000_000,
            connections: 1024,
            memory_mib: 64,
            drain_seconds: 5,
        }
    }
}
