//! What people mean who look for a part of an object or of a request under a name that it has elsewhere: in CEL, in Rego, in
//! Kyverno, or in their heads.

#[cfg(test)]
mod tests;

use portal_expr::Schema;

/// A path that is no path of ours, and what it is here.
const ANYWHERE: [(&str, &str); 71] = [
    ("oldObject", "request.oldObject"),
    ("old", "request.oldObject"),
    ("userInfo", "request.userInfo"),
    ("user", "request.userInfo.username"),
    ("user.username", "request.userInfo.username"),
    ("user.name", "request.userInfo.username"),
    ("user.groups", "request.userInfo.groups"),
    ("username", "request.userInfo.username"),
    ("groups", "request.userInfo.groups"),
    ("operation", "request.operation"),
    ("dryRun", "request.dryRun"),
    ("request.user", "request.userInfo.username"),
    ("request.user.username", "request.userInfo.username"),
    ("request.user.groups", "request.userInfo.groups"),
    ("request.username", "request.userInfo.username"),
    ("userInfo.name", "request.userInfo.username"),
    ("request.userInfo.name", "request.userInfo.username"),
    ("request.kind", "object.kind"),
    ("request.kind.kind", "object.kind"),
    ("request.kind.group", "object.apiVersion"),
    ("request.kind.version", "object.apiVersion"),
    ("request.requestKind", "object.kind"),
    ("request.requestKind.kind", "object.kind"),
    ("request.requestKind.group", "object.apiVersion"),
    ("request.requestKind.version", "object.apiVersion"),
    ("request.resource", "object.kind"),
    ("request.resource.resource", "object.kind"),
    ("request.resource.group", "object.apiVersion"),
    ("request.resource.version", "object.apiVersion"),
    ("request.requestResource", "object.kind"),
    ("request.requestResource.resource", "object.kind"),
    ("input.review.kind.kind", "object.kind"),
    ("request.subresource", "request.subResource"),
    ("namespace", "metadata.namespace"),
    ("namespace.name", "metadata.namespace"),
    ("namespace.labels", "cluster.namespaces.byName(metadata.namespace).metadata.labels"),
    ("namespace.annotations", "cluster.namespaces.byName(metadata.namespace).metadata.annotations"),
    ("namespace.metadata", "cluster.namespaces.byName(metadata.namespace).metadata"),
    ("metadata.namespace.labels", "cluster.namespaces.byName(metadata.namespace).metadata.labels"),
    ("metadata.namespace.annotations", "cluster.namespaces.byName(metadata.namespace).metadata.annotations"),
    ("metadata.namespace.metadata", "cluster.namespaces.byName(metadata.namespace).metadata"),
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
const WITH_PODS: [(&str, &str); 21] = [
    ("pod", "object"),
    ("pod.spec", "spec"),
    ("pod.metadata", "metadata"),
    ("spec.name", "metadata.name"),
    ("spec.namespace", "metadata.namespace"),
    ("spec.labels", "metadata.labels"),
    ("spec.annotations", "metadata.annotations"),
    ("spec.serviceAccount.name", "spec.serviceAccountName"),
    ("template", "object.spec.template"),
    ("template.spec", "spec"),
    ("podSpec", "spec"),
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
const WITHOUT_PODS: [(&str, &str); 4] = [
    ("pod", "object"),
    ("containers", "object.spec.containers"),
    ("ports", "object.spec.ports"),
    ("replicas", "object.spec.replicas"),
];

/// What people look for in values of a type of Kubernetes, and of ours, by the type and the field. What begins with a dot is in the value
/// itself.
const TYPES: [(&str, &str, &str); 34] = [
    ("image.digest", ".sha256", ""),
    ("image.repository", ".name", ""),
    ("image.path", ".name", ""),
    ("image.version", ".tag", ""),
    ("image.host", ".registry", ""),
    ("Container.isInit", ".containerType == \"init\"", ""),
    ("Container.isInitContainer", ".containerType == \"init\"", ""),
    ("Container.init", ".containerType == \"init\"", ""),
    ("Container.isEphemeral", ".containerType == \"ephemeral\"", ""),
    ("Container.type", ".containerType", ""),
    ("certificate.expired", ".notAfter < now()", ""),
    ("certificate.isExpired", ".notAfter < now()", ""),
    ("certificate.daysLeft", ".notAfter < now() + duration(\"720h\")", ""),
    ("certificate.expires", ".notAfter", ""),
    ("certificate.expiry", ".notAfter", ""),
    ("certificate.validUntil", ".notAfter", ""),
    ("certificate.dnsNames", ".names", ""),
    ("certificate.sans", ".names", ""),
    ("certificate.subjectAltNames", ".names", ""),
    ("certificate.commonName", ".subject", "it is a part of the subject"),
    ("certificate.serial", ".serialNumber", ""),
    ("string.commonName", "{} contains \"CN=\"", "whom a certificate names is one text, such as \"CN=web,O=shop\""),
    ("string.organization", "{} contains \"O=\"", "whom a certificate names is one text, such as \"CN=web,O=shop\""),
    ("Container.memory", ".resources.limits.memory", ""),
    ("Container.cpu", ".resources.requests.cpu", ""),
    ("Container.volumes", "spec.volumes", "volumes are the pod's"),
    ("ResourceRequirements.memory", ".limits.memory", ""),
    ("ResourceRequirements.cpu", ".requests.cpu", ""),
    ("VolumeResourceRequirements.storage", ".requests.storage", ""),
    ("PersistentVolumeClaimSpec.storage", ".resources.requests.storage", ""),
    ("Volume.type", ".hostPath != nil", "a volume has one field for its type"),
    ("Secret.stringData", ".data", "the API server puts it into `data` before rules see it"),
    ("string.tag", "image({}).tag", "an image is plain text here"),
    ("string.registry", "image({}).registry", "an image is plain text here"),
];

/// A schema with what is meant by names that there are not.
pub(super) fn hinted(schema: &Schema, pods: bool) -> Schema {
    let mut schema = schema.clone();
    let own: &[(&str, &str)] = if pods { &WITH_PODS } else { &WITHOUT_PODS };
    for (path, instead) in ANYWHERE.iter().chain(own) {
        schema.add_hint(*path, *instead, "");
    }
    for (path, instead, because) in
        TYPES.iter().filter(|(_, instead, _)| pods || instead.starts_with('.') || instead.contains("{}"))
    {
        schema.add_hint(*path, *instead, *because);
    }
    // Functions, by their calls.
    schema.add_hint("x509_decode()", "x509", "");
    schema.add_hint("certificate()", "x509", "");
    schema.add_hint("crypto.x509", "certificates(…)", "");
    if !pods {
        schema.add_hint("spec", "object.spec", "it is that of a pod");
    } else {
        schema.add_hint("spec.*", "object.spec", "`spec` is that of the pod");
        schema.add_hint("securityContext.*", "container.securityContext", "`securityContext` is that of the pod");
    }
    schema
}
