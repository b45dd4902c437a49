//! Rules that ask every container for what only some of them can have.

use portal_expr::{Facts, Schema};

use super::Compiler;
use crate::rule::{JudgedKind, diagnostic::Level};

/// A rule that is longer is not written out.
const MAX_SHOWN: usize = 200;

/// What a container that runs before others, or comes later, cannot have. One that runs beside the others, from before them, can.
const OF_STANDARD: [&str; 4] = ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];

/// What a container that comes later cannot have.
const OF_OTHERS: [&str; 2] = ["resources", "ports"];

impl Compiler<'_> {
    /// Says that a rule is violated by every container of a type, because none of them can have what the rule asks for.
    pub(super) fn warn_of_other_containers(&mut self, facts: &Facts, schema: &Schema, judged: &[JudgedKind]) {
        let of_container = || facts.absences.iter().filter(|absence| absence.root == "container");
        let first = |fields: &[&str]| {
            of_container().find(|absence| absence.fields.first().is_some_and(|field| fields.contains(&&**field)))
        };
        // What makes pods has no containers that come later.
        let has_ephemeral = judged.iter().any(|judged| judged.kind.group.is_empty() && judged.kind.kind == "Pod");
        let (absence, types, condition) = match (first(&OF_STANDARD), first(&OF_OTHERS).filter(|_| has_ephemeral)) {
            (Some(absence), _) => (
                absence,
                if has_ephemeral {
                    "an init container that does not go on beside the others, and an ephemeral one,"
                } else {
                    "an init container that does not go on beside the others"
                },
                "(container.containerType == \"standard\" || container.restartPolicy == \"Always\")",
            ),
            (None, Some(absence)) => (
                absence,
                "an ephemeral container, as `kubectl debug` adds one,",
                "container.containerType != \"ephemeral\"",
            ),
            (None, None) => return,
        };
        // Whoever reads one of these knows that containers differ.
        if ["containerType", "restartPolicy"].into_iter().any(|field| self.spec.rule.contains(field)) {
            return;
        }
        let Some(field) = absence.fields.first() else { return };
        let message = format!(
            "{types} cannot have `{field}`, so that every pod with one violates this: write `{}`",
            self.with_condition(condition, schema)
        );
        self.add_at(Level::Warning, (absence.line, absence.column), message);
    }

    /// The rule with a condition before it.
    fn with_condition(&self, condition: &str, schema: &Schema) -> String {
        let written = portal_expr::written(&self.spec.rule).unwrap_or_default();
        let is_one = ["||", " or ", "?", "let ", ";"].into_iter().all(|sign| !written.contains(sign));
        let whole = if is_one { format!("{condition} && {written}") } else { format!("{condition} && ({written})") };
        let is_good = whole.chars().count() <= MAX_SHOWN && self.engine.compile(&whole, schema).is_ok();
        if is_good { whole } else { format!("{condition} && (…)") }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::rules;

    fn told(rule: &str) -> String {
        told_of("{kind: Pod}", rule)
    }

    fn told_of(kinds: &str, rule: &str) -> String {
        rules(&format!("name: a\nmatch: {{gvk: [{kinds}]}}\nrule: |\n  {rule}\n")).1.join("\n")
    }

    #[test]
    fn what_only_some_containers_can_have_is_asked_of_those() {
        for (rule, expected) in [
            (
                "container.livenessProbe == nil",
                "an init container that does not go on beside the others, and an ephemeral one, cannot have `livenessProbe`, so that every \
                 pod with one violates this: write `(container.containerType == \"standard\" || container.restartPolicy == \"Always\") && \
                 container.livenessProbe == nil`",
            ),
            (
                "container.livenessProbe == nil || container.readinessProbe == nil",
                "container.restartPolicy == \"Always\") && (container.livenessProbe == nil || container.readinessProbe == nil)`",
            ),
            (
                "metadata.namespace == 'prod' && container.lifecycle.preStop == nil",
                "container.restartPolicy == \"Always\") && metadata.namespace == \"prod\" && container.lifecycle.preStop == nil`",
            ),
            (
                "let l = container.resources.limits; l.memory == nil || l.cpu == nil",
                "cannot have `resources`, so that every pod with one violates this: write `container.containerType != \"ephemeral\" && (let",
            ),
            (
                "\"memory\" not in container.resources.limits",
                "write `container.containerType != \"ephemeral\" && \"memory\" not in container.resources.limits`",
            ),
        ] {
            let told = told(rule);
            assert!(told.starts_with("Warning") && told.contains(expected), "{rule}\n{told}");
            // Whoever does as told is told no more.
            let advised = told.split('`').find(|part| part.contains("containerType")).unwrap_or_default();
            assert_eq!(self::told(advised), "", "{advised}");
        }
    }

    #[test]
    fn what_is_asked_of_the_right_ones_or_may_be_there_is_not_told() {
        for rule in [
            "container.containerType == 'standard' && container.livenessProbe == nil",
            "container.containerType != 'ephemeral' && container.resources.limits.memory == nil",
            "container.livenessProbe != nil",
            "container.livenessProbe != nil && container.livenessProbe.httpGet == nil && container.readinessProbe == nil",
            "container.name == 'app' && container.livenessProbe == nil",
            "container.securityContext.readOnlyRootFilesystem == nil",
            "any(spec.containers, .livenessProbe == nil)",
            "any(container.ports, .hostPort > 0)",
            "container.resources.limits.memory > '1Gi'",
        ] {
            assert_eq!(told(rule), "", "{rule}");
        }
    }

    #[test]
    fn what_makes_pods_has_no_ephemeral_containers() {
        let makers = "{group: apps, kind: Deployment}, {group: batch, kind: CronJob}";
        assert_eq!(told_of(makers, "container.resources.limits.memory == nil"), "");
        let told = told_of(makers, "container.livenessProbe == nil");
        let expected = "an init container that does not go on beside the others cannot have `livenessProbe`";
        assert!(told.contains(expected) && !told.contains("ephemeral"), "{told}");
        let told = told_of(&format!("{makers}, {{kind: Pod}}"), "container.resources.limits.memory == nil");
        assert!(told.contains("an ephemeral container"), "{told}");
    }
}
