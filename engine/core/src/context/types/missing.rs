//! What Kubernetes takes for what objects leave out, and what stands for more than it says.

mod lists;

use portal_expr::{Fallback, Filled, FilledList, Instead, Meant, Remainder, Schema, Siblings, Sorts};

use self::lists::{SPELLINGS, WILDCARDS};

/// What the API server fills in where fields are left out, whatever else is there: `DeploymentSpec.replicas 1`, a line each. A test writes it.
const FILLED: &str = include_str!("../filled.txt");

/// What Kubernetes takes fields for that are left out, and does not fill in everywhere: they mean this, wherever they are read.
const MEANT: [Meant; 6] = [
    meant("PodSpec", "serviceAccountName", Filled::Text("default"), Some("Pod")),
    meant("Toleration", "operator", Filled::Text("Equal"), None),
    // What makes Jobs leaves these to them.
    meant("JobSpec", "parallelism", Filled::Int(1), Some("Job")),
    meant("JobSpec", "completionMode", Filled::Text("NonIndexed"), Some("Job")),
    meant("JobSpec", "suspend", Filled::Bool(false), Some("Job")),
    // A Service that is a name alone has none.
    meant("ServiceSpec", "internalTrafficPolicy", Filled::Text("Cluster"), None),
];

const fn meant(object: &'static str, field: &'static str, value: Filled, filled_in: Option<&'static str>) -> Meant {
    Meant { object, field, value, filled_in }
}

/// What is filled in by the image.
const WORKED_OUT: [(&str, &str, &str); 1] =
    [("imagePullPolicy", "image", r#"{}image.tag == "latest" ? "Always" : "IfNotPresent""#)];

/// Fields that stand for everything where they are left out, and whether that matters also to a rule that wants a value not to be there.
const EVERYTHING: [(&str, &str, bool); 3] =
    [("Toleration", "key", true), ("Toleration", "effect", true), ("IngressRule", "host", false)];

/// Lists that stand for everything where they are left out.
const OPEN_LISTS: [(&str, &str, &str); 7] = [
    // If it is a load balancer at all.
    ("ServiceSpec", "loadBalancerSourceRanges", "every address"),
    ("NetworkPolicyIngressRule", "from", "whoever asks"),
    ("NetworkPolicyIngressRule", "ports", "every port"),
    ("NetworkPolicyEgressRule", "to", "every destination"),
    ("NetworkPolicyEgressRule", "ports", "every port"),
    ("PolicyRule", "resourceNames", "every name"),
    ("HPAScalingRules", "policies", "100 percent at a time"),
];

/// Numbers and amounts that have no bound where they are left out.
const UNBOUNDED: [(&str, &str); 6] = [
    ("Toleration", "tolerationSeconds"),
    ("PodSpec", "activeDeadlineSeconds"),
    ("JobSpec", "activeDeadlineSeconds"),
    ("JobSpec", "ttlSecondsAfterFinished"),
    ("CronJobSpec", "startingDeadlineSeconds"),
    ("EmptyDirVolumeSource", "sizeLimit"),
];

/// Containers of a pod are in three lists.
const SIBLINGS: [Siblings; 1] = [Siblings {
    object: "PodSpec",
    list: "containers",
    others: &["initContainers", "ephemeralContainers"],
    element: "container",
    fields: &["securityContext", "image", "imagePullPolicy", "env", "envFrom", "volumeMounts", "volumeDevices"],
    what: "leaves out init containers and ephemeral ones",
}];

/// Containers of what makes pods. Those that are added later are of a pod alone.
const SIBLINGS_OF_TEMPLATES: [Siblings; 1] =
    [Siblings { others: &["initContainers"], what: "leaves out init containers", ..SIBLINGS[0] }];

/// Lists whose first element is the one that people mean: there is hardly ever another owner.
const RANKED: [&str; 1] = ["ownerReferences"];

/// What is for whatever no element of a list is for. An Ingress may have it alone.
const REMAINDERS: [Remainder; 1] = [Remainder {
    list: ("IngressSpec", "rules"),
    field: "defaultBackend",
    chosen_by: ("IngressRule", "host"),
    leads: ("HTTPIngressPath", "backend"),
    what_for: "is for every host that no rule is for",
    what: "is a backend too",
    looked_up: "ingresses",
}];

/// Objects that are one of several things. Of those that have other fields too, only the fields that say which.
const SORTS: [Sorts; 9] = [
    Sorts {
        object: "Volume",
        fields: &[
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "fc",
            "flexVolume",
            "flocker",
            "gcePersistentDisk",
            "gitRepo",
            "glusterfs",
            "hostPath",
            "image",
            "iscsi",
            "nfs",
            "persistentVolumeClaim",
            "photonPersistentDisk",
            "portworxVolume",
            "projected",
            "quobyte",
            "rbd",
            "scaleIO",
            "secret",
            "storageos",
            "vsphereVolume",
        ],
    },
    Sorts {
        object: "VolumeProjection",
        fields: &["clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"],
    },
    Sorts {
        object: "EnvVarSource",
        fields: &["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"],
    },
    Sorts { object: "EnvFromSource", fields: &["configMapRef", "secretRef"] },
    Sorts { object: "Probe", fields: &["exec", "grpc", "httpGet", "tcpSocket"] },
    Sorts { object: "LifecycleHandler", fields: &["exec", "httpGet", "sleep", "tcpSocket"] },
    Sorts { object: "NetworkPolicyPeer", fields: &["ipBlock"] },
    Sorts { object: "MetricSpec", fields: &["containerResource", "external", "object", "pods", "resource"] },
    Sorts { object: "IngressBackend", fields: &["resource", "service"] },
];

/// Objects that say the same by one of two fields.
const EITHER_FIELDS: [(&str, [&str; 2]); 1] = [("ServiceBackendPort", ["number", "name"])];

/// What Kubernetes takes numbers for that are left out, where that is not 0.
const DEFAULTS: [(&str, &str); 14] = [
    ("replicas", "1"),
    ("minReplicas", "1"),
    ("periodSeconds", "10"),
    ("successThreshold", "1"),
    ("failureThreshold", "3"),
    ("terminationGracePeriodSeconds", "30"),
    ("revisionHistoryLimit", "10"),
    ("progressDeadlineSeconds", "600"),
    ("backoffLimit", "6"),
    ("parallelism", "1"),
    ("successfulJobsHistoryLimit", "3"),
    ("failedJobsHistoryLimit", "1"),
    ("scaleDown.stabilizationWindowSeconds", "300"),
    ("matchingPrecedence", "1000"),
];

/// What Kubernetes takes fields for that may be any text and are left out, by the names of their types.
const TEXT_DEFAULTS: [(&str, &str, &str); 3] = [
    ("Secret", "type", "Opaque"),
    ("PodSpec", "serviceAccountName", "default"),
    ("PodSpec", "schedulerName", "default-scheduler"),
];

/// Fields that Kubernetes takes something else for where they are left out.
const FALLBACKS: [Fallback; 3] = [
    Fallback { object: "ResourceRequirements", fields: &["requests"], instead: Instead::Key("limits") },
    Fallback { object: "ServicePort", fields: &["targetPort"], instead: Instead::Field("port") },
    // A test compares these with the fields that the security contexts of pods and of containers share.
    Fallback {
        object: "SecurityContext",
        fields: &[
            "appArmorProfile",
            "runAsGroup",
            "runAsNonRoot",
            "runAsUser",
            "seLinuxOptions",
            "seccompProfile",
            "seccompProfileType",
            "windowsOptions",
        ],
        instead: Instead::Around {
            lists: &["containers", "initContainers", "ephemeralContainers"],
            element: "container",
            merged: &["windowsOptions"],
        },
    },
];

/// Lists that Kubernetes fills in where they are left out.
const FILLED_LISTS: [FilledList; 1] = [FilledList {
    object: "NetworkPolicySpec",
    list: "policyTypes",
    texts: &[("Ingress", None), ("Egress", Some("egress"))],
}];

/// What Kubernetes takes fields for that are one of a few texts and are left out. Nothing where that depends on other fields.
const WORD_DEFAULTS: [(&str, Option<&str>); 25] = [
    // The tag decides.
    ("imagePullPolicy", None),
    ("concurrencyPolicy", Some("Allow")),
    ("restartPolicy", Some("Always")),
    ("dnsPolicy", Some("ClusterFirst")),
    ("type", Some("ClusterIP")),
    ("type", Some("RollingUpdate")),
    ("sessionAffinity", Some("None")),
    ("internalTrafficPolicy", Some("Cluster")),
    // Of what is reached from outside.
    ("externalTrafficPolicy", Some("Cluster")),
    ("podManagementPolicy", Some("OrderedReady")),
    ("protocol", Some("TCP")),
    ("scheme", Some("HTTP")),
    ("terminationMessagePolicy", Some("File")),
    ("completionMode", Some("NonIndexed")),
    ("persistentVolumeReclaimPolicy", Some("Retain")),
    ("reclaimPolicy", Some("Delete")),
    ("volumeBindingMode", Some("Immediate")),
    ("volumeMode", Some("Filesystem")),
    ("failurePolicy", Some("Fail")),
    ("matchPolicy", Some("Equivalent")),
    ("supplementalGroupsPolicy", Some("Merge")),
    ("procMount", Some("Default")),
    ("recursiveReadOnly", Some("Disabled")),
    ("whenDeleted", Some("Retain")),
    ("whenScaled", Some("Retain")),
];

/// What Kubernetes takes fields for that are true or false and are left out, where that is not false. Nothing where that depends on other
/// fields.
const TRUTH_DEFAULTS: [(&str, Option<bool>); 9] = [
    ("automountServiceAccountToken", Some(true)),
    ("enableServiceLinks", Some(true)),
    ("allowPrivilegeEscalation", Some(true)),
    ("hostUsers", Some(true)),
    ("allocateLoadBalancerNodePorts", Some(true)),
    ("attachRequired", Some(true)),
    // Of an endpoint.
    ("ready", Some(true)),
    ("serving", Some(true)),
    // The pod decides for its containers.
    ("runAsNonRoot", None),
];

/// Objects that Kubernetes takes for empty where they are left out. A container without a security context runs as somebody; one without a
/// probe has none.
const IMPLIED: [&str; 10] = [
    "metadata",
    "spec",
    "status",
    "template",
    "jobTemplate",
    "securityContext",
    "resources",
    "strategy",
    "updateStrategy",
    "rollingUpdate",
];

/// Says all of it.
pub(super) fn add_to(schema: &mut Schema) {
    schema.set_defaults(DEFAULTS);
    schema.set_word_defaults(&WORD_DEFAULTS);
    schema.set_text_defaults(&TEXT_DEFAULTS);
    schema.set_filled(filled());
    schema.set_meant(&MEANT);
    schema.set_empty_objects(FILLED.lines().filter_map(|line| line.strip_suffix(" {}")?.rsplit_once('.')));
    schema.set_worked_out(&WORKED_OUT);
    schema.set_everything(&EVERYTHING);
    schema.set_open_lists(&OPEN_LISTS);
    schema.set_unbounded(&UNBOUNDED);
    schema.set_remainders(&REMAINDERS);
    schema.set_siblings(&SIBLINGS);
    schema.set_ranked(&RANKED);
    schema.set_sorts(&SORTS);
    schema.set_either_fields(&EITHER_FIELDS);
    schema.set_fallbacks(&FALLBACKS);
    schema.set_filled_lists(&FILLED_LISTS);
    schema.set_truth_defaults(&TRUTH_DEFAULTS);
    schema.set_wildcards(&WILDCARDS);
    schema.set_spellings(&SPELLINGS);
    schema.set_implied(&IMPLIED);
}

/// Says of a schema that there are no pods to which a container may be added.
pub(crate) fn leave_out_later_containers(schema: &mut Schema) {
    schema.set_siblings(&SIBLINGS_OF_TEMPLATES);
}

/// What the table says of fields that are filled in.
fn filled() -> impl Iterator<Item = (&'static str, &'static str, Filled)> {
    FILLED.lines().filter_map(|line| {
        let (place, value) = line.split_once(' ')?;
        let (object, field) = place.rsplit_once('.')?;
        let text = || value.strip_prefix('"')?.strip_suffix('"').map(Filled::Text);
        let value = match value {
            "true" => Filled::Bool(true),
            "false" => Filled::Bool(false),
            value => value.parse().ok().map(Filled::Int).or_else(text)?,
        };
        Some((object, field, value))
    })
}
