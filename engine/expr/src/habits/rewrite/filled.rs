//! Texts that other languages fill in: `sprintf("%s-x", [a])`, `"%s-x".format([a])`, `"{}-x".format(a)`.

use super::Rewriter;
use crate::ast::{Binary, Id, Kind};

/// A place in a text for a value.
struct Place {
    start: usize,
    end: usize,
    /// The number of the value, if it says so.
    index: Option<usize>,
    /// Whether it is for a number.
    is_number: bool,
}

impl<'s> Rewriter<'s> {
    /// The parts of a text and the values in their places, put together. None if they do not fit.
    pub(super) fn filled(&mut self, format: Id, values: &[Id]) -> Option<Kind<'s>> {
        let Kind::Text(format) = self.tree.kind(format).clone() else { return None };
        let values: Vec<Id> = match values {
            [list] if let Kind::Array(elements) = self.tree.kind(*list) => elements.clone(),
            values => values.to_vec(),
        };
        let (mut parts, mut at, mut count) = (Vec::new(), 0, 0);
        while let Some(place) = next_place(&format, at) {
            if place.start > at {
                parts.push(self.push(Kind::Text(format[at..place.start].to_owned().into())));
            }
            let value = *values.get(place.index.unwrap_or(count))?;
            let is_text = matches!(self.tree.kind(value), Kind::Text(_));
            parts.push(self.around(if place.is_number && !is_text { "string" } else { "" }, value));
            count += 1;
            at = place.end;
        }
        if at < format.len() {
            parts.push(self.push(Kind::Text(format[at..].to_owned().into())));
        }
        if count < values.len() {
            return None;
        }
        let whole = parts.into_iter().reduce(|before, part| self.push(Kind::Binary(Binary::Add, before, part)))?;
        Some(self.tree.kind(whole).clone())
    }
}

/// The first place for a value behind another: `%s`, `%v`, `%d`, `%q`, `{}` or `{0}`.
fn next_place(format: &str, from: usize) -> Option<Place> {
    let found = format[from..].char_indices().map(|(offset, sign)| (from + offset, sign));
    found.into_iter().find_map(|(start, sign)| match sign {
        '%' => {
            let letter = format[start + 1..].chars().next().filter(|letter| "svdq".contains(*letter))?;
            Some(Place { start, end: start + 2, index: None, is_number: letter == 'd' })
        }
        '{' => {
            let inside = &format[start + 1..][..format[start + 1..].find('}')?];
            let index = if inside.is_empty() { None } else { Some(inside.parse().ok()?) };
            Some(Place { start, end: start + inside.len() + 2, index, is_number: false })
        }
        _ => None,
    })
}
