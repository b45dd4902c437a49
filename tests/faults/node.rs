//! A node without containers: each pod of an engine is the real program on an address of loopback, with the arguments, the files and the
//! account that its template says. Deployments, ReplicaSets and the scheduler are Kubernetes' own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Node as NodeObject, Pod, Secret, Service, ServiceAccount, Volume};
use k8s_openapi::api::{coordination::v1::Lease, discovery::v1::EndpointSlice};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use portal_operator::names::INSTANCE_LABEL;
use portal_test_kit::Cluster;
use portal_test_kit::held::dying_with_us;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::NAMESPACE;
use super::network::{Network, Place};

/// Three nodes of which one program is the kubelet, and the network. All ends when it is dropped.
pub(super) struct Nodes {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    _network: Network,
}

#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    /// Pods whose program is to be killed, by name.
    doomed: Mutex<Vec<String>>,
    /// What the programs said that are no longer there.
    last_words: Mutex<Vec<String>>,
}

struct Kubelet {
    cluster: Arc<Cluster>,
    client: Client,
    shared: Arc<Shared>,
    pods: BTreeMap<String, Running>,
    slices: BTreeMap<String, Value>,
}

/// A pod that was given to one of the nodes.
struct Running {
    place: Place,
    folder: TempDir,
    child: Option<Child>,
    restarts: u32,
    is_ready: bool,
    asked: Option<Instant>,
    /// How often it was asked in vain.
    misses: u32,
    is_told_to_end: bool,
    /// What its files hold, by the path in the container.
    files: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    token: Option<String>,
    /// The status that was written last.
    told: Value,
}

const NODES: [&str; 3] = ["one", "two", "three"];

/// How often it looks.
const TICK: Duration = Duration::from_millis(150);

impl Nodes {
    pub(super) fn start(cluster: &Arc<Cluster>) -> Nodes {
        let shared = Arc::<Shared>::default();
        let network = Network::start(&cluster.pods_socket());
        let threads = [
            // Of its own: a node that is busy is alive.
            run({
                let (cluster, shared) = (Arc::clone(cluster), Arc::clone(&shared));
                async move { beat(&cluster.client().await, &shared).await }
            }),
            run({
                let (cluster, shared) = (Arc::clone(cluster), Arc::clone(&shared));
                async move {
                    let client = cluster.client().await;
                    let (pods, slices) = Default::default();
                    Kubelet { cluster, client, shared, pods, slices }.run().await;
                }
            }),
        ];
        Nodes { shared, threads: threads.into(), _network: network }
    }

    /// Kills the program of a pod, as a machine does that has no memory left.
    pub(super) fn kill(&self, pod: &str) {
        self.shared.doomed.lock().unwrap().push(pod.to_owned());
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        if thread::panicking() {
            let words = self.shared.last_words.lock().unwrap();
            eprintln!("--- the last words of engines\n{}", words[words.len().saturating_sub(5)..].join("\n"));
        }
    }
}

/// Runs something on a thread of its own.
fn run(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work);
    })
}

/// The nodes are there, and say that they are alive.
async fn beat(client: &Client, shared: &Shared) {
    let nodes: Api<NodeObject> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    for name in NODES {
        let amounts = json!({ "cpu": "640", "memory": "1000Gi", "pods": "500" });
        let labels = json!({ "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" });
        let ready = json!({ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": now(), "lastTransitionTime": now() });
        let status = json!({ "capacity": amounts, "allocatable": amounts, "conditions": [ready] });
        let node = json!({ "metadata": { "name": name, "labels": labels }, "status": status });
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }
    while !shared.ends.load(Ordering::SeqCst) {
        for name in NODES {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name },
                "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", Timestamp::now()) },
            });
            let beaten = leases.patch(name, &PatchParams::apply("node").force(), &Patch::Apply(lease)).await;
            // What a controller would do two seconds later.
            let patch = json!({ "spec": { "taints": null } });
            let freed = nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
            for error in beaten.err().into_iter().chain(freed.err()) {
                eprintln!("the node {name}: {error}");
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

impl Kubelet {
    async fn run(&mut self) {
        while !self.shared.ends.load(Ordering::SeqCst) {
            if let Err(error) = self.look().await {
                eprintln!("the nodes: {error}");
            }
            tokio::time::sleep(TICK).await;
        }
    }

    async fn look(&mut self) -> kube::Result<()> {
        let given = ListParams::default().labels(INSTANCE_LABEL).fields("spec.nodeName!=");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = pods.list(&given).await?.items;
        let secrets = self.list::<Secret>().await?;
        let config_maps = self.list::<ConfigMap>().await?;
        for name in std::mem::take(&mut *self.shared.doomed.lock().unwrap()) {
            let uid = found.iter().find(|pod| pod.name_any() == name).and_then(ResourceExt::uid);
            if let Some(child) = uid.and_then(|uid| self.pods.get_mut(&uid)?.child.as_mut()) {
                let _ = child.kill();
            }
        }
        let uids: Vec<String> = found.iter().filter_map(ResourceExt::uid).collect();
        self.pods.retain(|uid, running| uids.contains(uid) || running.forget(&self.shared));
        self.ask();
        for pod in &found {
            let uid = pod.uid().unwrap_or_default();
            let mut running = self.pods.remove(&uid).unwrap_or_else(Running::new);
            let done = match pod.metadata.deletion_timestamp {
                Some(_) => running.end(pod, &pods, &self.shared).await,
                None => running.go_on(self, pod, &pods, &secrets, &config_maps).await,
            };
            self.pods.insert(uid, running);
            done?;
        }
        self.connect(&found).await
    }

    /// Asks pods whether they are ready, all at once. One that was ready is believed to be until it was asked twice in vain.
    fn ask(&mut self) {
        let is_due = |running: &&mut Running| {
            let often = if running.is_ready { Duration::from_secs(1) } else { Duration::ZERO };
            running.child.is_some() && running.asked.is_none_or(|asked| asked.elapsed() >= often)
        };
        thread::scope(|scope| {
            for running in self.pods.values_mut().filter(is_due) {
                scope.spawn(|| {
                    running.misses = if is_ready(running.place) { 0 } else { running.misses + 1 };
                    running.is_ready = running.misses == 0 || (running.is_ready && running.misses < 2);
                    running.asked = Some(Instant::now());
                });
            }
        });
    }

    async fn list<K>(&self) -> kube::Result<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        Ok(Api::<K>::namespaced(self.client.clone(), NAMESPACE).list(&ListParams::default()).await?.items)
    }

    /// The Service of each webhook leads to the pods that are ready. Of the Services over all pods nobody is told: engines would look for
    /// each other where nobody is.
    async fn connect(&mut self, pods: &[Pod]) -> kube::Result<()> {
        let services = self.list::<Service>().await?;
        let mut wanted = BTreeMap::new();
        for service in services.iter().filter(|service| !service.name_any().ends_with("-pods")) {
            let spec = service.spec.clone().unwrap_or_default();
            let Some(selector) = spec.selector.filter(|selector| !selector.is_empty()) else { continue };
            let is_selected = |pod: &&Pod| selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value));
            for pod in pods.iter().filter(is_selected).filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                let Some(running) = self.pods.get(&pod.uid().unwrap_or_default()).filter(|running| running.is_ready)
                else {
                    continue;
                };
                let name = format!(
                    "{}-{:.8}-{:x}",
                    service.name_any(),
                    service.uid().unwrap_or_default(),
                    running.place.known().to_bits()
                );
                wanted.insert(name.clone(), slice(&name, service, pod, running.place));
            }
        }
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), NAMESPACE);
        for name in self.slices.keys().filter(|name| !wanted.contains_key(*name)) {
            gone(slices.delete(name, &DeleteParams::default()).await)?;
        }
        for (name, slice) in wanted.iter().filter(|(name, slice)| self.slices.get(*name) != Some(slice)) {
            slices.patch(name, &PatchParams::apply("node").force(), &Patch::Apply(slice)).await?;
        }
        self.slices = wanted;
        Ok(())
    }
}

impl Running {
    fn new() -> Running {
        Running {
            place: Place::free(),
            folder: tempfile::tempdir().unwrap(),
            child: None,
            restarts: 0,
            is_ready: false,
            asked: None,
            misses: 0,
            is_told_to_end: false,
            files: BTreeMap::new(),
            token: None,
            told: Value::Null,
        }
    }

    /// Sees to it that the program runs with the files that it should have, and tells how it is.
    async fn go_on(
        &mut self,
        kubelet: &Kubelet,
        pod: &Pod,
        pods: &Api<Pod>,
        secrets: &[Secret],
        config_maps: &[ConfigMap],
    ) -> kube::Result<()> {
        let spec = pod.spec.clone().unwrap_or_default();
        let container = &spec.containers[0];
        if self.token.is_none() {
            self.token = Some(
                token(&kubelet.client, &spec.service_account_name.clone().unwrap_or_default(), &spec.volumes).await?,
            );
        }
        for mount in container.volume_mounts.iter().flatten() {
            let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
            // The token for clients is mounted by Kubernetes, and is in the kubeconfig here.
            let Some(volume) = volume.filter(|volume| !volume.name.starts_with("kube-api-access")) else { continue };
            let Some(files) = self.files_of(volume, secrets, config_maps) else { return Ok(()) };
            if self.files.get(&mount.mount_path) != Some(&files) {
                write(&self.path(&mount.mount_path), &files);
                self.files.insert(mount.mount_path.clone(), files);
            }
        }
        let has_ended = self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
        if has_ended {
            self.restarts += u32::from(self.child.is_some());
            self.start(kubelet, pod, container.args.as_deref().unwrap_or_default());
        }
        self.is_ready &= !has_ended;
        let status = self.status(pod);
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut told = conditions.filter(|found| found.type_ == "Ready").map(|found| found.status == "True");
        // A controller says that pods are not ready of whose node it has not heard for long.
        if status != self.told || told.next() != Some(self.is_ready) {
            let patch = json!({ "status": status });
            gone(pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)?;
            self.told = status;
        }
        Ok(())
    }

    fn start(&mut self, kubelet: &Kubelet, pod: &Pod, arguments: &[String]) {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).unwrap_or_default();
        let account = format!("system:serviceaccount:{NAMESPACE}:{account}");
        let kubeconfig = kubelet.cluster.kubeconfig_as(&account, &["system:serviceaccounts", "system:authenticated"]);
        let root = self.folder.path().to_str().unwrap();
        let address = self.place.own().to_string();
        let arguments = arguments.iter().map(|argument| {
            let argument = argument.replace("[::]", &address).replace("$$", "$");
            argument
                .replace("=/etc/portal/", &format!("={root}/etc/portal/"))
                .replace("=/var/run/", &format!("={root}/var/run/"))
        });
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("/log")).unwrap();
        let mut command = dying_with_us(env!("CARGO_BIN_EXE_portal"));
        command.args(arguments).env_clear().env("KUBECONFIG", kubeconfig).env("PORTAL_ADDRESS", address);
        command.env("PORTAL_IDENTITY", pod.name_any()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        self.child = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    /// A pod that was deleted ends as the kubelet ends it, and is gone when its program is.
    async fn end(&mut self, pod: &Pod, pods: &Api<Pod>, shared: &Shared) -> kube::Result<()> {
        self.is_ready = false;
        if let Some(child) = &mut self.child
            && child.try_wait().unwrap().is_none()
        {
            if !self.is_told_to_end {
                let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
                self.is_told_to_end = true;
            }
            return Ok(());
        }
        self.forget(shared);
        let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
        let at_once = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default().grace_period(0) };
        gone(pods.delete(&pod.name_any(), &at_once).await).map(drop)
    }

    /// Ends the program of a pod that is no longer there.
    fn forget(&mut self, shared: &Shared) -> bool {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let log = fs::read_to_string(self.path("/log")).unwrap_or_default();
            shared.last_words.lock().unwrap().push(log.lines().rev().take(5).collect::<Vec<_>>().join("\n"));
        }
        false
    }

    /// What a volume holds. Nothing, if it is not there and has to be.
    fn files_of(
        &self,
        volume: &Volume,
        secrets: &[Secret],
        config_maps: &[ConfigMap],
    ) -> Option<BTreeMap<String, Vec<u8>>> {
        let only = |items: &Option<Vec<k8s_openapi::api::core::v1::KeyToPath>>, name: &String| {
            items.as_ref().is_none_or(|items| items.iter().any(|item| item.key == *name))
        };
        if let Some(source) = &volume.secret {
            let secret = secrets.iter().find(|secret| secret.metadata.name == source.secret_name)?;
            let data = secret.data.clone().unwrap_or_default().into_iter().map(|(name, bytes)| (name, bytes.0));
            return Some(data.filter(|(name, _)| only(&source.items, name)).collect());
        }
        if let Some(source) = &volume.config_map {
            let found = config_maps.iter().find(|found| found.name_any() == source.name);
            let Some(found) = found else { return source.optional.unwrap_or_default().then(BTreeMap::new) };
            let data = found.data.clone().unwrap_or_default().into_iter().map(|(name, text)| (name, text.into_bytes()));
            return Some(data.filter(|(name, _)| only(&source.items, name)).collect());
        }
        Some(BTreeMap::from([("token".to_owned(), self.token.clone().unwrap_or_default().into_bytes())]))
    }

    /// Where a path of the container is.
    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn status(&self, pod: &Pod) -> Value {
        let since = self.told["startTime"].as_str().map_or_else(now, str::to_owned);
        let was_ready = self.told["conditions"][0]["status"] == if self.is_ready { "True" } else { "False" };
        let changed = self.told["conditions"][0]["lastTransitionTime"].as_str().filter(|_| was_ready);
        let changed = changed.map_or_else(now, str::to_owned);
        let condition = |name: &str, is: bool| json!({ "type": name, "status": if is { "True" } else { "False" }, "lastTransitionTime": changed });
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let address = self.place.own().to_string();
        json!({
            "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }], "startTime": since,
            "conditions": [
                condition("Ready", self.is_ready), condition("ContainersReady", self.is_ready),
                condition("Initialized", true), condition("PodScheduled", true),
            ],
            "containerStatuses": [{
                "name": container.name, "image": container.image, "imageID": "", "ready": self.is_ready, "started": true,
                "restartCount": self.restarts, "state": { "running": { "startedAt": since } },
            }],
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The token that a volume asks for.
async fn token(client: &Client, account: &str, volumes: &Option<Vec<Volume>>) -> kube::Result<String> {
    let sources =
        volumes.iter().flatten().filter(|volume| volume.name == "token").filter_map(|volume| volume.projected.as_ref());
    let mut asked = sources
        .flat_map(|projected| projected.sources.iter().flatten())
        .filter_map(|source| source.service_account_token.as_ref());
    let Some(asked) = asked.next() else { return Ok(String::new()) };
    let audiences = asked.audience.clone().into_iter().collect();
    let spec =
        TokenRequestSpec { audiences, expiration_seconds: asked.expiration_seconds, ..TokenRequestSpec::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    Ok(answer.status.map(|status| status.token).unwrap_or_default())
}

/// Writes the files of a volume, all at once: by a link, as the kubelet does.
fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    fs::create_dir_all(folder).unwrap();
    let version = tempfile::Builder::new().prefix("..").tempdir_in(folder).unwrap().keep();
    for (name, bytes) in files {
        fs::write(version.join(name), bytes).unwrap();
        // There from the second time on.
        let _ = symlink(Path::new("..data").join(name), folder.join(name));
    }
    symlink(version.file_name().map(PathBuf::from).unwrap(), folder.join("..next")).unwrap();
    fs::rename(folder.join("..next"), folder.join("..data")).unwrap();
}

fn slice(name: &str, service: &Service, pod: &Pod, place: Place) -> Value {
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let ports = container
        .ports
        .iter()
        .flatten()
        .map(|port| json!({ "name": port.name, "port": port.container_port, "protocol": "TCP" }));
    let owner = service.controller_owner_ref(&()).unwrap();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "ownerReferences": [owner],
            "labels": { "kubernetes.io/service-name": service.name_any(), "endpointslice.kubernetes.io/managed-by": "nodes" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [place.known().to_string()], "conditions": { "ready": true } }],
        "ports": ports.collect::<Vec<_>>(),
    })
}

/// Whether a pod says that it is ready.
fn is_ready(place: Place) -> bool {
    let ask = || {
        let address = (place.own(), 8080).into();
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    };
    ask().is_some()
}

/// What is not there any more needs nothing.
fn gone<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(None),
        answer => answer.map(Some),
    }
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}
