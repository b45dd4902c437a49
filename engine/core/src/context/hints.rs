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
const WITHOUT_PODS: [(&str, &str); 4] = [
    ("pod", "object"),
    ("containers", "object.spec.containers"),
    ("ports", "object.spec.ports"),
    ("replicas", "object.spec.replicas"),
];

/// A schema with what is meant by names that there are not.
pub(super) fn hinted(schema: &Schema, pods: bool) -> Schema {
    let mut schema = schema.clone();
    let own: &[(&str, &str)] = if pods { &WITH_PODS } else { &WITHOUT_PODS };
    for (path, instead) in ANYWHERE.iter().chain(own) {
        schema.add_hint(*path, *instead, "");
    }
    // Functions, by their calls.
    schema.add_hint("x509_decode()", "x509", "");
    schema.add_hint("crypto.x509", "certificates(…)", "");
    if !pods {
        schema.add_hint("spec", "object.spec", "it is that of a pod");
    } else {
        schema.add_hint("spec.*", "object.spec", "`spec` is that of the pod");
        schema.add_hint("securityContext.*", "container.securityContext", "`securityContext` is that of the pod");
    }
    schema
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use portal_expr::{Mode, Schema, compile};

    use super::{ANYWHERE, WITH_PODS, WITHOUT_PODS};
    use crate::context::{self, Judged};
    use crate::event::Operation;

    /// What rules may name whose kinds are not known, with or without pods.
    fn untyped(has_pods: bool) -> Schema {
        context::schema(Judged { kinds: &[], has_other_bodies: false, has_pods, operations: &[Operation::Create] })
    }

    #[track_caller]
    fn check(schema: &Schema, sources: &[&str], expected: Expect) {
        let mut table = String::new();
        for source in sources {
            let error = compile(source, schema, Mode::Rules).expect_err(source);
            table += &format!("{source}\n    {}\n", error.message);
        }
        expected.assert_eq(&table);
    }

    #[test]
    fn what_is_written_instead_is_there() {
        let (pods, others) = (untyped(true), untyped(false));
        let tables =
            [(&pods, &ANYWHERE[..]), (&pods, &WITH_PODS[..]), (&others, &ANYWHERE[..]), (&others, &WITHOUT_PODS[..])];
        for (schema, table) in tables {
            for (path, instead) in table {
                let compiles = |path: &str| compile(&format!("{path} != nil"), schema, Mode::Rules).is_ok();
                assert!(compiles(instead), "{instead}");
                assert!(!compiles(path), "{path}");
            }
        }
    }

    #[test]
    fn a_name_of_another_place_is_told_with_its_own() {
        check(
            &untyped(true),
            &[
                "oldObject.spec.replicas == 1",
                "userInfo.username == 'x'",
                "username startsWith 'system:'",
                "operation == 'CREATE'",
                "namespace == 'default'",
                "name == 'x'",
                "kind == 'Pod'",
                "labels.app == 'x'",
                "labels.cost-center == 'x'",
                "annotations.example.com/owner == 'x'",
                "any(containers, .tty)",
                "image startsWith 'x'",
                "pod.spec.hostNetwork",
                "self.spec.hostNetwork",
                "this.kind == 'Pod'",
                "resource.kind == 'Pod'",
                "input.review.object.spec.hostNetwork",
                "input.request.object.spec.hostNetwork",
                "input.request.userInfo.username == 'x'",
                "input.spec.hostNetwork",
                "review.object.kind == 'Pod'",
                "namespaceObject.metadata.labels.team == 'x'",
                "request.user.username == 'x'",
                "metadata.labels.app.kubernetes.io/name == 'x'",
                "metadata.annotations.cost-center == 'x'",
                "object.metadata.labels.cost-center == 'x'",
                "not 'team' in metadata.labels",
                "x509_decode(object.data.crt ?? '').isCA",
                "crypto.x509.parse_certificates(object.data.crt)",
            ],
            expect![[r#"
                oldObject.spec.replicas == 1
                    unknown name `oldObject`: write `request.oldObject.spec.replicas`
                userInfo.username == 'x'
                    unknown name `userInfo`: write `request.userInfo.username`
                username startsWith 'system:'
                    unknown name `username`: write `request.userInfo.username`
                operation == 'CREATE'
                    unknown name `operation`: write `request.operation`
                namespace == 'default'
                    unknown name `namespace`: write `metadata.namespace`
                name == 'x'
                    unknown name `name`: write `metadata.name`
                kind == 'Pod'
                    unknown name `kind`: write `object.kind`
                labels.app == 'x'
                    unknown name `labels`: write `metadata.labels.app`
                labels.cost-center == 'x'
                    a key with other signs than letters and digits is put in quotes: write `metadata.labels["cost-center"]`
                annotations.example.com/owner == 'x'
                    a key with other signs than letters and digits is put in quotes: write `metadata.annotations["example.com/owner"]`
                any(containers, .tty)
                    unknown name `containers`: write `spec.containers`
                image startsWith 'x'
                    unknown name `image`: write `container.image`
                pod.spec.hostNetwork
                    unknown name `pod`: write `spec.hostNetwork`
                self.spec.hostNetwork
                    unknown name `self`: write `object.spec.hostNetwork`
                this.kind == 'Pod'
                    unknown name `this`: write `object.kind`
                resource.kind == 'Pod'
                    unknown name `resource`: write `object.kind`
                input.review.object.spec.hostNetwork
                    unknown name `input`: write `object.spec.hostNetwork`
                input.request.object.spec.hostNetwork
                    unknown name `input`: write `object.spec.hostNetwork`
                input.request.userInfo.username == 'x'
                    unknown name `input`: write `request.userInfo.username`
                input.spec.hostNetwork
                    unknown name `input`: write `object.spec.hostNetwork`
                review.object.kind == 'Pod'
                    unknown name `review`: write `object.kind`
                namespaceObject.metadata.labels.team == 'x'
                    unknown name `namespaceObject`: write `cluster.namespaces.byName(metadata.namespace).metadata.labels.team`
                request.user.username == 'x'
                    request has no field `user`: write `request.userInfo`
                metadata.labels.app.kubernetes.io/name == 'x'
                    a key with other signs than letters and digits is put in quotes: write `metadata.labels["app.kubernetes.io/name"]`
                metadata.annotations.cost-center == 'x'
                    a key with other signs than letters and digits is put in quotes: write `metadata.annotations["cost-center"]`
                object.metadata.labels.cost-center == 'x'
                    a key with other signs than letters and digits is put in quotes: write `object.metadata.labels["cost-center"]`
                not 'team' in metadata.labels
                    this is `(not "team") in metadata.labels`: write `"team" not in metadata.labels`
                x509_decode(object.data.crt ?? '').isCA
                    unknown function `x509_decode`: write `x509(object.data.crt ?? "")`
                crypto.x509.parse_certificates(object.data.crt)
                    unknown name `crypto`: write `certificates(…)`
            "#]],
        );
    }

    #[test]
    fn the_spec_of_a_pod_is_not_that_of_its_owner() {
        check(
            &untyped(true),
            &[
                "spec.replicas > 3",
                "spec.hostNetwrk",
                "spec.template.spec.hostNetwork",
                "securityContext.privileged",
                "securityContext.capabilities.add == nil",
            ],
            expect![[r#"
                spec.replicas > 3
                    PodSpec has no field `replicas`: `spec` is that of the pod, write `object.spec.replicas`
                spec.hostNetwrk
                    PodSpec has no field `hostNetwrk`, did you mean `hostNetwork`?
                spec.template.spec.hostNetwork
                    PodSpec has no field `template`: `spec` is that of the pod, write `object.spec.template`
                securityContext.privileged
                    PodSecurityContext has no field `privileged`: `securityContext` is that of the pod, write `container.securityContext.privileged`
                securityContext.capabilities.add == nil
                    PodSecurityContext has no field `capabilities`: `securityContext` is that of the pod, write `container.securityContext.capabilities`
            "#]],
        );
        check(
            &untyped(false),
            &["spec.type == 'LoadBalancer'", "any(ports, .nodePort > 0)"],
            expect![[r#"
            spec.type == 'LoadBalancer'
                unknown name `spec`: it is that of a pod, write `object.spec.type`
            any(ports, .nodePort > 0)
                unknown name `ports`: write `object.spec.ports`
        "#]],
        );
    }
}
