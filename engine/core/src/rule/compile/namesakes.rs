//! Rules that leave the object out of what they look up by its name alone, and with it all others of that name.

use super::{Compiler, rewritten::occurrences};
use crate::language::Expression;

/// The ways to the name of the object that is judged.
const OWN: [&str; 2] = ["metadata.name", "object.metadata.name"];

impl Compiler<'_> {
    /// Warns of `any(cluster.ingresses.list("*"), .metadata.name != metadata.name && …)`, which passes over one of the same name in another
    /// namespace.
    pub(super) fn warn_of_namesakes(&mut self, expression: &dyn Expression) {
        // To write a rule out is as dear as to read it.
        if expression.calls().is_empty() || !self.spec.rule.contains("\"*\"") && !self.spec.rule.contains("'*'") {
            return;
        }
        let rule = portal_expr::written(&self.spec.rule).unwrap_or_default();
        let asks_for_namespace =
            rule.match_indices(".metadata.namespace").any(|(offset, _)| is_of_element(&rule, offset));
        if asks_for_namespace || !rule.contains(".list(\"*\"") {
            return;
        }
        for own in OWN {
            for asked in [format!(".metadata.name != {own}"), format!("{own} != .metadata.name")] {
                let is_whole = |(offset, _): &(usize, &str)| {
                    let goes_on =
                        rule[offset + asked.len()..].starts_with(|sign: char| sign.is_alphanumeric() || sign == '.');
                    !goes_on
                        && (is_of_element(&rule, *offset) || occurrences(&rule, &asked).any(|place| place == *offset))
                };
                if rule.match_indices(&*asked).any(|found| is_whole(&found)) {
                    let namespace = own.replace("name", "namespace");
                    let message = format!(
                        "what has the same name in another namespace is left out by `{asked}` too: write `({asked} || .metadata.namespace != {namespace})`"
                    );
                    return self.warning(&["rule"], message);
                }
            }
        }
    }
}

/// Whether a path that begins with a dot is of the element of a predicate.
fn is_of_element(rule: &str, offset: usize) -> bool {
    rule[offset..].starts_with('.')
        && !rule[..offset].ends_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ']' | ')'))
}

#[cfg(test)]
mod tests {
    use crate::testing::rules;

    #[test]
    fn who_has_the_same_name_elsewhere_is_not_left_out() {
        let told = |rule: &str| {
            let head = "name: a\nmatch: {gvk: [{group: networking.k8s.io, kind: Ingress}]}\nrule: |\n  ";
            rules(&format!("{head}{rule}\n")).1.join("\n")
        };
        let class = ".spec.ingressClassName == \"a\"";
        for (asked, advice) in [
            (
                ".metadata.name != metadata.name",
                "(.metadata.name != metadata.name || .metadata.namespace != metadata.namespace)",
            ),
            (
                "object.metadata.name != .metadata.name",
                "(object.metadata.name != .metadata.name || .metadata.namespace != object.metadata.namespace)",
            ),
        ] {
            let rule = |asked: &str| format!("any(cluster.ingresses.list('*'), {asked} && {class})");
            let said = told(&rule(asked));
            assert!(said.starts_with("Warning") && said.contains(&format!("write `{advice}`")), "{asked}\n{said}");
            assert_eq!(told(&rule(advice)), "", "{advice}");
        }
        for rule in [
            "any(cluster.ingresses.list(metadata.namespace), .metadata.name != metadata.name)",
            "any(cluster.ingresses.list('*'), .metadata.name != metadata.namespace)",
            "any(cluster.ingresses.list('*'), .metadata.uid != metadata.uid)",
        ] {
            assert_eq!(told(rule), "", "{rule}");
        }
    }
}
