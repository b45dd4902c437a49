//! What the objects of the operator are called, and the labels and annotations that it knows.

use std::collections::BTreeMap;

pub use portal_core::webhook::configuration_name;

/// The label that every child has, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "portal-operator");

/// The label of what belongs to an instance, with its name.
pub const INSTANCE_LABEL: &str = "portal.io/instance";

/// The label of pods with the layer that they run, or [`COMBINED`].
pub const LAYER_LABEL: &str = "portal.io/layer";

/// The label of pods that answer the API server, whatever else they run: the Service selects by it, so that there is no gap while an
/// instance changes its mode.
pub const ADMISSION_LABEL: (&str, &str) = ("portal.io/admission", "true");

/// The layer of pods that run all layers.
pub const COMBINED: &str = "combined";

/// The layers that a set of pods may be of.
pub const LAYERS: [&str; 4] = [COMBINED, "admission", "audit", "network"];

/// The annotation of an instance by which everything that the operator would do to it stops.
pub const PAUSED: &str = "portal.io/paused";

/// What keeps an instance until its webhook configuration is gone.
pub const FINALIZER: &str = "portal.io/webhook";

/// The label of a namespace with the level of Pod Security that its pods must keep.
pub const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// The policy that guards the bypass of namespaces, and its binding. They are there once for a cluster.
pub const GUARD: &str = "portal-bypass";

/// Who writes, for server-side apply.
pub const MANAGER: &str = "portal-operator";

/// The annotation of a webhook configuration with the time since which it has its authorities.
pub const BUNDLE_SINCE: &str = "portal.io/bundle-since";

/// The annotation of a role that says because of which rules it allows each resource.
pub const BECAUSE: &str = "portal.io/because";

/// The part of the pods' names and of the Service that the API server knows.
pub const WEBHOOK_PORT: &str = "webhook";

/// The port with health and metrics.
pub const METRICS_PORT: (&str, u16) = ("metrics", 8080);

/// The account of a layer, its roles, and the Deployment that runs it: `portal-NAME`, in split mode with the layer behind it.
pub fn engine(instance: &str, layer: &str) -> String {
    match layer {
        COMBINED => configuration_name(instance),
        layer => format!("{}-{layer}", configuration_name(instance)),
    }
}

/// The Service by which the API server reaches the webhook.
pub fn service(instance: &str) -> String {
    configuration_name(instance)
}

/// The headless Service over the pods of all layers.
pub fn pods_service(instance: &str) -> String {
    format!("{}-pods", configuration_name(instance))
}

/// The Secret with the certificate and its key, in the engine's namespace.
pub fn leaf_secret(instance: &str) -> String {
    format!("{}-tls", configuration_name(instance))
}

/// The Secret that cert-manager writes unless the instance names another one, in the engine's namespace.
pub fn issued_secret(instance: &str) -> String {
    format!("{}-issued-tls", configuration_name(instance))
}

/// The Secret with the authority, in the operator's namespace.
pub fn authority_secret(instance: &str) -> String {
    format!("{}-ca", configuration_name(instance))
}

/// The ConfigMap with the authorities of a certificate that comes without them, in the engine's namespace.
pub fn authorities(instance: &str) -> String {
    format!("{}-ca", configuration_name(instance))
}

/// The names that the certificate of the webhook has. The first is the one by which the API server asks.
pub fn dns_names(instance: &str, namespace: &str) -> Vec<String> {
    let service = format!("{}.{namespace}.svc", service(instance));
    vec![service.clone(), format!("{service}.cluster.local")]
}

/// An account as the API server names it.
pub fn account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The labels of everything that belongs to an instance. None of them is copied from the instance: tools that follow theirs
/// would take the children for their own.
pub fn labels(instance: &str) -> BTreeMap<String, String> {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    [label(MANAGED_BY.0, MANAGED_BY.1), label("app.kubernetes.io/name", "portal"), label(INSTANCE_LABEL, instance)]
        .into()
}

/// The ServiceAccount, the Deployment and the disruption budget of the operator itself, in its namespace.
pub const OPERATOR: &str = "portal-operator";

/// The roles that are installed. No child of an instance can have such a name: instances have no colon in theirs.
pub const OPERATOR_ROLE: &str = "portal:operator";

/// The ClusterRole with what the operator gives to every engine.
pub const ENGINES_ROLE: &str = "portal:engines";

/// The ClusterRole with what rules may need.
pub const CEILING_ROLE: &str = "portal:ceiling";

/// The ClusterRole that collects what administrators add to the ceiling.
pub const AGGREGATED_CEILING_ROLE: &str = "portal:rbac-ceiling";
