//! The places in a rule that follow a reference: which kinds it may be to, and whether the rule may ask for them. All of them are
//! written out, so that what a rule can read is known before there is a reference.

use std::sync::Arc;

use portal_expr::{ArgumentShape, CallSite, Written};

use super::{Compiler, lookups::is_given};
use crate::{
    kinds::Kind,
    rule::{LookupSite, diagnostic::Level},
};

impl Compiler<'_> {
    /// What a reference may lead to. Nothing if something is wrong with it.
    pub(super) fn reference(
        &mut self,
        site: &CallSite,
        among: &[Written],
        arguments: &[ArgumentShape],
        doubtful: &[usize],
    ) -> Vec<LookupSite> {
        let is_consistent = self.is_consistent(site, &site.names);
        let kinds = self.written_kinds(among);
        let (Some(consistent), Some(kinds)) = (is_consistent, kinds) else { return Vec::new() };
        self.check_reference(site, &kinds, arguments, doubtful);
        let namespace = match arguments.first() {
            Some(ArgumentShape::Text(namespace)) => Some(namespace),
            _ => None,
        };
        let lookup = |kind: Arc<Kind>| LookupSite {
            namespace: namespace.filter(|_| kind.namespaced).cloned(),
            kind,
            consistent,
            has_selector: false,
        };
        kinds.into_iter().map(lookup).collect()
    }

    /// The kinds that are written out, each once. Every one that is wrong is told, where it is written.
    fn written_kinds(&mut self, among: &[Written]) -> Option<Vec<Arc<Kind>>> {
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        let mut is_good = true;
        for written in among {
            let place = (written.line, written.column);
            let Some(kind) = self.kind_of(&written.text, |_| place, |name| format!("{name:?}")) else {
                is_good = false;
                continue;
            };
            let message = if kinds.contains(&kind) {
                format!("`{}` is written twice: leave one out", kind.qualified_plural())
            } else if self.source.id.namespace.is_some() && !kind.namespaced {
                format!("a PortalRule sees its own namespace only, and `{}` are in none", kind.plural)
            } else {
                kinds.push(kind);
                continue;
            };
            self.add_at(Level::Error, place, message);
            is_good = false;
        }
        is_good.then_some(kinds)
    }

    fn check_reference(
        &mut self,
        site: &CallSite,
        kinds: &[Arc<Kind>],
        arguments: &[ArgumentShape],
        doubtful: &[usize],
    ) {
        let (has_first, has_second) = (is_given(arguments, 0), is_given(arguments, 1));
        let Some(kind) = kinds.iter().find(|kind| kind.namespaced) else {
            let message = match (has_first, has_second, arguments.first()) {
                (true, true, _) => "these kinds are in no namespace: write byRef(ref)",
                (false, false, _) => "`byRef` needs the reference: write byRef(ref)",
                (true, false, Some(ArgumentShape::Text(_) | ArgumentShape::Constant)) => {
                    "a reference is a map with a kind and a name: write byRef(ref)"
                }
                _ => return,
            };
            return self.site_error(site, message.to_owned());
        };
        let plural = &kind.plural;
        if !has_first || !has_second {
            return self.site_error(site, format!("`{plural}` are in namespaces: write byRef(ns, ref)"));
        }
        let message = match (arguments.first(), &self.source.id.namespace) {
            (Some(ArgumentShape::Constant | ArgumentShape::Map), _) => {
                format!("the namespace of `{plural}` is text: write byRef(ns, ref)")
            }
            (Some(ArgumentShape::Text(namespace)), Some(own)) if namespace != own => {
                format!("a PortalRule sees its own namespace only: write \"{own}\" or metadata.namespace")
            }
            (Some(ArgumentShape::Text(namespace)), None) if namespace == "*" || namespace.is_empty() => {
                "a reference leads into one namespace: write byRef(metadata.namespace, ref), or byRef(ref.namespace ?? …, ref) \
                 for one that says its own"
                    .to_owned()
            }
            _ if doubtful.contains(&0) => return self.refuse_doubtful(site, kind),
            _ => return,
        };
        self.site_error(site, message);
    }
}
