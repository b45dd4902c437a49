//! Rules with something else in the place of what they read, as an advice.

use portal_expr::Schema;

use super::Compiler;

/// A rule that is longer is not written out.
const MAX_SHOWN: usize = 300;

impl Compiler<'_> {
    /// The rule with other values for what it reads, if that can be written: in the place of what it reads, or by a name, which conditions
    /// can ask whether it is there.
    pub(super) fn rewritten(&self, rule: &str, subjects: &[(String, String)], schema: &Schema) -> Option<String> {
        let in_place = subjects.iter().fold(rule.to_owned(), |rule, (subject, value)| {
            let given = replaced(&rule, &format!("{subject} ??"), &format!("{value} ??"));
            match given == rule {
                true if rule == *subject => value.clone(),
                true => replaced(&rule, subject, &format!("({value})")),
                false => given,
            }
        });
        let named = subjects.iter().fold(rule.to_owned(), |rule, (subject, value)| {
            let name = subject.rsplit('.').next().unwrap_or_default();
            format!("let {name} = {value}; {}", replaced(&rule, subject, name))
        });
        let is_once = subjects.iter().all(|(subject, _)| occurrences(rule, subject).count() == 1);
        let written = if is_once { [in_place, named] } else { [named, in_place] };
        let mut short = written.into_iter().filter(|written| written.chars().count() <= MAX_SHOWN);
        short.find(|written| self.engine.compile_condition(written, schema).is_ok())
    }
}

/// Where a way to a field is written, and not a part of another one.
pub(super) fn occurrences<'r>(rule: &'r str, way: &'r str) -> impl Iterator<Item = usize> + 'r {
    let is_name = |sign: char| sign.is_alphanumeric() || sign == '_';
    rule.match_indices(way).map(|(offset, _)| offset).filter(move |offset| {
        let goes_on = rule[offset + way.len()..].starts_with(is_name);
        !goes_on && !rule[..*offset].ends_with(|sign: char| is_name(sign) || sign == '.')
    })
}

/// A rule with something else in the place of a way to a field.
fn replaced(rule: &str, way: &str, other: &str) -> String {
    let offsets: Vec<usize> = occurrences(rule, way).collect();
    let mut text = rule.to_owned();
    for offset in offsets.into_iter().rev() {
        text.replace_range(offset..offset + way.len(), other);
    }
    text
}
