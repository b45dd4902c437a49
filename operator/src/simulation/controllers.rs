//! What others do in a cluster: garbage collection, Deployments, pods and their kubelets, cert-manager.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{
    certificates::supplied,
    trust,
    world::{Time, World},
};
use crate::{
    names::dns_names,
    object::{Key, Kind, Object},
};

/// A pod beside its object.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    /// When it can run at the earliest.
    starts: Time,
    /// What the kubelet has mounted of the Secret with the certificate, by its version.
    mounted: Option<String>,
    /// When it mounts what is there by then.
    mounts: Option<Time>,
    /// The certificate that it shows, in PEM. None if it does not run.
    pub(super) shown: Option<Vec<u8>>,
    /// Until when it is dead.
    pub(super) dead_until: Time,
    /// When it is gone, if it was told to end.
    pub(super) ends: Option<Time>,
}

/// The pods of a Deployment that have one template.
#[derive(Clone, Debug)]
pub(super) struct ReplicaSet {
    hash: String,
    template: Value,
    /// How many pods there should be.
    wanted: usize,
}

/// How long a pod takes to start, to end, and to see that a Secret has changed, at most.
const START: Time = 9;
const END: Time = 15;
const MOUNT: Time = 75;

impl World {
    /// One look at everything.
    pub(super) fn act(&mut self) {
        self.end_namespaces();
        self.collect_garbage();
        self.roll_out();
        self.run_pods();
        self.issue();
    }

    /// What is in a namespace goes before it.
    fn end_namespaces(&mut self) {
        for namespace in self.of_kind(Kind::Namespace).into_iter().filter(|found| found.is_terminating()) {
            let name = Some(namespace.key.name.clone());
            let inside: Vec<Key> = self.objects.keys().filter(|key| key.namespace == name).cloned().collect();
            if inside.is_empty() {
                self.let_go(&namespace.key, "kubernetes");
            }
            for key in inside {
                if !self.objects[&key].is_terminating() {
                    self.delete(&key, false);
                }
            }
        }
    }

    /// An object goes when all of its owners are gone. Of owners that wait for it to go, it goes with them if it has no others.
    fn collect_garbage(&mut self) {
        let owners: HashMap<String, bool> =
            self.objects.values().map(|object| (object.uid().to_owned(), is_foreground(object))).collect();
        for object in self.objects.values().cloned().collect::<Vec<_>>() {
            let Some(references) =
                object.value["metadata"]["ownerReferences"].as_array().filter(|found| !found.is_empty())
            else {
                continue;
            };
            let (mut solid, mut waiting) = (Vec::new(), Vec::new());
            for reference in references {
                match owners.get(reference["uid"].as_str().unwrap_or_default()) {
                    Some(true) => waiting.push(reference.clone()),
                    Some(false) => solid.push(reference.clone()),
                    None => {}
                }
            }
            let waits = waiting.iter().any(|reference| reference["blockOwnerDeletion"] == true);
            if !solid.is_empty() {
                if solid.len() < references.len() && (waiting.is_empty() || waits) {
                    self.edit(&object.key, |value| value["metadata"]["ownerReferences"] = solid.into());
                }
            } else if !object.is_terminating() && (waiting.is_empty() || waits) {
                self.delete(&object.key, false);
            }
        }
        for owner in self.objects.values().filter(|owner| is_foreground(owner)).cloned().collect::<Vec<_>>() {
            let blocks = |object: &Object| {
                let references = object.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                references.into_iter().any(|found| found["uid"] == *owner.uid() && found["blockOwnerDeletion"] == true)
            };
            if !self.objects.values().any(|object| blocks(object)) {
                self.let_go(&owner.key, "foregroundDeletion");
            }
        }
    }

    /// Deployments have the pods that they say, and replace them as they say.
    fn roll_out(&mut self) {
        let deployments = self.of_kind(Kind::Deployment);
        self.replica_sets.retain(|uid, _| deployments.iter().any(|deployment| deployment.uid() == uid));
        for deployment in deployments {
            let pods: Vec<Arc<Object>> = self
                .of_kind(Kind::Pod)
                .into_iter()
                .filter(|pod| is_owned(pod, &deployment) && !pod.is_terminating())
                .collect();
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            let hash = hash_of(&deployment.value["spec"]["template"]);
            let updated = pods.iter().filter(|pod| hash_of_pod(pod) == Some(&hash)).count();
            if !deployment.is_terminating() {
                let mut sets = self.replica_sets.remove(deployment.uid()).unwrap_or_default();
                scale(&mut sets, &deployment, &hash, &pods);
                for set in &sets {
                    let is_of_set = |pod: &&Arc<Object>| hash_of_pod(pod) == Some(&set.hash);
                    // Those that are not ready go first.
                    let mut there: Vec<&Arc<Object>> = pods.iter().filter(is_of_set).collect();
                    there.sort_by_key(|pod| !is_ready(pod));
                    for pod in there.iter().skip(set.wanted) {
                        self.delete(&pod.key, false);
                    }
                    for _ in there.len()..set.wanted {
                        self.start_pod(&deployment, set);
                    }
                }
                self.replica_sets.insert(deployment.uid().to_owned(), sets);
            }
            let status = json!({
                "observedGeneration": deployment.value["metadata"]["generation"],
                "replicas": pods.len(),
                "updatedReplicas": updated,
                "readyReplicas": ready,
            });
            self.set_status(&deployment, status);
        }
    }

    fn set_status(&mut self, object: &Object, status: Value) {
        if object.value["status"] != status {
            self.edit(&object.key, |value| value["status"] = status);
        }
    }

    fn start_pod(&mut self, deployment: &Object, set: &ReplicaSet) {
        let ReplicaSet { hash, template, .. } = set;
        let namespace = deployment.key.namespace.clone().unwrap();
        let account = template["spec"]["serviceAccountName"].as_str().unwrap_or_default();
        if self.get(&Key::namespaced(Kind::ServiceAccount, &namespace, account)).is_none() {
            return;
        }
        let name = format!("{}-{hash}-{}", deployment.key.name, self.random.u32(..));
        let mut labels = template["metadata"]["labels"].clone();
        labels["pod-template-hash"] = hash.as_str().into();
        let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.key.name, "uid": deployment.uid(), "blockOwnerDeletion": true });
        let pod = self.make(
            Kind::Pod,
            json!({
                "metadata": { "name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner], "finalizers": ["kubernetes"] },
                "spec": template["spec"],
                "status": { "phase": "Pending" },
            }),
        );
        let starts = self.elapsed + 1 + self.delay(START);
        let state = Pod { starts, mounted: None, mounts: None, shown: None, dead_until: 0, ends: None };
        self.pods.insert(pod.uid().to_owned(), state);
    }

    /// Kubelets start pods, bring them what they mount, and end them.
    fn run_pods(&mut self) {
        for pod in self.of_kind(Kind::Pod) {
            let mut state = self.pods[pod.uid()].clone();
            if pod.is_terminating() {
                let ends = match state.ends {
                    Some(ends) => ends,
                    None => self.elapsed + 6 + self.delay(END),
                };
                state.ends = Some(ends);
                if ends <= self.elapsed {
                    self.pods.remove(pod.uid());
                    self.let_go(&pod.key, "kubernetes");
                    continue;
                }
            }
            let problem = self.keep_running(&pod, &mut state);
            let is_up = state.shown.is_some() && state.dead_until <= self.elapsed;
            let waiting = problem
                .filter(|_| !is_up)
                .map(|reason| json!([{ "name": "engine", "state": { "waiting": { "reason": reason } } }]));
            let ready = if is_up && !pod.is_terminating() { "True" } else { "False" };
            let mut status = json!({
                "phase": if is_up { "Running" } else { "Pending" },
                "podIP": "10.1.0.1",
                "conditions": [{ "type": "Ready", "status": ready }],
            });
            if let Some(waiting) = waiting {
                status["containerStatuses"] = waiting;
            }
            self.pods.insert(pod.uid().to_owned(), state);
            self.set_status(&pod, status);
        }
    }

    /// What a pod has to have before it runs, and what it mounts while it does. Returns why it does not run.
    fn keep_running(&mut self, pod: &Object, state: &mut Pod) -> Option<&'static str> {
        let spec = &pod.value["spec"];
        if spec["containers"][0]["image"].as_str().is_some_and(|image| image.contains("missing")) {
            return Some("ImagePullBackOff");
        }
        if state.starts > self.elapsed || state.dead_until > self.elapsed {
            return Some("ContainerCreating");
        }
        let namespace = pod.key.namespace.as_deref().unwrap();
        for volume in spec["volumes"].as_array().into_iter().flatten() {
            let name = volume["configMap"]["name"].as_str().filter(|_| volume["configMap"]["optional"] != true);
            let is_missing = |name: &str| self.get(&Key::namespaced(Kind::ConfigMap, namespace, name)).is_none();
            if state.shown.is_none() && name.is_some_and(is_missing) {
                return Some("ContainerCreating");
            }
        }
        let volume = spec["volumes"].as_array().into_iter().flatten().find(|volume| volume["name"] == "tls");
        let key = Key::namespaced(Kind::Secret, namespace, volume?["secret"]["secretName"].as_str()?);
        let Some(secret) = self.get(&key) else {
            state.mounts = None;
            return Some("ContainerCreating");
        };
        let version = secret.resource_version().to_owned();
        if state.mounted.as_ref() == Some(&version) {
            return None;
        }
        let mounts = match state.mounted {
            None => self.elapsed,
            Some(_) => match state.mounts {
                Some(mounts) => mounts,
                None => self.elapsed + 1 + self.delay(MOUNT),
            },
        };
        state.mounts = Some(mounts).filter(|mounts| *mounts > self.elapsed);
        if state.mounts.is_some() {
            return None;
        }
        let certificate = data_of(&secret).remove("tls.crt").filter(|shown| trust::end(shown).is_some());
        let now = self.now().as_second();
        let is_good = |shown: &Vec<u8>| trust::end(shown).is_some_and(|end| end > now);
        state.mounted = Some(version);
        if let Some(certificate) = certificate
            && (is_good(&certificate) || !state.shown.as_ref().is_some_and(is_good))
        {
            state.shown = Some(certificate);
        }
        None
    }

    /// cert-manager writes what it is asked for.
    fn issue(&mut self) {
        for request in self.of_kind(Kind::Certificate).into_iter().filter(|found| !found.is_terminating()) {
            let spec = &request.value["spec"];
            let namespace = request.key.namespace.clone().unwrap();
            let name = spec["secretName"].as_str().unwrap_or_default();
            let key = Key::namespaced(Kind::Secret, &namespace, name);
            let created: jiff::Timestamp = request.meta("creationTimestamp").parse().unwrap();
            let is_issued =
                |secret: &Object| secret.annotation("cert-manager.io/certificate-name") == Some(&request.key.name);
            let labels = spec["secretTemplate"]["labels"].clone();
            let instance = request.label(crate::names::INSTANCE_LABEL).unwrap_or_default();
            if let Some(secret) = self.get(&key).filter(|secret| is_issued(secret)) {
                let mut wanted = secret.value["metadata"]["labels"].as_object().cloned().unwrap_or_default();
                wanted.extend(labels.as_object().cloned().unwrap_or_default());
                if secret.value["metadata"]["labels"] != Value::Object(wanted.clone()) {
                    self.edit(&key, |value| value["metadata"]["labels"] = wanted.into());
                }
                // What is no certificate with its key is issued anew.
                let is_whole = |name: &str| secret.value["data"][name].as_str().is_some_and(|text| text.len() > 100);
                if !["tls.crt", "tls.key"].into_iter().all(is_whole) {
                    let data = supplied(&dns_names(instance, &namespace), self.now());
                    self.edit(&key, |value| value["data"] = data);
                }
                continue;
            }
            if self.now().duration_since(created).as_secs() < 3 {
                continue;
            }
            let data = supplied(&dns_names(instance, &namespace), self.now());
            let annotations = json!({ "cert-manager.io/certificate-name": request.key.name });
            self.make(Kind::Secret, json!({ "metadata": { "name": name, "namespace": namespace, "labels": labels, "annotations": annotations }, "type": "kubernetes.io/tls", "data": data }));
        }
    }

    /// The next moment at which somebody but the operator does something by themselves.
    pub(super) fn next_moment(&self) -> Option<Time> {
        let moments = self.pods.values().flat_map(|pod| [Some(pod.starts), pod.mounts, Some(pod.dead_until), pod.ends]);
        moments.flatten().filter(|moment| *moment > self.elapsed).min()
    }
}

/// How many pods there should be of each template: new ones first as far as there is room, and old ones go as new ones are ready. An
/// old set whose successor never becomes ready keeps its pods, and makes them anew if somebody kills them.
fn scale(sets: &mut Vec<ReplicaSet>, deployment: &Object, hash: &str, pods: &[Arc<Object>]) {
    let spec = &deployment.value["spec"];
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or(1)).unwrap();
    let rolling = &spec["strategy"]["rollingUpdate"];
    let (replicas, surge) = (number(&spec["replicas"]), number(&rolling["maxSurge"]));
    let least = replicas.saturating_sub(number(&rolling["maxUnavailable"]));
    if !sets.iter().any(|set| set.hash == hash) {
        sets.push(ReplicaSet { hash: hash.to_owned(), template: spec["template"].clone(), wanted: 0 });
    }
    let ready =
        |set: &ReplicaSet| pods.iter().filter(|pod| hash_of_pod(pod) == Some(&set.hash) && is_ready(pod)).count();
    let total: usize = sets.iter().map(|set| set.wanted).sum();
    for new in sets.iter_mut().filter(|set| set.hash == hash) {
        new.wanted = (new.wanted + (replicas + surge).saturating_sub(total)).min(replicas);
    }
    let total: usize = sets.iter().map(|set| set.wanted).sum();
    let all_ready: usize = sets.iter().map(&ready).sum();
    let unready_new: usize =
        sets.iter().filter(|set| set.hash == hash).map(|set| set.wanted.saturating_sub(ready(set))).sum();
    let mut may_go = total.saturating_sub(least + unready_new);
    let mut ready_may_go = all_ready.saturating_sub(least);
    for old in sets.iter_mut().filter(|set| set.hash != hash) {
        let unready = old.wanted.saturating_sub(ready(old)).min(may_go);
        let healthy = (old.wanted - unready).min(ready_may_go).min(may_go - unready);
        old.wanted -= unready + healthy;
        may_go -= unready + healthy;
        ready_may_go -= healthy;
    }
    let has_pods = |set: &ReplicaSet| pods.iter().any(|pod| hash_of_pod(pod) == Some(&set.hash));
    sets.retain(|set| set.wanted > 0 || set.hash == hash || has_pods(set));
}

fn hash_of_pod(pod: &Object) -> Option<&str> {
    pod.label("pod-template-hash")
}

fn is_foreground(owner: &Object) -> bool {
    let finalizers = owner.value["metadata"]["finalizers"].as_array().into_iter().flatten();
    owner.is_terminating() && finalizers.into_iter().any(|name| name == "foregroundDeletion")
}

fn is_owned(object: &Object, owner: &Object) -> bool {
    let references = object.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references.into_iter().any(|reference| reference["uid"] == *owner.uid())
}

/// Whether a pod is ready, as its status says.
pub(super) fn is_ready(pod: &Object) -> bool {
    !pod.is_terminating() && pod.value["status"]["conditions"][0]["status"] == "True"
}

fn hash_of(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}

/// The data of a Secret.
pub(super) fn data_of(secret: &Object) -> BTreeMap<String, Vec<u8>> {
    let data: BTreeMap<String, ByteString> = serde_json::from_value(secret.value["data"].clone()).unwrap_or_default();
    data.into_iter().map(|(name, bytes)| (name, bytes.0)).collect()
}
