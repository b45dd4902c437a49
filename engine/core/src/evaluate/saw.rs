//! What a rule saw, in a line for the person whose object it is: `container app: securityContext.privileged is true`.

use portal_expr::{Observation, Seen, Value};

use crate::{
    evaluate::host::Names,
    rule::message::{harmless, shorten, show},
};

/// The longest value in what a rule saw.
pub(super) const MAX_SEEN: usize = 120;

/// More would not be read.
const MAX_FACTS: usize = 3;

/// What an object is, which nobody changes because of a rule: it is told last.
const IDENTITY: [&str; 3] = ["name", "metadata.name", "metadata.namespace"];

/// What only says which rules are for an object. It is told if there is nothing else to tell.
const MATCHED: [&str; 4] = ["containerType", "kind", "apiVersion", "request.operation"];

/// What a rule saw.
///
/// Of an object that is `assumed`, what it lacks says nothing.
pub(super) fn describe(
    seen: &[Observation<'_>],
    container: Option<&str>,
    names: Names<'_>,
    assumed: &[(String, &'static str)],
) -> Option<String> {
    let mut seen: Vec<(&str, &Observation<'_>)> =
        seen.iter().map(|observation| (names.field(&observation.subject), observation)).collect();
    // What was looked up by the object's own name, and what the name of something says that was looked up, is said by that.
    let is_looked_up = seen.iter().any(|(_, observation)| observation.seen != Seen::Field);
    let is_matched = |subject: &str| {
        MATCHED.contains(&subject)
            || is_looked_up && IDENTITY.contains(&subject)
            || subject.ends_with("\"].metadata.name")
            || subject.ends_with("\"].metadata.namespace")
    };
    let is_identity = |subject: &str| IDENTITY.contains(&subject) || subject.starts_with("request.");
    if !seen.iter().all(|(subject, _)| is_matched(subject)) {
        seen.retain(|(subject, _)| !is_matched(subject));
    }
    if seen.iter().any(|(subject, observation)| !observation.is_aside && !is_identity(subject)) {
        seen.retain(|(_, observation)| !observation.is_aside);
    }
    seen.sort_by_key(|(subject, _)| is_identity(subject));
    let mut facts: Vec<String> = Vec::new();
    for (subject, observation) in seen {
        let is_part = |whole: &str| subject.strip_prefix(whole).is_some_and(|part| part.starts_with(['.', '[']));
        let fact = match assumed.iter().find(|(whole, _)| is_part(whole)) {
            Some((whole, told)) => format!("{whole} {told}"),
            None => fact(subject, observation),
        };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts.truncate(MAX_FACTS);
    if facts.is_empty() {
        return None;
    }
    let facts = facts.join(", ");
    Some(harmless(&match container {
        Some(container) => format!("container {container}: {facts}"),
        None => facts,
    }))
}

fn fact(subject: &str, observation: &Observation<'_>) -> String {
    let Observation { value, seen, counts_as, .. } = observation;
    let is_empty = value.elements().is_some_and(|mut elements| elements.next().is_none())
        || value.entries().is_some_and(|entries| entries.is_empty());
    match (seen, value) {
        (Seen::Found, Value::Nil) => format!("{subject} does not exist"),
        (Seen::Found, _) if is_empty => format!("there are no {subject}"),
        (Seen::NoneFits, _) => format!("none of the {subject} fits"),
        (_, Value::Nil) => match counts_as {
            Some(value) => format!("{subject} is not set, which counts as {}", shown(value)),
            None => format!("{subject} is not set"),
        },
        _ if is_empty => format!("{subject} is empty"),
        (_, value) => format!("{subject} is {}", shown(value)),
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => format!("{:?}", shorten(text, MAX_SEEN)),
        other => shorten(&show(*other), MAX_SEEN),
    }
}
