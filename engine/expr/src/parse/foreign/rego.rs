//! The statements of Rego.

use super::Translated;
use crate::parse::token::is_word;

/// The statements of a rule of Rego, all of which must hold.
pub(super) fn translate(source: &str) -> Option<Translated> {
    let source = source.trim();
    let is_rego = source.contains(":=") || source.contains("[_]") && source.contains('\n');
    if !is_rego {
        return None;
    }
    let lines: Vec<&str> = match in_one_line(source) {
        Some(statements) => statements,
        None => source.lines().collect(),
    };
    let mut statements: Vec<&str> = lines
        .into_iter()
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

/// The statements of `deny[msg] { …; … }`.
fn in_one_line(source: &str) -> Option<Vec<&str>> {
    let (head, body) = source.split_once('{').filter(|_| !source.contains('\n'))?;
    let is_denial = ["deny", "violation"].into_iter().any(|word| head.starts_with(word));
    let statements: Vec<&str> = body.trim_end().strip_suffix('}')?.split(';').collect();
    // A `;` in a text parts no statements.
    let is_whole = |statement: &&str| statement.matches('"').count().is_multiple_of(2);
    (is_denial && statements.iter().all(is_whole)).then_some(statements)
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
