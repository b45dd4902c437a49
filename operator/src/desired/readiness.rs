//! How far the pods of an instance are.

use serde_json::Value;

use crate::{
    instance::{Engine, Instance},
    names::{INSTANCE_LABEL, LAYER_LABEL},
    object::{Key, Kind, Object},
    observed::Observed,
};

/// A Deployment of an instance, and how far it is.
#[derive(Clone, Debug)]
pub struct EngineState {
    /// What it runs.
    pub engine: Engine,
    /// The image that its pods should have. Empty if there is no Deployment.
    pub image: String,
    /// How many pods are ready.
    pub ready: i32,
    /// How many pods are as the Deployment says.
    pub updated: i32,
    /// How many pods there are, old ones too.
    pub pods: i32,
    /// Whether the numbers are about the Deployment as it is.
    pub is_current: bool,
    /// What keeps a pod from running, in words.
    pub problem: Option<String>,
}

/// How far the Deployments of an instance are.
pub fn engine_states(instance: &Instance, observed: &Observed) -> Vec<EngineState> {
    instance.engines().into_iter().map(|engine| state(instance, engine, observed)).collect()
}

fn state(instance: &Instance, engine: Engine, observed: &Observed) -> EngineState {
    let found = observed.get(&Key::namespaced(Kind::Deployment, instance.namespace(), &engine.name));
    let status = found.map(|found| &found.value["status"]).unwrap_or(&Value::Null);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let count = |name: &str| i32::try_from(number(&status[name])).unwrap_or_default();
    let generation = found.map(|found| number(&found.value["metadata"]["generation"]));
    let image = found.map(|found| &found.value["spec"]["template"]["spec"]["containers"][0]["image"]);
    EngineState {
        image: image.and_then(Value::as_str).unwrap_or_default().to_owned(),
        ready: count("readyReplicas"),
        updated: count("updatedReplicas"),
        pods: count("replicas"),
        is_current: generation.is_some_and(|generation| generation == number(&status["observedGeneration"])),
        problem: found.and_then(cannot_make_pods).or_else(|| problem(instance, &engine, observed)),
        engine,
    }
}

impl EngineState {
    /// Whether all pods are ready and as they should be, and no others are left.
    pub fn is_rolled_out(&self) -> bool {
        let wanted = i32::try_from(self.engine.replicas).unwrap_or(i32::MAX);
        self.is_current && self.ready >= wanted && self.updated == wanted && self.pods == wanted
    }
}

/// Why no pods can be made at all: a quota, or a level of Pod Security that the namespace enforces.
fn cannot_make_pods(deployment: &Object) -> Option<String> {
    let conditions = deployment.value["status"]["conditions"].as_array()?;
    let failure = conditions.iter().find(|found| found["type"] == "ReplicaFailure" && found["status"] == "True")?;
    let message = failure["message"].as_str().unwrap_or_default();
    let way_out = match message.contains("violates PodSecurity") {
        true => {
            "; take the label pod-security.kubernetes.io/enforce away from the namespace, or do without what it forbids"
        }
        false => "",
    };
    Some(format!("pods cannot be made: {message}{way_out}"))
}

/// What keeps a pod from running, as its kubelet or the scheduler says. Pods stand in the order of their names.
fn problem(instance: &Instance, engine: &Engine, observed: &Observed) -> Option<String> {
    let pods = observed.of_kind(Kind::Pod).filter(|pod| {
        pod.label(INSTANCE_LABEL) == Some(&instance.name) && pod.label(LAYER_LABEL) == Some(engine.layer)
    });
    pods.filter(|pod| !pod.is_terminating()).find_map(|pod| {
        let (reason, message) = waits_for(pod)?;
        Some(format!("pod {}: {reason}{message}", pod.key.name))
    })
}

/// The words do not change while the kubelet tries again and again: each other text would be another status.
fn waits_for(pod: &Object) -> Option<(String, String)> {
    let said = |value: &Value| {
        let reason = value["reason"].as_str()?.to_owned();
        let message = value["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
        Some((reason, message))
    };
    let status = &pod.value["status"];
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let scheduled = list(&status["conditions"]).into_iter().find(|found| found["type"] == "PodScheduled");
    if let Some(scheduled) = scheduled.filter(|found| found["status"] == "False") {
        return said(&scheduled);
    }
    let containers = list(&status["containerStatuses"]);
    containers.iter().find_map(|container| {
        let (reason, message) = said(&container["state"]["waiting"])?;
        match reason.as_str() {
            // Every pod is in this for a moment.
            "ContainerCreating" | "PodInitializing" => None,
            "ErrImagePull" | "ImagePullBackOff" => {
                let image = container["image"].as_str().unwrap_or_default();
                Some((
                    "ImagePullBackOff".to_owned(),
                    format!(": image {image} cannot be pulled: see `image` and `imagePullSecrets`"),
                ))
            }
            "CrashLoopBackOff" => Some((reason, ": it ends again and again: see its log".to_owned())),
            _ => Some((reason, message)),
        }
    })
}
