//! What to write instead of a field that rules do not have, or that has another form: with the reader's own values, because
//! whoever comes from another engine knows those, and not the fields.

use portal_document::{Node, View};

use crate::{kinds::Kinds, rule::diagnostic::Step};

/// Advice that is longer is not read.
const MAX_SHOWN: usize = 160;

/// What `match.gvk` is called elsewhere.
const KINDS: [&str; 6] = ["kinds", "kind", "resources", "resource", "objects", "resourceRules"];

/// What `rule` is called elsewhere.
const CONDITIONS: [&str; 11] = [
    "expression",
    "condition",
    "conditions",
    "validate",
    "validation",
    "validations",
    "deny",
    "violation",
    "assert",
    "cel",
    "rego",
];

/// What `enforcementAction` is called elsewhere.
const ENFORCEMENTS: [&str; 5] =
    ["validationFailureAction", "validationActions", "failurePolicy", "failureAction", "enforcement"];

/// Words for a value that others have, by the field.
const WORDS: [(&str, &str, &str); 6] = [
    ("enforcementAction", "enforce", "deny"),
    ("enforcementAction", "block", "deny"),
    ("enforcementAction", "fail", "deny"),
    ("enforcementAction", "audit", "dryrun"),
    ("severity", "error", "high"),
    ("severity", "warning", "medium"),
];

/// What to write instead of a value that has another form than its field.
pub(super) fn of_form(path: &[Step], node: Node<'_>, expected: &str) -> Option<String> {
    let field = |step: Option<&Step>| match step {
        Some(Step::Field(name)) => Some(name.clone()),
        _ => None,
    };
    let name = field(path.last());
    let list = field(path.len().checked_sub(2).and_then(|before| path.get(before)));
    match (name.as_deref(), expected) {
        (None, "object") if list.as_deref() == Some("gvk") => Some(format!("write {}", gvk(node)?)),
        (None, "object") if list.as_deref() == Some("exceptions") => {
            node.as_str()?;
            Some(format!(
                "write {}",
                field_of("exceptions", &format!("[{{namespaces: [{}], reason: …}}]", flow(node)))?
            ))
        }
        (None, "object") if list.as_deref() == Some("actions") => {
            node.as_str()?;
            Some(format!("write {}", field_of("actions", &format!("[{{type: {}}}]", flow(node)))?))
        }
        (Some("namespaces"), "object") => namespaces(node),
        (Some(name @ ("labelSelector" | "namespaceSelector")), "object") => {
            let labels = labels(node.as_str()?)?;
            Some(format!("write {}", field_of(name, &format!("{{matchLabels: {labels}}}"))?))
        }
        (Some("gvk"), "array") => Some(format!("write {}", gvk(node)?)),
        (Some("actions"), "array") if node.as_str().is_some() => {
            Some(format!("write {}", field_of("actions", &format!("[{{type: {}}}]", flow(node)))?))
        }
        (Some("exceptions"), "array") if node.as_object().is_none() => None,
        (Some(name), "array") => Some(format!("write a list: {}", field_of(name, &list_of(node)?)?)),
        (Some("kind"), "string") => {
            let kinds =
                node.as_array()?.iter().map(|kind| kind.as_str().and_then(kind_of)).collect::<Option<Vec<_>>>()?;
            Some(format!("write {}", field_of("gvk", &format!("[{}]", kinds.join(", ")))?))
        }
        (Some(name), "string") => {
            let array = node.as_array().filter(|array| array.len() == 1)?;
            let only = array.get(0).filter(|only| only.as_str().is_some())?;
            Some(format!("write {}", field_of(name, &flow(only))?))
        }
        _ => None,
    }
}

/// What to write instead of a field that is not there, beside the fields that are.
pub(super) fn of_unknown(key: &str, node: Node<'_>, known: &[&str]) -> Option<String> {
    let has = |name: &str| known.contains(&name);
    if has("gvk") {
        return of_match(key, node);
    }
    if has("rule") {
        return of_rule(key, node);
    }
    if has("spec") && !matches!(key, "name" | "namespace") {
        let is_of_spec = ["rule", "match", "message", "severity", "mode", "enforcementAction", "actions", "exceptions"];
        return is_of_spec.contains(&key).then(|| format!("it stands in `spec`, write `spec: {{{key}: …}}`"));
    }
    if has("reason") && has("until") {
        return of_exception(key, node);
    }
    if has("include") && has("exclude") {
        let ours = match key {
            "in" | "only" | "names" | "matchNames" => "include",
            "notIn" | "not" | "except" => "exclude",
            _ => return None,
        };
        return Some(format!("write {}", field_of(ours, &list_of(node)?)?));
    }
    if has("matchLabels") {
        let text = node.as_str()?;
        return Some(format!("write `matchLabels: {{{}: {}}}`", plain(key), plain(text)));
    }
    if has("kind") && has("group") {
        return of_kind(key, node);
    }
    None
}

/// A word for a value, where others have another.
pub(super) fn of_word(path: &[Step], word: &str) -> Option<&'static str> {
    let Some(Step::Field(name)) = path.last() else { return None };
    let word = word.to_lowercase();
    WORDS.iter().find(|(field, theirs, _)| field == name && *theirs == word).map(|(.., ours)| *ours)
}

fn of_match(key: &str, node: Node<'_>) -> Option<String> {
    match key {
        _ if KINDS.contains(&key) => Some(match gvk(node) {
            Some(written) => format!("write {written}"),
            None => "write `gvk: [{kind: Pod}]`".to_owned(),
        }),
        "excludeNamespaces" | "excludedNamespaces" | "exclude" | "notNamespaces" => {
            let names = names_within(node).unwrap_or_else(|| "[…]".to_owned());
            Some(format!("write {}", field_of("namespaces", &format!("{{exclude: {names}}}"))?))
        }
        "namespace" | "includeNamespaces" | "includedNamespaces" => {
            let names = list_of(node).unwrap_or_else(|| "[…]".to_owned());
            Some(format!("write {}", field_of("namespaces", &format!("{{include: {names}}}"))?))
        }
        "name" => Some(format!("write {}", field_of("names", &list_of(node)?)?)),
        "labels" | "matchLabels" | "selector" => {
            let labels = node.as_object().map_or_else(|| "{…}".to_owned(), |_| flow(node));
            Some(format!("write {}", field_of("labelSelector", &format!("{{matchLabels: {labels}}}"))?))
        }
        "matchExpressions" => {
            Some(format!("write {}", field_of("labelSelector", &format!("{{matchExpressions: {}}}", flow(node)))?))
        }
        "any" | "all" => Some("name every kind in one list, such as `gvk: [{kind: Pod}, {kind: Service}]`".to_owned()),
        _ => None,
    }
}

fn of_exception(key: &str, node: Node<'_>) -> Option<String> {
    match key {
        "expires" | "expiresAt" | "expiry" | "expiration" | "validUntil" | "end" => {
            Some(format!("write {}", field_of("until", node.as_str().unwrap_or("2030-01-31"))?))
        }
        "namespace" => Some(format!("write {}", field_of("namespaces", &list_of(node)?)?)),
        "name" => Some(format!("write {}", field_of("names", &list_of(node)?)?)),
        "labels" | "labelSelector" | "matchLabels" | "selector" | "namespaceSelector" => Some(
            "an exception is for `namespaces` and `names`: what labels choose stands in `match`, or in the rule"
                .to_owned(),
        ),
        "comment" | "justification" | "message" | "because" => Some("write `reason`".to_owned()),
        _ => None,
    }
}

/// The namespaces that are named somewhere in a field, as a list.
fn names_within(node: Node<'_>) -> Option<String> {
    match node.view() {
        // As Kyverno has them.
        View::Object(object) => {
            let inner =
                ["namespaces", "namespace", "resources", "any", "all"].into_iter().find_map(|key| object.get_str(key));
            names_within(inner?)
        }
        View::Array(array) if array.iter().any(|element| element.as_object().is_some()) => names_within(array.get(0)?),
        _ => list_of(node),
    }
}

fn of_rule(key: &str, node: Node<'_>) -> Option<String> {
    match key {
        "messageExpression" => Some("write `message`, with `{{ … }}` around what is worked out".to_owned()),
        "msg" => Some("write `message`".to_owned()),
        _ if CONDITIONS.contains(&key) => {
            Some("write `rule`, an expression that is true for what is to be refused".to_owned())
        }
        _ if ENFORCEMENTS.contains(&key) => Some("write `enforcementAction`, which is deny, warn or dryrun".to_owned()),
        "matchConstraints" | "matchResources" | "selector" => {
            Some("write `match`, such as `match: {gvk: [{kind: Pod}]}`".to_owned())
        }
        "description" | "title" => {
            Some("write it as a comment, which begins with `#`, or as `message` if people are to be told".to_owned())
        }
        "disabled" => Some("write `enabled: false` to switch the rule off".to_owned()),
        "exclude" | "except" | "exception" => {
            Some("write `exceptions`, such as `exceptions: [{namespaces: [kube-system], reason: …}]`".to_owned())
        }
        _ if key != "resources" && KINDS.contains(&key) || key == "gvk" => {
            let written = gvk(node).unwrap_or_else(|| "`gvk: [{kind: Pod}]`".to_owned());
            Some(format!("write `match: {{{}}}`", written.trim_matches('`')))
        }
        "namespaces" | "namespace" if node.as_object().is_none() => {
            Some(format!("write `match: {{namespaces: {{include: {}}}, …}}`", list_of(node)?))
        }
        "namespaces" | "operations" | "subresources" | "names" | "labelSelector" | "namespaceSelector"
        | "podControllers" => {
            let written = field_of(key, &flow(node))?;
            Some(format!("it stands in `match`, write `match: {{{}, …}}`", written.trim_matches('`')))
        }
        _ => None,
    }
}

fn of_kind(key: &str, node: Node<'_>) -> Option<String> {
    match (key, node.as_str()) {
        ("apiVersion", Some(version)) => Some(match version.split_once('/') {
            Some((group, version)) => format!("write `group: {}, version: {}`", plain(group), plain(version)),
            None => format!("write `version: {}`", plain(version)),
        }),
        ("apiGroup" | "apiGroups", _) => Some("write `group`".to_owned()),
        ("apiVersions", _) => Some("write `version`".to_owned()),
        ("kinds" | "resources" | "resource" | "name", _) => Some(format!("write {}", gvk(node)?)),
        _ => None,
    }
}

/// `namespaces` as a list or a text.
fn namespaces(node: Node<'_>) -> Option<String> {
    let written = field_of("namespaces", &format!("{{include: {}}}", list_of(node)?))?;
    Some(format!("write {written}, or `exclude` for all but these"))
}

/// The kinds that something names, as they are written here.
fn gvk(node: Node<'_>) -> Option<String> {
    let texts = |node: Node<'_>| match node.view() {
        View::Str(text) => Some(vec![text.to_owned()]),
        View::Array(array) => array.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let elements = match node.view() {
        View::Object(_) => vec![node],
        View::Array(array) => array.iter().collect(),
        _ => vec![node],
    };
    let mut kinds = Vec::new();
    for element in elements {
        match element.view() {
            View::Str(text) => kinds.push(kind_of(text)?),
            View::Object(object) if object.get_str("kind").is_some_and(|kind| kind.as_str().is_some()) => {
                kinds.push(flow(element));
            }
            // As Gatekeeper and a ValidatingAdmissionPolicy have them.
            View::Object(object) => {
                for name in ["kinds", "resources"].into_iter().find_map(|key| texts(object.get_str(key)?))? {
                    kinds.push(kind_of(&name)?);
                }
            }
            _ => return None,
        }
    }
    field_of("gvk", &format!("[{}]", kinds.join(", "))).filter(|_| !kinds.is_empty())
}

/// A kind by its name or its plural, alone or behind its group and version.
fn kind_of(text: &str) -> Option<String> {
    let mut parts: Vec<&str> = text.split('/').collect();
    let name = parts.pop()?;
    let is_version =
        |part: &&str| part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = parts.last().copied().filter(is_version);
    parts.retain(|part| !is_version(part));
    if parts.len() > 1 || name.is_empty() {
        return None;
    }
    let is_named = |kind: &str, plural: &str| kind == name || plural == name;
    let mut known: Vec<(&str, &str)> = Kinds::builtin()
        .iter()
        .filter(|kind| is_named(&kind.kind, &kind.plural))
        .map(|kind| (kind.group.as_str(), kind.kind.as_str()))
        .collect();
    known.sort_unstable();
    let (group, kind) = match (parts.first(), known.first()) {
        (Some(group), _) => (*group, known.iter().find(|known| known.0 == *group).map_or(name, |known| known.1)),
        (None, Some(known)) => *known,
        (None, None) => ("", name),
    };
    let group = if group.is_empty() { String::new() } else { format!("group: {}, ", plain(group)) };
    let version = version.map(|version| format!("version: {version}, ")).unwrap_or_default();
    Some(format!("{{{group}{version}kind: {}}}", plain(kind)))
}

/// Labels as a selector's text has them: `app=web,tier=front`.
fn labels(text: &str) -> Option<String> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let is_plain = !key.trim().is_empty() && !key.contains(['!', ' ']);
        is_plain.then(|| format!("{}: {}", plain(key.trim()), plain(value.trim_start_matches('=').trim())))
    };
    let pairs: Vec<String> = text.split(',').map(pair).collect::<Option<_>>()?;
    Some(format!("{{{}}}", pairs.join(", ")))
}

/// A list of what is given, of which a text may hold several.
fn list_of(node: Node<'_>) -> Option<String> {
    match node.view() {
        View::Null => None,
        View::Str(text) if text.contains(',') => {
            let parts: Vec<String> = text.split(',').map(|part| plain(part.trim())).collect();
            Some(format!("[{}]", parts.join(", ")))
        }
        View::Array(array) if array.is_empty() => None,
        View::Array(_) => Some(flow(node)),
        _ => Some(format!("[{}]", flow(node))),
    }
}

/// A field with its value, unless that is too much to read.
fn field_of(name: &str, value: &str) -> Option<String> {
    let is_short = value.chars().count() <= MAX_SHOWN && !value.contains('`');
    is_short.then(|| format!("`{name}: {value}`"))
}

/// A value as YAML has it in one line.
fn flow(node: Node<'_>) -> String {
    match node.view() {
        View::Null => "null".to_owned(),
        View::Bool(value) => value.to_string(),
        View::Int(value) => value.to_string(),
        View::Float(value) => value.to_string(),
        View::Str(text) => plain(text),
        View::Array(array) => {
            let elements: Vec<String> = array.iter().map(flow).collect();
            format!("[{}]", elements.join(", "))
        }
        View::Object(object) => {
            let entries: Vec<String> =
                object.iter().map(|(key, value)| format!("{}: {}", plain(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A text as YAML has it, in quotes where it needs them.
fn plain(text: &str) -> String {
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._/*".contains(letter))
        && !words.contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { format!("{text:?}") }
}

#[cfg(test)]
mod tests {
    use crate::testing::rules;

    /// Each field is refused with this.
    #[track_caller]
    fn check(field: impl Fn(&str) -> String, rows: &[(&str, &str)]) {
        for (written, expected) in rows {
            let told = rules(&field(written)).1.join("\n");
            assert!(told.contains("Error") && told.contains(expected), "{written}\n{told}");
        }
    }

    #[test]
    fn what_others_have_in_match_is_told_with_its_own_values() {
        let of_match = |field: &str| format!("name: a\nmatch: {{gvk: [{{kind: Pod}}], {field}}}\nrule: spec.hostPID\n");
        check(
            of_match,
            &[
                (
                    "namespaces: [prod, kube-*]",
                    "expected a map, got a list: write `namespaces: {include: [prod, kube-*]}`, or `exclude` for all but these",
                ),
                ("namespaces: prod", "got text: write `namespaces: {include: [prod]}`, or `exclude` for all but these"),
                ("namespaces: {include: prod}", "expected a list, got text: write a list: `include: [prod]`"),
                ("namespaces: {notIn: [prod]}", "unknown field `notIn`: write `exclude: [prod]`"),
                ("namespace: prod", "unknown field `namespace`: write `namespaces: {include: [prod]}`"),
                ("excludeNamespaces: [a, 'no']", "write `namespaces: {exclude: [a, \"no\"]}`"),
                ("exclude: [a]", "write `namespaces: {exclude: [a]}`"),
                ("exclude: {namespaces: [a]}", "write `namespaces: {exclude: [a]}`"),
                ("exclude: {any: [{resources: {namespaces: [a, b]}}]}", "write `namespaces: {exclude: [a, b]}`"),
                ("exclude: {kinds: [a]}", "write `namespaces: {exclude: […]}`"),
                ("names: prod", "expected a list, got text: write a list: `names: [prod]`"),
                ("name: prod", "unknown field `name`: write `names: [prod]`"),
                ("operations: CREATE", "write a list: `operations: [CREATE]`"),
                ("operations: 'CREATE, UPDATE'", "write a list: `operations: [CREATE, UPDATE]`"),
                ("subresources: exec", "write a list: `subresources: [exec]`"),
                (
                    "labelSelector: app=web",
                    "expected a map, got text: write `labelSelector: {matchLabels: {app: web}}`",
                ),
                ("labelSelector: {app: web}", "unknown field `app`: write `matchLabels: {app: web}`"),
                ("namespaceSelector: {env: prod}", "unknown field `env`: write `matchLabels: {env: prod}`"),
                ("matchLabels: {app: web}", "write `labelSelector: {matchLabels: {app: web}}`"),
            ],
        );
    }

    #[test]
    fn fields_of_an_exception_are_told_as_they_are_written_here() {
        let of_exception = |field: &str| {
            format!(
                "name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\nexceptions: [{{reason: a, {field}}}]\n"
            )
        };
        check(
            of_exception,
            &[
                ("namespaces: [a], expires: '2099-01-01'", "unknown field `expires`: write `until: 2099-01-01`"),
                ("namespace: a", "write `namespaces: [a]`"),
                ("labels: {app: web}", "what labels choose stands in `match`, or in the rule"),
                ("names: [a], comment: b", "write `reason`"),
            ],
        );
    }

    #[test]
    fn kinds_are_told_as_they_are_written_here() {
        check(
            |kinds| format!("name: a\nmatch: {{{kinds}}}\nrule: object.kind == 'x'\n"),
            &[
                ("gvk: {kind: Pod}", "expected a list, got a map: write `gvk: [{kind: Pod}]`"),
                ("gvk: Pod", "write `gvk: [{kind: Pod}]`"),
                ("gvk: [apps/v1/Deployment]", "write `gvk: [{group: apps, version: v1, kind: Deployment}]`"),
                (
                    "gvk: [{kind: [Pod, Ingress]}]",
                    "write `gvk: [{kind: Pod}, {group: networking.k8s.io, kind: Ingress}]`",
                ),
                ("gvk: [{apiVersion: apps/v1, kind: Deployment}]", "write `group: apps, version: v1`"),
                ("kinds: [Pod, Deployment]", "write `gvk: [{kind: Pod}, {group: apps, kind: Deployment}]`"),
                ("kinds: [{apiGroups: [''], kinds: [Pod]}]", "write `gvk: [{kind: Pod}]`"),
                ("resources: [deployments]", "write `gvk: [{group: apps, kind: Deployment}]`"),
                ("resourceRules: [{apiGroups: [''], resources: [pods]}]", "write `gvk: [{kind: Pod}]`"),
                ("any: [{resources: {kinds: [Pod]}}]", "name every kind in one list"),
            ],
        );
    }

    #[test]
    fn what_others_have_beside_the_rule_is_told_with_ours() {
        check(
            |field| format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n{field}\n"),
            &[
                (
                    "messageExpression: '\"a\"'",
                    "unknown field `messageExpression`: write `message`, with `{{ … }}` around",
                ),
                (
                    "expression: 'true'",
                    "unknown field `expression`: write `rule`, an expression that is true for what is to be refused",
                ),
                ("validationFailureAction: Enforce", "write `enforcementAction`"),
                ("enforcementAction: Enforce", "did you mean `deny`?"),
                ("enforcementAction: [warn]", "expected text, got a list: write `enforcementAction: warn`"),
                ("mode: admission", "write a list: `mode: [admission]`"),
                ("actions: evict", "expected a list, got text: write `actions: [{type: evict}]`"),
                ("actions: {type: evict}", "write a list: `actions: [{type: evict}]`"),
                ("exceptions: [kube-system]", "write `exceptions: [{namespaces: [kube-system], reason: …}]`"),
                ("kinds: [Pod]", "write `match: {gvk: [{kind: Pod}]}`"),
                ("namespaces: [prod]", "write `match: {namespaces: {include: [prod]}, …}`"),
                ("operations: [DELETE]", "it stands in `match`, write `match: {operations: [DELETE], …}`"),
                ("disabled: true", "write `enabled: false`"),
            ],
        );
    }

    #[test]
    fn a_text_that_yaml_would_read_as_something_else_keeps_its_quotes() {
        for (text, expected) in
            [("prod", "prod"), ("kube-*", "kube-*"), ("*", "\"*\""), ("no", "\"no\""), ("1", "\"1\"")]
        {
            assert_eq!(super::plain(text), expected);
        }
    }
}
