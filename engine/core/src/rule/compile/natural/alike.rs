//! What says more, or less, than the one way to say it that came to mind.

use super::{DEPLOYMENT, INGRESS, PDB, POLICY, check_judged, check_silent, check_warned};

const ROLE: &str = "{group: rbac.authorization.k8s.io, kind: ClusterRole}";
const HOOKS: &str = "{group: admissionregistration.k8s.io, kind: ValidatingWebhookConfiguration}";

#[test]
fn one_text_may_stand_for_all() {
    let (add, drop) = ("container.securityContext.capabilities.add", "container.securityContext.capabilities.drop");
    check_warned(
        "{kind: Pod}",
        &[
            (&format!(r#""NET_ADMIN" in {add}"#), &format!(r#"`any({add}, # in ["NET_ADMIN", "ALL"])`"#)),
            (&format!(r#"any({add}, # in ["NET_ADMIN", "SYS_TIME"])"#), r#"`# in ["NET_ADMIN", "SYS_TIME", "ALL"]`"#),
            (&format!(r#""NET_RAW" not in {drop}"#), &format!(r#"`none({drop}, # in ["NET_RAW", "ALL"])`"#)),
            (&format!(r#"any(["NET_RAW"], # not in {drop})"#), &format!(r#"`"ALL" not in {drop} && …`"#)),
            (&format!(r#"not ("NET_RAW" in {drop})"#), &format!(r#"`any({drop}, # in ["NET_RAW", "ALL"])`"#)),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            &format!(r#""ALL" not in {drop}"#),
            &format!(r#"any({add}, # not in ["NET_BIND_SERVICE"])"#),
            &format!(r#"any({add}, # != "NET_BIND_SERVICE")"#),
            &format!(r#"none({drop}, # in ["NET_RAW", "ALL"])"#),
            &format!(r#""NET_RAW" not in {drop} && "ALL" not in {drop}"#),
            &format!(r#""SYS_ADMIN" in {add} || "ALL" in {add}"#),
            &format!(r#""ALL" not in {drop} && any(["NET_RAW"], # not in {drop})"#),
        ],
    );
}

#[test]
fn a_part_is_meant_by_all_parts_of_its_name() {
    check_warned(
        ROLE,
        &[
            (
                r#"any(object.rules, "pods/exec" in .resources)"#,
                r#"`any(.resources, # in ["pods/exec", "*/exec", "*"])`"#,
            ),
            (
                r#"any(object.rules, any(.resources, # in ["pods/exec", "*"]))"#,
                r#"`# in ["pods/exec", "*", "*/exec"]`"#,
            ),
            (
                r#"any(object.rules, "pods/exec" in .resources || "*" in .resources)"#,
                r#""*/exec" in `resources` stands for it too"#,
            ),
            (
                r#"any(object.rules, let rule = #; any(["bind", "escalate"], # in rule.verbs))"#,
                r#"`any(rule.verbs, # in ["bind", "escalate", "*"])`"#,
            ),
            (
                r#"any(object.rules, "/metrics" in .nonResourceURLs)"#,
                r#"`any(.nonResourceURLs, # in ["/metrics", "*"])`"#,
            ),
        ],
    );
    check_silent(
        ROLE,
        &[
            r#"any(object.rules, any(.resources, # in ["pods/exec", "*/exec", "*"]))"#,
            r#"any(object.rules, any(.resources, # in ["secrets", "*"]) && any(.verbs, # in ["get", "*"]))"#,
            r#"any(object.rules, "*" in .resources)"#,
            r#"any(object.rules, "*/exec" in .resources)"#,
        ],
    );
    // Rules of webhooks mean parts apart from what they are parts of.
    check_warned(
        HOOKS,
        &[
            (
                r#"any(object.webhooks, any(.rules, "pods" in .resources))"#,
                r#"`any(.resources, # in ["pods", "*", "*/*"])`"#,
            ),
            (
                r#"any(object.webhooks, any(.rules, any(.resources, # == "pods/exec")))"#,
                r#"`# in ["pods/exec", "pods/*", "*/exec", "*/*"]`"#,
            ),
            (r#"any(object.webhooks, any(.rules, "*" in .resources))"#, r#"`any(.resources, # in ["*", "*/*"])`"#),
        ],
    );
}

#[test]
fn what_is_left_out_may_stand_for_everything() {
    check_warned(
        "{kind: Pod}",
        &[
            (r#"any(spec.tolerations, .key == "a")"#, r#"`(.key == nil || .key == "a")`"#),
            (r#"any(spec.tolerations, .key startsWith "a/")"#, r#"`(.key == nil || .key startsWith "a/")`"#),
            (r#"any(spec.tolerations, .effect in ["NoExecute"])"#, r#"`(.effect == nil || .effect in ["NoExecute"])`"#),
            (r#"none(spec.tolerations, "gpu" == .key)"#, r#"`(.key == nil || "gpu" == .key)`"#),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            r#"any(spec.tolerations, .key == nil || .key == "a")"#,
            r#"any(spec.tolerations, .key not in ["a", "b"])"#,
            r#"any(spec.tolerations, .key != "a")"#,
            r#"any(spec.tolerations, .operator == "Exists" && .key == nil)"#,
        ],
    );
    let pod = |toleration: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], tolerations: [{{{toleration}}}]}}}}"
        )
    };
    check_judged(
        "{kind: Pod}",
        r#"any(spec.tolerations, .operator == "Equal" && .value == "gpu")"#,
        &[(&pod("key: a, value: gpu"), true), (&pod("key: a, operator: Exists"), false)],
    );
}

#[test]
fn all_addresses_are_those_of_both_kinds() {
    check_warned(
        POLICY,
        &[
            (
                r#"any(object.spec.egress, any(.to, .ipBlock.cidr == "0.0.0.0/0"))"#,
                r#"`.ipBlock.cidr in ["0.0.0.0/0", "::/0"]`"#,
            ),
            (
                r#"any(object.spec.egress, any(.to, .ipBlock.cidr in ["10.0.0.0/8", "0.0.0.0/0"]))"#,
                r#"`.ipBlock.cidr in ["10.0.0.0/8", "0.0.0.0/0", "::/0"]`"#,
            ),
        ],
    );
    check_warned(
        "{kind: Service}",
        &[(
            r#""0.0.0.0/0" in object.spec.loadBalancerSourceRanges"#,
            r#"`any(object.spec.loadBalancerSourceRanges, # in ["0.0.0.0/0", "::/0"])`"#,
        )],
    );
    let ranges = "object.spec.loadBalancerSourceRanges";
    let open = format!(r#"any({ranges}, # == "0.0.0.0/0" || # == "::/0")"#);
    check_warned("{kind: Service}", &[(&open, &format!("`({ranges} == nil || {open})`"))]);
    check_silent("{kind: Service}", &[&format!("{ranges} == nil || {open}")]);
}

#[test]
fn a_rule_of_a_policy_without_peers_or_ports_is_for_all() {
    let open = |list: &str, all: &str, whole: &str| {
        format!(
            "`{list}` may be empty, and stands for {all} then, which this rule does not ask for: write `({list} == nil || {whole})`"
        )
    };
    let peers = r#"any(.to, .ipBlock.cidr in ["0.0.0.0/0", "::/0"])"#;
    let ports = r#"any(.ports, .port == nil || .port == "ssh")"#;
    check_warned(
        POLICY,
        &[
            (&format!("any(object.spec.egress, {peers})"), &open(".to", "every destination", peers)),
            (&format!("any(object.spec.ingress, {ports})"), &open(".ports", "every port", ports)),
            (
                "any(object.spec.ingress, any(.from, .namespaceSelector == {}))",
                &open(".from", "whoever asks", "any(.from, .namespaceSelector == {})"),
            ),
            (
                "len(filter(object.spec.ingress, any(.from, .ipBlock != nil))) > 0",
                &open(".from", "whoever asks", "any(.from, .ipBlock != nil)"),
            ),
            (
                "any(object.spec.ingress, len(filter(.from, .ipBlock != nil)) > 0)",
                &open(".from", "whoever asks", "len(filter(.from, .ipBlock != nil)) > 0"),
            ),
            (
                r#"any(object.spec.ingress, let ports = map(.ports, .port); any(ports, # == nil || # == "ssh"))"#,
                &open(".ports", "every port", r#"any(ports, # == nil || # == "ssh")"#),
            ),
            (
                "not all(object.spec.egress, all(.to, .podSelector != nil))",
                "write `(.to != nil && all(.to, .podSelector != nil))`",
            ),
            (
                "not all(object.spec.egress, none(.to, .ipBlock != nil))",
                "write `(.to != nil && none(.to, .ipBlock != nil))`",
            ),
        ],
    );
    check_warned(
        ROLE,
        &[(
            r#"any(object.rules, "db" in .resourceNames)"#,
            &open(".resourceNames", "every name", r#""db" in .resourceNames"#),
        )],
    );
    check_silent(
        POLICY,
        &[
            &format!("any(object.spec.egress, .to == nil || {peers})"),
            &format!("any(object.spec.egress, len(.to) == 0 || {peers})"),
            &format!("any(object.spec.egress, .to != nil && {peers})"),
            // What has none is told by these.
            "any(object.spec.egress, all(.to, .podSelector == nil))",
            "any(object.spec.egress, none(.to, .podSelector != nil))",
            "any(object.spec.egress, not any(.to, .podSelector != nil))",
            "any(object.spec.egress, .to == nil)",
        ],
    );
    let policy = |egress: &str| {
        format!(
            "{{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: a}}, spec: {{podSelector: {{}}, egress: [{egress}]}}}}"
        )
    };
    check_judged(
        POLICY,
        &format!("any(object.spec.egress, (.to == nil || {peers}))"),
        &[
            (&policy("{}"), true),
            (&policy("{to: []}"), true),
            (&policy("{to: [{ipBlock: {cidr: '0.0.0.0/0'}}]}"), true),
            (&policy("{to: [{podSelector: {}}]}"), false),
            (&policy(""), false),
        ],
    );
}

#[test]
fn a_port_has_a_number_or_a_name() {
    check_warned(
        POLICY,
        &[(
            "any(object.spec.ingress, any(.ports, .port == 22))",
            r#"`(.port == nil || type(.port) == "string" || .port == 22 || .port < 22 && .endPort >= 22)`"#,
        )],
    );
    check_warned(
        "{kind: Pod}",
        &[
            (
                "container.livenessProbe.httpGet.port == 8080",
                r#"`(container.livenessProbe.httpGet.port == 8080 || type(container.livenessProbe.httpGet.port) == "string")`"#,
            ),
            (
                "container.livenessProbe.httpGet != nil && \
                 none(container.ports, .containerPort == container.livenessProbe.httpGet.port)",
                "`container.livenessProbe.httpGet.port in [.containerPort, .name]` for both",
            ),
        ],
    );
    check_warned(
        "{kind: Service}",
        &[(
            "any(object.spec.ports, (.targetPort ?? .port) == 22)",
            r#"`let port = .targetPort ?? .port; (port == 22 || type(port) == "string")`"#,
        )],
    );
    // The name of a port of a Service is not that of the port that it leads to.
    check_warned(
        "{kind: Service}",
        &[
            (
                "any(object.spec.ports, .port != .targetPort)",
                "`any(object.spec.ports, .port != (.targetPort ?? .port))`",
            ),
            (
                "any(object.spec.ports, .port != (.targetPort ?? .port))",
                r#"`let port = .targetPort ?? .port; type(port) == "int" && .port != port`"#,
            ),
        ],
    );
    check_silent(
        "{kind: Service}",
        &[
            r#"any(object.spec.ports, let port = .targetPort ?? .port; type(port) == "int" && .port != port)"#,
            r#"any(object.spec.ports, (.targetPort ?? .port) in [22, "ssh"])"#,
            r#"any(object.spec.ports, .targetPort == "ssh")"#,
            "any(object.spec.ports, .port == 22)",
            r#"any(object.spec.ports, let port = .targetPort ?? .port; type(port) == "int" && port == 22)"#,
        ],
    );
    let number = ".backend.service.port.number";
    check_warned(
        INGRESS,
        &[(
            "any(object.spec.rules, any(.http.paths, .backend.service.port.number == 22))",
            &format!("`({number} == 22 || .backend.service.port.name != nil)`"),
        )],
    );
    check_silent(
        INGRESS,
        &[&format!(
            "object.spec.rules != nil && any(object.spec.rules, any(.http.paths, {number} != nil && {number} == 22))"
        )],
    );
}

#[test]
fn a_selector_is_more_than_its_labels() {
    check_warned(
        POLICY,
        &[
            ("object.spec.podSelector.matchLabels == nil", "`object.spec.podSelector == {}`"),
            ("object.spec.podSelector.matchLabels != {}", "`object.spec.podSelector != {}`"),
        ],
    );
    check_warned(PDB, &[("object.spec.selector.matchLabels == {}", "`object.spec.selector == {}`")]);
    check_silent(
        POLICY,
        &[
            "object.spec.podSelector == {}",
            "object.spec.podSelector.matchLabels == nil && object.spec.podSelector.matchExpressions == nil",
            "object.spec.podSelector.matchLabels.app == nil",
        ],
    );
    let labels = "object.spec.template.metadata.labels";
    check_warned(
        DEPLOYMENT,
        &[
            (
                &format!(
                    "none(cluster.poddisruptionbudgets.list(metadata.namespace), .spec.selector.matchLabels == {labels})"
                ),
                &format!("`selects(.spec.selector, {labels})`"),
            ),
            (
                &format!("any(cluster.services.list(metadata.namespace), .spec.selector == {labels})"),
                &format!("`selects(.spec.selector, {labels})`"),
            ),
        ],
    );
}

#[test]
fn an_object_that_is_filled_in_empty_is_missing() {
    let policy = |spec: &str| {
        format!("{{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: a}}, spec: {{{spec}}}}}")
    };
    let (none, empty, some) = (
        policy(""),
        policy("podSelector: {}"),
        policy("podSelector: {matchExpressions: [{key: a, operator: Exists}]}"),
    );
    for rule in ["object.spec.podSelector == nil", "object.spec.podSelector == {}"] {
        check_judged(POLICY, rule, &[(&none, true), (&empty, true), (&some, false)]);
    }
    let pod = |spec: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], {spec}}}}}"
        )
    };
    check_judged(
        "{kind: Pod}",
        "spec.securityContext == nil",
        &[(&pod(""), true), (&pod("securityContext: {}"), true), (&pod("securityContext: {runAsUser: 1}"), false)],
    );
}

#[test]
fn a_kind_that_lacks_a_field_is_told() {
    let kinds = format!("{DEPLOYMENT}, {{group: apps, kind: StatefulSet}}");
    let all = format!("{kinds}, {{group: apps, kind: DaemonSet}}");
    let before = r#"StatefulSet has no `object.spec.strategy.type`, so that this is true of every one of them: write `object.kind == "Deployment" && …`"#;
    check_warned(&kinds, &[(r#"object.spec.strategy.type != "RollingUpdate""#, before)]);
    check_warned(
        &all,
        &[
            ("(object.spec.replicas ?? 1) < 2", r#"`object.kind in ["Deployment", "StatefulSet"] && …`"#),
            ("object.spec.replicas == nil", r#"DaemonSet has no `object.spec.replicas`"#),
            (r#"metadata.labels.a == "b" && not (object.spec.replicas > 1)"#, "DaemonSet has no"),
        ],
    );
    check_silent(
        &all,
        &[
            "object.spec.replicas > 5",
            "object.spec.replicas == 0",
            r#"object.kind == "Deployment" && object.spec.strategy.type != "RollingUpdate""#,
            "object.spec.replicas != nil && object.spec.replicas < 2",
            r#"object.spec.strategy != nil && object.spec.strategy.type != "RollingUpdate""#,
        ],
    );
    let of = |kind: &str, spec: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: a, namespace: b}}, spec: {{template: {{}}, {spec}}}}}"
        )
    };
    check_judged(
        &all,
        "object.spec.replicas != nil && object.spec.replicas < 2",
        &[
            (&of("Deployment", ""), true),
            (&of("StatefulSet", "replicas: 1"), true),
            (&of("Deployment", "replicas: 2"), false),
            (&of("DaemonSet", ""), false),
        ],
    );
    check_judged(
        &kinds,
        r#"object.kind == "Deployment" && object.spec.strategy.type != "RollingUpdate""#,
        &[
            (&of("Deployment", "strategy: {type: Recreate}"), true),
            (&of("Deployment", ""), false),
            (&of("StatefulSet", ""), false),
        ],
    );
    let autoscaler = "{group: autoscaling, kind: HorizontalPodAutoscaler}";
    check_silent(autoscaler, &["object.spec.metrics == nil"]);
}

#[test]
fn the_port_of_a_registry_is_no_tag() {
    check_warned(
        "{kind: Pod}",
        &[
            (
                r#"container.image endsWith ":latest" or not (container.image contains ":")"#,
                r#"so that a `:` is no sign of a tag: write `container.image.tag != "latest"`"#,
            ),
            (r#"any(spec.containers, not (.image contains ":"))"#, r#"`.image.tag != "latest"`"#),
            (r#"container.image not contains ":""#, r#"`not (container.image.tag != "latest")`"#),
        ],
    );
    let rule = r#"container.image endsWith ":latest" or not (container.image.tag != "latest")"#;
    let pod = |image: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{containers: [{{name: a, image: {image:?}}}]}}}}"
        )
    };
    let rows = [("registry.example:5000/nginx", true), ("nginx", true), ("nginx:latest", true), ("nginx:1", false)];
    let rows: Vec<(String, bool)> = rows.iter().map(|(image, expected)| (pod(image), *expected)).collect();
    let rows: Vec<(&str, bool)> = rows.iter().map(|(pod, expected)| (pod.as_str(), *expected)).collect();
    check_judged("{kind: Pod}", rule, &rows);
}
