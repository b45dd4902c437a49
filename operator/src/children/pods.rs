//! What a pod of an engine is: its container, what is mounted, where it runs, and how it ends.

use std::collections::BTreeMap;

use portal_crds::{PullPolicy, RbacMode, Spread, Toleration};
use serde_json::{Value, json};

use crate::children::{amounts, flags};
use crate::instance::{Engine, Instance, OperatorSettings};
use crate::names::{
    self, ADMISSION_LABEL, INSTANCE_LABEL, LAYER_LABEL, METRICS_PORT, WEBHOOK_PORT, configuration_name,
};

/// Where the certificate is, the authorities that came without it, those of the API server, the token for other replicas, and the rules of
/// ConfigMaps, and what Alertmanager is shown.
pub(super) const TLS: &str = "/etc/portal/tls";
const AUTHORITIES: &str = "/etc/portal/authorities";
pub(super) const CLIENTS: &str = "/etc/portal/clients";
pub(super) const TOKEN: &str = "/var/run/portal/token";
pub(super) const RULES: &str = "/etc/portal/rules";
pub(super) const ALERTMANAGER: &str = "/etc/portal/alertmanager";

/// How many seconds a pod has after it was told to end, beside those in which it goes on to answer: five for the requests under way, and ten
/// for everything else to end on a node that is busy. Whoever is not done by then is killed.
const LAST_SECONDS: u32 = 5 + 10;

/// The labels by which the pods of an engine are told from all others. A Deployment never changes them.
pub(super) fn selector(instance: &Instance, engine: &Engine) -> BTreeMap<String, String> {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    [label(INSTANCE_LABEL, &instance.name), label(LAYER_LABEL, engine.layer)].into()
}

/// Whether no two pods of an engine may run on a node. In the network of the node they have the same ports.
pub(super) fn are_apart(instance: &Instance, engine: &Engine) -> bool {
    instance.spec.scheduling.spread == Spread::Required || has_host_network(instance, engine)
}

/// The file with the authorities of the certificates that other replicas show.
pub(super) fn authority_file(instance: &Instance) -> String {
    let folder = if instance.spec.certificates.ca_bundle.is_some() { AUTHORITIES } else { TLS };
    format!("{folder}/ca.crt")
}

/// The template of an engine's pods. It says nothing that changes while the instance stays as it is: the pods would be replaced.
pub(super) fn template(instance: &Instance, engine: &Engine, operator: &OperatorSettings) -> Value {
    let spec = &instance.spec;
    let mut labels = spec.pods.labels.clone().unwrap_or_default();
    labels.extend(names::labels(&instance.name));
    labels.extend(selector(instance, engine));
    if engine.layers.admission {
        labels.insert(ADMISSION_LABEL.0.to_owned(), ADMISSION_LABEL.1.to_owned());
    }
    let mut metadata = json!({ "labels": labels });
    if let Some(annotations) = spec.pods.annotations.as_ref().filter(|annotations| !annotations.is_empty()) {
        metadata["annotations"] = json!(annotations);
    }
    let (volumes, mounts) = volumes(instance, engine);
    let mut pod = json!({
        "serviceAccountName": engine.name,
        // The cluster mounts the token where every client looks for it, with whatever else it has for pods. Each engine asks the API server.
        "automountServiceAccountToken": true,
        // The Service is called `portal-…`, and variables that begin with PORTAL_ are settings.
        "enableServiceLinks": false,
        // No user is fixed: some clusters give each namespace its own. That of the image is not root.
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "terminationGracePeriodSeconds": spec.admission.drain_seconds + LAST_SECONDS,
        "containers": [container(instance, engine, operator, mounts)],
        "volumes": volumes,
    });
    place(instance, engine, &mut pod);
    let secrets = spec.image_pull_secrets.iter();
    put(&mut pod, "imagePullSecrets", secrets.map(|name| json!({ "name": name })).collect());
    json!({ "metadata": metadata, "spec": pod })
}

fn container(instance: &Instance, engine: &Engine, operator: &OperatorSettings, mounts: Vec<Value>) -> Value {
    let spec = &instance.spec;
    let image = spec.image.as_ref().unwrap_or(&operator.image);
    let port = |name: &str, number: u16| json!({ "name": name, "containerPort": number, "protocol": "TCP" });
    let webhook = engine.layers.admission.then(|| port(WEBHOOK_PORT, spec.admission.port));
    let ports: Vec<Value> = webhook.into_iter().chain([port(METRICS_PORT.0, METRICS_PORT.1)]).collect();
    let of_pod = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    let asked = |path: &str, period: u32, timeout: u32, failures: u32| {
        json!({
            "httpGet": { "path": path, "port": METRICS_PORT.0 },
            "periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures,
        })
    };
    let granter = match spec.rbac.mode {
        RbacMode::Auto => names::account(&operator.namespace, &operator.account),
        // No user is called so.
        RbacMode::Manual | RbacMode::Audit => "nobody".to_owned(),
    };
    let own_resources = match engine.layer {
        "audit" => spec.audit.resources.as_ref(),
        "network" => spec.network.resources.as_ref(),
        _ => None,
    };
    json!({
        "name": "engine",
        "image": image,
        "imagePullPolicy": pull_policy(spec.image_pull_policy, image),
        "args": flags::arguments(instance, engine),
        "env": [
            of_pod("PORTAL_IDENTITY", "metadata.name"),
            of_pod("PORTAL_ADDRESS", "status.podIP"),
            { "name": "PORTAL_GRANTER", "value": granter },
        ],
        "ports": ports,
        // It waits for the API server for as long as it takes, and is not ready meanwhile. Once it was ready it stays so, whoever is away.
        "readinessProbe": asked("/readyz", 2, 2, 2),
        // Answered by a thread that does nothing else: who does not answer for a minute is dead, and not busy. There is no probe for the start,
        // because it is answered from the first second, and because one for readiness would kill whoever waits for the API server.
        "livenessProbe": asked("/healthz", 10, 5, 6),
        "resources": amounts::resources(own_resources.or(spec.resources.as_ref())),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
        // The last words of an engine that cannot start are in the status of its pod.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

/// What is mounted, and where. Files can be read by everybody in the container, because its user is not known.
fn volumes(instance: &Instance, engine: &Engine) -> (Vec<Value>, Vec<Value>) {
    let spec = &instance.spec;
    let mut volumes = Vec::new();
    let mut mounts = Vec::new();
    let mut add = |name: &str, path: &str, source: &str, says: Value| {
        volumes.push(json!({ "name": name, source: says }));
        mounts.push(json!({ "name": name, "mountPath": path, "readOnly": true }));
    };
    let authorities_only = json!([{ "key": "ca.crt", "path": "ca.crt" }]);
    let mut leaf = json!({ "secretName": instance.certificate_secret() });
    if !engine.layers.admission {
        leaf["items"] = authorities_only.clone();
    }
    add("tls", TLS, "secret", leaf);
    if spec.certificates.ca_bundle.is_some() {
        add("authorities", AUTHORITIES, "configMap", json!({ "name": names::authorities(&instance.name) }));
    }
    if let Some(clients) = spec.admission.clients.as_ref().filter(|_| engine.layers.admission) {
        add("clients", CLIENTS, "configMap", json!({ "name": clients.config_map, "items": authorities_only }));
    }
    // For the other replicas alone: one for the API server would be worth stealing there.
    let token = json!({ "serviceAccountToken": {
        "audience": configuration_name(&instance.name), "expirationSeconds": 3600, "path": "token",
    } });
    add("token", TOKEN, "projected", json!({ "sources": [token] }));
    if let Some(secret) = spec.sinks.alertmanager.as_ref().and_then(|sink| sink.secret_ref.as_ref()) {
        // A Secret that is not there keeps no pod from starting: only alerts need it.
        add("alertmanager", ALERTMANAGER, "secret", json!({ "secretName": secret.name, "optional": true }));
    }
    for (number, name) in spec.bootstrap_rules.config_maps.iter().enumerate() {
        // Each in a folder of its own, because their keys may be the same. A ConfigMap that is not there keeps no pod from starting: without
        // its rules the engine does less, and without the engine nothing is judged at all.
        let says = json!({ "name": name, "optional": true });
        add(&format!("rules-{number}"), &format!("{RULES}/{name}"), "configMap", says);
    }
    (volumes, mounts)
}

/// On which nodes pods run, and in which network.
fn place(instance: &Instance, engine: &Engine, pod: &mut Value) {
    let scheduling = &instance.spec.scheduling;
    let selected = json!({ "matchLabels": selector(instance, engine) });
    if are_apart(instance, engine) {
        let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": selected });
        pod["affinity"] = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    } else {
        let spread = |key: &str| {
            json!({
                "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selected,
                // Among those of their own version: those before go, and must not push two onto the same node.
                "matchLabelKeys": ["pod-template-hash"],
            })
        };
        pod["topologySpreadConstraints"] =
            json!([spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")]);
    }
    pod["dnsPolicy"] = "ClusterFirst".into();
    if has_host_network(instance, engine) {
        pod["hostNetwork"] = true.into();
        pod["dnsPolicy"] = "ClusterFirstWithHostNet".into();
    }
    if let Some(selector) = scheduling.node_selector.as_ref().filter(|selector| !selector.is_empty()) {
        pod["nodeSelector"] = json!(selector);
    }
    put(pod, "tolerations", scheduling.tolerations.iter().map(toleration).collect());
    if let Some(class) = &scheduling.priority_class_name {
        pod["priorityClassName"] = json!(class);
    }
}

/// Sets a list, if anything is in it: the API server stores no empty ones.
fn put(pod: &mut Value, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        pod[name] = list.into();
    }
}

/// A toleration without the texts that say nothing, which the API server leaves out.
fn toleration(toleration: &Toleration) -> Value {
    let mut value = json!(toleration);
    value.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, field| field != ""));
    value
}

/// Whether pods have the network of their nodes: those that the API server asks may.
fn has_host_network(instance: &Instance, engine: &Engine) -> bool {
    instance.spec.admission.host_network && engine.layers.admission
}

/// When the image is pulled. Said in any case, as the API server would fill it in for the image: what it filled in for the one before would
/// stay.
fn pull_policy(policy: Option<PullPolicy>, image: &str) -> PullPolicy {
    let name = image.rsplit_once('/').map_or(image, |(_, name)| name);
    let is_moving = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    policy.unwrap_or(if is_moving { PullPolicy::Always } else { PullPolicy::IfNotPresent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_moves_is_always_pulled() {
        for (image, moves) in [
            ("portal", true),
            ("portal:latest", true),
            ("registry.example:5000/portal", true),
            ("registry.example:5000/portal:v1", false),
            ("portal:v1", false),
            ("registry.example/portal@sha256:0123", false),
            ("registry.example/portal:latest@sha256:0123", false),
        ] {
            let expected = if moves { PullPolicy::Always } else { PullPolicy::IfNotPresent };
            assert_eq!(pull_policy(None, image), expected, "{image}");
            assert_eq!(pull_policy(Some(PullPolicy::Never), image), PullPolicy::Never);
        }
    }
}
