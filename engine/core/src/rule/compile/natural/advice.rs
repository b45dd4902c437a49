//! Advice that was once poor: rules that were accepted and did something else, and errors that led nowhere.

use super::{DEPLOYMENT, INGRESS, POLICY, check, check_accepted, check_warned};

const ROLE_BINDING: &str = "{group: rbac.authorization.k8s.io, kind: RoleBinding}";
const ROLE: &str = "{group: rbac.authorization.k8s.io, kind: ClusterRole}";

#[test]
fn a_number_beside_an_amount_is_one() {
    check_accepted(
        "{kind: Pod}",
        &[
            r#"sum(spec.containers, .resources.requests.cpu ?? 0) > "4""#,
            r#"sum(map(spec.containers, .resources.requests.memory), # ?? 0) > "8Gi""#,
            r#"(container.resources.limits.cpu ?? 0.5) > "4""#,
            r#"reduce(spec.containers, #acc + (.resources.requests.cpu ?? 0), quantity("0")) > "4""#,
        ],
    );
    check(
        "{kind: Pod}",
        &[
            ("sum(spec.containers, .resources.requests.cpu ?? 0) > 4", r#"`"4"`"#),
            ("(container.resources.limits.cpu ?? 0) == 0", r#"`"0"`"#),
            (r#"sum(spec.containers, .resources.limits.cpu ?? "") > "4""#, "may be a quantity or a text"),
            (r#"sum(map(spec.containers, .resources.requests.memory)) > "8Gi""#, "# ?? 0)` to count them as 0"),
        ],
    );
}

#[test]
fn a_kind_is_that_of_the_object() {
    check(
        DEPLOYMENT,
        &[
            (r#"request.kind.kind == "Deployment""#, "write `object.kind`"),
            (r#"request.requestKind.kind == "Deployment""#, "write `object.kind`"),
            (r#"request.resource.resource == "Deployment""#, "write `object.kind`"),
            (r#"request.kind.version == "apps/v1""#, "write `object.apiVersion`"),
        ],
    );
}

#[test]
fn a_library_of_rego_is_no_object() {
    check(
        "{kind: Pod}",
        &[
            (r#"object.get(metadata.labels, "team", "none") == "none""#, r#"`(metadata.labels.team ?? "none")`"#),
            (r#"object.get(metadata, ["labels", "a/b"], "x") == "x""#, r#"`(metadata.labels["a/b"] ?? "x")`"#),
            (r#"object.get(spec, "hostNetwork", false)"#, "`(spec.hostNetwork ?? false)`"),
            (r#"object.get(metadata.labels, "team", null) == "a""#, "write `metadata.labels.team`"),
        ],
    );
}

#[test]
fn lists_in_lists_are_asked_one_by_one() {
    check(
        "{kind: Pod}",
        &[
            ("contains(spec.containers[].args[], '--x')", r#"`any(spec.containers, "--x" in .args)`"#),
            ("contains(spec.containers[*].args[], '--x')", r#"`any(spec.containers, "--x" in .args)`"#),
            ("contains(spec.containers[].image, 'a')", r#"`"a" in map(spec.containers, .image)`"#),
            (
                "contains(spec.containers[].ports[].name, 'a')",
                r#"`"a" in map(flatten(map(spec.containers, .ports)), .name)`"#,
            ),
            ("length(spec.containers[].ports[]) > 0", "`len(flatten(map(spec.containers, .ports))) > 0`"),
        ],
    );
}

#[test]
fn a_text_is_looked_for_in_all_lists_of_a_list() {
    check(
        INGRESS,
        &[(
            "any(object.spec.rules, .host not in map(object.spec.tls, .hosts))",
            "`flatten(map(object.spec.tls, .hosts))` to have the elements of all of them",
        )],
    );
    check(
        "{kind: ResourceQuota}",
        &[("object.spec.hard.requests.cpu > \"10\"", "`object.spec.hard[\"requests.cpu\"]` if that is the key")],
    );
}

#[test]
fn what_can_never_be_in_a_list_is_told() {
    check(
        "{kind: PersistentVolumeClaim}",
        &[(
            r#""readWriteMany" in object.spec.accessModes"#,
            r#"never "readWriteMany": it is "ReadOnlyMany" or "ReadWriteMany""#,
        )],
    );
    check(
        POLICY,
        &[(r#""egress" not in object.spec.policyTypes"#, r#"it is "Egress" or "Ingress", did you mean `Egress`?"#)],
    );
    check(
        ROLE_BINDING,
        &[(r#"object.roleRef.kind == "clusterRole""#, r#"never "clusterRole": it is "ClusterRole" or "Role""#)],
    );
    check(
        ROLE_BINDING,
        &[(r#"any(object.subjects, .kind == "group")"#, r#"it is "Group" or "ServiceAccount" or "User""#)],
    );
    check_accepted(
        "{kind: PersistentVolumeClaim}",
        &[r#""ReadWriteMany" in object.spec.accessModes"#, r#""a" in ["a", metadata.name]"#],
    );
}

#[test]
fn a_star_stands_for_everything() {
    check_warned(
        ROLE,
        &[
            (r#"any(object.rules, "secrets" in .resources)"#, r#"write `any(.resources, # in ["secrets", "*"])`"#),
            (r#"any(object.rules, any(.verbs, # in ["get", "list"]))"#, r#"write `# in ["get", "list", "*"]`"#),
            (r#"any(object.rules, any(.verbs, # == "bind"))"#, r#"write `# in ["bind", "*"]`"#),
            (
                r#"any(object.rules, "*" in .verbs && "secrets" in .resources)"#,
                r#""*" in `resources` stands for everything, and this rule does not ask for it"#,
            ),
        ],
    );
    check_accepted(
        ROLE,
        &[
            r#"any(object.rules, "*" in .verbs)"#,
            r#"any(object.rules, "get" in .verbs || "*" in .verbs)"#,
            r#"any(object.rules, any(.resources, # in ["secrets", "*"]))"#,
            r#"none(object.rules, "get" in .verbs)"#,
            r#"any(object.rules, "a" in .resourceNames)"#,
        ],
    );
}

#[test]
fn a_regular_expression_between_slashes_is_a_text() {
    check(
        "{kind: Pod}",
        &[
            ("!/^a/.test(metadata.name)", r#"`!(metadata.name matches "^a")`"#),
            (r"spec.hostPID && /^[a/]\d+$/i.test(metadata.name)", r#"metadata.name matches "(?i)^[a/]\\d+$"`"#),
            (
                r"spec.containers.some(c => !/^ghcr\.io\//.test(c.image))",
                r#"`any(spec.containers, !(.image matches "^ghcr\\.io/"))`"#,
            ),
            (r#"/it's "a"/.test(metadata.name)"#, r#"`metadata.name matches "it's \"a\""`"#),
        ],
    );
}

#[test]
fn operands_in_the_wrong_order_are_told() {
    check_warned(
        "{kind: Pod}",
        &[
            (r#""nginx" startsWith container.image"#, r#"`container.image startsWith "nginx"`"#),
            (r#"":latest" not endsWith container.image"#, r#"`container.image not endsWith ":latest"`"#),
            (r#""nginx" contains container.image"#, r#"`container.image contains "nginx"`"#),
            (r#""^nginx" matches container.image"#, r#"`container.image matches "^nginx"`"#),
            (r#""dev,prod" contains metadata.labels.env"#, r#"`metadata.labels.env in ["dev", "prod"]`"#),
            (r#"any(["a.io/", "b.io/"], # startsWith container.image)"#, "`container.image startsWith #`"),
        ],
    );
    for rule in [
        r#"any(["a.io/", "b.io/"], container.image startsWith #)"#,
        r#"container.image startsWith metadata.labels.registry"#,
        r#"(metadata.labels.a ?? "") contains metadata.name"#,
    ] {
        assert_eq!(super::told("gvk: [{kind: Pod}]", rule), "", "{rule}");
    }
}

#[test]
fn what_is_missing_twice_is_equal() {
    let probes = "container.livenessProbe.httpGet.path == container.readinessProbe.httpGet.path";
    let advice = format!("`container.livenessProbe.httpGet.path != nil && {probes}`");
    check_warned("{kind: Pod}", &[(probes, &advice)]);
    for rule in [
        &format!("not ({probes})"),
        &format!("container.livenessProbe.httpGet.path != nil && {probes}"),
        "metadata.labels.app != metadata.labels.name",
        "all(spec.volumes, .configMap.name == .secret.secretName)",
        "request.operation == \"UPDATE\" && metadata.labels.app == request.oldObject.metadata.labels.app",
    ] {
        let told = super::told("gvk: [{kind: Pod}]", rule);
        assert!(!told.contains("both be missing"), "{rule}\n{told}");
    }
}

#[test]
fn what_counts_without_being_there_is_warned_of() {
    let both = "`(.failureThreshold ?? 3) > (.periodSeconds ?? 10)`";
    check_warned("{kind: Pod}", &[("any([container.livenessProbe], .failureThreshold > .periodSeconds)", both)]);
    let before = "`(object.spec.replicas ?? 1) == 1`";
    let kinds = format!("{DEPLOYMENT}, {{group: apps, kind: DaemonSet}}");
    let told = super::told(&format!("gvk: [{kinds}]"), "object.spec.replicas == 1");
    assert!(!told.contains(before), "a DaemonSet has none: {told}");
    check_accepted(
        DEPLOYMENT,
        &[
            "request.operation == \"UPDATE\" && object.spec.replicas < request.oldObject.spec.replicas",
            "request.operation == \"UPDATE\" && object.spec.replicas != request.oldObject.spec.replicas",
            "object.spec.replicas > 3 || object.spec.replicas == 0 || object.spec.replicas != 5",
            "object.spec.replicas == nil || object.spec.replicas == 1",
            "object.spec.replicas == 1 || object.spec.replicas == nil",
            "object.spec.progressDeadlineSeconds > 600",
        ],
    );
}

#[test]
fn what_is_neither_true_nor_false_is_taken_for_one_of_them() {
    check_warned(
        "{kind: Pod}",
        &[
            (
                "container.securityContext.readOnlyRootFilesystem == false",
                "Kubernetes takes it for false then, which this rule does not: write \
                 `container.securityContext.readOnlyRootFilesystem != true` to take it for false",
            ),
            ("false != spec.hostNetwork", "`spec.hostNetwork == true` to take it for false"),
            (
                "container.securityContext.allowPrivilegeEscalation == true",
                "takes it for true then, which this rule does not: write `container.securityContext.allowPrivilegeEscalation != false`",
            ),
            (
                "container.securityContext.allowPrivilegeEscalation",
                "`container.securityContext.allowPrivilegeEscalation != false`",
            ),
            ("spec.hostPID && spec.automountServiceAccountToken", "`spec.automountServiceAccountToken != false`"),
            ("not spec.automountServiceAccountToken", "`spec.automountServiceAccountToken == false`"),
            ("any([spec], .hostUsers)", "`.hostUsers != false`"),
            ("any(spec.volumes, .secret.optional == false)", "`.secret != nil && .secret.optional != true`"),
            ("container.securityContext.runAsNonRoot == false", "what is missing is not false: write"),
        ],
    );
    check_accepted(
        "{kind: Pod}",
        &[
            "container.securityContext.readOnlyRootFilesystem != true",
            "not container.securityContext.readOnlyRootFilesystem",
            "container.securityContext.privileged == true",
            "container.securityContext.allowPrivilegeEscalation != false",
            "spec.automountServiceAccountToken == false",
            "spec.hostNetwork == nil || spec.hostNetwork == false",
            "container.securityContext.readOnlyRootFilesystem == false || \
             (container.securityContext.readOnlyRootFilesystem ?? spec.hostPID) != true",
        ],
    );
    check_accepted("{kind: Pod}", &["any(spec.volumes, .secret != nil && .secret.optional != true)"]);
}

#[test]
fn nothing_is_divided_by_what_is_missing() {
    check(
        "{kind: Pod}",
        &[
            (
                "(container.resources.limits.memory ?? \"0\") / container.resources.requests.memory > 2",
                "write `container.resources.requests.memory > \"0\" && …` before it",
            ),
            ("100 % (spec.activeDeadlineSeconds ?? 0) > 2", "write `spec.activeDeadlineSeconds > 0 && …` before it"),
            ("100 / (spec.activeDeadlineSeconds ?? 0) > 2", "write `spec.activeDeadlineSeconds > 0 && …` before it"),
            (
                "5 / quantity(metadata.annotations.ratio) > 4",
                "write `metadata.annotations.ratio != nil && quantity(metadata.annotations.ratio) > \"0\" && …` before it",
            ),
            (
                "5 / int(metadata.annotations.ratio ?? \"0\") > 4",
                "write `metadata.annotations.ratio != nil && int(metadata.annotations.ratio) > 0 && …` before it",
            ),
            (
                "100 % (spec.priority ?? spec.activeDeadlineSeconds) > 2",
                "write `let x = spec.priority ?? spec.activeDeadlineSeconds; x > 0 && …`, and divide by `x`",
            ),
        ],
    );
    check_accepted(
        "{kind: Pod}",
        &[
            "spec.activeDeadlineSeconds > 0 && 100 % (spec.activeDeadlineSeconds ?? 0) > 2",
            "let x = spec.priority ?? spec.activeDeadlineSeconds; x > 0 && 100 % x > 2",
            "metadata.annotations.ratio != nil && int(metadata.annotations.ratio) > 0 && \
             5 % int(metadata.annotations.ratio) > 4",
        ],
    );
    let ratio = "container.resources.limits.memory / container.resources.requests.memory > 2";
    let guarded = "container.resources.limits.memory != nil && container.resources.requests.memory != nil";
    check_accepted("{kind: Pod}", &[&format!("{guarded} && {ratio}")]);
}

#[test]
fn nothing_is_divided_by_0() {
    check(
        DEPLOYMENT,
        &[
            ("(object.spec.replicas ?? 1) / 0 > 1", "nothing can be divided by 0"),
            ("let n = 0; (object.spec.replicas ?? 1) % n > 1", "nothing can be divided by 0"),
            (
                "(object.spec.replicas ?? 1) % len(object.spec.template.spec.volumes) == 1",
                "may be 0, and nothing can be divided by that: write `len(object.spec.template.spec.volumes) > 0 && …`",
            ),
            (
                "10 % object.spec.replicas == 1",
                "may be 0, and nothing can be divided by that: write `object.spec.replicas > 0 && …`",
            ),
            ("10 % (object.spec.replicas ?? 1) == 1", "write `(object.spec.replicas ?? 1) > 0 && …` before it"),
        ],
    );
    let volumes = "object.spec.template.spec.volumes";
    let remainder = format!("(object.spec.replicas ?? 1) % len({volumes}) == 1");
    check_accepted(
        DEPLOYMENT,
        &[
            &format!("len({volumes}) > 0 && {remainder}"),
            &format!("0 < len({volumes}) && {remainder}"),
            &format!("{volumes} != nil && {remainder}"),
            &format!("len({volumes}) == 0 || {remainder}"),
            &format!("len({volumes}) != 0 ? {remainder} : false"),
            &format!("let n = len({volumes}); n >= 1 && 5 % n == 1"),
            "any(object.spec.template.spec.containers, len(.ports) > 0 && 5 % len(.ports) == 1)",
            "(object.spec.replicas ?? 1) > 0 && 10 % (object.spec.replicas ?? 1) == 1",
            "(object.spec.replicas ?? 1) % 2 == 0",
            "let n = 3; (object.spec.replicas ?? 1) % n == 0",
        ],
    );
    // What one element has says nothing of another one.
    let inner = "any(object.spec.template.spec.containers, len(.ports) > 0 && any(.env, 5 % len(.ports) == 1))";
    let told = super::told(&format!("gvk: [{DEPLOYMENT}]"), inner);
    assert!(told.starts_with("Error"), "{told}");
}

#[test]
fn what_is_missing_is_in_a_list_where_something_is_missing() {
    let others = r#"any(cluster.ingresses.list("*"), let other = #; any(object.spec.rules, .host in map(other.spec.rules, .host)))"#;
    let named = r#"let hosts = map(object.spec.rules, .host); any(cluster.ingresses.list("*"), any(.spec.rules, .host in hosts))"#;
    let counted =
        r#"let hosts = map(object.spec.rules, .host); len(filter(hosts, # in map(object.spec.tls, .secretName))) > 0"#;
    check_warned(
        INGRESS,
        &[
            (others, "write `.host != nil && .host in map(other.spec.rules, .host)` to leave out what has none"),
            (named, "elements of `hosts`, and then it is one of them: write `.host != nil && .host in hosts`"),
            (counted, "write `# != nil && # in map(object.spec.tls, .secretName)`"),
        ],
    );
    check_accepted(
        INGRESS,
        &[
            "let hosts = map(object.spec.tls, .secretName); any(object.spec.rules, .host != nil && .host in hosts)",
            "let hosts = map(object.spec.tls, .secretName); any(object.spec.rules, .host not in hosts)",
            "let hosts = map(object.spec.tls, .secretName); none(object.spec.rules, .host in hosts)",
            "let hosts = map(object.spec.tls, .secretName); len(filter(object.spec.rules, .host in hosts)) == 0",
            "any(object.spec.rules, .host in [nil, \"\"])",
            "let hosts = filter(map(object.spec.tls, .secretName), # != nil); any(object.spec.rules, .host in hosts)",
        ],
    );
}

#[test]
fn what_a_filter_leaves_is_there() {
    check(
        INGRESS,
        &[(
            r#"join(map(object.spec.rules, .host), ", ") == "a""#,
            r#"`join(filter(map(object.spec.rules, .host), # != nil), ", ")` to leave those out"#,
        )],
    );
    check_accepted(
        INGRESS,
        &[
            r#"join(map(filter(object.spec.rules, .host != nil), .host), ", ") == "a""#,
            r#"join(filter(map(object.spec.rules, .host), # != nil), ", ") == "a""#,
            r#"any(filter(object.spec.rules, .host != nil), lower(.host) == "a")"#,
            r#"let named = filter(object.spec.rules, .host != nil && .http != nil); all(named, lower(.host) == "a")"#,
            r#"any(filter(filter(object.spec.rules, .host != nil), .http != nil), lower(.host) == "a")"#,
            r#"any(object.spec.rules | filter(.host != nil) | sortBy(.host), lower(.host) == "a")"#,
        ],
    );
    check(
        INGRESS,
        &[
            (r#"any(filter(object.spec.rules, .host == nil), lower(.host) == "a")"#, "`.host` may be missing"),
            (r#"any(filter(object.spec.rules, .host != nil || .http != nil), lower(.host) == "a")"#, "may be missing"),
            (
                r#"any(filter(object.spec.rules, .host != nil), any(.http.paths, lower(.path) == "a"))"#,
                "`.path` may be",
            ),
        ],
    );
}

#[test]
fn a_date_is_read_before_it_is_missing() {
    let rows = [
        ("now() - metadata.creationTimestamp > duration(\"24h\")", "write `date(metadata.creationTimestamp)`"),
        ("metadata.creationTimestamp + duration(\"24h\") < now()", "write `date(metadata.creationTimestamp)`"),
    ];
    check("{kind: Namespace}", &rows);
}

#[test]
fn an_element_further_out_gets_a_name() {
    check(
        INGRESS,
        &[(
            "not all(object.spec.rules, any(object.spec.tls, #.host in .hosts))",
            "`all(object.spec.rules, let outer = #; any(object.spec.tls, outer.host in .hosts))`",
        )],
    );
    check(
        POLICY,
        &[(
            "any(object.spec.ingress, any(.from, .podSelector == nil && len(.ports) == 0))",
            "`any(object.spec.ingress, let outer = #; any(.from, .podSelector == nil && len(outer.ports) == 0))`",
        )],
    );
}

#[test]
fn the_pairs_of_a_map_are_its_keys() {
    check(
        INGRESS,
        &[
            (
                r#"metadata.annotations.any(k, v, k endsWith "-snippet" && v != "")"#,
                r#"`any(keys(metadata.annotations), # endsWith "-snippet" && metadata.annotations[#] != "")`"#,
            ),
            (r#"object.metadata.labels.exists(k, v, k == "a")"#, r#"`any(keys(object.metadata.labels), # == "a")`"#),
        ],
    );
}

#[test]
fn what_is_asked_of_all_elements_is_asked_by_any() {
    check(
        "{kind: Service}",
        &[
            ("object.spec.ports[_].port == 22", "`any(object.spec.ports, .port == 22)`"),
            ("object.spec.ports[*].port contains 22", "`22 in map(object.spec.ports, .port)`"),
            ("object.spec.ports[].name == \"ssh\"", "`\"ssh\" in map(object.spec.ports, .name)`"),
            (
                "cidr(\"10.0.0.0/8\") contains object.spec.loadBalancerIP",
                "`object.spec.loadBalancerIP in cidr(\"10.0.0.0/8\")`",
            ),
            ("metadata.name !~ \"^a\"", "`metadata.name not matches \"^a\"`"),
        ],
    );
}

#[test]
fn what_containers_say_otherwise_is_asked_of_them() {
    let whole = "`(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot) != true`";
    let named =
        "`let runAsUser = container.securityContext.runAsUser ?? spec.securityContext.runAsUser; runAsUser != nil && ";
    check_warned(
        "{kind: Pod}",
        &[
            ("securityContext.runAsNonRoot != true", whole),
            ("spec.securityContext.runAsUser != nil && spec.securityContext.runAsUser < 1000", named),
            ("not securityContext.runAsNonRoot", "`not (container.securityContext.runAsNonRoot ?? "),
            (
                "securityContext.runAsUser == 0 || securityContext.runAsGroup == 0",
                "?? securityContext.runAsGroup) == 0",
            ),
            (
                "let s = securityContext.seLinuxOptions; s.type == 'spc_t'",
                "`let s = (container.securityContext.seLinuxOptions",
            ),
        ],
    );
}

#[test]
fn nothing_is_found_by_a_name_that_is_not_set() {
    let by_name = "cluster.secrets.byName(metadata.namespace, .secret.secretName) == nil";
    check_warned(
        "{kind: Pod}",
        &[
            (&format!("any(spec.volumes, {by_name})"), &format!("`.secret.secretName != nil && {by_name}`")),
            (
                "cluster.priorityclasses.byName(spec.priorityClassName) == nil",
                "`spec.priorityClassName != nil && cluster.priorityclasses.byName(spec.priorityClassName) == nil`",
            ),
            (
                "let class = cluster.priorityclasses.byName(spec.priorityClassName); class == nil",
                "`spec.priorityClassName != nil && class == nil`",
            ),
        ],
    );
    let selected = "len(cluster.pods.list(metadata.namespace, object.spec.selector)) == 0";
    let unselected = "none(cluster.pods.list(metadata.namespace, object.spec.selector), .spec.hostNetwork)";
    let rows = [selected, unselected].map(|rule| {
        (rule, format!("nothing is selected then, so that this is true: write `object.spec.selector != nil && {rule}`"))
    });
    check_warned("{kind: Service}", &rows.each_ref().map(|(rule, advice)| (*rule, advice.as_str())));
    for rule in [
        "any(spec.volumes, .secret != nil && cluster.secrets.byName(metadata.namespace, .secret.secretName) == nil)",
        "any(container.envFrom, .configMapRef != nil and cluster.configmaps.byName(metadata.namespace, .configMapRef.name) == nil)",
        "any(spec.volumes, cluster.secrets.byName(metadata.namespace, .secret.secretName).type == 'Opaque')",
        "cluster.priorityclasses.byName(spec.priorityClassName) != nil",
    ] {
        assert_eq!(super::told("gvk: [{kind: Pod}]", rule), "", "{rule}");
    }
}

#[test]
fn a_text_that_kubernetes_fills_in_by_what_else_is_there_is_warned_of() {
    check_warned(
        DEPLOYMENT,
        &[(
            r#"container.imagePullPolicy != "Always""#,
            r#"`container.imagePullPolicy != nil && container.imagePullPolicy != "Always"`"#,
        )],
    );
    for (kind, rule) in [
        ("{kind: Service}", r#"object.spec.type == "NodePort""#),
        ("{kind: Service}", r#"object.spec.type in ["NodePort", "LoadBalancer"]"#),
        ("{kind: Service}", r#"object.spec.type in ["ClusterIP", nil]"#),
        ("{kind: Service}", r#"object.spec.type == nil || object.spec.type == "ClusterIP""#),
        (DEPLOYMENT, r#"object.spec.strategy.type == "Recreate""#),
        (DEPLOYMENT, r#"container.restartPolicy == "Always""#),
        (DEPLOYMENT, r#"any(cluster.services.list(metadata.namespace), .spec.type == "ClusterIP")"#),
    ] {
        assert_eq!(super::told(&format!("gvk: [{kind}]"), rule), "", "{rule}");
    }
}

#[test]
fn what_is_given_a_value_is_a_field_of_something() {
    let delay = "container.livenessProbe.initialDelaySeconds < 5";
    check(
        "{kind: Pod}",
        &[
            (delay, "`container.livenessProbe != nil && (container.livenessProbe.initialDelaySeconds ?? 0) < 5`"),
            ("securityContext.fsGroup < 1000", "write `(securityContext.fsGroup ?? 0) < 1000`"),
            (
                "container.livenessProbe != nil && container.livenessProbe.initialDelaySeconds < 5",
                "write `(container.livenessProbe.initialDelaySeconds ?? 0) < 5`",
            ),
            (
                "any(spec.containers, .readinessProbe.periodSeconds < 5)",
                "`.readinessProbe != nil && (.readinessProbe.periodSeconds ?? 10) < 5`",
            ),
        ],
    );
    check_warned(
        "{kind: Pod}",
        &[(
            "container.livenessProbe.periodSeconds == 10",
            "`container.livenessProbe != nil && (container.livenessProbe.periodSeconds ?? 10) == 10`",
        )],
    );
}
