//! A rule on its way into the cluster: what whoever writes it is told, and what they must be allowed to do themselves.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portal_document::Node;

use crate::{
    kinds::Kinds,
    language::ExpressionEngine,
    requirements::{Permission, Requirements},
    review::{ReviewError, request_of, text},
    rule::{
        Rule,
        compile::compile_rule,
        diagnostic::{Diagnostic, Level},
        load::{RuleKind, load_object},
        source::{Origin, RuleId, RuleSource},
    },
};

/// A rule that somebody writes.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its name.
    pub id: RuleId,
    /// Whether it was not there before.
    pub is_new: bool,
    /// Whether it says anything else than it did before, or comes to this instance only now. If not there is nothing to tell about it.
    pub is_changed: bool,
    /// Whether it can be used as it is. What its author must be allowed to do is known only then.
    pub is_usable: bool,
    /// What its author must be allowed to do, and in which namespace if not in all.
    pub needs: BTreeSet<(Permission, Option<String>)>,
    /// What it is if it can be used, for whoever wants to know what an engine needs for it.
    pub rule: Option<Arc<Rule>>,
    diagnostics: Vec<Diagnostic>,
}

/// The group of Portal's own kinds.
const GROUP: &str = "portal.io";

impl Draft {
    /// Reads the review of a rule that is created or changed, in an instance that takes the rules with labels such as `is_taken` says.
    pub fn of(
        review: Node<'_>,
        is_taken: &dyn Fn(&BTreeMap<String, String>) -> bool,
        kinds: &Kinds,
        language: &dyn ExpressionEngine,
    ) -> Result<Draft, ReviewError> {
        let request = request_of(review)?;
        let is_new = match text(request, "operation") {
            Some("CREATE") => true,
            Some("UPDATE") => false,
            _ => return Err(ReviewError::Field("request.operation")),
        };
        let kind = kind_of(request)?;
        let object = request.get_str("object").ok_or(ReviewError::Field("request.object"))?;
        let before = request.get_str("oldObject");
        let labels = before.and_then(|before| before.get_str("metadata")?.get_str("labels")?.as_object());
        let labels = labels.into_iter().flat_map(|labels| labels.iter());
        let labels = labels.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned()));
        let before = before.and_then(|before| before.get_str("spec"));
        // One that only now becomes a rule of this instance is new to it, whatever else stays the same.
        let is_changed = is_new
            || !is_taken(&labels.collect())
            || !object.get_str("spec").zip(before).is_some_and(|(spec, before)| spec.same(before));
        let metadata = object.get_str("metadata");
        let field = |name: &str| metadata.and_then(|metadata| text(metadata, name)).map(str::to_owned);
        let namespace = field("namespace").or_else(|| text(request, "namespace").map(str::to_owned));
        let id = RuleId {
            namespace: namespace.filter(|_| kind == RuleKind::Namespaced),
            name: field("name").or_else(|| text(request, "name").map(str::to_owned)).unwrap_or_default(),
        };
        let draft = Draft {
            id,
            is_new,
            is_changed,
            is_usable: true,
            needs: BTreeSet::new(),
            rule: None,
            diagnostics: Vec::new(),
        };
        if !is_changed {
            return Ok(draft);
        }
        let origin = Origin::Cluster { uid: field("uid").unwrap_or_default() };
        Ok(match load_object(object, kind, origin) {
            Ok(source) => draft.compiled(&source, kinds, language),
            Err(diagnostics) => Draft { is_usable: false, diagnostics, ..draft },
        })
    }

    fn compiled(self, source: &RuleSource, kinds: &Kinds, language: &dyn ExpressionEngine) -> Draft {
        let (rule, diagnostics) = compile_rule(source, kinds, language);
        if !source.spec.enabled {
            // It does nothing. Enabling it is a change.
            return Draft { diagnostics, ..self };
        }
        let is_wrong = |diagnostic: &Diagnostic| diagnostic.level == Level::Error || diagnostic.awaits_kind;
        let is_usable = !diagnostics.iter().any(is_wrong);
        let mut needs = rule.as_ref().map(Requirements::of_author).unwrap_or_default();
        // Kinds that the group gets later are judged too, and nobody is asked then.
        for gvk in source.spec.matching.gvk.iter().filter(|gvk| gvk.kind == "*" && rule.is_some()) {
            let every = Permission { group: gvk.group.clone(), resource: "*".to_owned(), verb: "list" };
            needs.insert((every, source.id.namespace.clone()));
        }
        Draft { is_usable, needs, rule: rule.map(Arc::new), diagnostics, ..self }
    }

    /// What is wrong with the rule and what may be, a line each. The lines of an excerpt follow each other, so that its caret stands
    /// below its place.
    pub fn findings(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for diagnostic in &self.diagnostics {
            let text = Diagnostic { rule: None, ..diagnostic.clone() }.to_string();
            lines.extend(text.lines().map(str::to_owned));
        }
        if self.diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Error) {
            let waits = self.diagnostics.iter().all(|diagnostic| diagnostic.awaits_kind);
            lines.push(match waits {
                true => "the rule judges nothing until that is served".to_owned(),
                false => "the rule judges nothing until this is mended".to_owned(),
            });
        }
        lines
    }
}

fn kind_of(request: Node<'_>) -> Result<RuleKind, ReviewError> {
    let resource = request.get_str("resource").ok_or(ReviewError::Field("request.resource"))?;
    let (group, plural) = (text(resource, "group").unwrap_or_default(), text(resource, "resource").unwrap_or_default());
    match (group, plural) {
        (GROUP, "portalclusterrules") => Ok(RuleKind::Cluster),
        (GROUP, "portalrules") => Ok(RuleKind::Namespaced),
        _ => Err(ReviewError::Kind { group: group.to_owned(), resource: plural.to_owned() }),
    }
}
