//! What is sent when somebody connects to a pod is neither the pod nor anything with metadata. A rule that reads those would find
//! nothing, and let everything pass.

use portal_expr::Facts;

use super::Compiler;
use crate::{
    context::{CONTAINER, METADATA, SECURITY_CONTEXT, SPEC},
    event::Operation,
    rule::JudgedKind,
};

impl Compiler<'_> {
    /// Refuses to read the object that is connected to, where nothing else than connections is judged.
    pub(super) fn check_connected(&mut self, facts: &Facts, judged: &[JudgedKind]) {
        let mut operations = self.spec.matching.operations.iter().map(|operation| Operation::from(*operation));
        if !operations.all(|operation| operation == Operation::Connect) {
            return;
        }
        let roots =
            [(METADATA, "metadata"), (SPEC, "spec"), (CONTAINER, "container"), (SECURITY_CONTEXT, "securityContext")];
        let Some((root, name)) = roots.into_iter().find(|(root, _)| facts.reads_root(*root)) else { return };
        let Some(kind) = judged.first().map(|judged| &judged.kind) else { return };
        let key = if kind.namespaced { "request.namespace, request.name" } else { "request.name" };
        let field = if root == METADATA { "metadata" } else { "spec" };
        let names = if root == METADATA { ", and `request.name` and `request.namespace` for its names" } else { "" };
        let message = format!(
            "CONNECT sends what is asked of the {kind}, and not the {kind}, so that there is no `{name}`: write \
             `cluster.{plural}.byName({key}).{field}`{names}",
            kind = kind.kind,
            plural = kind.plural,
        );
        self.error(&["rule"], message);
    }
}
