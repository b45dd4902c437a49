//! What an instance is planned by: which watches it needs, and what of the store is about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use portal_core::kinds::Kinds;

use crate::{
    certificates::fingerprint,
    desired::mounted_secret,
    instance::{Instance, OperatorSettings},
    names::{INSTANCE_LABEL, LAYERS, configuration_name, engine},
    object::{Key, Kind, Object},
    observed::{Memory, Observed},
    permissions::Held,
    store::{Source, SourceState, Store},
};

/// The certificate that each pod was last seen to show, by the UID of the pod, and when it was asked.
pub type Shown = BTreeMap<String, (Option<String>, Timestamp)>;

/// The kinds that are watched in the namespace of an engine.
const IN_NAMESPACE: [Kind; 8] = [
    Kind::ServiceAccount,
    Kind::Secret,
    Kind::ConfigMap,
    Kind::Service,
    Kind::PodDisruptionBudget,
    Kind::Deployment,
    Kind::Pod,
    Kind::NetworkPolicy,
];

/// The kinds that other operators bring.
pub const OPTIONAL: [Kind; 5] =
    [Kind::ServiceMonitor, Kind::PrometheusRule, Kind::Certificate, Kind::PolicyReport, Kind::Report];

/// The kinds that are watched in the whole cluster.
const IN_CLUSTER: [Kind; 7] = [
    Kind::PortalInstance,
    Kind::Namespace,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    // Rules of a namespace are granted there, whichever it is.
    Kind::Role,
    Kind::RoleBinding,
    Kind::ValidatingWebhookConfiguration,
];

/// How often a pod is asked for its certificate while it does not show the one that it should.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// The kinds that other operators bring, and that are served. Nothing is while nobody knows.
pub fn served(kinds: Option<&Kinds>) -> Vec<Kind> {
    let is_served = |kind: &Kind| kinds.is_some_and(|kinds| kinds.of_resource(kind.group(), kind.plural()).is_some());
    OPTIONAL.into_iter().filter(is_served).collect()
}

/// The watches that an instance needs.
pub fn sources(instance: &Instance, operator: &OperatorSettings, served: &[Kind]) -> Vec<Source> {
    let namespace = instance.namespace();
    // The operator's own namespace is watched anyway, and is refused as an engine's.
    let in_namespace: Vec<Source> = match namespace == operator.namespace {
        true => Vec::new(),
        false => IN_NAMESPACE.iter().chain(served).map(|kind| Source::of_namespace(*kind, namespace)).collect(),
    };
    let own = Source::of_namespace(Kind::Secret, &operator.namespace);
    in_namespace.into_iter().chain(IN_CLUSTER.map(Source::cluster)).chain([own]).collect()
}

/// Pods that have to be asked for the certificate that they show: it is not known to be the one that they should.
pub fn pods_to_ask(instance: &Instance, store: &Store, now: Timestamp, shown: &mut Shown) -> Vec<Arc<Object>> {
    let wanted = store.get(&mounted_secret(instance)).and_then(|secret| shown_by(&secret));
    let pods = store.select(|object| {
        object.key.kind == Kind::Pod
            && object.key.namespace.as_deref() == Some(instance.namespace())
            && object.label(INSTANCE_LABEL) == Some(&instance.name)
    });
    shown.retain(|uid, _| pods.values().any(|pod| pod.uid() == uid));
    let due = pods.into_values().filter(|pod| match shown.get(pod.uid()) {
        Some((shown, _)) if *shown == wanted => false,
        Some((_, at)) => now.duration_since(*at).abs() >= ASK_AGAIN,
        None => true,
    });
    due.collect()
}

/// What is known of an instance at this moment.
#[expect(clippy::too_many_arguments, reason = "each is a part of what is known, and there is one caller")]
pub fn observe(
    instance: &Instance,
    store: &Store,
    sources: &[Source],
    operator: &OperatorSettings,
    (now, uptime): (Timestamp, Duration),
    served: Vec<Kind>,
    shown: &Shown,
    memory: &mut Memory,
) -> Observed {
    let (namespace, own) = (instance.namespace(), operator.namespace.as_str());
    let configuration = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
    let objects = store.select(|object| match (&object.key.namespace, object.key.kind) {
        (Some(_), Kind::Role | Kind::RoleBinding) => {
            LAYERS.iter().any(|layer| object.key.name == engine(&instance.name, layer))
                || object.label(INSTANCE_LABEL) == Some(&instance.name)
        }
        (Some(found), _) => found == namespace || found == own,
        (None, Kind::PortalInstance) => false,
        // Watches bring what has our label. What has lost it was asked for by its name, because it is in the way.
        (None, _) => true,
    });
    let others = store.select(|object| object.key.kind == Kind::PortalInstance && object.key.name != instance.name);
    let others = others.values().filter_map(|object| Instance::try_from(&**object).ok()).collect();
    let refusals = sources.iter().filter(|source| IN_NAMESPACE.contains(&source.kind));
    let refused =
        refusals.filter(|source| source.namespace.as_deref() == Some(namespace)).find_map(|source| {
            match store.state(source) {
                SourceState::Refused(problem) => Some(problem),
                _ => None,
            }
        });
    memory.saw(objects.get(&configuration).map(|found| &**found), uptime);
    Observed {
        now,
        uptime,
        others,
        refused,
        served,
        held: Held::new(),
        is_ceiling_unbounded: false,
        shown: shown.iter().map(|(uid, (shown, _))| (uid.clone(), shown.clone())).collect(),
        memory: memory.clone(),
        objects,
    }
}

/// The fingerprint of the certificate in a Secret.
fn shown_by(secret: &Object) -> Option<String> {
    let secret: Secret = serde_json::from_value(secret.value.clone()).ok()?;
    fingerprint(&secret.data?.get("tls.crt")?.0)
}
