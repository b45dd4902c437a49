use expect_test::{Expect, expect};
use portal_expr::{Mode, Schema, compile};

use super::{ANYWHERE, WITH_PODS, WITHOUT_PODS};
use crate::context::{self, Judged};
use crate::event::Operation;
use crate::kinds::Kinds;

/// What rules may name whose kinds are not known, with or without pods.
fn untyped(has_pods: bool) -> Schema {
    context::schema(Judged {
        kinds: &[],
        has_other_bodies: false,
        has_pods,
        sees_pods: has_pods,
        operations: &[Operation::Create],
        subresources: &[],
        names_request: true,
    })
}

/// What rules for objects of a kind may name.
fn typed(group: &str, kind: &str) -> Schema {
    let kind = Kinds::builtin().get(group, kind).expect(kind);
    let has_pods = ["Pod", "Deployment"].contains(&&*kind.kind);
    let operations = &[Operation::Create];
    let kinds = &[(&**kind, &[][..])];
    let names_request = true;
    context::schema(Judged {
        kinds,
        has_other_bodies: false,
        has_pods,
        sees_pods: has_pods,
        operations,
        subresources: &[],
        names_request,
    })
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
                request has no field `user`: write `request.userInfo.username`
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
                PodSpec has no field `template`: `spec` is that of the pod, write `spec.hostNetwork`
            securityContext.privileged
                PodSecurityContext has no field `privileged`: `securityContext` is that of the pod, write `container.securityContext.privileged`
            securityContext.capabilities.add == nil
                PodSecurityContext has no field `capabilities`: `securityContext` is that of the pod, write `container.securityContext.capabilities.add`
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
#[test]
fn a_field_that_is_elsewhere_in_a_pod_is_told_with_its_place() {
    check(
        &typed("", "Pod"),
        &[
            "spec.metadata.labels.app == 'x'",
            "spec.labels.app == 'x'",
            "spec.name == 'x'",
            "spec.image == 'x'",
            "spec.privileged",
            "spec.hostPath != nil",
            "spec.runAsNonRoot != true",
            "spec.replicas > 2",
            "spec.template.spec.containers == nil",
            "spec.securityContext.privileged",
            "spec.serviceAccount.name == 'default'",
            "spec.containers.privileged",
            "spec.containers.securityContext.privileged",
            "spec.containers[0].tag == 'x'",
            "any(spec.volumes, .type == 'hostPath')",
            "container.privileged",
            "container.capabilities.drop == nil",
            "container.securityContext.capabilities.drop.ALL",
            "container.limits.memory == nil",
            "container.resources.memory > '1Gi'",
            "container.env.FOO == 'x'",
            "container.hostPort > 0",
            "container.ports[0].port == 80",
            "container.tag == 'latest'",
            "container.imageTag == 'latest'",
            "container.imagePolicy == 'Always'",
            "container.image.digest == nil",
            "container.image.registry.host == 'x'",
            "container.type == 'init'",
            "container.probes == nil",
            "container.mounts == nil",
            "any(container.volumes, .hostPath != nil)",
            "container.command == 'sh'",
            "container.serviceAccountName == 'x'",
            "metadata.kind == 'Pod'",
            "metadata.spec.hostNetwork",
            "metadata.owner == 'x'",
            "metadata.namespace.labels.team == nil",
            "object.name == 'x'",
            "object.labels.app == 'x'",
            "object.containers == nil",
            "object.container.image == 'x'",
            "request.user == 'bob'",
            "request.userInfo.name == 'bob'",
            "'x' in request.groups",
            "tolerations == nil",
            "privileged",
            "template.spec.containers[0].image == 'x'",
            "pod.labels.app == 'x'",
            "namespace.labels.team == nil",
            "cluster.pods.get('x', 'y') == nil",
        ],
        expect![[r#"
            spec.metadata.labels.app == 'x'
                PodSpec has no field `metadata`: `spec` is that of the pod, write `metadata.labels.app`
            spec.labels.app == 'x'
                PodSpec has no field `labels`: write `metadata.labels.app`
            spec.name == 'x'
                PodSpec has no field `name`: write `metadata.name`
            spec.image == 'x'
                PodSpec has no field `image`: `spec` is that of the pod, write `container.image`
            spec.privileged
                PodSpec has no field `privileged`: `spec` is that of the pod, write `container.securityContext.privileged`
            spec.hostPath != nil
                PodSpec has no field `hostPath`: `spec` is that of the pod, write `any(spec.volumes, .hostPath …)`
            spec.runAsNonRoot != true
                PodSpec has no field `runAsNonRoot`: `spec` is that of the pod, write `spec.securityContext.runAsNonRoot`
            spec.replicas > 2
                PodSpec has no field `replicas`: `spec` is that of the pod
            spec.template.spec.containers == nil
                PodSpec has no field `template`: `spec` is that of the pod, write `spec.containers`
            spec.securityContext.privileged
                PodSecurityContext has no field `privileged`: write `container.securityContext.privileged`
            spec.serviceAccount.name == 'default'
                a value that is string has no field `name`: write `spec.serviceAccountName`
            spec.containers.privileged
                a list has no field `privileged`: write `any(spec.containers, .securityContext.privileged …)`
            spec.containers.securityContext.privileged
                a list has no field `securityContext`: write `any(spec.containers, .securityContext.privileged …)`, or `spec.containers[0].securityContext.privileged`
            spec.containers[0].tag == 'x'
                Container has no field `tag`: write `spec.containers[0].image.tag`
            any(spec.volumes, .type == 'hostPath')
                Volume has no field `type`: a volume has one field for its type, write `.hostPath != nil`
            container.privileged
                Container has no field `privileged`: write `container.securityContext.privileged`
            container.capabilities.drop == nil
                Container has no field `capabilities`: write `container.securityContext.capabilities.drop`
            container.securityContext.capabilities.drop.ALL
                a list has no field `ALL`: write `"ALL" in container.securityContext.capabilities.drop`
            container.limits.memory == nil
                Container has no field `limits`: write `container.resources.limits.memory`
            container.resources.memory > '1Gi'
                ResourceRequirements has no field `memory`: write `container.resources.limits.memory`
            container.env.FOO == 'x'
                a list has no field `FOO`: write `any(container.env, .name == "FOO" && …)`
            container.hostPort > 0
                Container has no field `hostPort`: write `any(container.ports, .hostPort …)`
            container.ports[0].port == 80
                ContainerPort has no field `port`, did you mean `containerPort` or `hostPort`?
            container.tag == 'latest'
                Container has no field `tag`: write `container.image.tag`
            container.imageTag == 'latest'
                Container has no field `imageTag`: write `container.image.tag`
            container.imagePolicy == 'Always'
                Container has no field `imagePolicy`, did you mean `imagePullPolicy`?
            container.image.digest == nil
                image has no field `digest`: write `container.image.sha256`
            container.image.registry.host == 'x'
                a value that is string has no field `host`
            container.type == 'init'
                Container has no field `type`: write `container.containerType`
            container.probes == nil
                Container has no field `probes`, did you mean `livenessProbe` or `readinessProbe` or `startupProbe`?
            container.mounts == nil
                Container has no field `mounts`, did you mean `volumeMounts`?
            any(container.volumes, .hostPath != nil)
                Container has no field `volumes`: volumes are the pod's, write `spec.volumes`
            container.command == 'sh'
                `==` does not work between array of string and string: write `"sh" in container.command`
            container.serviceAccountName == 'x'
                Container has no field `serviceAccountName`: write `spec.serviceAccountName`
            metadata.kind == 'Pod'
                ObjectMeta has no field `kind`: write `object.kind`
            metadata.spec.hostNetwork
                ObjectMeta has no field `spec`: write `spec.hostNetwork`
            metadata.owner == 'x'
                ObjectMeta has no field `owner`, did you mean `ownerReferences`?
            metadata.namespace.labels.team == nil
                a value that is string has no field `labels`: write `cluster.namespaces.byName(metadata.namespace).metadata.labels.team`
            object.name == 'x'
                Pod has no field `name`: write `object.metadata.name`
            object.labels.app == 'x'
                Pod has no field `labels`: write `object.metadata.labels.app`
            object.containers == nil
                Pod has no field `containers`: write `object.spec.containers`
            object.container.image == 'x'
                Pod has no field `container`: write `container.image`
            request.user == 'bob'
                request has no field `user`: write `request.userInfo.username`
            request.userInfo.name == 'bob'
                userInfo has no field `name`: write `request.userInfo.username`
            'x' in request.groups
                request has no field `groups`: write `request.userInfo.groups`
            tolerations == nil
                unknown name `tolerations`: write `spec.tolerations`
            privileged
                unknown name `privileged`: write `container.securityContext.privileged`
            template.spec.containers[0].image == 'x'
                unknown name `template`: write `spec.containers`
            pod.labels.app == 'x'
                unknown name `pod`: write `metadata.labels.app`
            namespace.labels.team == nil
                unknown name `namespace`: write `cluster.namespaces.byName(metadata.namespace).metadata.labels.team`
            cluster.pods.get('x', 'y') == nil
                `cluster` has no function `get`: write `cluster.pods.byName("x", "y")`
        "#]],
    );
}

#[test]
fn a_field_that_is_elsewhere_in_another_kind_is_told_with_its_place() {
    check(
        &typed("apps", "Deployment"),
        &[
            "spec.template.spec.containers == nil",
            "spec.template.metadata.labels.app == 'x'",
            "spec.replicas > 2",
            "replicas > 2",
            "deployment.spec.replicas > 2",
            "container.replicas > 2",
            "object.replicas > 2",
            "object.spec.containers == nil",
            "object.spec.template.containers == nil",
            "object.template.spec.containers == nil",
            "any(object.spec.template.spec.containers, .image.tag == 'latest')",
        ],
        expect![[r#"
            spec.template.spec.containers == nil
                PodSpec has no field `template`: `spec` is that of the pod, write `spec.containers`
            spec.template.metadata.labels.app == 'x'
                PodSpec has no field `template`: `spec` is that of the pod, write `object.spec.template.metadata.labels.app`
            spec.replicas > 2
                PodSpec has no field `replicas`: `spec` is that of the pod, write `object.spec.replicas`
            replicas > 2
                unknown name `replicas`: write `object.spec.replicas`
            deployment.spec.replicas > 2
                unknown name `deployment`: write `object.spec.replicas`
            container.replicas > 2
                Container has no field `replicas`: write `object.spec.replicas`
            object.replicas > 2
                Deployment has no field `replicas`: write `object.spec.replicas`
            object.spec.containers == nil
                DeploymentSpec has no field `containers`: write `spec.containers`
            object.spec.template.containers == nil
                PodTemplateSpec has no field `containers`: write `object.spec.template.spec.containers`
            object.template.spec.containers == nil
                Deployment has no field `template`: write `object.spec.template.spec.containers`
            any(object.spec.template.spec.containers, .image.tag == 'latest')
                a value that is string has no field `tag`: an image is plain text here, write `image(.image).tag`
        "#]],
    );
    check(
        &typed("networking.k8s.io", "Ingress"),
        &["object.spec.host == 'x'", "host == 'x'", "any(object.spec.rules, any(.paths, .path == '/'))"],
        expect![[r#"
            object.spec.host == 'x'
                IngressSpec has no field `host`: write `any(object.spec.rules, .host …)`
            host == 'x'
                unknown name `host`: write `any(object.spec.rules, .host …)`
            any(object.spec.rules, any(.paths, .path == '/'))
                IngressRule has no field `paths`: write `.http.paths`
        "#]],
    );
    check(
        &typed("", "PersistentVolumeClaim"),
        &["object.spec.storageClass == 'x'", "object.spec.storage > '1Gi'", "object.spec.resources.storage > '1Gi'"],
        expect![[r#"
            object.spec.storageClass == 'x'
                PersistentVolumeClaimSpec has no field `storageClass`, did you mean `storageClassName`?
            object.spec.storage > '1Gi'
                PersistentVolumeClaimSpec has no field `storage`: write `object.spec.resources.requests.storage`
            object.spec.resources.storage > '1Gi'
                VolumeResourceRequirements has no field `storage`: write `object.spec.resources.requests.storage`
        "#]],
    );
    check(
        &typed("", "ConfigMap"),
        &["object.spec.data.x == 'y'", "data.x == 'y'"],
        expect![[r#"
        object.spec.data.x == 'y'
            ConfigMap has no field `spec`: write `object.data.x`
        data.x == 'y'
            unknown name `data`: write `object.data.x`
    "#]],
    );
}
