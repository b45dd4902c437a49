//! What no rule may judge: a cluster needs it to live and to heal, or it is no object at all.

/// Why no rule may judge a kind, if that is so.
pub(super) fn spared(group: &str, kind: &str) -> Option<&'static str> {
    match (group, kind) {
        ("coordination.k8s.io", "Lease" | "LeaseCandidate") => Some("leases say who lives and who leads"),
        ("" | "events.k8s.io", "Event") => Some("events say what happened"),
        ("authentication.k8s.io" | "authorization.k8s.io", kind) if kind.ends_with("Review") => {
            Some("reviews are questions to the API server")
        }
        ("portal.io", _) => Some("a rule about rules could keep everybody from mending it"),
        ("wgpolicyk8s.io" | "openreports.io", _) => Some("reports say what violates rules"),
        _ => None,
    }
}

/// Why no rule may judge a subresource, if that is so.
pub(super) fn spared_subresource(group: &str, kind: &str, subresource: &str) -> Option<&'static str> {
    match (group, kind, subresource) {
        ("", "Node", "status") => Some("by their status nodes say that they live"),
        _ => None,
    }
}
