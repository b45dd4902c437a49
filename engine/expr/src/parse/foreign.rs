//! Sources that are of another language as a whole: a Go template, Python's `any(… for x in xs)`, the statements of Rego. What they
//! say is put in the words of this one, and is shown only if it can be read then.

use super::read;
use super::repair::LENIENT;
use super::token::{is_reserved, is_word, skip_space, token};
use crate::habits;

/// How long a source may be that is looked at. What is longer cannot be shown in a message.
const MAX_SOURCE: usize = 1000;

/// How long it may become.
const MAX_TRANSLATED: usize = 4 * MAX_SOURCE;

/// How many things are changed in a source.
const MAX_CHANGES: usize = 16;

/// Functions of templates, which stand before their arguments without parentheses.
const COMMANDS: [&str; 16] = [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "hasKey",
    "default",
    "index",
    "contains",
    "hasPrefix",
    "hasSuffix",
    "has",
    "len",
];

/// Words that stand between a list and what is looked for in it.
const HOLDERS: [&str; 4] = ["has", "includes", "include", "contain"];

/// Maps of Kubernetes, through whose keys Python goes.
const MAPS: [&str; 7] = ["labels", "annotations", "data", "stringData", "matchLabels", "nodeSelector", "binaryData"];

/// What a source became, with the number of predicates in it that have a variable.
struct Translated {
    text: String,
    variables: usize,
}

/// What is to be written instead of a source that cannot be read.
pub(super) fn instead(source: &str) -> Option<String> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    [of_template, of_python, of_rego, of_holders, of_defaults, of_dots].into_iter().find_map(|translate| {
        let Translated { text, variables } = translate(source)?;
        let tree = read(&text, LENIENT).ok()?;
        let text = habits::written_here(&tree, variables)?;
        read(&text, !LENIENT).is_ok().then_some(text)
    })
}

/// `{{ eq .spec.hostNetwork true }}`, with or without the braces.
fn of_template(source: &str) -> Option<Translated> {
    let whole = source.trim();
    let inside = whole.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let inside = inside.filter(|inside| !inside.contains("{{")).map(|inside| inside.trim_matches('-'));
    let text = match inside {
        // An `if` has the condition behind it, and what it guards is not here.
        Some(inside) => {
            let inside = inside.trim();
            let condition = inside.strip_prefix("if ").unwrap_or(inside);
            commands(condition, true).unwrap_or_else(|| without_dots(condition))
        }
        None => commands(whole, false)?,
    };
    Some(Translated { text, variables: 0 })
}

/// A text with the commands of a template as operations. None if there is none.
fn commands(text: &str, is_template: bool) -> Option<String> {
    let mut written = String::new();
    let (mut at, mut copied, mut changes) = (skip_space(text, 0), 0, 0);
    let mut is_first = true;
    while at < text.len() {
        let word = token(text, at);
        let behind = at + word.len();
        let is_command =
            is_first && COMMANDS.contains(&word) && text[behind..].starts_with(|next: char| next.is_whitespace());
        if is_command && let Some((operands, end)) = operands(text, behind) {
            written.push_str(&text[copied..at]);
            written.push_str(&command(word, &operands)?);
            (at, copied) = (skip_space(text, end), end);
            changes += 1;
            if changes > MAX_CHANGES {
                return None;
            }
            is_first = false;
            continue;
        }
        is_first = is_before_operand(word);
        at = skip_space(text, behind);
    }
    written.push_str(&text[copied..]);
    (changes > 0).then(|| if is_template { without_dots(&written) } else { written })
}

/// What a command says. A template has what is looked at last, where we have it first.
fn command(name: &str, operands: &[String]) -> Option<String> {
    let sign = |sign: &str| match operands {
        [one, other] => Some(format!("({one} {sign} {other})")),
        _ => None,
    };
    let flipped = |sign: &str| match operands {
        [one, other] => Some(format!("({other} {sign} {one})")),
        _ => None,
    };
    // Templates have the text that is looked for first, and Go has it last.
    let asked = |sign: &str| match operands {
        [one, other] if is_text(other) && !is_text(one) => Some(format!("({one} {sign} {other})")),
        _ => flipped(sign),
    };
    match (name, operands) {
        ("eq", [one, others @ ..]) if others.len() > 1 => Some(format!("({one} in [{}])", others.join(", "))),
        ("eq", _) => sign("=="),
        ("ne", _) => sign("!="),
        ("lt", _) => sign("<"),
        ("le", _) => sign("<="),
        ("gt", _) => sign(">"),
        ("ge", _) => sign(">="),
        ("and", [_, _, ..]) => Some(format!("({})", operands.join(" && "))),
        ("or", [_, _, ..]) => Some(format!("({})", operands.join(" || "))),
        ("len", [list]) => Some(format!("len({list})")),
        ("hasKey", _) => flipped("in"),
        ("has", _) => sign("in"),
        ("default", _) => flipped("??"),
        ("contains", _) => asked("contains"),
        ("hasPrefix", _) => asked("startsWith"),
        ("hasSuffix", _) => asked("endsWith"),
        ("index", [map, keys @ ..]) if !keys.is_empty() => Some(format!("{map}[{}]", keys.join("]["))),
        _ => None,
    }
}

fn is_text(operand: &str) -> bool {
    operand.starts_with(['"', '\'', '`'])
}

/// The operands that stand beside each other, and where they end.
fn operands(text: &str, at: usize) -> Option<(Vec<String>, usize)> {
    let (mut found, mut end) = (Vec::new(), at);
    let mut next = skip_space(text, at);
    while let Some(behind) = operand(text, next) {
        let operand = &text[next..behind];
        let inside = operand.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        found.push(match inside.and_then(|inside| commands(inside, true)) {
            Some(inside) => format!("({inside})"),
            None => without_dots(operand),
        });
        (end, next) = (behind, skip_space(text, behind));
    }
    (!found.is_empty()).then_some((found, end))
}

/// Where an operand ends that begins at a place: a literal, a path, or something in brackets.
fn operand(text: &str, at: usize) -> Option<usize> {
    let first = text[at..].chars().next()?;
    let word = token(text, at);
    let mut end = match first {
        '(' => closing(text, at)?,
        '"' | '\'' | '`' if word.len() > 1 => return Some(at + word.len()),
        '.' if text[at + 1..].starts_with(is_word) => at,
        _ if is_word(first) && !is_reserved(word) => at + word.len(),
        _ => return None,
    };
    loop {
        let rest = &text[end..];
        match rest.chars().next() {
            Some('.') if rest[1..].starts_with(is_word) => end += 1 + token(text, end + 1).len(),
            Some('[' | '(') => end = closing(text, end)?,
            _ => return Some(end),
        }
    }
}

/// Where a bracket is closed.
fn closing(text: &str, at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, at);
    while at < text.len() {
        let word = token(text, at);
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += word.len();
        if depth == 0 {
            return Some(at);
        }
        at = skip_space(text, at);
    }
    None
}

/// Whether an operand follows a token, and no operator.
fn is_before_operand(word: &str) -> bool {
    let is_operand =
        word.ends_with([')', ']', '}', '"', '\'', '`', '#']) || word.starts_with(is_word) && !is_reserved(word);
    !is_operand && !matches!(word, "." | "?.")
}

/// A text without the dots that paths begin with: `.spec.replicas`.
fn without_dots(text: &str) -> String {
    let mut written = String::new();
    let (mut at, mut copied, mut is_first) = (skip_space(text, 0), 0, true);
    while at < text.len() {
        let word = token(text, at);
        let length = match word {
            "." if is_first && text[at + 1..].starts_with(is_word) => 1,
            "$" if is_first && text[at + 1..].starts_with('.') => 2,
            _ => 0,
        };
        if length > 0 {
            written.push_str(&text[copied..at]);
            (at, copied) = (at + length, at + length);
            continue;
        }
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    written + &text[copied..]
}

/// `.spec.replicas` where no element is.
fn of_dots(source: &str) -> Option<Translated> {
    let has_element = source.contains('#') || PREDICATES.iter().any(|name| source.contains(&format!("{name}(")));
    let text = without_dots(source);
    (!has_element && text != source).then_some(Translated { text, variables: 0 })
}

const PREDICATES: [&str; 8] = ["any", "all", "none", "one", "filter", "map", "find", "sum"];

/// `labels has "app"`
fn of_holders(source: &str) -> Option<Translated> {
    let mut text = source.to_owned();
    for _ in 0..MAX_CHANGES {
        match held(&text) {
            Some(changed) => text = changed,
            None => break,
        }
    }
    (text != source).then_some(Translated { text, variables: 0 })
}

fn held(text: &str) -> Option<String> {
    let (mut at, mut is_first) = (skip_space(text, 0), true);
    while at < text.len() {
        if is_first && let Some(end) = operand(text, at) {
            let holder = skip_space(text, end);
            let word = token(text, holder);
            let next = skip_space(text, holder + word.len());
            if HOLDERS.contains(&word)
                && let Some(behind) = operand(text, next)
            {
                let (whole, part) = (&text[at..end], &text[next..behind]);
                return Some(format!("{}({part} in {whole}){}", &text[..at], &text[behind..]));
            }
        }
        let word = token(text, at);
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    None
}

/// `x ?? "a" == "b"`, of which the default is meant first.
fn of_defaults(source: &str) -> Option<Translated> {
    let mut text = String::new();
    let (mut at, mut copied, mut is_first) = (skip_space(source, 0), 0, true);
    while at < source.len() {
        let mut word = token(source, at);
        if is_first && let Some(mut end) = operand(source, at) {
            let start = at;
            let mut next = skip_space(source, end);
            while token(source, next) == "??"
                && let Some(behind) = operand(source, skip_space(source, next + 2))
            {
                end = behind;
                next = skip_space(source, end);
            }
            let is_called = source[at..end].starts_with(is_word) && source[at + word.len()..].starts_with('(');
            if source[start..end].contains("??") && !is_called {
                text.push_str(&format!("{}({})", &source[copied..start], &source[start..end]));
                (at, copied, word) = (next, end, ")");
                is_first = is_before_operand(word);
                continue;
            }
        }
        is_first = is_before_operand(word);
        at = skip_space(source, at + word.len());
    }
    text.push_str(&source[copied..]);
    (text != source).then_some(Translated { text, variables: 0 })
}

/// `any(c.tty for c in spec.containers)`
fn of_python(source: &str) -> Option<Translated> {
    let mut translated = Translated { text: source.to_owned(), variables: 0 };
    for _ in 0..MAX_CHANGES {
        let Some(place) = place_of(&translated.text, "for", 0, translated.text.len()) else { break };
        let (text, variables) = generated(&translated.text, place)?;
        // What stands for a value may be long, and have values in it.
        if text.len() > MAX_TRANSLATED {
            return None;
        }
        translated = Translated { text, variables: translated.variables + variables };
    }
    (translated.variables > 0).then_some(translated)
}

/// A source with the predicate that stands around a `for`, and how many have a variable in it.
fn generated(source: &str, place: usize) -> Option<(String, usize)> {
    let open = opening(source, place)?;
    let close = closing(source, open)?;
    let before = &source[..open];
    let name = &before[before.trim_end_matches(is_word).len()..];
    let is_list = source[open..].starts_with('[');
    let body = source[open + 1..place].trim();
    let behind_in = place_of(source, "in", place, close)?;
    let variable = source[place + "for".len()..behind_in].trim();
    let end = place_of(source, "if", behind_in, close).unwrap_or(close - 1);
    let list = source[behind_in + "in".len()..end].trim();
    let condition = (end < close - 1).then(|| source[end + "if".len()..close - 1].trim());
    let mut condition = condition.map(str::to_owned);
    let mut body = body.to_owned();
    let last = list.rsplit('.').next().unwrap_or_default();
    let is_one = |name: &str| !name.is_empty() && name.chars().all(is_word);
    let (list, variable, is_text) = match (variable.split_once(','), list.strip_suffix(".items()")) {
        (Some((key, value)), Some(map)) => {
            let (key, value) = (key.trim(), value.trim());
            if !is_one(key) || !is_one(value) {
                return None;
            }
            let used = |name: &str| names(&body, name) || condition.as_deref().is_some_and(|text| names(text, name));
            match (used(key), used(value)) {
                (false, true) => {
                    (format!("values({map})"), value.to_owned(), MAPS.iter().any(|name| map.ends_with(name)))
                }
                (true, false) => (format!("keys({map})"), key.to_owned(), true),
                _ => {
                    let element = format!("{map}[{key}]");
                    body = replaced(&body, value, &element);
                    condition = condition.map(|text| replaced(&text, value, &element));
                    (format!("keys({map})"), key.to_owned(), false)
                }
            }
        }
        (None, _) if !is_one(variable) => return None,
        (None, None) if MAPS.contains(&last) => (format!("keys({list})"), variable.to_owned(), true),
        (None, _) => (list.to_owned(), variable.to_owned(), list.ends_with(".keys()")),
        (Some(_), None) => return None,
    };
    let contained = |text: String| in_text(&text, &variable, is_text);
    let (body, condition) = (contained(body), condition.map(contained));
    let variables = 1 + usize::from(condition.is_some());
    let chosen = match &condition {
        Some(condition) => format!("filter({list}, {variable}, {condition})"),
        None => list,
    };
    let (start, written, variables) = match name {
        "any" | "all" | "sum" if !is_list => {
            (open - name.len(), format!("{name}({chosen}, {variable}, {body})"), variables)
        }
        _ if is_list && body == variable => (open, chosen, variables - 1),
        _ if is_list => (open, format!("map({chosen}, {variable}, {body})"), variables),
        _ => return None,
    };
    Some((format!("{}{written}{}", &source[..start], &source[close..]), variables))
}

/// The bracket that is open at a place.
fn opening(source: &str, place: usize) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = skip_space(source, 0);
    while at < place {
        let word = token(source, at);
        match word {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => {
                open.pop()?;
            }
            _ => {}
        }
        at = skip_space(source, at + word.len());
    }
    open.pop()
}

/// Where a word stands between two places, with nothing open before it that is not closed.
fn place_of(source: &str, wanted: &str, from: usize, to: usize) -> Option<usize> {
    let (mut at, mut depth) = (skip_space(source, from), 0_i32);
    let is_anywhere = from == 0;
    while at < to {
        let word = token(source, at);
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ if word == wanted && (depth == 0 || is_anywhere) && !source[..at].ends_with('.') => return Some(at),
            _ => {}
        }
        at = skip_space(source, at + word.len());
    }
    None
}

/// Whether a text has a name in it.
fn names(text: &str, name: &str) -> bool {
    replaced(text, name, "") != text
}

/// A text with something else in the place of a name.
fn replaced(text: &str, name: &str, other: &str) -> String {
    let mut written = String::new();
    let (mut at, mut copied) = (skip_space(text, 0), 0);
    while at < text.len() {
        let word = token(text, at);
        if word == name && !text[..at].ends_with('.') {
            written.push_str(&text[copied..at]);
            written.push_str(other);
            copied = at + word.len();
        }
        at = skip_space(text, at + word.len());
    }
    written + &text[copied..]
}

/// `"a" in x`, where `x` is known to be text, as we ask it.
fn in_text(text: &str, variable: &str, is_text: bool) -> String {
    let mut at = skip_space(text, 0);
    while at < text.len() {
        let part = token(text, at);
        let behind = at + part.len();
        if part.starts_with(['"', '\'']) && part.len() > 1 {
            let mut next = skip_space(text, behind);
            let is_negated = token(text, next) == "not";
            next = if is_negated { skip_space(text, next + "not".len()) } else { next };
            let is_in = token(text, next) == "in";
            let whole = if is_in { skip_space(text, next + "in".len()) } else { next };
            if is_in
                && token(text, whole) == variable
                && let Some(end) = operand(text, whole)
            {
                let fields = &text[whole + variable.len()..end];
                let is_method = [".lower()", ".upper()", ".strip()"].contains(&fields);
                if is_method || is_text && fields.is_empty() {
                    let not = if is_negated { "not " } else { "" };
                    let asked = format!("{} {not}contains {part}", &text[whole..end]);
                    let rest = in_text(&text[end..], variable, is_text);
                    return format!("{}{asked}{rest}", &text[..at]);
                }
            }
        }
        at = skip_space(text, behind);
    }
    text.to_owned()
}

/// The statements of a rule of Rego, all of which must hold.
fn of_rego(source: &str) -> Option<Translated> {
    let source = source.trim();
    let is_rego = source.contains(":=") || source.contains("[_]") && source.contains('\n');
    if !is_rego {
        return None;
    }
    let mut statements: Vec<&str> = source
        .lines()
        .map(|line| line.trim().trim_end_matches(';').trim_end())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if statements.len() > 2 && statements[0].ends_with('{') && statements[statements.len() - 1] == "}" {
        // `allow` says when nothing is wrong, which is the opposite.
        if !["deny", "violation"].into_iter().any(|head| statements[0].starts_with(head)) {
            return None;
        }
        statements.pop();
        statements.remove(0);
    }
    if statements.iter().any(|line| line.contains(['{', '}']) && !line.contains(":=")) {
        return None;
    }
    statements.retain(|line| !line.starts_with("msg :=") && !line.starts_with("msg = "));
    let mut rego = Rego { variables: 0, sets: Vec::new() };
    let text = rego.all(&statements)?;
    Some(Translated { text, variables: rego.variables })
}

struct Rego<'s> {
    /// How many variables of predicates there are.
    variables: usize,
    /// The names of what is a set.
    sets: Vec<&'s str>,
}

impl<'s> Rego<'s> {
    fn all(&mut self, statements: &[&'s str]) -> Option<String> {
        let (first, rest) = statements.split_first()?;
        if let Some((name, value)) = first.split_once(":=") {
            let (name, value) = (name.trim(), value.trim());
            if name.is_empty() || !name.chars().all(is_word) || rest.is_empty() {
                return None;
            }
            if let Some(list) = value.strip_suffix("[_]") {
                self.variables += 1;
                return Some(format!("any({list}, {name}, {})", self.all(rest)?));
            }
            if value.contains("[_]") {
                return None;
            }
            let value = self.value(name, value)?;
            return Some(format!("let {name} = {value}; {}", self.all(rest)?));
        }
        let inner = first.strip_prefix("some ").and_then(|rest| rest.split_once(" in "));
        if let Some((name, list)) = inner.filter(|(name, _)| name.chars().all(is_word)) {
            self.variables += 1;
            return Some(format!("any({list}, {name}, {})", self.all(rest)?));
        }
        let condition = self.condition(first)?;
        if rest.is_empty() {
            return Some(condition);
        }
        let others = self.all(rest)?;
        let others = if others.starts_with("let ") { format!("({others})") } else { others };
        Some(format!("{condition} && {others}"))
    }

    /// A value that gets a name.
    fn value(&mut self, name: &'s str, value: &'s str) -> Option<String> {
        if let Some(inside) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            self.sets.push(name);
            return match inside.split_once('|') {
                // `{label | labels[label]}`
                Some((element, path)) => {
                    let index = format!("[{}]", element.trim());
                    Some(format!("keys({})", path.trim().strip_suffix(&index)?))
                }
                None if !inside.contains(':') => Some(format!("[{inside}]")),
                None => None,
            };
        }
        let is_set = |name: &str| self.sets.contains(&name.trim());
        match value.split_once(" - ") {
            Some((one, other)) if is_set(one) && is_set(other) => {
                self.sets.push(name);
                Some(format!("filter({one}, # not in {other})"))
            }
            _ => Some(value.to_owned()),
        }
    }

    /// A statement that is a condition.
    fn condition(&mut self, statement: &str) -> Option<String> {
        let (is_negated, asked) = match statement.strip_prefix("not ") {
            Some(asked) => (true, asked.trim()),
            None => (false, statement),
        };
        let mut asked = asked.to_owned();
        for set in &self.sets {
            asked = asked.replace(&format!("count({set})"), &format!("len({set})"));
        }
        if let Some((list, rest)) = asked.split_once("[_]") {
            let is_path = list.chars().all(|letter| is_word(letter) || letter == '.');
            if !is_path || rest.contains("[_]") || is_negated {
                return None;
            }
            return Some(format!("any({list}, #{rest})"));
        }
        Some(if is_negated { format!("not ({asked})") } else { format!("({asked})") })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Each source is refused, and told as this.
    #[track_caller]
    fn check(rows: &[(&str, &str)]) {
        for (source, expected) in rows {
            let error = parse(source).expect_err(source);
            assert!(error.message.ends_with(&format!(": write `{expected}`")), "{source}\n{}", error.message);
        }
    }

    #[test]
    fn a_template_is_told_as_operations() {
        check(&[
            (r#"eq object.spec.strategy.type "Recreate""#, r#"object.spec.strategy.type == "Recreate""#),
            ("(default 1 object.spec.replicas) < 2", "(object.spec.replicas ?? 1) < 2"),
            ("{{ eq .spec.hostNetwork true }}", "spec.hostNetwork == true"),
            ("{{ .spec.hostNetwork }}", "spec.hostNetwork"),
            ("{{- if .spec.hostNetwork -}}", "spec.hostNetwork"),
            (
                r#"not (hasKey metadata.annotations "a") and not (hasKey metadata.labels "b")"#,
                r#""a" not in metadata.annotations and "b" not in metadata.labels"#,
            ),
            (
                r#"and (eq .kind "Pod") (hasPrefix "a-" .metadata.name)"#,
                r#"kind == "Pod" && metadata.name startsWith "a-""#,
            ),
            (r#"eq (index .metadata.labels "a/b") "c""#, r#"metadata.labels["a/b"] == "c""#),
            (r#"eq .kind "Pod" "Job""#, r#"kind in ["Pod", "Job"]"#),
            ("gt (len .spec.containers) 3", "len(spec.containers) > 3"),
            (r#"not (hasPrefix container.image "a/")"#, r#"container.image not startsWith "a/""#),
        ]);
    }

    #[test]
    fn what_python_generates_is_told_as_a_predicate() {
        check(&[
            (
                "any(c.securityContext.privileged for c in spec.containers)",
                "any(spec.containers, .securityContext.privileged)",
            ),
            (
                r#"not all(l in object.metadata.labels for l in ["app", "team"])"#,
                r#"not all(["app", "team"], # in object.metadata.labels)"#,
            ),
            (
                r#"any("password" in k.lower() for k in object.data)"#,
                r#"any(keys(object.data), lower(#) contains "password")"#,
            ),
            (r#"any("AKIA" in v for k, v in object.data.items())"#, r#"any(values(object.data), # contains "AKIA")"#),
            (r#"any(k == "a" and v == "b" for k, v in m.items())"#, r#"any(keys(m), # == "a" and m[#] == "b")"#),
            (r#"any("-v" in c.args for c in spec.containers)"#, r#"any(spec.containers, "-v" in .args)"#),
            ("len([c for c in spec.containers if c.tty]) > 1", "len(filter(spec.containers, .tty)) > 1"),
            ("any(c.tty for c in spec.containers if c.stdin)", "any(filter(spec.containers, .stdin), .tty)"),
            (r#""a" in [c.name for c in spec.containers]"#, r#""a" in map(spec.containers, .name)"#),
        ]);
    }

    #[test]
    fn what_grows_with_each_step_is_not_told() {
        let mut source = "xs".to_owned();
        for _ in 0..12 {
            source = format!("[v+v+v+k for k, v in {source}.items()]");
        }
        let error = parse(&source).expect_err("there is no `for`");
        assert!(error.message.len() < 1000, "{}", error.message.len());
    }

    #[test]
    fn the_statements_of_rego_are_told_as_one_condition() {
        check(&[
            (
                "e := container.env[_]\nregex.match(\"(?i)token\", e.name)\ne.value",
                "any(container.env, .name matches \"(?i)token\" && .value)",
            ),
            (
                "provided := {label | object.metadata.labels[label]}\nrequired := {\"app\", \"team\"}\n\
                 missing := required - provided\ncount(missing) > 0",
                "let provided = keys(object.metadata.labels); let required = [\"app\", \"team\"]; \
                 let missing = filter(required, # not in provided); len(missing) > 0",
            ),
            (
                "deny[msg] {\n  c := object.spec.containers[_]\n  not c.tty == true\n  msg := \"a\"\n}",
                "any(object.spec.containers, not (.tty == true))",
            ),
        ]);
    }

    #[test]
    fn what_may_say_the_opposite_is_not_told_as_a_whole() {
        for source in [
            "allow {\n  x := input.a\n  x == 1\n}",
            "default allow := false\nallow if {\n  x := input.a\n}",
            "x := input.a[_].b\nnot x",
            "x := a.b[_]\nnot y[_] == x",
            "is_good(x) {\n y := x.a\n y\n}",
        ] {
            let error = parse(source).expect_err(source);
            assert!(!error.message.contains(": write `"), "{source}\n{}", error.message);
        }
    }

    #[test]
    fn words_between_and_dots_before_are_told() {
        check(&[
            (r#"metadata.annotations has "debug""#, r#""debug" in metadata.annotations"#),
            (r#"not (container.args includes "-v")"#, r#""-v" not in container.args"#),
            (".spec.shareProcessNamespace", "spec.shareProcessNamespace"),
            (".spec.a && !.spec.b", "spec.a && !spec.b"),
            (r#"a.b ?? "x" == "y""#, r#"(a.b ?? "x") == "y""#),
            (r#"any(xs, .a ?? .b ?? 0 > 1)"#, r#"any(xs, (.a ?? .b ?? 0) > 1)"#),
        ]);
    }
}
