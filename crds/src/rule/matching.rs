//! Which objects a rule judges.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{label_selector, must, yes};

/// Which objects a rule judges: those that fit everything that is given.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "!('CONNECT' in self.operations) || (has(self.subresources) && size(self.subresources) > 0)",
        "CONNECT happens on subresources only: name them in `subresources` (exec, attach, portforward, proxy), \
         or remove CONNECT",
    ),
])))]
pub struct Match {
    /// The kinds of object.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub gvk: Vec<GroupVersionKind>,

    /// What is being done to the object, for admission. Audit judges what is there.
    #[serde(default = "create_and_update")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub operations: Vec<Operation>,

    /// Subresources that are judged too, by the part after the slash: `exec`, `scale`, `status`. A rule for Pod judges
    /// `ephemeralcontainers` and `resize` without naming them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = must(&[(
            "self.all(name, name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'))",
            "write the part after the slash only: `exec`, not `pods/exec`",
        )])),
    )]
    pub subresources: Vec<String>,

    /// The namespaces of the objects, by name. What lives in no namespace fits unless `include` is given. A Namespace counts as
    /// living in itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Globs>,

    /// The namespaces of the objects, by their labels. What lives in no namespace does not fit. A Namespace counts as living in
    /// itself, and has the label `kubernetes.io/metadata.name` whether its manifest says so or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub namespace_selector: Option<LabelSelector>,

    /// The objects, by their labels. What makes pods, and is judged because the rule names Pod, has those of its pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<LabelSelector>,

    /// Globs for the names of the objects: `*` stands for any characters, `?` for one. None given: any name. What makes pods
    /// has its own name here, because the names of its pods are not known before they are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<String>,

    /// Whether a rule for Pod also judges what makes pods: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job,
    /// CronJob and PodTemplate. People then hear of a violation when they change the Deployment. A rule that reads `object`,
    /// `request` or what only a Pod that is there has, such as `metadata.ownerReferences`, judges only the kinds that it names.
    #[serde(default = "yes")]
    pub pod_controllers: bool,
}

/// A kind of object.
#[derive(Clone, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "self.kind != '*' || self.group != ''",
        "`*` stands for the kinds of a group that is named: name those of the core group one by one",
    ),
    (
        "self.kind != '*' || !has(self.podTemplate)",
        "kinds differ in where their pods are: name the kind that `podTemplate` is for",
    ),
])))]
pub struct GroupVersionKind {
    /// The API group, such as `apps`. Kinds of Kubernetes itself need none: `{kind: Deployment}` is the one of `apps`.
    #[serde(default)]
    #[schemars(length(max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",
        "name one group, without the version: `apps`, not `apps/v1` or `*`; the core group is empty",
    )])))]
    pub group: String,

    /// The version, such as `v1`. `*` stands for any version.
    #[serde(default = "any_version")]
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([*]|[a-z0-9]([a-z0-9-]*[a-z0-9])?)$')",
        "write the version alone, such as `v1`, or `*` for any; the group has a field of its own",
    )])))]
    pub version: String,

    /// The kind, as a manifest spells it: `Pod`. `*` stands for every kind of the group that is served, also those that come later, without
    /// what no rule may judge: leases, events, reviews, reports and Portal's own kinds. The kinds of the core group are named one by one.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^([*]|[A-Z][A-Za-z0-9]*)$')",
        "write the kind as a manifest does: `Pod`, not `pods`; `*` stands for every kind of a group that is named",
    )])))]
    pub kind: String,

    /// Where objects of a custom kind have their pod template: the way to what has a pod's `metadata` and `spec`, such as
    /// `spec.template`. The rule may then use `container`, `spec` and `securityContext`, as for a Deployment. The kinds of Kubernetes need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = must(&[(
        "self.matches('^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$')",
        "write the names of fields with dots between: `spec.template`",
    )])))]
    pub pod_template: Option<String>,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the words are those of Kubernetes")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// Names that fit, by globs: `*` stands for any characters, `?` for one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Globs {
    /// One of these has to fit. None given: every name fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub include: Vec<String>,

    /// None of these may fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub exclude: Vec<String>,
}

fn create_and_update() -> Vec<Operation> {
    vec![Operation::Create, Operation::Update]
}

fn any_version() -> String {
    "*".to_owned()
}
