//! What a rule does about violations: checked as the schema of the custom resources checks it on the API server, for
//! rules that do not come from there.

use portal_crds::{Action, ActionType, Front};

use super::Compiler;
use crate::{
    alert,
    event::WHOLE_SUBRESOURCES,
    rule::{
        diagnostic::{Level, Step},
        matching::parse_until,
    },
};

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
        let modes = self.spec.mode.as_deref();
        let named = Action { template: self.spec.alert.clone(), ..Action::new(ActionType::Alertmanager) };
        for message in alert::problems(&named) {
            self.error(&["alert"], message);
        }
        for (index, action) in self.spec.actions.iter().enumerate() {
            let field = [Step::Field("actions".to_owned()), Step::Index(index)];
            for message in problems(action, modes).into_iter().chain(alert::problems(action)) {
                self.add(&field, Level::Error, message);
            }
            if action.action_type == ActionType::Alertmanager && action.rate_limit.is_some() {
                let message = "an alert fires for as long as the violation is there, however often it is sent: `rateLimit` changes nothing \
                               for alertmanager, leave it out";
                self.add(&field, Level::Warning, message.to_owned());
            }
        }
        self.check_exceptions();
        self.check_match();
    }

    fn check_exceptions(&mut self) {
        for (index, exception) in self.spec.exceptions.iter().enumerate() {
            let field = |name: &str| {
                let field = [Step::Field("exceptions".to_owned()), Step::Index(index), Step::Field(name.to_owned())];
                field.into_iter().take(if name.is_empty() { 2 } else { 3 }).collect::<Vec<_>>()
            };
            if exception.namespaces.is_empty() && exception.names.is_empty() {
                let message = "an exception for everything switches the rule off: name `namespaces` or `names`, or set `enabled: false`";
                self.add(&field(""), Level::Error, message.to_owned());
            }
            if self.source.id.namespace.is_some() && !exception.namespaces.is_empty() {
                let message = "a PortalRule sees its own namespace only: remove `namespaces` and give `names`, or use a PortalClusterRule";
                self.add(&field("namespaces"), Level::Error, message.to_owned());
            }
            if let Some(Err(message)) = exception.until.as_deref().map(parse_until) {
                self.add(&field("until"), Level::Error, message);
            }
        }
    }

    fn check_match(&mut self) {
        let matching = &self.spec.matching;
        if matching.operations.contains(&portal_crds::Operation::Connect) && matching.subresources.is_empty() {
            let message = "CONNECT happens on subresources only: name them in `subresources`, or remove CONNECT";
            self.error(&["match", "operations"], message.to_owned());
        }
        if matching.subresources.iter().any(|name| name.contains('/')) {
            let message = "write the part after the slash only: `exec`, not `pods/exec`";
            self.error(&["match", "subresources"], message.to_owned());
        }
        let has_no_labels = |name: &&String| !WHOLE_SUBRESOURCES.contains(&name.as_str()) && !name.contains('/');
        if let Some(subresource) = matching.subresources.iter().find(has_no_labels)
            && matching.label_selector.is_some()
        {
            let message = format!(
                "what is sent to `{subresource}` has no labels, so that none of it would be judged: leave `labelSelector` out, or \
                 leave `{subresource}` to a rule of its own"
            );
            self.error(&["match", "labelSelector"], message);
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
fn problems(action: &Action, modes: Option<&[Front]>) -> Vec<String> {
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
    // Findings of the network loop come from no rule, so that no rule's `mode` has to name it.
    let is_left_out = |front: &Front| *front != Front::Network && modes.is_some_and(|modes| !modes.contains(front));
    let forms = [
        (
            action.on.iter().any(is_left_out),
            "`on` names a front that `mode` leaves out: add it to `mode`, or remove it from `on`",
        ),
        (
            action.rate_limit.as_deref().is_some_and(|text| !is_rate(text)),
            "write a rate as a number and a unit, such as `5/min`; the units are s, min and h",
        ),
        (
            action.deadline.as_deref().is_some_and(|text| !is_duration(text)),
            "write a deadline such as `30s`, `10m` or `1h30m`",
        ),
        (
            action.key.as_deref().is_some_and(|text| !is_key(text)),
            "write a key that Kubernetes takes, such as `example.com/quarantine`",
        ),
        (
            kind == Label && action.value.as_deref().is_some_and(|text| !text.is_empty() && !is_name(text)),
            "the value of a label is at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        ),
    ];
    problems.extend(forms.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, message)| message.to_owned()));
    problems
}

/// `5/min`
fn is_rate(text: &str) -> bool {
    text.split_once('/').is_some_and(|(number, unit)| {
        is_number(number) && !number.starts_with('0') && matches!(unit, "s" | "min" | "h")
    })
}

/// `1h30m`: each unit at most once, the larger ones first.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    for unit in ['h', 'm', 's'] {
        if let Some((number, after)) = rest.split_once(unit)
            && is_number(number)
        {
            rest = after;
        }
    }
    rest.is_empty() && !text.is_empty()
}

fn is_number(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `example.com/name`, or a name alone.
fn is_key(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| {
        let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        domain.len() <= 253
            && is_end(domain.bytes().next())
            && is_end(domain.bytes().last())
            && domain
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
    };
    domain.is_none_or(is_domain) && is_name(name)
}

/// What the name of a key and the value of a label may be.
fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63
        && is_end(text.bytes().next())
        && is_end(text.bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_durations_and_keys_have_their_forms() {
        assert!(["5/min", "1/s", "99999/h"].into_iter().all(is_rate));
        assert!(!["5", "0/min", "5/day", "/s", "100000/s", "5 /s"].into_iter().any(is_rate));
        assert!(["30s", "10m", "1h30m", "1h2m3s"].into_iter().all(is_duration));
        assert!(!["", "1", "1d", "30s10m", "h", "1h1h", "-1s"].into_iter().any(is_duration));
        assert!(["a", "example.com/a_b.c", "A-1"].into_iter().all(is_key));
        assert!(!["", "-a", "a/", "/a", "Example.com/a", "a/b/c", "a b"].into_iter().any(is_key));
    }
}
