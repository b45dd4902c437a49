//! The bench set: twenty rules as people write them, each in our form, in the form that Go's expr-lang needs where a field
//! may be missing, and in CEL.

/// One rule of the bench set.
pub struct Rule {
    /// What it is called in tables.
    pub name: &'static str,
    /// Whether it runs for each container rather than once for the object.
    pub per_container: bool,
    /// As Portal's users write it.
    pub portal: &'static str,
    /// As users of Go's expr-lang have to write it.
    pub go: &'static str,
    /// As users of CEL have to write it.
    pub cel: &'static str,
}

/// What an image reference consists of is in `image` for Go and CEL: it is taken apart before the race, while Portal takes it apart
/// each time that a rule asks.
pub const RULES: [Rule; 20] = [
    Rule {
        name: "privileged",
        per_container: true,
        portal: r#"container.securityContext.privileged == true"#,
        go: r#"container.securityContext?.privileged == true"#,
        cel: r#"has(container.securityContext) && has(container.securityContext.privileged) && container.securityContext.privileged"#,
    },
    Rule {
        name: "privilege escalation",
        per_container: true,
        portal: r#"container.securityContext.allowPrivilegeEscalation != false"#,
        go: r#"container.securityContext?.allowPrivilegeEscalation != false"#,
        cel: r#"!has(container.securityContext) || !has(container.securityContext.allowPrivilegeEscalation) || container.securityContext.allowPrivilegeEscalation"#,
    },
    Rule {
        name: "registries",
        per_container: true,
        portal: r#"container.image.registry not in ["registry.acme.io", "ghcr.io", "quay.io"]"#,
        go: r#"image.registry not in ["registry.acme.io", "ghcr.io", "quay.io"]"#,
        cel: r#"!(image.registry in ['registry.acme.io', 'ghcr.io', 'quay.io'])"#,
    },
    Rule {
        name: "latest tag",
        per_container: true,
        portal: r#"container.image.tag == "latest""#,
        go: r#"image.tag == "latest""#,
        cel: r#"has(image.tag) && image.tag == 'latest'"#,
    },
    Rule {
        name: "digest",
        per_container: true,
        portal: r#"not (container.image matches "@sha256:[0-9a-f]{64}$")"#,
        go: r#"not (container.image matches "@sha256:[0-9a-f]{64}$")"#,
        cel: r#"!container.image.matches('@sha256:[0-9a-f]{64}$')"#,
    },
    Rule {
        name: "capabilities added",
        per_container: true,
        portal: r#"any(container.securityContext.capabilities.add, # not in ["NET_BIND_SERVICE", "CHOWN"])"#,
        go: r#"any(container.securityContext?.capabilities?.add ?? [], # not in ["NET_BIND_SERVICE", "CHOWN"])"#,
        cel: r#"has(container.securityContext) && has(container.securityContext.capabilities) && has(container.securityContext.capabilities.add) && container.securityContext.capabilities.add.exists(c, !(c in ['NET_BIND_SERVICE', 'CHOWN']))"#,
    },
    Rule {
        name: "capabilities dropped",
        per_container: true,
        portal: r#""ALL" not in container.securityContext.capabilities.drop"#,
        go: r#""ALL" not in (container.securityContext?.capabilities?.drop ?? [])"#,
        cel: r#"!(has(container.securityContext) && has(container.securityContext.capabilities) && has(container.securityContext.capabilities.drop) && 'ALL' in container.securityContext.capabilities.drop)"#,
    },
    Rule {
        name: "labels",
        per_container: false,
        portal: r#"metadata.labels["app.kubernetes.io/name"] == nil || metadata.labels.team == nil"#,
        go: r#"metadata.labels?.["app.kubernetes.io/name"] == nil || metadata.labels?.team == nil"#,
        cel: r#"!has(metadata.labels) || !('app.kubernetes.io/name' in metadata.labels) || !('team' in metadata.labels)"#,
    },
    Rule {
        name: "label's form",
        per_container: false,
        portal: r#"metadata.labels.team != nil && not (metadata.labels.team matches "^team-[0-9]+$")"#,
        go: r#"metadata.labels?.team != nil && not (metadata.labels.team matches "^team-[0-9]+$")"#,
        cel: r#"has(metadata.labels) && has(metadata.labels.team) && !metadata.labels.team.matches('^team-[0-9]+$')"#,
    },
    Rule {
        name: "resources",
        per_container: true,
        portal: r#"container.resources.limits.memory == nil || container.resources.requests.cpu == nil"#,
        go: r#"container.resources?.limits?.memory == nil || container.resources?.requests?.cpu == nil"#,
        cel: r#"!has(container.resources) || !has(container.resources.limits) || !has(container.resources.limits.memory) || !has(container.resources.requests) || !has(container.resources.requests.cpu)"#,
    },
    Rule {
        name: "probes",
        per_container: true,
        portal: r#"container.livenessProbe == nil || container.readinessProbe == nil"#,
        go: r#"container.livenessProbe == nil || container.readinessProbe == nil"#,
        cel: r#"!has(container.livenessProbe) || !has(container.readinessProbe)"#,
    },
    Rule {
        name: "host namespaces",
        per_container: false,
        portal: r#"spec.hostNetwork == true || spec.hostPID == true || spec.hostIPC == true"#,
        go: r#"spec.hostNetwork == true || spec.hostPID == true || spec.hostIPC == true"#,
        cel: r#"(has(spec.hostNetwork) && spec.hostNetwork) || (has(spec.hostPID) && spec.hostPID) || (has(spec.hostIPC) && spec.hostIPC)"#,
    },
    Rule {
        name: "host paths",
        per_container: false,
        portal: r#"any(spec.volumes, .hostPath != nil)"#,
        go: r#"any(spec.volumes ?? [], .hostPath != nil)"#,
        cel: r#"has(spec.volumes) && spec.volumes.exists(v, has(v.hostPath))"#,
    },
    Rule {
        name: "any of any",
        per_container: false,
        portal: r#"any(spec.containers, any(.securityContext.capabilities.add, # == "SYS_ADMIN"))"#,
        go: r#"any(spec.containers, any(.securityContext?.capabilities?.add ?? [], # == "SYS_ADMIN"))"#,
        cel: r#"spec.containers.exists(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add) && c.securityContext.capabilities.add.exists(a, a == 'SYS_ADMIN'))"#,
    },
    Rule {
        name: "all images",
        per_container: false,
        portal: r#"not all(spec.containers, .image startsWith "registry.acme.io/" || .image startsWith "docker.io/")"#,
        go: r#"not all(spec.containers, .image startsWith "registry.acme.io/" || .image startsWith "docker.io/")"#,
        cel: r#"!spec.containers.all(c, c.image.startsWith('registry.acme.io/') || c.image.startsWith('docker.io/'))"#,
    },
    Rule {
        name: "any as root",
        per_container: false,
        portal: r#"securityContext.runAsNonRoot != true && any(spec.containers, .securityContext.runAsNonRoot != true)"#,
        go: r#"securityContext.runAsNonRoot != true && any(spec.containers, .securityContext?.runAsNonRoot != true)"#,
        cel: r#"!(has(securityContext.runAsNonRoot) && securityContext.runAsNonRoot) && spec.containers.exists(c, !(has(c.securityContext) && has(c.securityContext.runAsNonRoot) && c.securityContext.runAsNonRoot))"#,
    },
    Rule {
        name: "user",
        per_container: true,
        portal: r#"(container.securityContext.runAsUser ?? securityContext.runAsUser ?? 0) == 0"#,
        go: r#"(container.securityContext?.runAsUser ?? securityContext.runAsUser ?? 0) == 0"#,
        cel: r#"(has(container.securityContext) && has(container.securityContext.runAsUser) ? container.securityContext.runAsUser : has(securityContext.runAsUser) ? securityContext.runAsUser : 0) == 0"#,
    },
    Rule {
        name: "seccomp",
        per_container: true,
        portal: r#"(container.securityContext.seccompProfile.type ?? securityContext.seccompProfile.type) not in ["RuntimeDefault", "Localhost"]"#,
        go: r#"(container.securityContext?.seccompProfile?.type ?? securityContext.seccompProfile?.type) not in ["RuntimeDefault", "Localhost"]"#,
        cel: r#"!((has(container.securityContext) && has(container.securityContext.seccompProfile) ? container.securityContext.seccompProfile.type : has(securityContext.seccompProfile) ? securityContext.seccompProfile.type : '') in ['RuntimeDefault', 'Localhost'])"#,
    },
    Rule {
        name: "passwords",
        per_container: true,
        portal: r#"any(container.env, .name contains "PASSWORD" && .value != nil)"#,
        go: r#"any(container.env ?? [], .name contains "PASSWORD" && .value != nil)"#,
        cel: r#"has(container.env) && container.env.exists(e, e.name.contains('PASSWORD') && has(e.value))"#,
    },
    Rule {
        name: "replicas",
        per_container: false,
        portal: r#"object.kind == "Deployment" && (object.spec.replicas ?? 1) < 2"#,
        go: r#"object.kind == "Deployment" && (object.spec.replicas ?? 1) < 2"#,
        cel: r#"object.kind == 'Deployment' && (has(object.spec.replicas) ? object.spec.replicas : 1) < 2"#,
    },
];

impl Rule {
    /// What it runs on: the context of an object, or those of its containers.
    pub fn choose<'a, T>(&self, contexts: &'a (T, Vec<T>)) -> &'a [T] {
        if self.per_container { &contexts.1 } else { std::slice::from_ref(&contexts.0) }
    }
}
