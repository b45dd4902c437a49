//! Names of resources in limits and requests. They are keys of a map, so that no schema says which there are; Kubernetes does.

use portal_expr::{Facts, Segment};

use super::Compiler;
use crate::rule::diagnostic::Level;

/// The resources whose names are plain words. All others have a sign in them: `ephemeral-storage`, `hugepages-2Mi`, `nvidia.com/gpu`.
const PLAIN: [&str; 3] = ["cpu", "memory", "storage"];

/// All of Kubernetes' own, for suggestions.
const OWN: [&str; 4] = ["cpu", "memory", "storage", "ephemeral-storage"];

impl Compiler<'_> {
    /// Refuses a rule about a resource that nobody has: `container.resources.limits.mem`.
    pub(super) fn check_resources(&mut self, facts: &Facts) {
        for read in &facts.reads {
            let names = read.path.windows(3).filter_map(|steps| match steps {
                [Segment::Field(resources), Segment::Field(list), Segment::Field(name)]
                    if resources == "resources" && (list == "limits" || list == "requests") =>
                {
                    Some(name)
                }
                _ => None,
            });
            for name in names.filter(|name| is_word(name) && !PLAIN.contains(&name.as_str())) {
                let nearest = OWN.into_iter().find(|own| own.starts_with(&name.to_lowercase()));
                let nearest = nearest.or_else(|| portal_expr::nearest(name, OWN.into_iter()));
                let hint = nearest.map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default();
                self.add_at(
                    Level::Error,
                    self.place(self.spec.rule.rfind(name.as_str()).unwrap_or_default()),
                    format!("no resource is called `{name}`{hint}"),
                );
            }
        }
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}
