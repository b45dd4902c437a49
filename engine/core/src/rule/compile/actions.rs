//! What a rule does about violations: checked as the schema of the custom resources checks it on the API server, for
//! rules that do not come from there.

use portal_crds::{Action, ActionType};

use super::Compiler;
use crate::rule::diagnostic::{Level, Step};

impl Compiler<'_> {
    /// The actions, with what `alert` is short for.
    pub(super) fn actions(&self) -> Vec<Action> {
        let alert = self
            .spec
            .alert
            .as_ref()
            .map(|name| Action { template: Some(name.clone()), ..Action::new(ActionType::Alertmanager) });
        alert.into_iter().chain(self.spec.actions.iter().cloned()).collect()
    }

    pub(super) fn check_actions(&mut self) {
        for (index, action) in self.spec.actions.iter().enumerate() {
            let field = [Step::Field("actions".to_owned()), Step::Index(index)];
            for message in problems(action) {
                self.add(&field, Level::Error, message);
            }
        }
        for (index, exception) in self.spec.exceptions.iter().enumerate() {
            if exception.namespaces.is_empty() && exception.names.is_empty() {
                let field = [Step::Field("exceptions".to_owned()), Step::Index(index)];
                let message = "an exception for everything switches the rule off: name `namespaces` or `names`, or set `enabled: false`";
                self.add(&field, Level::Error, message.to_owned());
            }
        }
        let matching = &self.spec.matching;
        if matching.operations.contains(&portal_crds::Operation::Connect) && matching.subresources.is_empty() {
            let message = "CONNECT happens on subresources only: name them in `subresources`, or remove CONNECT";
            self.error(&["match", "operations"], message.to_owned());
        }
        if self.source.id.namespace.is_some()
            && (matching.namespaces.is_some() || matching.namespace_selector.is_some())
        {
            let message = "a PortalRule sees its own namespace only: remove `namespaces` and `namespaceSelector`, or use a PortalClusterRule";
            self.error(&["match"], message.to_owned());
        }
    }
}

/// What is wrong with an action, each with the way out.
fn problems(action: &Action) -> Vec<String> {
    use ActionType::{Alertmanager, Annotate, Evict, Label, PatchNetworkPolicy};
    let kind = action.action_type;
    let belongs = [
        ("template", action.template.is_some(), &[Alertmanager][..], "alertmanager"),
        ("labels", !action.labels.is_empty(), &[Alertmanager], "alertmanager"),
        ("annotations", !action.annotations.is_empty(), &[Alertmanager], "alertmanager"),
        ("key", action.key.is_some(), &[Label, Annotate], "label and annotate"),
        ("value", action.value.is_some(), &[Label, Annotate], "label and annotate"),
        ("gracePeriodSeconds", action.grace_period_seconds.is_some(), &[Evict], "evict"),
        ("deadline", action.deadline.is_some(), &[Evict], "evict"),
        ("allowDns", action.allow_dns.is_some(), &[PatchNetworkPolicy], "patch-networkpolicy"),
        ("allow", !action.allow.is_empty(), &[PatchNetworkPolicy], "patch-networkpolicy"),
        ("undo", action.undo, &[Label, Annotate, PatchNetworkPolicy], "label, annotate and patch-networkpolicy"),
    ];
    let mut problems: Vec<String> = belongs
        .into_iter()
        .filter(|(_, is_given, owners, _)| *is_given && !owners.contains(&kind))
        .map(|(name, _, _, owners)| format!("`{name}` belongs to {owners}: remove it, or change `type`"))
        .collect();
    if matches!(kind, Label | Annotate) && (action.key.is_none() || action.value.is_none()) {
        problems.push("label and annotate need `key` and `value`: add them".to_owned());
    }
    problems
}
