//! What one installation of the engine is: a `PortalInstance`.

pub(crate) mod admission;
pub(crate) mod certificates;
pub(crate) mod kind;
pub(crate) mod layers;
pub(crate) mod outputs;
pub(crate) mod pods;
pub(crate) mod rbac;
pub(crate) mod status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::{
    admission::AdmissionSpec,
    certificates::CertificatesSpec,
    layers::{ActionsSpec, AuditSpec, LookupsSpec, NetworkSpec},
    outputs::{MonitoringSpec, SinksSpec},
    pods::{PodLabels, Resources, SchedulingSpec},
    rbac::RbacSpec,
};
use crate::schema::{label_selector, must, object_names};

/// What an installation of the engine runs, where, and what it may do.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "self.mode == 'split' || !has(self.audit.resources) && !has(self.network.resources)",
        "`audit.resources` and `network.resources` are for layers that run by themselves: set `mode: split`, or use `resources`",
    ),
    (
        "self.admission.enabled || self.audit.enabled || self.network.enabled",
        "every layer is switched off, and the instance would do nothing: switch `admission`, `audit` or `network` on, \
         or delete the instance",
    ),
])))]
pub struct InstanceSpec {
    /// The namespace of the engine. It cannot be changed: delete the instance and make another one.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = must(&[
        ("self == oldSelf", "the namespace of an instance cannot be changed: delete the instance and make another one"),
        (
            "self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",
            "write the name of a namespace: a-z, 0-9 and -, with a letter or digit at both ends",
        ),
        (
            "!(self in ['default', 'kube-system', 'kube-public', 'kube-node-lease'])",
            "the engine needs a namespace of its own, because rules do not judge what is in it: use `portal-system`",
        ),
    ])))]
    pub namespace: String,

    /// `combined` runs all layers in the same pods. `split` runs each in pods of its own.
    pub mode: Mode,

    /// The rules that the instance serves, by their labels. Unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub rule_selector: Option<LabelSelector>,

    /// The namespaces that the instance serves, by their labels. Unset: all. What is in no namespace is always served.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub namespace_selector: Option<LabelSelector>,

    /// Rules that come with the instance and not as objects of the cluster.
    pub bootstrap_rules: BootstrapRules,

    /// How many PortalRules a namespace may have. The oldest ones count.
    #[schemars(range(min = 0, max = 10000))]
    pub rules_per_namespace: u32,

    /// The language of the rules.
    pub engine: ExpressionLanguage,

    /// Judges what is about to enter the cluster.
    pub admission: AdmissionSpec,

    /// Judges what is in the cluster.
    pub audit: AuditSpec,

    /// Judges what NetworkPolicies allow.
    pub network: NetworkSpec,

    /// How rules that look other objects up are judged again when those change.
    pub lookups: LookupsSpec,

    /// What rules may do about violations.
    pub actions: ActionsSpec,

    /// What the engine may be granted because of its rules.
    pub rbac: RbacSpec,

    /// Kinds that the engine may read and watches even before a rule needs them, so that such a rule is in force at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub watched_gvks: Vec<WatchedKind>,

    /// Where the certificate of the webhook comes from.
    pub certificates: CertificatesSpec,

    /// Where findings and decisions are told.
    pub sinks: SinksSpec,

    /// What is made for Prometheus.
    pub monitoring: MonitoringSpec,

    /// Whether the ports of the engine's pods are closed, but for those that others need, by a NetworkPolicy.
    pub network_policy: bool,

    /// The image of the engine. Unset: the one that the operator itself runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[A-Za-z0-9._:/@-]+$')",
        "write the image as for a container: `registry.example/portal:v1`, or with a digest behind `@`",
    )])))]
    pub image: Option<String>,

    /// When nodes pull the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,

    /// The Secrets in the engine's namespace by which nodes pull the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "object_names")]
    pub image_pull_secrets: Vec<String>,

    /// What each pod of the engine asks for and may take. Unset fields have defaults: 100m of processor and 64Mi of memory are
    /// asked for, and memory is limited to 512Mi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Where the pods run.
    pub scheduling: SchedulingSpec,

    /// Labels and annotations of the pods, beside those of Portal itself.
    pub pods: PodLabels,

    /// What the engine logs: a level, or levels of modules such as `info,portal_cluster::rules=debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([a-z0-9_]+(::[a-z0-9_]+)*=)?(off|error|warn|info|debug|trace)\
         (,([a-z0-9_]+(::[a-z0-9_]+)*=)?(off|error|warn|info|debug|trace))*$')",
        "write a level (error, warn, info, debug, trace), or module=level with commas between",
    )])))]
    pub log: Option<String>,
}

/// How layers share pods.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum Mode {
    #[default]
    Combined,
    Split,
}

/// The language of the rules.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the word is that of the instance")]
pub enum ExpressionLanguage {
    #[default]
    Expr,
}

/// When nodes pull an image.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of Kubernetes")]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// Rules that come with the instance.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootstrapRules {
    /// ConfigMaps in the engine's namespace whose values are files of rules. A change takes effect when the nodes have it, within about
    /// a minute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "object_names")]
    pub config_maps: Vec<String>,
}

/// A kind whose objects are watched.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedKind {
    /// The API group, such as `apps`. Kinds of Kubernetes itself need none.
    #[serde(default)]
    #[schemars(length(max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",
        "write the group alone, without the version: `apps`, not `apps/v1`; the core group is empty",
    )])))]
    pub group: String,

    /// The kind, as a manifest spells it: `Pod`.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[A-Z][A-Za-z0-9]*$')",
        "write the kind as a manifest does: `Pod`, not `pods`",
    )])))]
    pub kind: String,
}

impl Default for InstanceSpec {
    fn default() -> Self {
        InstanceSpec {
            namespace: "portal-system".to_owned(),
            mode: Mode::default(),
            rule_selector: None,
            namespace_selector: None,
            bootstrap_rules: BootstrapRules::default(),
            rules_per_namespace: 100,
            engine: ExpressionLanguage::default(),
            admission: AdmissionSpec::default(),
            audit: AuditSpec::default(),
            network: NetworkSpec::default(),
            lookups: LookupsSpec::default(),
            actions: ActionsSpec::default(),
            rbac: RbacSpec::default(),
            watched_gvks: Vec::new(),
            certificates: CertificatesSpec::default(),
            sinks: SinksSpec::default(),
            monitoring: MonitoringSpec::default(),
            network_policy: false,
            image: None,
            image_pull_policy: None,
            image_pull_secrets: Vec::new(),
            resources: None,
            scheduling: SchedulingSpec::default(),
            pods: PodLabels::default(),
            log: None,
        }
    }
}
