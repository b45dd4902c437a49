//! Fields that can only be one of a few texts. A comparison with another text would never be true, and nobody would notice.

use super::{Compiler, Typed, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id},
    error::Error,
    program::{Constant, Kind, Op},
    schema::{Shape, Words},
    suggest,
};

impl<'s> Compiler<'s> {
    /// Refuses to compare a field with a text that it can never be.
    pub(super) fn check_words(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        if self.strict || !matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In) {
            return Ok(());
        }
        self.check_against(operator, (left_id, left), &right.op)?;
        if operator == Binary::In { Ok(()) } else { self.check_against(operator, (right_id, right), &left.op) }
    }

    fn check_against(&self, operator: Binary, (id, field): (Id, &Typed<'s>), other: &Op) -> Result<(), Error> {
        let Some(words) = words(&field.known.form) else { return Ok(()) };
        let listed: Vec<&str> = words.iter().flat_map(|words| &words.listed).map(String::as_str).collect();
        let texts = match &other.kind {
            Kind::Array(elements) => elements.iter().collect(),
            _ => vec![other],
        };
        for op in texts {
            let Kind::Constant(Constant::Text(text)) = &op.kind else { continue };
            if listed.contains(&&**text) {
                continue;
            }
            let instead = match field.known.may_be_nil && text.is_empty() {
                true if operator == Binary::In => "where there is none it is `nil`".to_owned(),
                true => {
                    let (field, sign) = (self.shown(id), name_of(operator));
                    format!("where there is none it is `nil`: write `{field} {sign} nil`")
                }
                false => instead(text, &words, field.known.may_be_nil),
            };
            return Err(self.error(op.at, format!("this is never {text:?}: {instead}")));
        }
        Ok(())
    }
}

/// What a value can be instead of a text, and who says so.
fn instead(text: &str, words: &[&Words], may_be_nil: bool) -> String {
    let left_out: Vec<_> = words.iter().flat_map(|words| &words.left_out).collect();
    let said_by = words.iter().map(|words| &*words.said_by).find(|said_by| !said_by.is_empty());
    if let (Some(said_by), Some((_, advice))) = (said_by, left_out.iter().find(|(word, _)| word == text)) {
        return format!("{said_by} leaves it out, {advice}");
    }
    if let (Some(said_by), true) = (said_by, words.iter().all(|words| words.listed.is_empty())) {
        return format!("{said_by} names none");
    }
    let mut listed: Vec<&str> = words.iter().flat_map(|words| &words.listed).map(String::as_str).collect();
    listed.sort_unstable();
    listed.dedup();
    let quoted: Vec<String> = listed.iter().map(|word| format!("{word:?}")).collect();
    let by = said_by.map(|said_by| format!("by {said_by} ")).unwrap_or_default();
    let hint = suggest::hint(text, listed.into_iter().chain(left_out.iter().map(|(word, _)| &**word)));
    let or_nil = if said_by.is_some() && may_be_nil { " or `nil`" } else { "" };
    format!("{by}it is {}{or_nil}{hint}", quoted.join(" or "))
}

/// The texts that a value can be, if it can be no others.
fn words<'s>(form: &Form<'s>) -> Option<Vec<&'s Words>> {
    let mut words = Vec::new();
    for form in form.alternatives() {
        match form {
            Form::Shaped(Shape::Word(listed)) => words.push(&**listed),
            Form::Nil => {}
            _ => return None,
        }
    }
    (!words.is_empty()).then_some(words)
}
