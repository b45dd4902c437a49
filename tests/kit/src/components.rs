//! What each component is told: certificates, kubeconfigs, configuration files and command lines.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::certificates::{Authority, Pair, signing_key};
use crate::node;
use crate::state::{Size, State};

/// The image of the container that holds a pod's namespaces.
pub const PAUSE_IMAGE: &str = "localhost/portal-pause:test";

/// The name of the one node.
pub const NODE: &str = "node";

const SERVICE_RANGE: &str = "10.96.0.0/16";
const SERVICE_ADDRESS: &str = "10.96.0.1";
const POD_RANGE: &str = "10.88.0.0/16";

/// Ports on loopback. In a cluster with a network namespace of its own any will do.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The API server's.
    pub api: u16,
    /// Where the API server reaches etcd.
    pub etcd: u16,
    /// Where other members of etcd would reach it.
    pub etcd_peer: u16,
}

/// Makes every certificate of a cluster.
pub fn write_certificates(state: &State) -> anyhow::Result<()> {
    let authority = Authority::new("portal-test")?;
    let front_proxy = Authority::new("portal-test-front-proxy")?;
    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        SERVICE_ADDRESS,
        node::ADDRESS,
    ];
    let node_user = format!("system:node:{NODE}");
    let masters = Some("system:masters");
    for (name, pair) in [
        ("ca", authority.pair()),
        ("front-proxy-ca", front_proxy.pair()),
        ("front-proxy", front_proxy.client("front-proxy", None)?),
        ("kube-apiserver", authority.server("kube-apiserver", &names)?),
        ("kubelet-client", authority.client("kube-apiserver", masters)?),
        ("kubelet-server", authority.server(&node_user, &[NODE, node::ADDRESS, "127.0.0.1"])?),
        ("admin", authority.client("admin", masters)?),
        ("kube-controller-manager", authority.client("system:kube-controller-manager", None)?),
        ("kube-scheduler", authority.client("system:kube-scheduler", None)?),
        ("kube-proxy", authority.client("system:kube-proxy", None)?),
        ("kubelet", authority.client(&node_user, Some("system:nodes"))?),
    ] {
        write_pair(state, name, &pair)?;
    }
    let (private, public) = signing_key()?;
    fs::write(state.pki().join("service-accounts.key"), private)?;
    fs::write(state.pki().join("service-accounts.pub"), public)?;
    Ok(())
}

/// Writes a kubeconfig of one of the cluster's own users.
pub fn write_kubeconfig(state: &State, file: &str, user: &str, port: u16) -> anyhow::Result<PathBuf> {
    let server = format!("https://127.0.0.1:{port}");
    let cluster = json!({"server": server, "certificate-authority-data": read_pki(state, "ca.crt")?});
    let path = state.kubeconfig(file);
    write_json(&path, &kubeconfig(cluster, credentials(state, user)?))?;
    Ok(path)
}

/// Writes a kubeconfig for a user that a test makes up: the administrator acts in that user's name, which the API server
/// treats like the user's own requests.
pub fn write_kubeconfig_as(state: &State, file: &str, user: &str, groups: &[&str]) -> anyhow::Result<PathBuf> {
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(state.kubeconfig("admin"))?)?;
    let credentials = &mut kubeconfig["users"][0]["user"];
    credentials["as"] = json!(user);
    credentials["as-groups"] = json!(groups);
    let path = state.kubeconfig(file);
    write_json(&path, &kubeconfig)?;
    Ok(path)
}

/// Writes the kubeconfig of a proxy that speaks for others: it reaches the API server where the administrator does.
pub fn write_front_proxy_kubeconfig(state: &State) -> anyhow::Result<PathBuf> {
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(state.kubeconfig("admin"))?)?;
    kubeconfig["users"][0]["user"] = credentials(state, "front-proxy")?;
    let path = state.kubeconfig("front-proxy");
    write_json(&path, &kubeconfig)?;
    Ok(path)
}

/// Writes a kubeconfig for a server on loopback that knows its clients by their port.
pub fn write_plain_kubeconfig(state: &State, file: &str, address: SocketAddr) -> anyhow::Result<PathBuf> {
    let path = state.kubeconfig(file);
    write_json(&path, &kubeconfig(json!({"server": format!("http://{address}")}), json!({})))?;
    Ok(path)
}

/// One etcd member.
pub fn etcd(state: &State, ports: Ports) -> Vec<String> {
    vec![
        format!("--data-dir={}", state.root().join("etcd").display()),
        format!("--client-url=http://127.0.0.1:{}", ports.etcd),
        format!("--peer-url=http://127.0.0.1:{}", ports.etcd_peer),
    ]
}

/// The API server, with the record of requests that tests read.
pub fn api_server(state: &State, ports: Ports, size: Size) -> anyhow::Result<Vec<String>> {
    let policy = state.root().join("audit-policy.json");
    write_json(&policy, &audit_policy())?;
    let pki = |file: &str| state.pki().join(file).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--secure-port={}", ports.api),
        format!("--bind-address={}", if size == Size::Full { "0.0.0.0" } else { "127.0.0.1" }),
        // Below *full* nobody ever connects there; it only must not be loopback, which the endpoints may not name.
        format!("--advertise-address={}", node::ADDRESS),
        format!("--tls-cert-file={}", pki("kube-apiserver.crt")),
        format!("--tls-private-key-file={}", pki("kube-apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", pki("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", pki("service-accounts.key")),
        format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki("kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--requestheader-client-ca-file={}", pki("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", pki("front-proxy.crt")),
        format!("--proxy-client-key-file={}", pki("front-proxy.key")),
        "--enable-aggregator-routing=true".to_owned(),
        "--profiling=false".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", state.audit_log().display()),
        // In megabytes, more than any test writes: a record that begins anew has lost who did what.
        "--audit-log-maxsize=100000".to_owned(),
        // Written before the request is over, so that a test finds what it just did.
        "--audit-log-mode=blocking".to_owned(),
    ];
    if size != Size::Full {
        // There is no network of pods: whoever plays one leads the API server to it.
        let egress = state.root().join("egress.json");
        write_json(&egress, &egress_selection(state))?;
        arguments.push(format!("--egress-selector-config-file={}", egress.display()));
    }
    if size == Size::Core {
        // Without controllers no namespace gets the ServiceAccount that every pod would have to name.
        arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    Ok(arguments)
}

/// The controllers: garbage collection, namespaces, Deployments and the rest.
pub fn controller_manager(state: &State, ports: Ports) -> anyhow::Result<Vec<String>> {
    let kubeconfig = write_kubeconfig(state, "kube-controller-manager", "kube-controller-manager", ports.api)?;
    let pki = |file: &str| state.pki().join(file).display().to_string();
    Ok(vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        // Serves nothing: one port less to choose.
        "--secure-port=0".to_owned(),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        "--controllers=*".to_owned(),
        format!("--service-account-private-key-file={}", pki("service-accounts.key")),
        format!("--root-ca-file={}", pki("ca.crt")),
        format!("--cluster-signing-cert-file={}", pki("ca.crt")),
        format!("--cluster-signing-key-file={}", pki("ca.key")),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--allocate-node-cidrs=false".to_owned(),
        "--node-monitor-period=2s".to_owned(),
        "--node-monitor-grace-period=16s".to_owned(),
    ])
}

/// The scheduler.
pub fn scheduler(state: &State, ports: Ports) -> anyhow::Result<Vec<String>> {
    let kubeconfig = write_kubeconfig(state, "kube-scheduler", "kube-scheduler", ports.api)?;
    Ok(vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--secure-port=0".to_owned(),
        "--leader-elect=false".to_owned(),
    ])
}

/// The container runtime, with a network of one bridge.
pub fn containerd(state: &State) -> anyhow::Result<Vec<String>> {
    let network = state.root().join("network");
    fs::create_dir_all(&network)?;
    write_json(
        &network.join("10-bridge.conflist"),
        &json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {
                "type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": POD_RANGE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": state.root().join("addresses"),
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ]}),
    )?;
    let root = state.root().display();
    let configuration = format!(
        r#"version = 2
root = "{root}/containerd"
state = "/run/containerd"

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{root}/containerd-opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"
# A container that wants a lower score than ours needs a capability that a test machine may lack.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{network}"
"#,
        socket = state.containerd_socket().display(),
        plugins = node::NETWORK_PLUGINS,
        network = network.display(),
    );
    let path = state.root().join("containerd.toml");
    fs::write(&path, configuration)?;
    Ok(vec!["--config".to_owned(), path.display().to_string()])
}

/// The kubelet. `cgroup` is the group that its pods live below.
pub fn kubelet(state: &State, ports: Ports, cgroup: &str) -> anyhow::Result<Vec<String>> {
    let kubeconfig = write_kubeconfig(state, "kubelet", "kubelet", ports.api)?;
    let resolv = state.root().join("resolv.conf");
    fs::write(&resolv, format!("nameserver {}\n", node::ADDRESS))?;
    let pki = |file: &str| state.pki().join(file);
    let path = state.root().join("kubelet.json");
    write_json(
        &path,
        &json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": format!("unix://{}", state.containerd_socket().display()),
            "cgroupRoot": cgroup,
            // A test machine may have no systemd and the older cgroups.
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": false,
            "failSwapOn": false,
            "oomScoreAdj": 0,
            "clusterDNS": [node::ADDRESS],
            "clusterDomain": "cluster.local",
            "resolvConf": resolv,
            "address": "0.0.0.0",
            "tlsCertFile": pki("kubelet-server.crt"),
            "tlsPrivateKeyFile": pki("kubelet-server.key"),
            "authentication": {
                "anonymous": {"enabled": false},
                "webhook": {"enabled": true},
                "x509": {"clientCAFile": pki("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "podCIDR": POD_RANGE,
            "maxPods": 200,
            // No image can be pulled again, so none may be collected.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "10s",
        }),
    )?;
    Ok(vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", path.display()),
        format!("--root-dir={}", state.root().join("kubelet").display()),
        format!("--cert-dir={}", state.root().join("kubelet-certificates").display()),
        format!("--hostname-override={NODE}"),
        format!("--node-ip={}", node::ADDRESS),
    ])
}

/// The program behind Services.
pub fn proxy(state: &State, ports: Ports) -> anyhow::Result<Vec<String>> {
    let kubeconfig = write_kubeconfig(state, "kube-proxy", "kube-proxy", ports.api)?;
    let path = state.root().join("kube-proxy.json");
    write_json(
        &path,
        &json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": kubeconfig},
            "hostnameOverride": NODE,
            "clusterCIDR": POD_RANGE,
            // Limits of connection tracking belong to the machine, not to a network namespace.
            "conntrack": {"maxPerCore": 0, "min": 0},
        }),
    )?;
    Ok(vec![format!("--config={}", path.display())])
}

/// How Services are reached: by whoever listens on a socket of the cluster, as in clusters whose API server is in another network than pods.
fn egress_selection(state: &State) -> Value {
    let socket = json!({"uds": {"udsName": state.pods_socket()}});
    json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": socket}},
        ],
    })
}

/// What is recorded: every write with what was sent, except the content of Secrets and tokens; every read with its name.
fn audit_policy() -> Value {
    let secret = json!([
        {"group": "", "resources": ["secrets", "serviceaccounts/token"]},
        {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
    ]);
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/metrics", "/openapi/*"]},
            {"level": "Metadata", "resources": secret},
            {"level": "Metadata", "verbs": ["get", "list", "watch"]},
            {"level": "Request"},
        ],
    })
}

fn kubeconfig(cluster: Value, credentials: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "portal-test", "cluster": cluster}],
        "users": [{"name": "user", "user": credentials}],
        "contexts": [{"name": "portal-test", "context": {"cluster": "portal-test", "user": "user"}}],
        "current-context": "portal-test",
    })
}

fn credentials(state: &State, user: &str) -> anyhow::Result<Value> {
    Ok(json!({
        "client-certificate-data": read_pki(state, &format!("{user}.crt"))?,
        "client-key-data": read_pki(state, &format!("{user}.key"))?,
    }))
}

fn read_pki(state: &State, file: &str) -> anyhow::Result<ByteString> {
    let path = state.pki().join(file);
    fs::read(&path).map(ByteString).with_context(|| format!("could not read {}", path.display()))
}

fn write_pair(state: &State, name: &str, pair: &Pair) -> anyhow::Result<()> {
    fs::write(state.pki().join(format!("{name}.crt")), &pair.certificate)?;
    fs::write(state.pki().join(format!("{name}.key")), &pair.key)?;
    Ok(())
}

fn write_json(path: &Path, value: &Value) -> anyhow::Result<()> {
    let write = || {
        // Into its place as a whole: tests that share a cluster write and read at the same time.
        let mut file = tempfile::NamedTempFile::new_in(path.parent().context("it is in a folder")?)?;
        // JSON is YAML, so that every component reads it.
        serde_json::to_writer_pretty(&mut file, value)?;
        file.persist(path)?;
        anyhow::Ok(())
    };
    write().with_context(|| format!("could not write {}", path.display()))
}
