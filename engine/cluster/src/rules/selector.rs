//! Selectors of labels as `kubectl --selector` takes them: `team=payments,tier in (a, b),!legacy`.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

/// Reads a selector. An empty one fits everything. An error says what is wrong with which part.
pub fn parse(text: &str) -> Result<Selector, String> {
    let mut rest = text.trim();
    let mut expressions = Vec::new();
    while !rest.is_empty() {
        let (expression, after) = requirement(rest)?;
        expressions.push(expression);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) if more.trim().is_empty() => return Err("there is nothing behind the last comma".to_owned()),
            Some(more) => more.trim_start(),
            None if after.is_empty() => after,
            None => return Err(format!("there is no comma before `{after}`")),
        };
    }
    Ok(expressions.into_iter().collect())
}

/// The first requirement of a text, and what follows it.
fn requirement(text: &str) -> Result<(Expression, &str), String> {
    if let Some(text) = text.strip_prefix('!') {
        let (key, rest) = key(text.trim_start())?;
        return Ok((Expression::DoesNotExist(key), rest));
    }
    let (key, rest) = key(text)?;
    let rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix("!=") {
        let (value, rest) = value(rest)?;
        return Ok((Expression::NotEqual(key, value), rest));
    }
    if let Some(rest) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        let (value, rest) = value(rest)?;
        return Ok((Expression::Equal(key, value), rest));
    }
    if let Some(rest) = word(rest, "in") {
        let (values, rest) = values(rest)?;
        return Ok((Expression::In(key, values), rest));
    }
    if let Some(rest) = word(rest, "notin") {
        let (values, rest) = values(rest)?;
        return Ok((Expression::NotIn(key, values), rest));
    }
    Ok((Expression::Exists(key), rest))
}

/// What follows a word, if it is there.
fn word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?.trim_start();
    rest.starts_with('(').then_some(rest)
}

/// The name of a label, with its prefix.
fn key(text: &str) -> Result<(String, &str), String> {
    let (key, rest) = split(text, |letter| letter == '/');
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| !prefix.is_empty() && prefix.len() <= 253 && !prefix.contains(['/', '_']);
    if name.is_empty() || !is_label(name) || prefix.is_some_and(|prefix| !is_prefix(prefix)) {
        let found = if key.is_empty() { rest } else { key };
        return Err(format!("`{found}` is no name of a label"));
    }
    Ok((key.to_owned(), rest))
}

fn value(text: &str) -> Result<(String, &str), String> {
    let (value, rest) = split(text.trim_start(), |_| false);
    if !is_label(value) {
        return Err(format!("`{value}` is no value of a label"));
    }
    Ok((value.to_owned(), rest))
}

/// Values in parentheses.
fn values(text: &str) -> Result<(BTreeSet<String>, &str), String> {
    let inner = text.strip_prefix('(').unwrap_or(text);
    let (inside, rest) = inner.split_once(')').ok_or_else(|| format!("the parenthesis of `{text}` is not closed"))?;
    let mut values = BTreeSet::new();
    for part in inside.split(',') {
        let (found, rest) = value(part)?;
        if !rest.trim().is_empty() {
            return Err(format!("`{}` is no value of a label", part.trim()));
        }
        values.insert(found);
    }
    Ok((values, rest))
}

/// The letters of a label at the start of a text, and what follows them.
fn split(text: &str, also: impl Fn(char) -> bool) -> (&str, &str) {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.') || also(letter);
    text.split_at(text.find(|letter| !is_part(letter)).unwrap_or(text.len()))
}

/// Whether this can be a value, and with at least one letter a name.
fn is_label(text: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    text.len() <= 63 && is_end(text.chars().next()) && is_end(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use kube::core::SelectorExt as _;

    use super::*;

    #[test]
    fn what_kubernetes_takes_is_read() {
        for (text, printed) in [
            ("", ""),
            ("team=payments", "team=payments"),
            (" team == payments , !legacy ", "team=payments,!legacy"),
            ("app.kubernetes.io/name!=x", "app.kubernetes.io/name!=x"),
            ("tier in (a, b,a),in", "tier in (a,b),in"),
            ("tier notin(a)", "tier notin (a)"),
            ("empty=,notin", "empty=,notin"),
            ("empty in ()", "empty in ()"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), printed, "{text}");
        }
    }

    #[test]
    fn what_it_does_not_take_is_told() {
        for (text, error) in [
            ("=a", "`=a` is no name of a label"),
            ("team=payments,", "there is nothing behind the last comma"),
            ("team=payments tier=a", "there is no comma before `tier=a`"),
            ("tier in (a", "the parenthesis of `(a` is not closed"),
            ("tier in (a b)", "`a b` is no value of a label"),
            ("team=-a", "`-a` is no value of a label"),
            ("/team", "`/team` is no name of a label"),
            ("a/b/c", "`a/b/c` is no name of a label"),
            ("team>1", "there is no comma before `>1`"),
        ] {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn a_label_that_is_missing_is_not_in_and_not_equal() {
        let labels = [("team".to_owned(), "payments".to_owned())].into();
        for (text, expected) in [
            ("", true),
            ("team=payments", true),
            ("team in (a,payments)", true),
            ("tier notin (a),tier!=b,!tier", true),
            ("team!=payments", false),
            ("tier", false),
        ] {
            assert_eq!(parse(text).unwrap().matches(&labels), expected, "{text}");
        }
    }
}
