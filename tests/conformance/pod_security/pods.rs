//! Pods with everything set that the Pod Security Standards look at, to what they allow and to what they do not.

use serde_json::{Map, Value, json};

use crate::chance::Random;

/// Fields of a pod and values for them.
const POD_FIELDS: &str = r#"
    spec.hostNetwork                            true false null
    spec.hostPID                                true false null
    spec.hostIPC                                true false null
    spec.hostUsers                              true false null
    spec.os                                     null {} {"name":"windows"} {"name":"windows"} {"name":"linux"} {"name":"Windows"}
    spec.securityContext                        null {}
    spec.securityContext.runAsNonRoot           true false null
    spec.securityContext.runAsUser              0 1 1000 null
    spec.securityContext.windowsOptions         null {} {"hostProcess":true} {"hostProcess":false} {"hostProcess":null}
    spec.securityContext.sysctls                null [] [{"name":"","value":""}] [{"value":"1"}]
    spec.securityContext.sysctls                [{"name":"net.ipv4.tcp_rmem","value":"1"},{"name":"net.ipv4.tcp_wmem","value":"1"}]
    spec.securityContext.sysctls                [{"name":"net.ipv4.tcp_syncookies","value":"0"},{"name":"net.ipv4.tcp_mem","value":"0"}]
    spec.volumes                                null [] [{"name":"a"}] [{"name":"a","emptyDir":null}]
    spec.volumes                                [{"name":"a","emptyDir":{}},{"name":"b","hostPath":{"path":"/"}}]
    spec.volumes                                [{"name":"a","emptyDir":{},"hostPath":{"path":"/"}}]
    metadata.annotations                        null {} {"container.seccomp.security.alpha.kubernetes.io/app":"unconfined"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":"runtime/default"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":"runtime/default2"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":"localhost/profile"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":"localhost"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":""}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/app":null}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io/none":"unconfined"}
    metadata.annotations                        {"container.apparmor.security.beta.kubernetes.io":"unconfined"}
    metadata.annotations                        {"a":"b","container.apparmor.security.beta.kubernetes.io/":"x"}
"#;

/// Fields of a container and values for them.
const CONTAINER_FIELDS: &str = r#"
    securityContext                             null {}
    securityContext.privileged                  true false null
    securityContext.allowPrivilegeEscalation    true false null
    securityContext.runAsNonRoot                true false null
    securityContext.runAsUser                   0 1 1000 null
    securityContext.procMount                   "Default" "Unmasked" "" null
    securityContext.windowsOptions              null {} {"hostProcess":true} {"hostProcess":false}
    securityContext.capabilities                null {}
    securityContext.capabilities.drop           null [] ["ALL"] ["all"] ["KILL"] ["KILL","ALL"]
    securityContext.capabilities.add            null [] [""] ["ALL"] ["KILL","SYS_ADMIN"] ["CAP_KILL"] ["kill"]
    securityContext.capabilities.add            ["NET_BIND_SERVICE"] ["NET_BIND_SERVICE","CHOWN"]
    ports                                       null [] [{"containerPort":80}] [{"containerPort":80,"hostPort":0}]
    ports                                       [{"containerPort":80},{"containerPort":81,"hostPort":81}]
    ports                                       [{"containerPort":80,"hostPort":null}]
"#;

/// What both have in their security context.
const PROFILE_FIELDS: &str = r#"
    seccompProfile                              null {} {"type":null} {"type":""} {"type":"RuntimeDefault"} {"type":"Unconfined"}
    seccompProfile                              {"type":"Localhost","localhostProfile":"a"} {"type":"runtime/default"}
    appArmorProfile                             null {} {"type":null} {"type":""} {"type":"RuntimeDefault"} {"type":"Unconfined"}
    appArmorProfile                             {"type":"Localhost","localhostProfile":"a"} {"type":"localhost"}
    seLinuxOptions                              null {} {"level":"s0"} {"user":""} {"user":"system_u"} {"role":""} {"role":"sysadm_r"}
    seLinuxOptions                              {"type":""} {"type":null} {"type":"container_t"} {"type":"container_init_t"}
    seLinuxOptions                              {"type":"container_kvm_t"} {"type":"container_engine_t"} {"type":"spc_t"}
"#;

/// What a probe or a handler does.
const HANDLERS: &str = r#"
    null {} {"httpGet":{"port":80}} {"httpGet":{"port":80,"host":""}} {"httpGet":{"port":80,"host":"10.0.0.1"}}
    {"tcpSocket":{"port":80}} {"tcpSocket":{"port":80,"host":null}} {"tcpSocket":{"port":80,"host":""}}
    {"tcpSocket":{"port":80,"host":"example.org"}}
"#;

/// What a volume can be.
const SOURCES: &str = "
    awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral fc
    flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs persistentVolumeClaim
    photonPersistentDisk portworxVolume projected quobyte rbd scaleIO secret storageos vsphereVolume
";

/// What a container can add, from all that Linux has.
const CAPABILITIES: &str = "
    AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID
    IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW
    PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO
    SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM
";

/// Settings of the kernel, safe ones and others.
const SYSCTLS: &str = "
    kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports net.ipv4.ip_unprivileged_port_start
    net.ipv4.ping_group_range net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes
    net.ipv4.tcp_keepalive_time net.ipv4.tcp_rmem net.ipv4.tcp_syncookies net.ipv4.tcp_wmem kernel.msgmax kernel.sem
    fs.mqueue.msg_max net.core.somaxconn net.ipv4.ip_forward net.ipv4.tcp_mem net.ipv6.ping_group_range
";

/// A field and one value for it.
type Setting = (String, Value);

/// Makes pods: many that are right but for one thing, some that are right, some that are not at all.
pub(crate) struct Pods {
    pod: Vec<Setting>,
    container: Vec<Setting>,
}

impl Pods {
    pub(crate) fn new() -> Pods {
        let mut pod = table(POD_FIELDS);
        let mut container = table(CONTAINER_FIELDS);
        for (field, value) in table(PROFILE_FIELDS) {
            pod.push((format!("spec.securityContext.{field}"), value.clone()));
            container.push((format!("securityContext.{field}"), value));
        }
        for source in SOURCES.split_whitespace() {
            pod.push(("spec.volumes".to_owned(), json!([{"name": "a", source: {}}])));
        }
        for sysctl in SYSCTLS.split_whitespace() {
            pod.push(("spec.securityContext.sysctls".to_owned(), json!([{"name": sysctl, "value": "1"}])));
        }
        for capability in CAPABILITIES.split_whitespace() {
            container.push(("securityContext.capabilities.add".to_owned(), json!([capability])));
        }
        for handler in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"] {
            let values = HANDLERS.split_whitespace().map(|text| serde_json::from_str(text).unwrap());
            container.extend(values.map(|value| (handler.to_owned(), value)));
        }
        Pods { pod, container }
    }

    pub(crate) fn pod(&self, random: &mut Random) -> Value {
        let is_bare = random.below(8) == 0;
        let changes = match random.below(8) {
            0 => 0,
            1..5 => 1,
            5 | 6 => 2 + random.below(3),
            _ => 5 + random.below(20),
        };
        let mut pod = Pods::valid(random);
        if is_bare {
            for container in containers(&mut pod) {
                container.as_object_mut().unwrap().remove("securityContext");
            }
            pod["spec"].as_object_mut().unwrap().remove("securityContext");
        }
        for _ in 0..changes {
            self.change(random, &mut pod);
        }
        pod
    }

    /// A pod that is allowed everywhere.
    fn valid(random: &mut Random) -> Value {
        let security_context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        let mut list = |least: usize, most: usize, prefix: &str| {
            let count = least + random.below(most - least + 1);
            let named = |n| json!({"name": format!("{prefix}{n}"), "image": "a", "securityContext": security_context});
            (0..count).map(named).collect::<Vec<Value>>()
        };
        let mut spec = json!({
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": list(1, 2, "app"),
        });
        for (name, most) in [("initContainers", 2), ("ephemeralContainers", 1)] {
            let containers = list(0, most, name);
            if !containers.is_empty() {
                spec[name] = containers.into();
            }
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec})
    }

    /// Sets one field, of the pod or of one of its containers.
    fn change(&self, random: &mut Random, pod: &mut Value) {
        let at = random.below(self.pod.len() + self.container.len());
        if let Some((field, value)) = self.pod.get(at) {
            return set(pod, field, value);
        }
        let (field, value) = &self.container[at - self.pod.len()];
        let mut containers = containers(pod);
        let chosen = random.below(containers.len());
        set(containers[chosen], field, value);
    }
}

fn containers(pod: &mut Value) -> Vec<&mut Value> {
    let spec = pod["spec"].as_object_mut().unwrap();
    let lists = spec.iter_mut().filter(|(name, _)| name.to_lowercase().ends_with("containers"));
    lists.flat_map(|(_, list)| list.as_array_mut().unwrap()).collect()
}

fn set(object: &mut Value, path: &str, value: &Value) {
    let mut place = object;
    for name in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value.clone();
}

/// A table as settings: one for each value.
fn table(text: &str) -> Vec<Setting> {
    let rows = text.lines().filter_map(|line| line.trim().split_once(' '));
    rows.flat_map(|(field, values)| {
        let values = values.split_whitespace().map(|text| serde_json::from_str(text).unwrap());
        values.map(|value| (field.to_owned(), value)).collect::<Vec<Setting>>()
    })
    .collect()
}
