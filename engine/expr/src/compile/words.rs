//! Fields that can only be one of a few texts. A comparison with another text would never be true, and nobody would notice.

use super::{Compiler, Typed, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
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
        if operator == Binary::In {
            return self.check_element(&left.op, right);
        }
        self.check_against(operator, (right_id, right), &left.op)
    }

    /// Warns of `concurrencyPolicy == "Allow"`, which is false where the field is missing, although Kubernetes takes it for just that.
    pub(super) fn warn_of_word_default(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let (id, field, other_id, other) = match operator {
            Binary::Equal | Binary::NotEqual if !is_text(&left.op) => (left_id, left, right_id, &right.op),
            Binary::Equal | Binary::NotEqual => (right_id, right, left_id, &left.op),
            Binary::In => (left_id, left, right_id, &right.op),
            _ => return,
        };
        if self.strict || !field.known.may_be_nil || self.is_asked(id) || !self.is_of_object(id) || !self.is_of_all(id)
        {
            return;
        }
        let default = match words(&field.known.form) {
            Some(words) => {
                let words: Vec<&str> = words.iter().flat_map(|words| &words.listed).map(String::as_str).collect();
                self.last_name(id).and_then(|name| self.schema.word_default_of(name, &words))
            }
            None => self.text_default(id).map(Some),
        };
        let asked: Vec<&str> = match &other.kind {
            Kind::Array(elements) if elements.iter().all(is_text) => elements.iter().filter_map(text_of).collect(),
            _ => text_of(other).into_iter().collect(),
        };
        let Some(default) = default.filter(|default| default.map_or(!asked.is_empty(), |word| asked.contains(&word)))
        else {
            return;
        };
        let (text, constant) = (self.shown(id), self.shown(other_id));
        let sign = if operator == Binary::In && self.is_negated(at) { "not in" } else { name_of(operator) };
        let whole = |text: &str| {
            if id == left_id { format!("{text} {sign} {constant}") } else { format!("{constant} {sign} {text}") }
        };
        let left_out = format!("`{text} != nil && {}` to leave out what has none", whole(&text));
        let message = match default {
            Some(word) => format!(
                "`{text}` may be missing, and Kubernetes takes it for {word:?} then, which this rule does not: write `{}` \
                 to take it for {word:?}, or {left_out}",
                self.within(&[id], whole(&format!("({text} ?? {word:?})")))
            ),
            None => {
                let taken = self.worked_out(id).map(|value| whole(&format!("({text} ?? ({value}))")));
                let taken = taken.map(|taken| format!("`{taken}` to take it for that, or ")).unwrap_or_default();
                format!(
                    "`{text}` may be missing in a file, and Kubernetes fills it in then by what else is there: write {taken}{left_out}"
                )
            }
        };
        self.warn(field.op.at, message);
    }

    /// The text that a field can be and that differs from another one in nothing but capitals.
    pub(super) fn word_like(&self, id: Id, text: &str) -> Option<&'s str> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let field = self.schema.field(self.form_of(*base)?.object()?, self.last_name(id)?)?;
        let Shape::Word(words) = &field.shape else { return None };
        words.listed.iter().map(String::as_str).find(|word| word.eq_ignore_ascii_case(text))
    }

    /// What is filled in by what else is there, as it would be written. Nothing where that cannot be read.
    fn worked_out(&self, id: Id) -> Option<String> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let name = self.last_name(id)?;
        let (other, form) = self.schema.worked_out(name)?;
        let field = self.schema.field(self.form_of(*base)?.object()?, other)?;
        let text = self.shown(id);
        let before = text.strip_suffix(name)?;
        matches!(field.shape, Shape::TextWith(_)).then(|| form.replace("{}", before))
    }

    /// What a field that may be any text counts as where it is missing.
    fn text_default(&self, id: Id) -> Option<&'static str> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let object = self.schema.object(self.form_of(*base)?.object()?);
        self.schema.text_default_of(&object.name, self.last_name(id)?)
    }

    /// Whether something is a part of the object that is asked about. What was looked up has been filled in.
    fn is_of_object(&self, id: Id) -> bool {
        let mut node = id;
        loop {
            node = match self.tree.kind(node) {
                Syntax::Member { base, .. } => *base,
                Syntax::Chain(inner) => *inner,
                Syntax::Identifier(name) => return self.variable(name).is_none(),
                Syntax::Pointer("") => return self.scopes.last().is_some_and(|scope| scope.item.origin.is_some()),
                _ => return false,
            };
        }
    }

    /// Refuses to look for a text in a list whose elements can never be it.
    fn check_element(&self, element: &Op, list: &Typed<'s>) -> Result<(), Error> {
        let is_list = list.known.kind.is_array() && !matches!(list.op.kind, Kind::Array(_));
        let Some(words) = words(&list.known.form.element()).filter(|_| is_list) else { return Ok(()) };
        match text_of(element) {
            Some(text) if !words.iter().any(|words| words.listed.iter().any(|word| word == text)) => {
                let instead = instead(text, &words, false);
                Err(self.error(element.at, format!("this is never {text:?}: {instead}")))
            }
            _ => Ok(()),
        }
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

fn is_text(op: &Op) -> bool {
    text_of(op).is_some()
}

fn text_of(op: &Op) -> Option<&str> {
    match &op.kind {
        Kind::Constant(Constant::Text(text)) => Some(text),
        _ => None,
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
