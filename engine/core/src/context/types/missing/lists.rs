//! Lists of texts in roles, webhooks and containers: the text that stands for everything, and the texts that people look for and nobody has.

use portal_expr::{Spelling, Wildcard};

use crate::kinds::Kinds;

/// Lists in which a text stands for everything: those of the rules of roles and webhooks, and capabilities.
pub(super) const WILDCARDS: [Wildcard; 8] = [
    Wildcard { list: "verbs", meant: verb, ..ANY },
    Wildcard { list: "resources", has_parts: true, meant: resource, ..ANY },
    Wildcard { list: "apiGroups", meant: group, ..ANY },
    Wildcard { list: "apiVersions", ..ANY },
    Wildcard { list: "operations", ..ANY },
    Wildcard { list: "nonResourceURLs", ..ANY },
    Wildcard { list: "add", all: "ALL", meant: capability, ..ANY },
    Wildcard { list: "drop", all: "ALL", takes_away: true, meant: capability, ..ANY },
];

const ANY: Wildcard = Wildcard { list: "", all: "*", has_parts: false, takes_away: false, meant: nothing };

/// Fields whose texts are spelled in one way, although more may be found in them than is known here.
pub(super) const SPELLINGS: [(&str, Spelling); 7] = [
    ("kind", kind),
    ("type", sort),
    ("medium", |text| of_words(&["Memory", "HugePages"], text)),
    ("operatingSystem", operating_system),
    ("kubernetes.io/os", operating_system),
    ("architecture", architecture),
    ("kubernetes.io/arch", architecture),
];

/// What conditions, Secrets and addresses are called, beside what anybody may call them.
const SORTS: [&str; 44] = [
    "AbleToScale",
    "Accepted",
    "Approved",
    "Available",
    "Complete",
    "ContainersReady",
    "Denied",
    "DiskPressure",
    "DisruptionTarget",
    "Established",
    "ExternalDNS",
    "ExternalIP",
    "Failed",
    "FailureTarget",
    "Hostname",
    "Initialized",
    "InternalDNS",
    "InternalIP",
    "MemoryPressure",
    "NamesAccepted",
    "NetworkUnavailable",
    "NonStructuralSchema",
    "Opaque",
    "PIDPressure",
    "PodReadyToStartContainers",
    "PodScheduled",
    "Progressing",
    "Ready",
    "ReplicaFailure",
    "Resizing",
    "ScalingActive",
    "ScalingLimited",
    "SuccessCriteriaMet",
    "Suspended",
    "Terminating",
    "bootstrap.kubernetes.io/token",
    "helm.sh/release.v1",
    "kubernetes.io/basic-auth",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/rbd",
    "kubernetes.io/service-account-token",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
];

/// What other programs call the processors of nodes.
const ARCHITECTURES: [(&str, &str); 4] =
    [("x86_64", "amd64"), ("x64", "amd64"), ("aarch64", "arm64"), ("arm64/v8", "arm64")];

/// Words that say what a verb does, and are none.
const VERBS: [(&str, &str); 8] = [
    ("add", "create"),
    ("all", "*"),
    ("any", "*"),
    ("edit", "update"),
    ("modify", "update"),
    ("read", "get"),
    ("remove", "delete"),
    ("write", "update"),
];

fn nothing(_: &str) -> Option<(&'static str, String)> {
    None
}

fn verb(text: &str) -> Option<(&'static str, String)> {
    let small = text.to_lowercase();
    let meant = VERBS.iter().find(|(word, _)| *word == small).map_or(&*small, |(_, meant)| meant);
    (meant != text).then(|| ("is no verb of Kubernetes", meant.to_owned()))
}

/// Of a resource its plural is named, in small letters.
fn resource(text: &str) -> Option<(&'static str, String)> {
    let (name, part) = text.split_once('/').unwrap_or((text, ""));
    let is_plural = |plural: &str| plural == name;
    let kinds = || Kinds::builtin().iter();
    if kinds().any(|kind| is_plural(&kind.plural)) {
        return None;
    }
    let plural = kinds().find(|kind| kind.kind.eq_ignore_ascii_case(name) || kind.plural.eq_ignore_ascii_case(name));
    let plural = plural.map(|kind| kind.plural.clone()).or_else(|| {
        let small = name.to_lowercase();
        (small != name).then_some(small)
    })?;
    let whole = if part.is_empty() { plural } else { format!("{plural}/{}", part.to_lowercase()) };
    Some(("is not the name of a resource, which is a plural in small letters", whole))
}

/// A kind is written with capitals, and in the singular.
fn kind(text: &str) -> Option<String> {
    let kinds = || Kinds::builtin().iter();
    if kinds().any(|kind| kind.kind == text) {
        return None;
    }
    let is_meant = |name: &str| name.eq_ignore_ascii_case(text);
    kinds().find(|kind| is_meant(&kind.kind) || is_meant(&kind.plural)).map(|kind| kind.kind.clone())
}

/// Of what conditions and Secrets are called, Secrets leave out a part that people know by heart.
fn sort(text: &str) -> Option<String> {
    let of_secret = || SORTS.iter().find(|word| word.strip_prefix("kubernetes.io/") == Some(text));
    of_words(&SORTS, text).or_else(|| of_secret().map(|word| (*word).to_owned()))
}

fn operating_system(text: &str) -> Option<String> {
    of_words(&["linux", "windows"], text)
}

fn architecture(text: &str) -> Option<String> {
    let meant = ARCHITECTURES.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(text));
    meant.map(|(_, ours)| (*ours).to_owned()).or_else(|| of_words(&["amd64", "arm64", "ppc64le", "s390x"], text))
}

/// The word that differs from a text in nothing but capitals.
fn of_words(words: &[&str], text: &str) -> Option<String> {
    let is_meant = |word: &&&str| **word != text && word.eq_ignore_ascii_case(text);
    words.iter().find(is_meant).map(|word| (*word).to_owned())
}

/// A group stands without a version, and the first one has no name.
fn group(text: &str) -> Option<(&'static str, String)> {
    let is_version = |text: &str| {
        text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match text.split_once('/') {
        Some((group, version)) if is_version(version) => Some((
            "has a version, and a group has none",
            if group == "core" { String::new() } else { group.to_owned() },
        )),
        None if is_version(text) || text == "core" => {
            Some(("is no group: that of Pods and Secrets has no name", String::new()))
        }
        _ => None,
    }
}

/// Linux has a prefix that pods leave out.
fn capability(text: &str) -> Option<(&'static str, String)> {
    let small = text.to_uppercase();
    let meant = small.strip_prefix("CAP_").filter(|name| !name.is_empty())?;
    Some(("is a capability with `CAP_` before it, which pods leave out", meant.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_in_a_list_leads_to_what_is_meant() {
        let meant = |of: fn(&str) -> Option<(&'static str, String)>, text: &str| of(text).map(|(_, meant)| meant);
        for (of, text, expected) in [
            (resource as fn(&str) -> Option<(&'static str, String)>, "Secret", Some("secrets")),
            (resource, "ingress", Some("ingresses")),
            (resource, "NetworkPolicies", Some("networkpolicies")),
            (resource, "Pod/Exec", Some("pods/exec")),
            (resource, "Widgets", Some("widgets")),
            (resource, "pods/exec", None),
            (resource, "endpoints", None),
            (resource, "widgets", None),
            (resource, "*", None),
            (resource, "*/scale", None),
            (verb, "GET", Some("get")),
            (verb, "Write", Some("update")),
            (verb, "impersonate", None),
            (verb, "*", None),
            (group, "v1", Some("")),
            (group, "apps/v1", Some("apps")),
            (group, "core", Some("")),
            (group, "rbac.authorization.k8s.io", None),
            (group, "", None),
            (capability, "CAP_SYS_ADMIN", Some("SYS_ADMIN")),
            (capability, "cap_net_raw", Some("NET_RAW")),
            (capability, "SYS_ADMIN", None),
        ] {
            assert_eq!(meant(of, text).as_deref(), expected, "{text}");
        }
        for (of, text, expected) in [
            (sort as Spelling, "ready", Some("Ready")),
            (sort, "Ready", None),
            (sort, "tls", Some("kubernetes.io/tls")),
            (sort, "Kubernetes.io/TLS", Some("kubernetes.io/tls")),
            (sort, "acme.io/token", None),
            (architecture, "x86_64", Some("amd64")),
            (architecture, "ARM64", Some("arm64")),
            (architecture, "riscv64", None),
        ] {
            assert_eq!(of(text).as_deref(), expected, "{text}");
        }
    }
}
