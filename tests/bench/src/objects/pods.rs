//! Pods of about 11 KB, by the thousand: distinct in what is distinct in a cluster, alike in what a Deployment makes alike.

use fastrand::Rng;
use serde_json::{Value, json};

use super::managed_fields;

/// What the pods of one Deployment share.
struct Workload {
    app: String,
    namespace: String,
    image: String,
    digest: String,
    hash: String,
    owner: String,
    checksum: String,
    team: String,
}

/// Numbers that look random and are the same in every run.
struct Numbers(Rng);

/// This many pods, as JSON. Four belong to a workload, and forty to a node.
pub fn pods(count: usize) -> impl Iterator<Item = String> {
    spread(count, 4, 150)
}

/// The same, as a large cluster has them: ten belong to a workload, and the workloads are in 500 namespaces.
pub fn crowd(count: usize) -> impl Iterator<Item = String> {
    spread(count, 10, 500)
}

fn spread(count: usize, per_workload: usize, namespaces: usize) -> impl Iterator<Item = String> {
    let mut numbers = Numbers(Rng::with_seed(1));
    let nodes = count.div_ceil(40) as u64;
    let mut workload = Workload::new(0, namespaces, &mut numbers);
    (0..count).map(move |index| {
        if index % per_workload == 0 {
            workload = Workload::new(index / per_workload, namespaces, &mut numbers);
        }
        let node = numbers.below(nodes);
        pod(&workload, node, &mut numbers).to_string()
    })
}

fn pod(workload: &Workload, node: u64, numbers: &mut Numbers) -> Value {
    let Workload { app, namespace, image, digest, hash, owner, checksum, team } = workload;
    let second = numbers.below(20_000_000);
    let [created, started, ready] = [second, second + 3 + numbers.below(5), second + 9 + numbers.below(20)].map(time);
    let ip = format!("10.{}.{}.{}", numbers.below(250), numbers.below(250), numbers.below(250));
    let host_ip = format!("10.{}.{}.7", node / 250, node % 250);
    let token = format!("kube-api-access-{}", numbers.letters(5));
    let token_mount =
        json!({"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": true});
    let envoy = "docker.io/envoyproxy/envoy:v1.31.2";
    let envoy_digest = "3f1b2a6c9d8e7f60514233241506f7e8d9cabbac9d8e7f605142332415060f1e";
    let mut metadata = json!({
        "annotations": {"checksum/config": checksum, "prometheus.io/port": "9090", "prometheus.io/scrape": "true"},
        "generateName": format!("{app}-{hash}-"),
        "labels": {
            "app.kubernetes.io/component": "backend", "app.kubernetes.io/instance": app, "app.kubernetes.io/name": app,
            "pod-template-hash": hash, "team": team,
        },
        "ownerReferences": [{
            "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "ReplicaSet",
            "name": format!("{app}-{hash}"), "uid": owner,
        }],
    });
    let tolerations = ["not-ready", "unreachable"].map(|state| {
        let key = format!("node.kubernetes.io/{state}");
        json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300})
    });
    let spec = json!({
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}}, "topologyKey": "kubernetes.io/hostname",
            },
            "weight": 100,
        }]}},
        "automountServiceAccountToken": true,
        "containers": [
            {
                "args": ["--port=8080", "--metrics-port=9090", "--config=/etc/app/config.yaml"],
                "env": [
                    {"name": "LOG_LEVEL", "value": "info"},
                    {"name": "JAVA_OPTS", "value": "-XX:MaxRAMPercentage=75 -XX:+UseG1GC"},
                    {"name": "FEATURE_FLAGS", "value": "new-checkout,dark-mode"},
                    {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                ],
                "image": image, "imagePullPolicy": "IfNotPresent",
                "livenessProbe": probe("/healthz/live", 10),
                "name": app,
                "ports": [
                    {"containerPort": 8080, "name": "http", "protocol": "TCP"},
                    {"containerPort": 9090, "name": "metrics", "protocol": "TCP"},
                ],
                "readinessProbe": probe("/healthz/ready", 5),
                "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true,
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"mountPath": "/etc/app", "name": "config", "readOnly": true}, {"mountPath": "/tmp", "name": "tmp"},
                    token_mount,
                ],
            },
            {
                "image": envoy, "imagePullPolicy": "IfNotPresent", "name": "envoy",
                "resources": {"limits": {"cpu": "200m", "memory": "128Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [token_mount],
            },
        ],
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
        "initContainers": [{
            "command": ["/bin/migrate", "--up"], "image": image, "imagePullPolicy": "IfNotPresent", "name": "migrate",
            "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [token_mount],
        }],
        "nodeName": format!("ip-10-{}-{}-7.eu-central-1.compute.internal", node / 250, node % 250),
        "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {
            "fsGroup": 2000, "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccount": app, "serviceAccountName": app, "terminationGracePeriodSeconds": 30,
        "tolerations": tolerations,
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": format!("{app}-config")}, "name": "config"},
            {"emptyDir": {}, "name": "tmp"},
            {"name": token, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace",
                }]}},
            ]}},
        ],
    });
    let mut running = |name: &str, image: &str, digest: &str| {
        let state = json!({"running": {"startedAt": started}});
        container_status(name, image, digest, &numbers.hex(64), &state)
    };
    let containers = [running(app, image, digest), running("envoy", envoy, envoy_digest)];
    let id = numbers.hex(64);
    let terminated = json!({"terminated": {
        "containerID": format!("containerd://{id}"), "exitCode": 0, "finishedAt": started, "reason": "Completed",
        "startedAt": created,
    }});
    let conditions = [
        ("PodReadyToStartContainers", &started),
        ("Initialized", &started),
        ("Ready", &ready),
        ("ContainersReady", &ready),
        ("PodScheduled", &created),
    ]
    .map(|(kind, time)| {
        json!({"lastProbeTime": null, "lastTransitionTime": time, "observedGeneration": 1, "status": "True", "type": kind})
    });
    let status = json!({
        "conditions": conditions,
        "containerStatuses": containers, "hostIP": host_ip, "hostIPs": [{"ip": host_ip}],
        "initContainerStatuses": [container_status("migrate", image, digest, &id, &terminated)],
        "observedGeneration": 1, "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "qosClass": "Burstable",
        "startTime": created,
    });
    let made = json!({"metadata": metadata, "spec": spec});
    metadata["managedFields"] = json!([
        managed_fields::entry("kube-controller-manager", &created, None, &made),
        managed_fields::entry(
            "kubelet",
            &ready,
            Some("status"),
            &json!({"status": {
                "conditions": status["conditions"], "hostIP": 0, "hostIPs": 0, "phase": 0, "podIP": 0,
                "podIPs": status["podIPs"], "startTime": 0, "containerStatuses": 0, "initContainerStatuses": 0,
            }})
        ),
    ]);
    metadata["creationTimestamp"] = json!(created);
    metadata["generation"] = json!(1);
    metadata["name"] = json!(format!("{app}-{hash}-{}", numbers.letters(5)));
    metadata["namespace"] = json!(namespace);
    metadata["resourceVersion"] = json!((100_000_000 + numbers.below(900_000_000)).to_string());
    metadata["uid"] = json!(numbers.uid());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
}

fn probe(path: &str, delay: u32) -> Value {
    json!({
        "failureThreshold": 3, "httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": delay,
        "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
    })
}

fn container_status(name: &str, image: &str, digest: &str, id: &str, state: &Value) -> Value {
    let repository = image.rsplit_once(':').map_or(image, |(repository, _)| repository);
    json!({
        "containerID": format!("containerd://{id}"), "image": image, "imageID": format!("{repository}@sha256:{digest}"),
        "lastState": {}, "name": name, "ready": true,
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "restartCount": 0, "started": true, "state": state,
    })
}

fn time(second: u64) -> String {
    let (month, day) = (1 + second / 2_419_200 % 12, 1 + second / 86_400 % 28);
    format!("2026-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600 % 24, second / 60 % 60, second % 60)
}

impl Workload {
    fn new(index: usize, namespaces: usize, numbers: &mut Numbers) -> Self {
        let domain =
            ["checkout", "payments", "catalog", "search", "gateway", "billing", "identity", "inventory"][index % 8];
        let role = ["api", "worker", "web", "cron", "consumer"][index / 8 % 5];
        let version = format!("v1.{}.{}", numbers.below(40), numbers.below(20));
        Self {
            app: format!("{domain}-{role}-{}", index / 40),
            namespace: format!("team-{}", index % namespaces),
            image: format!("registry.acme.io/shop/{domain}-{role}:{version}"),
            digest: numbers.hex(64),
            hash: numbers.letters(10),
            owner: numbers.uid(),
            checksum: numbers.hex(64),
            team: format!("team-{}", index % 40),
        }
    }
}

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[self.below(16) as usize])).collect()
    }

    /// As Kubernetes makes names: no vowels, so that no words come up.
    fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b"bcdfghjklmnpqrstvwxz2456789"[self.below(27) as usize])).collect()
    }

    fn uid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|digits| self.hex(digits)).join("-")
    }
}
