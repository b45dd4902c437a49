//! What the labels and annotations of an alert may have filled in, such as `{{ namespace }}`.
//!
//! They are names and no expressions: an alert is told apart by its labels, so these must not change while it fires.

use std::fmt::Write as _;

use portal_crds::{Action, ActionType};

/// What can be filled in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blank {
    /// What people are told of the violation.
    Message,
    /// What the rule saw.
    Saw,
    /// The rule.
    Rule,
    /// How bad the violation is.
    Severity,
    /// The namespace of the object.
    Namespace,
    /// Its kind.
    Kind,
    /// Its name.
    Name,
    /// The container, for rules that run per container.
    Container,
}

/// The labels that Portal sets itself. An alert is found again by them, so that no rule may set them. `severity` is none of them: who is
/// woken up often depends on it, and every team has words of its own.
pub const OWN_LABELS: [&str; 9] =
    ["alertname", "container", "instance", "kind", "mode", "name", "namespace", "rule", "source"];

/// The words of what can be filled in.
const BLANKS: [(&str, Blank); 8] = [
    ("message", Blank::Message),
    ("saw", Blank::Saw),
    ("rule", Blank::Rule),
    ("severity", Blank::Severity),
    ("namespace", Blank::Namespace),
    ("kind", Blank::Kind),
    ("name", Blank::Name),
    ("container", Blank::Container),
];

/// A part of a text.
enum Part<'a> {
    Words(&'a str),
    /// What is between `{{` and `}}`.
    Named(&'a str),
    /// A `{{` without its `}}`.
    Open,
}

/// The text with its blanks filled in. One that is none stays empty: compiling a rule refuses those.
pub fn fill<'v>(text: &str, value: impl Fn(Blank) -> &'v str) -> String {
    let mut filled = String::new();
    for part in parts(text) {
        match part {
            Part::Words(words) => filled.push_str(words),
            Part::Named(name) => filled.push_str(blank(name).map_or("", &value)),
            Part::Open => {}
        }
    }
    filled
}

/// A name as Alertmanager takes it for a label or an annotation, in every version.
pub fn label_name(name: &str) -> String {
    let mut taken = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if taken.is_empty() => _ = write!(taken, "_{character}"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => taken.push(character),
            _ => taken.push('_'),
        }
    }
    taken
}

/// What is wrong with the alert of an action, each with the way out.
pub(crate) fn problems(action: &Action) -> Vec<String> {
    let mut problems = Vec::new();
    if action.action_type != ActionType::Alertmanager {
        return problems;
    }
    if let Some(name) = action.template.as_ref().filter(|name| name.contains("{{")) {
        let name =
            format!("the alert `{name}` is called the same for all objects: fill nothing in there, but in `labels`");
        problems.push(name);
    }
    for (name, text) in &action.labels {
        let taken = label_name(name);
        if OWN_LABELS.contains(&taken.as_str()) {
            problems.push(format!("the label `{name}` is Portal's own: choose another name"));
        } else if let Some((other, _)) =
            action.labels.iter().find(|(other, _)| *other < name && label_name(other) == taken)
        {
            problems.push(format!("the labels `{other}` and `{name}` are both `{taken}` to Alertmanager: rename one"));
        }
        problems.extend(wrong_blanks(text, &format!("the label `{name}`")));
        let changing = parts(text).into_iter().find_map(|part| match part {
            Part::Named(word) => matches!(blank(word), Some(Blank::Message | Blank::Saw)).then_some(word),
            _ => None,
        });
        if let Some(word) = changing {
            problems.push(format!(
                "`{{{{{word}}}}}` may change while the alert fires, and alerts are told apart by their labels: move it from the label \
                 `{name}` to `annotations`"
            ));
        }
    }
    for (name, text) in &action.annotations {
        problems.extend(wrong_blanks(text, &format!("the annotation `{name}`")));
    }
    problems
}

/// What cannot be filled in.
fn wrong_blanks(text: &str, place: &str) -> Vec<String> {
    let problem = |part| match part {
        Part::Words(_) => None,
        Part::Open => Some(format!("`{{{{` in {place} is not closed by `}}}}`: close it")),
        Part::Named(name) => blank(name).is_none().then(|| {
            let names = BLANKS.map(|(name, _)| format!("`{name}`")).join(", ");
            format!("`{{{{{name}}}}}` in {place} cannot be filled in: use one of {names}")
        }),
    };
    parts(text).into_iter().filter_map(problem).collect()
}

fn blank(name: &str) -> Option<Blank> {
    BLANKS.iter().find(|(word, _)| *word == name.trim()).map(|(_, blank)| *blank)
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((words, inside)) = rest.split_once("{{") {
        parts.push(Part::Words(words));
        match inside.split_once("}}") {
            Some((name, behind)) => {
                parts.push(Part::Named(name));
                rest = behind;
            }
            None => {
                parts.push(Part::Open);
                return parts;
            }
        }
    }
    parts.push(Part::Words(rest));
    parts
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(labels: &[(&str, &str)], annotations: &[(&str, &str)], expected: Expect) {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let action =
            Action { labels: map(labels), annotations: map(annotations), ..Action::new(ActionType::Alertmanager) };
        expected.assert_eq(&problems(&action).join("\n"));
    }

    #[test]
    fn what_is_known_is_filled_in_wherever_it_is() {
        let value = |blank| match blank {
            Blank::Name => "web",
            Blank::Namespace => "shop",
            _ => "?",
        };
        assert_eq!(fill("{{namespace}}/{{ name }}: see {{ kind }}", value), "shop/web: see ?");
        assert_eq!(fill("}} { {name} {{ name }}", value), "}} { {name} web");
    }

    #[test]
    fn names_are_such_as_every_alertmanager_takes() {
        assert_eq!(
            ["team", "portal.io/x-y", "1st", "größe", "_"].map(label_name),
            ["team", "portal_io_x_y", "_1st", "gr__e", "_"]
        );
    }

    #[test]
    fn an_alert_that_could_not_be_found_again_is_refused() {
        check(&[("team", "{{ namespace }}"), ("severity", "page")], &[("runbook", "x#{{ rule }}")], expect![""]);
        check(&[("name", "x")], &[], expect!["the label `name` is Portal's own: choose another name"]);
        check(
            &[("a-b", "x"), ("a.b", "y")],
            &[],
            expect!["the labels `a-b` and `a.b` are both `a_b` to Alertmanager: rename one"],
        );
        check(
            &[("why", "{{ message }}")],
            &[],
            expect![
                "`{{ message }}` may change while the alert fires, and alerts are told apart by their labels: move it from the label `why` to `annotations`"
            ],
        );
        check(
            &[("a", "{{ object.name }}")],
            &[("b", "{{ name")],
            expect![[r#"
                `{{ object.name }}` in the label `a` cannot be filled in: use one of `message`, `saw`, `rule`, `severity`, `namespace`, `kind`, `name`, `container`
                `{{` in the annotation `b` is not closed by `}}`: close it"#]],
        );
    }

    #[test]
    fn the_name_of_an_alert_has_nothing_filled_in() {
        let action = Action { template: Some("Bad {{ name }}".to_owned()), ..Action::new(ActionType::Alertmanager) };
        assert_eq!(
            problems(&action),
            ["the alert `Bad {{ name }}` is called the same for all objects: fill nothing in there, but in `labels`"]
        );
    }
}
