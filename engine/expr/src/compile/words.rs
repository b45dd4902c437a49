//! Fields that can only be one of a few texts. A comparison with another text would never be true, and nobody would notice.

use super::{Compiler, Typed, form::Form};
use crate::{
    ast::Binary,
    error::Error,
    program::{Constant, Kind, Op},
    schema::Shape,
    suggest,
};

impl<'s> Compiler<'s> {
    /// Refuses to compare a field with a text that it can never be.
    pub(super) fn check_words(&self, operator: Binary, left: &Typed<'s>, right: &Typed<'s>) -> Result<(), Error> {
        if self.strict || !matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In) {
            return Ok(());
        }
        self.check_against(left, &right.op)?;
        if operator == Binary::In { Ok(()) } else { self.check_against(right, &left.op) }
    }

    fn check_against(&self, field: &Typed<'s>, other: &Op) -> Result<(), Error> {
        let Some(words) = words(&field.known.form) else { return Ok(()) };
        let texts = match &other.kind {
            Kind::Array(elements) => elements.iter().collect(),
            _ => vec![other],
        };
        for op in texts {
            let Kind::Constant(Constant::Text(text)) = &op.kind else { continue };
            if words.contains(&&**text) {
                continue;
            }
            let hint = if text.is_empty() {
                ": what is missing is `nil`".to_owned()
            } else {
                suggest::hint(text, words.iter().copied())
            };
            let listed: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            let message = format!("this is never {text:?}: it is {}{hint}", listed.join(" or "));
            return Err(self.error(op.at, message));
        }
        Ok(())
    }
}

/// The texts that a value can be, if it can be no others.
fn words<'s>(form: &Form<'s>) -> Option<Vec<&'s str>> {
    let mut words = Vec::new();
    for form in form.alternatives() {
        match form {
            Form::Shaped(Shape::Word(listed)) => words.extend(listed.iter().map(String::as_str)),
            Form::Nil => {}
            _ => return None,
        }
    }
    words.sort_unstable();
    words.dedup();
    (!words.is_empty()).then_some(words)
}
