//! Rules that read a field for which Kubernetes takes something else where it is left out.

use portal_expr::{Facts, Schema};

use super::Compiler;
use crate::rule::diagnostic::Level;

impl Compiler<'_> {
    /// Warns of `container.securityContext.runAsNonRoot != true`, which is said of containers that leave it to their pod, and of
    /// `container.resources.requests.memory != container.resources.limits.memory`, which is said of those that have limits alone.
    pub(super) fn warn_of_substituted(&mut self, facts: &Facts, schema: &Schema) {
        // To write a rule out is as dear as to read it.
        if facts.substituted.is_empty() {
            return;
        }
        let rule = portal_expr::written(&self.spec.rule).unwrap_or_default();
        for substituted in &facts.substituted {
            let (subject, instead) = (&substituted.subject, &substituted.instead);
            let value = format!("{subject} ?? {instead}");
            let advice = match self.rewritten(&rule, &[(subject.clone(), value.clone())], schema) {
                Some(whole) => format!("write `{whole}`"),
                None => format!("write `({value})` in its place"),
            };
            let taken = match substituted.is_outside {
                true => format!("then what the pod says counts, `{instead}`"),
                false => format!("Kubernetes takes `{instead}` for it then"),
            };
            let message = format!("`{subject}` may be missing, and {taken}: {advice}");
            self.add_at(Level::Warning, (substituted.line, substituted.column), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{context::SHARED_SECURITY_FIELDS, testing::rules};

    fn told(kind: &str, rule: &str) -> String {
        rules(&format!("name: a\nmatch: {{gvk: [{kind}], podControllers: false}}\nrule: |\n  {rule}\n")).1.join("\n")
    }

    #[track_caller]
    fn check(kind: &str, rows: &[(&str, &str)]) {
        for (rule, expected) in rows {
            let told = told(kind, rule);
            assert!(told.starts_with("Warning") && told.contains(expected), "{rule}\n{told}");
            assert!(!self::told(kind, expected.trim_matches('`')).contains("may be missing"), "{expected}");
        }
    }

    #[test]
    fn what_a_container_leaves_to_its_pod_is_asked_of_the_pod_too() {
        check(
            "{kind: Pod}",
            &[
                (
                    "container.securityContext.runAsNonRoot != true",
                    "`(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot) != true`",
                ),
                (
                    "container.securityContext.runAsUser == 0",
                    "`(container.securityContext.runAsUser ?? securityContext.runAsUser) == 0`",
                ),
                (
                    "container.securityContext.seccompProfile.type != 'RuntimeDefault'",
                    "`(container.securityContext.seccompProfile ?? securityContext.seccompProfile).type != \"RuntimeDefault\"`",
                ),
                (
                    "container.securityContext.runAsUser != nil && container.securityContext.runAsUser < 10000",
                    "`let runAsUser = container.securityContext.runAsUser ?? securityContext.runAsUser; runAsUser != nil && runAsUser < 10000`",
                ),
                (
                    "any(spec.containers, .securityContext.runAsUser == 0)",
                    "`any(spec.containers, (.securityContext.runAsUser ?? spec.securityContext.runAsUser) == 0)`",
                ),
                (
                    "any(concat(spec.containers, spec.initContainers), .securityContext.runAsUser == 0)",
                    "`any(concat(spec.containers, spec.initContainers), (.securityContext.runAsUser ?? spec.securityContext.runAsUser) == 0)`",
                ),
                (
                    "let c = container.securityContext; c.runAsGroup == 0",
                    "`let c = container.securityContext; (c.runAsGroup ?? securityContext.runAsGroup) == 0`",
                ),
                (
                    "container.securityContext.windowsOptions.hostProcess == true",
                    "`(container.securityContext.windowsOptions.hostProcess ?? securityContext.windowsOptions.hostProcess) == true`",
                ),
            ],
        );
        check(
            "{group: apps, kind: Deployment}",
            &[(
                "any(object.spec.template.spec.containers, .securityContext.runAsNonRoot != true)",
                "`any(object.spec.template.spec.containers, (.securityContext.runAsNonRoot ?? object.spec.template.spec.securityContext.runAsNonRoot) != true)`",
            )],
        );
    }

    #[test]
    fn requests_are_limits_where_there_are_none() {
        let (requests, limits) = ("container.resources.requests", "container.resources.limits");
        check(
            "{kind: Pod}",
            &[
                (
                    &format!("{requests}.memory != {limits}.memory"),
                    &format!("`({requests}.memory ?? {limits}.memory) != {limits}.memory`"),
                ),
                (&format!("{requests}.cpu > '4'"), &format!("`({requests}.cpu ?? {limits}.cpu) > \"4\"`")),
                (
                    &format!("quantity({requests}.cpu ?? '0') > quantity('4')"),
                    &format!("`quantity({requests}.cpu ?? {limits}.cpu ?? \"0\") > quantity(\"4\")`"),
                ),
                (
                    &format!("{requests}['ephemeral-storage'] > '1Gi'"),
                    &format!("`({requests}[\"ephemeral-storage\"] ?? {limits}[\"ephemeral-storage\"]) > \"1Gi\"`"),
                ),
            ],
        );
    }

    #[test]
    fn a_port_is_its_own_target() {
        check(
            "{kind: Service}",
            &[
                (
                    "any(object.spec.ports, .port != .targetPort)",
                    "`any(object.spec.ports, .port != (.targetPort ?? .port))`",
                ),
                ("any(object.spec.ports, .targetPort == 22)", "`any(object.spec.ports, (.targetPort ?? .port) == 22)`"),
            ],
        );
    }

    #[test]
    fn what_asks_for_both_or_for_what_is_written_is_not_told() {
        let requests = "container.containerType != 'ephemeral' && container.resources.requests";
        for rule in [
            "container.securityContext.runAsNonRoot == nil && securityContext.runAsNonRoot == nil",
            "(container.securityContext.runAsUser ?? spec.securityContext.runAsUser) == 0",
            "container.securityContext.privileged == true",
            &format!("{requests}.cpu == nil"),
            &format!("{requests}.memory < container.resources.limits.memory"),
            &format!(
                "{requests}.memory != nil && container.resources.requests.memory != container.resources.limits.memory"
            ),
        ] {
            assert_eq!(told("{kind: Pod}", rule), "", "{rule}");
        }
        for rule in ["any(object.spec.ports, .targetPort == 'http')", "any(object.spec.ports, .targetPort == nil)"] {
            assert_eq!(told("{kind: Service}", rule), "", "{rule}");
        }
    }

    #[test]
    fn every_field_that_a_pod_says_for_its_containers_is_known() {
        for field in SHARED_SECURITY_FIELDS.iter().filter(|field| **field != "windowsOptions") {
            let told = told("{kind: Pod}", &format!("container.securityContext.{field} == nil"));
            assert!(told.contains(&format!("`securityContext.{field}`")), "{field}\n{told}");
        }
    }
}
