//! Which kinds a rule judges: those that it names, and what makes pods if it names them.

use std::sync::Arc;

use portal_crds::GroupVersionKind;

use super::{Compiler, unknown::unknown_kind};
use crate::{
    context::pod::{BUILTIN, Template},
    kinds::{Kind, Kinds},
    rule::{
        JudgedKind,
        diagnostic::{Level, Step},
    },
};

impl Compiler<'_> {
    /// The kinds that `match` names. A kind that is not served is reported; the rule works for the others.
    pub(super) fn judged(&mut self) -> Vec<JudgedKind> {
        let mut judged: Vec<JudgedKind> = Vec::new();
        let mut missing = Vec::new();
        for (index, gvk) in self.spec.matching.gvk.iter().enumerate() {
            let Some(kind) = self.kinds.get(&gvk.group, &gvk.kind) else {
                missing.push((field(index, "kind"), unknown_kind(self.kinds, gvk)));
                continue;
            };
            if gvk.version != "*" && !kind.versions.contains(&gvk.version) {
                let message = format!(
                    "`{}` is not served in version `{}`: there is {}",
                    gvk.kind,
                    gvk.version,
                    kind.versions.join(", ")
                );
                missing.push((field(index, "version"), message));
                continue;
            }
            if self.source.id.namespace.is_some() && !kind.namespaced {
                let message = format!(
                    "a PortalRule sees its own namespace only, and `{}` is in none: use a PortalClusterRule",
                    gvk.kind
                );
                self.add(&field(index, "kind"), Level::Error, message);
                continue;
            }
            match template(gvk) {
                Ok(template) => add(&mut judged, kind, &gvk.version, template),
                Err(message) => self.add(&field(index, "podTemplate"), Level::Error, message),
            }
        }
        let level = if judged.is_empty() { Level::Error } else { Level::Warning };
        for (field, message) in missing {
            self.missing(&field, level, message);
        }
        judged
    }

    /// A rule for pods that reads nothing but what every pod has judges what makes pods too.
    pub(super) fn expand(&mut self, judged: &mut Vec<JudgedKind>) {
        if !names_pods(judged) || !self.spec.matching.pod_controllers {
            return;
        }
        for builtin in BUILTIN.iter().filter(|builtin| !builtin.template.is_pod()) {
            let Some(kind) = self.kinds.get(builtin.group, builtin.kind) else { continue };
            if !judged.iter().any(|judged| judged.kind == *kind) {
                let (kind, template) = (Arc::clone(kind), Some(builtin.template.clone()));
                judged.push(JudgedKind { kind, versions: Vec::new(), expanded: true, template });
            }
        }
    }
}

/// Adds a kind in a version, unless it is there.
fn add(judged: &mut Vec<JudgedKind>, kind: &Arc<Kind>, version: &str, template: Option<Template>) {
    let versions = if version == "*" { Vec::new() } else { vec![version.to_owned()] };
    // A kind may have several pod templates, each of which is judged.
    match judged.iter_mut().find(|judged| judged.kind == *kind && judged.template == template) {
        Some(known) if versions.is_empty() || known.versions.is_empty() => known.versions.clear(),
        Some(known) if known.versions.iter().any(|known| known == version) => {}
        Some(known) => known.versions.extend(versions),
        None => judged.push(JudgedKind { kind: Arc::clone(kind), versions, expanded: false, template }),
    }
}

fn names_pods(judged: &[JudgedKind]) -> bool {
    judged.iter().any(|judged| judged.template.as_ref().is_some_and(Template::is_pod))
}

/// Where objects of a kind have their pods, if they have any.
fn template(gvk: &GroupVersionKind) -> Result<Option<Template>, String> {
    let GroupVersionKind { group, kind, .. } = gvk;
    let known = Template::of(group, kind);
    let Some(path) = &gvk.pod_template else { return Ok(known) };
    match known {
        Some(known) if known.is_pod() => Err("a Pod is made from no template: remove this".to_owned()),
        Some(known) => Err(format!("it is known that `{kind}` has its pods at `{known}`: remove this")),
        None if Kinds::builtin().get(group, kind).is_some() => Err(format!("`{kind}` has no pods: remove this")),
        None => {
            let template = Template::parse(path);
            template.map(Some).ok_or_else(|| {
                format!("`{path}` is no way to a field: write the names of fields with dots between, such as `spec.template`")
            })
        }
    }
}

fn field(index: usize, name: &str) -> [Step; 4] {
    [Step::Field("match".to_owned()), Step::Field("gvk".to_owned()), Step::Index(index), Step::Field(name.to_owned())]
}
