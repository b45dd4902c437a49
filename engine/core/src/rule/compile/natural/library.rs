//! Calls of our own functions, patterns, networks and certificates, as people write them first.

use super::{check, check_silent, check_warned, told};

#[test]
fn calls_of_our_own_library_are_told_as_they_are_meant() {
    check(
        "{kind: Pod}",
        &[
            (
                r#"semver(container.image.tag, "<1.2")"#,
                r#"`isSemver(container.image.tag) && semver(container.image.tag) in "<1.2"`"#,
            ),
            (r#"glob(metadata.name, ["a-*", "b-*"])"#, r##"`any(["a-*", "b-*"], glob(metadata.name, #))`"##),
            (r#"join(",", container.args) == "a""#, r#"`join(container.args, ",")`"#),
            (r#"concat(",", container.args) == "a""#, r#"`join(container.args, ",")`"#),
            ("(spec.priority // 0) > 3", "`(spec.priority ?? 0) > 3`"),
            ("container.resources.limits.nvidia.com/gpu != nil", r#"`container.resources.limits["nvidia.com/gpu"]`"#),
            (
                r#"glob(container.image, "docker.io/*")"#,
                r#"an image that is written without a registry is docker.io's too, and does not begin so: write `container.image.registry == "docker.io"`"#,
            ),
        ],
    );
    check_warned(
        "{kind: Pod}",
        &[
            (r#"glob(metadata.name, "a-{b,c}-*")"#, r##"`any(["a-b-*", "a-c-*"], glob(metadata.name, #))`"##),
            (r#"glob(metadata.name, "a-[bc]*")"#, r#"`metadata.name matches "^a-[bc].*$"`"#),
            (r#"glob(container.image, "*:latest")"#, r#"`container.image.tag == "latest"`"#),
            (r#"container.image == "nginx""#, r#"`container.image.name == "nginx"`"#),
            (
                r#"container.image != "ghcr.io/a/b""#,
                r#"`not (container.image.registry == "ghcr.io" && container.image.name == "a/b")`"#,
            ),
            (r#"spec.nodeSelector["kubernetes.io/os"] == "Windows""#, r#"put `"windows"` in its place"#),
            (
                r#"container.securityContext.capabilities.drop != ["ALL"]"#,
                r#"`"ALL" not in container.securityContext.capabilities.drop`"#,
            ),
            (r#"container.image matches "^docker\\.io/""#, r#"`container.image.registry == "docker.io"`"#),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            r#"glob(metadata.name, "a-*")"#,
            r#"glob(container.image, "ghcr.io/*")"#,
            r#"container.image matches "^ghcr""#,
        ],
    );
    let comment = told("gvk: [{kind: Pod}]", r#"spec.priorityClassName // "x" == "x""#);
    assert!(comment.contains("what stands behind `//` is a comment"), "{comment}");
}

#[test]
fn what_has_no_address_is_in_no_network() {
    let service = "{kind: Service}";
    let ip = "object.spec.loadBalancerIP";
    check_warned(
        service,
        &[(
            r#"object.spec.loadBalancerIP not in cidr("10.0.0.0/8")"#,
            &format!(r#"`{ip} != nil && {ip} not in cidr("10.0.0.0/8")`"#),
        )],
    );
    check_silent(
        service,
        &[
            r#"object.spec.loadBalancerIP in cidr("10.0.0.0/8")"#,
            r#"object.spec.loadBalancerIP != nil && object.spec.loadBalancerIP not in cidr("10.0.0.0/8")"#,
            r#"any(object.spec.externalIPs, # not in cidr("10.0.0.0/8"))"#,
        ],
    );
    check(
        service,
        &[
            (
                "any(object.spec.externalIPs, isPrivate(#))",
                r##"`# in cidr(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"])`"##,
            ),
            ("any(object.spec.externalIPs, ip(#).isLoopback())", r##"`# in cidr(["127.0.0.0/8", "::1/128"])`"##),
            (r#""10.0.0.1" in object.spec.clusterIP"#, r#"`"10.0.0.1" in cidr(object.spec.clusterIP)`"#),
        ],
    );
}

#[test]
fn parts_of_a_certificate_have_names_of_their_own() {
    check(
        "{kind: ConfigMap}",
        &[
            (r#"object.data.ca != nil && "a.b" in x509(object.data.ca).dnsNames"#, "`x509(object.data.ca).names`"),
            (
                r#"object.data.ca != nil && x509(object.data.ca).daysLeft < 30"#,
                r#"`x509(object.data.ca).notAfter < now() + duration("720h")`"#,
            ),
            (
                r#"object.data.ca != nil && x509(object.data.ca).issuer.commonName == "x""#,
                r#"`x509(object.data.ca).issuer contains "CN="`"#,
            ),
        ],
    );
}

#[test]
fn a_certificate_that_may_be_missing_is_not_read() {
    let told = told("gvk: [{kind: ConfigMap}]", r#"x509(fromBase64(object.data.ca ?? "")).isCA"#);
    assert!(told.starts_with("Error") && told.contains("write `object.data.ca != nil && …`"), "{told}");
    check_silent(
        "{kind: ConfigMap}",
        &["object.data.ca != nil && x509(object.data.ca).isCA", r#"any(certificates(object.data.ca ?? ""), .isCA)"#],
    );
}
