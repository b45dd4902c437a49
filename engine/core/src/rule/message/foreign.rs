//! Messages as other languages fill them in: `sprintf("… %s", x)`, `${x}`, `"…" + x`. Here they would be shown as they stand, to people
//! who can do nothing with them.

/// Functions of other languages that fill a text in.
const FORMATTERS: [&str; 4] = ["sprintf", "printf", "fmt.Sprintf", "format"];

/// What is wrong with a message that has something in it that another language would fill in, and what to write. `is_expression` tells
/// whether something can be read in this one.
pub(crate) fn unfilled(words: &str, is_expression: impl Fn(&str) -> bool) -> Option<String> {
    let whole = words.trim();
    if let Some(ours) = formatted(whole).or_else(|| joined(whole, &is_expression)) {
        return Some(format!("a message is text, and no expression: write `{ours}`"));
    }
    let in_braces = in_braces(words, "${", &|_| true).or_else(|| in_braces(words, "{", &is_expression));
    if let Some((sign, ours)) = in_braces {
        return Some(format!("`{sign}` is not filled in: write `{ours}`"));
    }
    let (_, sign) = placeholders(words).next()?;
    Some(format!(
        "`{sign}` is not filled in: write `{{{{ … }}}}` with an expression in it, such as `{{{{ metadata.name }}}}`"
    ))
}

/// `sprintf("image %v of %v", [container.image, metadata.name])`
fn formatted(text: &str) -> Option<String> {
    let inside = FORMATTERS.iter().find_map(|name| text.strip_prefix(name))?.trim_start();
    let arguments = parts(inside.strip_prefix('(')?.strip_suffix(')')?, ',');
    let (format, values) = arguments.split_first()?;
    let mut format = literal(format)?;
    // Rego has a list of them.
    let values: Vec<&str> = match values {
        [list] if list.starts_with('[') && list.ends_with(']') => parts(&list[1..list.len() - 1], ','),
        values => values.to_vec(),
    };
    let mut ours = String::new();
    for value in values {
        let (at, sign) = placeholders(format).next()?;
        ours.push_str(&format!("{}{{{{ {value} }}}}", &format[..at]));
        format = &format[at + sign.len()..];
    }
    Some(ours + format)
}

/// `"image " + container.image`
fn joined(text: &str, is_expression: &impl Fn(&str) -> bool) -> Option<String> {
    // Most messages have none, and need not be taken apart.
    if !text.contains('+') {
        return None;
    }
    let parts = parts(text, '+');
    let is_joined = parts.len() > 1 && parts.iter().any(|part| literal(part).is_some()) && is_expression(text);
    let written = |part: &&str| literal(part).map_or_else(|| format!("{{{{ {part} }}}}"), str::to_owned);
    is_joined.then(|| parts.iter().map(written).collect())
}

/// What stands first in such braces, and how it is written here.
fn in_braces(words: &str, open: &str, is_meant: &impl Fn(&str) -> bool) -> Option<(String, String)> {
    // A sign is found faster than a text, and most messages have none.
    let mut found = words.contains('{').then(|| words.match_indices(open)).into_iter().flatten();
    found.find_map(|(at, _)| {
        let inside = &words[at + open.len()..];
        let value = inside[..inside.find('}')?].trim();
        let is_name = value.starts_with(|first: char| first.is_alphabetic()) && value.contains(['.', '[', '(', '_']);
        let is_value = if open == "{" { is_name } else { !value.is_empty() && !value.contains('{') };
        (is_value && is_meant(value)).then(|| (format!("{open}{value}}}"), format!("{{{{ {value} }}}}")))
    })
}

/// The signs `%s`, `%v`, `%d` and `%q` of a text, with their places. `100%d` is no such sign, and `%story` is none either.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('%').filter_map(move |(at, _)| {
        let (before, sign) = (&text[..at], text.get(at..at + 2)?);
        let is_alone = !text[at + 2..].starts_with(|next: char| next.is_alphanumeric());
        let is_sign = matches!(sign, "%s" | "%v" | "%d" | "%q") && !before.ends_with(|last: char| last.is_numeric());
        (is_sign && is_alone).then_some((at, sign))
    })
}

/// What is in the quotes of a text.
fn literal(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains(quote)).then_some(inside)
}

/// The parts of a text between signs that stand in no quotes and no brackets.
fn parts(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_i32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) => quote = Some(open).filter(|open| *open != letter),
            (None, '"' | '\'' | '`') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, letter) if letter == separator && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each message is told with this, where paths can be read.
    #[track_caller]
    fn check(rows: &[(&str, Option<&str>)]) {
        let is_expression = |text: &str| text.contains("metadata.");
        for (text, expected) in rows {
            let told = unfilled(text, is_expression);
            let ours = told.as_deref().and_then(|told| told.split_once("write `")).map(|(_, ours)| ours);
            let ours = ours.map(|ours| ours.split_once('`').map_or(ours, |(ours, _)| ours));
            assert_eq!(ours, *expected, "{text}: {told:?}");
        }
    }

    #[test]
    fn what_other_languages_fill_in_is_told() {
        check(&[
            ("name ${metadata.name} is bad", Some("{{ metadata.name }}")),
            ("name {metadata.name} is bad", Some("{{ metadata.name }}")),
            ("name %s is bad", Some("{{ … }}")),
            (r#"sprintf("name %v", [metadata.name])"#, Some("name {{ metadata.name }}")),
            (
                r#"sprintf('%s of %q, too', f(metadata.name, 1), x["a, b"])"#,
                Some(r#"{{ f(metadata.name, 1) }} of {{ x["a, b"] }}, too"#),
            ),
            (r#""name " + metadata.name + ' is bad'"#, Some("name {{ metadata.name }} is bad")),
        ]);
    }

    #[test]
    fn what_is_only_text_is_left_alone() {
        check(&[
            ("at most 100%d", None),
            ("50% should do", None),
            ("use %story", None),
            ("costs $5, or {a}, or {}", None),
            ("a + b", None),
            ("use \"a\" + \"b\"", None),
            ("sprintf is no function", None),
            ("is %", None),
            ("é%é", None),
        ]);
    }
}
