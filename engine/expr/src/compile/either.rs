//! Values that are a number, or a text such as "25%" or the name of a port. Nobody who writes a rule thinks of both, so that what works with
//! one of them alone is refused, and a comparison with one of two ways to write the same is told.

use super::{Compiler, Typed, form::Form, guards::without_default, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    builtins::Builtin,
    error::Error,
    print::written,
    program::{Constant, Kind, Op},
    types::Type,
};

/// What the text of such a value says, if it is no number.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Says {
    /// A part of all: "25%".
    Part,
    /// The name of a port.
    Port,
}

impl Says {
    fn text(self) -> &'static str {
        match self {
            Says::Part => "a text such as \"25%\"",
            Says::Port => "the name of a port",
        }
    }
}

impl<'s> Compiler<'s> {
    /// What the text of a value says that may be a number too.
    fn either(&self, id: Id, typed: &Typed<'s>) -> Option<Says> {
        let mut forms = typed.known.form.alternatives().iter().filter(|form| !matches!(form, Form::Nil));
        let is_either = match (forms.next(), forms.next(), forms.next()) {
            (Some(Form::Plain(one)), Some(Form::Plain(other)), None) => {
                matches!((*one, *other), (Type::INT, Type::TEXT) | (Type::TEXT, Type::INT))
            }
            _ => false,
        };
        if self.strict || !is_either {
            return None;
        }
        let mut field = without_default(self.tree, id);
        loop {
            field = match self.tree.kind(field) {
                Syntax::Predicate(body) => without_default(self.tree, *body),
                Syntax::Identifier(name) if let Some(variable) = self.variable(name) => {
                    without_default(self.tree, variable.value)
                }
                _ => break,
            };
        }
        match self.tree.kind(field) {
            Syntax::Member { .. } => {
                let is_port = self.last_name(field).is_some_and(|name| name.to_lowercase().ends_with("port"));
                Some(if is_port { Says::Port } else { Says::Part })
            }
            // There are many ports, and one of everything else.
            Syntax::Pointer(_) => Some(Says::Port),
            // What was put together is what its author wants.
            _ => None,
        }
    }

    /// Such a value as a text, and nothing for a missing one.
    fn as_text(&self, id: Id, typed: &Typed<'s>) -> String {
        match typed.known.may_be_nil {
            true => format!("string({} ?? \"\")", self.shown(id)),
            false => format!("string({})", written(self.tree, id)),
        }
    }

    /// The number in such a value that says a part, and 0 for a missing one.
    fn as_number(&self, id: Id, typed: &Typed<'s>) -> String {
        match typed.known.may_be_nil {
            true => format!("int(trimSuffix(string({} ?? 0), \"%\"))", self.shown(id)),
            false => format!("int(trimSuffix(string({}), \"%\"))", written(self.tree, id)),
        }
    }

    /// Refuses an order: it would fail when it is asked for.
    pub(super) fn refuse_either(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let (id, operand, says) = match (self.either(left_id, left), self.either(right_id, right)) {
            _ if !operator.is_ordering() => return Ok(()),
            (Some(says), None) => (left_id, left, says),
            (None, Some(says)) => (right_id, right, says),
            _ => return Ok(()),
        };
        if self.is_number(id) {
            return Ok(());
        }
        let sign = name_of(operator);
        let compared = |value: String| match id == left_id {
            true => format!("{value} {sign} {}", self.shown(right_id)),
            false => format!("{} {sign} {value}", self.shown(left_id)),
        };
        let text = self.shown(id);
        let is_none = id == left_id
            && matches!(
                (operator, self.tree.kind(right_id)),
                (Binary::Less, Syntax::Integer(1)) | (Binary::LessOrEqual, Syntax::Integer(0))
            );
        let alone = match self.way(id) {
            Some(_) => format!("`type({text}) == \"int\" && {}`", compared(text.clone())),
            // Of what is put together nobody knows further on what it is, unless it has a name.
            None => {
                format!("`(let x = {}; type(x) == \"int\" && {})`", written(self.tree, id), compared("x".to_owned()))
            }
        };
        let advice = match says {
            Says::Port => alone,
            Says::Part => {
                let none = if is_none { format!("`{text} in [0, \"0%\"]`, ") } else { String::new() };
                let number = compared(self.as_number(id, operand));
                format!("{none}{alone} to leave out such texts, or `{number}` to compare the number alone")
            }
        };
        let message = format!("`{text}` may be a number, or {}, which has no such order: write {advice}", says.text());
        Err(self.error(operand.op.at, message))
    }

    /// Refuses to look for a text in what may be a number.
    pub(super) fn refuse_either_subject(
        &self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        right_id: Id,
    ) -> Result<(), Error> {
        let is_of_text = matches!(operator, Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith);
        if !is_of_text || self.either(left_id, left).is_none() || self.is_text(left_id) {
            return Ok(());
        }
        let not = if self.is_negated(at) { "not " } else { "" };
        let (subject, sign, part) = (self.as_text(left_id, left), name_of(operator), self.shown(right_id));
        Err(self.no_text(left_id, left, &format!("{subject} {not}{sign} {part}")))
    }

    /// Refuses what may be a number where a function takes a text, and the other way round.
    pub(super) fn refuse_either_arguments(
        &self,
        builtin: &Builtin,
        kinds: &[Type],
        arguments: &[Id],
        typed: &[Typed<'s>],
    ) -> Result<(), Error> {
        for (index, (id, argument)) in arguments.iter().zip(typed).enumerate() {
            if self.either(*id, argument).is_none() {
                continue;
            }
            let takes = |kind: Type| {
                let mut kinds = kinds.to_vec();
                kinds[index] = kind;
                builtin.check(&kinds).is_ok()
            };
            let whole = |replaced: &str| {
                let mut shown: Vec<String> = arguments.iter().map(|argument| self.shown(*argument)).collect();
                replaced.clone_into(&mut shown[index]);
                format!("{}({})", builtin.name, shown.join(", "))
            };
            match (takes(Type::TEXT), takes(Type::INT)) {
                (true, false) if self.is_text(*id) => {}
                (true, false) => return Err(self.no_text(*id, argument, &whole(&self.as_text(*id, argument)))),
                (false, true) => self.refuse_either_number(*id, argument, whole)?,
                // A number as it is, or the one that a text says.
                (true, true) if self.is_text(*id) => {}
                (true, true) if builtin.name == "int" => self.refuse_either_number(*id, argument, str::to_owned)?,
                (true, true) if builtin.name == "float" => self.refuse_either_number(*id, argument, whole)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses to add to, or to put together with a text, what may be either.
    pub(super) fn refuse_either_summand(
        &self,
        is_text: bool,
        id: Id,
        typed: &Typed<'s>,
        whole: impl Fn(&str) -> String,
    ) -> Result<(), Error> {
        match self.either(id, typed) {
            Some(_) if is_text && self.is_text(id) => Ok(()),
            Some(_) if is_text => Err(self.no_text(id, typed, &whole(&self.as_text(id, typed)))),
            _ => self.refuse_either_number(id, typed, whole),
        }
    }

    /// Refuses to count with what may be a text. `whole` shows the operation with a number in place of it.
    pub(super) fn refuse_either_number(
        &self,
        id: Id,
        typed: &Typed<'s>,
        whole: impl Fn(&str) -> String,
    ) -> Result<(), Error> {
        let Some(says) = self.either(id, typed).filter(|_| !self.is_number(id)) else { return Ok(()) };
        let field = without_default(self.tree, id);
        let asked = match self.way(field) {
            Some(_) => format!("`type({}) == \"int\" && …` to leave out such texts", self.shown(field)),
            None => "`type(…) == \"int\" && …` to leave out such texts".to_owned(),
        };
        let advice = match says {
            Says::Port => asked.replace("such texts", "names"),
            Says::Part => format!("{asked}, or `{}` to take the number alone", whole(&self.as_number(id, typed))),
        };
        let text = self.shown(id);
        let message =
            format!("`{text}` may be a number, or {}, which cannot be counted with: write {advice}", says.text());
        Err(self.error(typed.op.at, message))
    }

    /// Refuses to take such a value for true or false.
    pub(super) fn refuse_either_truth(&self, id: Id, typed: &Typed<'s>, is_there: bool) -> Result<(), Error> {
        let Some(says) = self.either(id, typed) else { return Ok(()) };
        let (text, equal) = (self.shown(id), if is_there { "!=" } else { "==" });
        let message = format!(
            "`{text}` is a number, or {}, and neither true nor false: write `{text} {equal} nil` to ask whether it is {}",
            says.text(),
            if is_there { "there" } else { "missing" }
        );
        Err(self.error(typed.op.at, message))
    }

    /// Refuses a number in quotes, which such a value never is.
    pub(super) fn refuse_quoted_number(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let (id, field, constant_id, constant) = match operator {
            Binary::Equal | Binary::NotEqual if self.either(left_id, left).is_some() => {
                (left_id, left, right_id, &right.op)
            }
            Binary::Equal | Binary::NotEqual => (right_id, right, left_id, &left.op),
            Binary::In => (left_id, left, right_id, &right.op),
            _ => return Ok(()),
        };
        let is_read = self.way(id).is_some();
        let Some(says) = self.either(id, field).filter(|_| is_read) else { return Ok(()) };
        let texts = match &constant.kind {
            Kind::Array(elements) => elements.iter().collect(),
            _ => vec![constant],
        };
        let number = |op: &Op| match &op.kind {
            Kind::Constant(Constant::Text(text)) => text.parse::<u32>().ok(),
            _ => None,
        };
        let Some((op, number)) = texts.into_iter().find_map(|op| Some((op, number(op)?))) else { return Ok(()) };
        let (text, sign) = (self.shown(id), name_of(operator));
        let advice = match (operator, number, says) {
            (Binary::In, ..) => format!("`{number}`"),
            (_, 0, Says::Part) => {
                let not = if operator == Binary::NotEqual { "not " } else { "" };
                format!("`{text} {not}in [0, \"0%\"]`")
            }
            _ if constant_id == left_id => format!("`{number} {sign} {text}`"),
            _ => format!("`{text} {sign} {number}`"),
        };
        let message = format!("`{text}` is a number, or {}, and never \"{number}\": write {advice}", says.text());
        Err(self.error(op.at, message))
    }

    /// Warns of `maxUnavailable == 0`, which says nothing of "0%", and the other way round.
    pub(super) fn warn_of_either(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let (id, field, constant) = match operator {
            Binary::Equal | Binary::NotEqual if self.either(left_id, left).is_none() => (right_id, right, left_id),
            Binary::Equal | Binary::NotEqual | Binary::In => (left_id, left, right_id),
            _ => return,
        };
        match self.either(id, field) {
            Some(Says::Port) => return self.warn_of_port(at, operator, (left_id, left), (right_id, right), id),
            Some(Says::Part) if !self.is_number(id) && !self.is_text(id) => {}
            _ => return,
        }
        let (number, part) = self.nothings(constant);
        if number == part || self.is_compared(id, !number, !part) {
            return;
        }
        let (text, not) = (self.shown(id), operator == Binary::NotEqual || self.is_negated(at));
        let asked = match (self.tree.kind(constant), number) {
            (Syntax::Array(elements), _) if elements.len() > 1 => {
                let shown: Vec<String> = elements.iter().map(|element| self.shown(*element)).collect();
                format!("{}, {}", shown.join(", "), if number { "\"0%\"" } else { "0" })
            }
            _ => "0, \"0%\"".to_owned(),
        };
        let not = if not { "not " } else { "" };
        let message = format!(
            "`{text}` may be a number, or a text such as \"25%\", and 0 is not \"0%\": write `{text} {not}in [{asked}]` for both"
        );
        self.warn(field.op.at, message);
    }

    /// Whether a literal, or a list of them, has the number 0 in it, and whether "0%".
    fn nothings(&self, constant: Id) -> (bool, bool) {
        let tree = self.tree;
        let elements = match tree.kind(constant) {
            Syntax::Array(elements) => &elements[..],
            _ => &[constant],
        };
        let has_number = elements.iter().any(|element| matches!(tree.kind(*element), Syntax::Integer(0)));
        let has_part =
            elements.iter().any(|element| matches!(tree.kind(*element), Syntax::Text(text) if text.as_ref() == "0%"));
        (has_number, has_part)
    }

    /// Whether the same is compared with the number 0, or with "0%", anywhere in the expression.
    fn is_compared(&self, id: Id, with_number: bool, with_part: bool) -> bool {
        let tree = self.tree;
        let name = |id: Id| self.shown(without_default(tree, id));
        let text = name(id);
        let is_other = |one: Id, other: Id| {
            let (number, part) = self.nothings(other);
            (with_number && number || with_part && part) && name(one) == text
        };
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::Equal | Binary::NotEqual | Binary::In, left, right) => {
                is_other(*left, *right) || is_other(*right, *left)
            }
            _ => false,
        })
    }

    fn no_text(&self, id: Id, typed: &Typed<'s>, instead: &str) -> Error {
        let text = self.shown(id);
        self.error(typed.op.at, format!("`{text}` may be a number, which is no text: write `{instead}`"))
    }
}
