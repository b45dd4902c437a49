//! What people mean who look for a part of an object or of a request under a name that it has elsewhere: in CEL, in Rego, in
//! Kyverno, or in their heads.

use portal_expr::Schema;

/// A path that is no path of ours, and what it is here.
const ANYWHERE: [(&str, &str); 44] = [
    ("oldObject", "request.oldObject"),
    ("old", "request.oldObject"),
    ("userInfo", "request.userInfo"),
    ("user", "request.userInfo"),
    ("username", "request.userInfo.username"),
    ("groups", "request.userInfo.groups"),
    ("operation", "request.operation"),
    ("dryRun", "request.dryRun"),
    ("request.user", "request.userInfo"),
    ("request.username", "request.userInfo.username"),
    ("request.userInfo.name", "request.userInfo.username"),
    ("request.kind", "object.kind"),
    ("request.subresource", "request.subResource"),
    ("namespace", "metadata.namespace"),
    ("name", "metadata.name"),
    ("generateName", "metadata.generateName"),
    ("labels", "metadata.labels"),
    ("annotations", "metadata.annotations"),
    ("finalizers", "metadata.finalizers"),
    ("ownerReferences", "metadata.ownerReferences"),
    ("kind", "object.kind"),
    ("apiVersion", "object.apiVersion"),
    ("status", "object.status"),
    ("data", "object.data"),
    ("rules", "object.rules"),
    ("self", "object"),
    ("this", "object"),
    ("resource", "object"),
    ("obj", "object"),
    ("input", "object"),
    ("input.object", "object"),
    ("input.review", "request"),
    ("input.review.object", "object"),
    ("input.review.oldObject", "request.oldObject"),
    ("input.review.userInfo", "request.userInfo"),
    ("input.review.operation", "request.operation"),
    ("input.review.namespace", "metadata.namespace"),
    ("input.review.name", "metadata.name"),
    ("input.request", "request"),
    ("input.request.object", "object"),
    ("input.request.kind.kind", "object.kind"),
    ("review", "request"),
    ("review.object", "object"),
    ("namespaceObject", "cluster.namespaces.byName(metadata.namespace)"),
];

/// The same, where there are pods.
const WITH_PODS: [(&str, &str); 14] = [
    ("pod", "object"),
    ("pod.spec", "spec"),
    ("pod.metadata", "metadata"),
    ("template", "object.spec.template"),
    ("replicas", "object.spec.replicas"),
    ("containers", "spec.containers"),
    ("initContainers", "spec.initContainers"),
    ("volumes", "spec.volumes"),
    ("hostNetwork", "spec.hostNetwork"),
    ("serviceAccountName", "spec.serviceAccountName"),
    ("image", "container.image"),
    ("resources", "container.resources"),
    ("env", "container.env"),
    ("ports", "container.ports"),
];

/// The same, where there are none.
const WITHOUT_PODS: [(&str, &str); 5] = [
    ("spec", "object.spec"),
    ("pod", "object"),
    ("containers", "object.spec.containers"),
    ("ports", "object.spec.ports"),
    ("replicas", "object.spec.replicas"),
];

/// Adds what is meant by names that there are not.
pub(super) fn add_hints(schema: &mut Schema, pods: bool) {
    let own: &[(&str, &str)] = if pods { &WITH_PODS } else { &WITHOUT_PODS };
    for (path, instead) in ANYWHERE.iter().chain(own) {
        schema.add_hint(*path, *instead, "");
    }
    if pods {
        schema.add_hint("spec.*", "object.spec", "`spec` is the spec of the pod, for that of the object itself");
        schema.add_hint(
            "securityContext.*",
            "container.securityContext",
            "`securityContext` is that of the pod, for that of a container",
        );
    }
}
