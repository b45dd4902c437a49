//! Fields that Kubernetes fills in where they are left out. An object of a file is not filled in yet, and a rule says the same of it as of the
//! one that the API server makes of it: such a field reads as what it will be. Whoever asks whether it is missing hears what was written.

use super::{
    Compiler, Typed,
    form::{Form, Member},
};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    program::{Constant, Kind, Op},
    schema::Filled,
};

impl<'s> Compiler<'s> {
    /// A field that was read, and what it reads as where it is missing, if there is anything.
    pub(super) fn with_default(&mut self, id: Id, typed: Typed<'s>) -> Typed<'s> {
        if self.strict || !typed.known.may_be_nil {
            return typed;
        }
        let Some(filled) = self.filled_at(id) else { return typed };
        self.defaulted.push((id, filled));
        let at = typed.op.at;
        let constant = match filled {
            Filled::Bool(value) => Constant::Bool(value),
            Filled::Int(value) => Constant::Int(value),
            Filled::Text(value) => Constant::Text(value.into()),
        };
        let second = Box::new(Op { kind: Kind::Constant(constant), at });
        let kind = Kind::Coalesce { first: typed.op.into(), second, of_empty: false };
        let mut known = typed.known;
        known.may_be_nil = false;
        Typed { op: Op { kind, at }, known }
    }

    /// What a field reads as where it is missing. Nothing where the object that it is a field of may be missing too, and means nothing then, and
    /// where not all that this may be have the same.
    fn filled_at(&self, id: Id) -> Option<Filled> {
        let rows = self.schema.filled_of(self.last_name(id)?);
        if rows.is_empty() {
            return None;
        }
        let (mut steps, mut node) = (Vec::new(), id);
        loop {
            node = match self.tree.kind(node) {
                Syntax::Member { base, .. } => {
                    steps.push((node, self.last_name(node)?));
                    *base
                }
                Syntax::Chain(inner) => *inner,
                _ => break,
            };
        }
        let (form, is_there) = match self.tree.kind(node) {
            Syntax::Identifier(name) => match self.variable(name) {
                Some(variable) => (variable.known.form.clone(), !variable.known.may_be_nil),
                None => {
                    let root = self.schema.root(name)?;
                    (Form::shaped(&root.shape), root.required || self.schema.is_implied(name))
                }
            },
            Syntax::Pointer("") => {
                let item = &self.scopes.last()?.item;
                (item.form.clone(), !item.may_be_nil)
            }
            _ => return None,
        };
        if !is_there && !self.is_present(node) {
            return None;
        }
        let (_, last) = steps.remove(0);
        let mut form = form;
        for (step, name) in steps.into_iter().rev() {
            let mut found = Vec::new();
            for alternative in form.alternatives() {
                let Member::Read { form, required, .. } = alternative.member(self.schema, name) else { return None };
                if !required && !self.schema.is_implied(name) && !self.is_present(step) {
                    return None;
                }
                found.push(form);
            }
            form = Form::any_of(found);
        }
        let filled = form.alternatives().iter().map(|alternative| {
            let object = self.schema.object(alternative.object()?);
            object.fields.get(last)?;
            rows.iter().find(|(of, _)| *of == object.name).map(|(_, filled)| *filled)
        });
        let filled: Vec<Filled> = filled.collect::<Option<_>>()?;
        filled.iter().all(|one| *one == filled[0]).then(|| filled[0])
    }

    /// Whether something reads as something where it is missing.
    pub(super) fn is_defaulted(&self, id: Id) -> bool {
        self.defaulted.iter().any(|(defaulted, _)| *defaulted == id)
    }

    /// The sides of a relation, without what they read as where they are missing if that is what is asked for.
    pub(super) fn without_defaults(
        &mut self,
        operator: Binary,
        (left_id, left): (Id, Typed<'s>),
        (right_id, right): (Id, Typed<'s>),
    ) -> (Typed<'s>, Typed<'s>) {
        if self.defaulted.is_empty() {
            return (left, right);
        }
        match operator {
            Binary::Coalesce => {
                self.warn_of_other_default(left_id, right_id);
                (self.written(left_id, left), right)
            }
            Binary::Equal | Binary::NotEqual if is_nothing(&right.op) => (self.written(left_id, left), right),
            Binary::Equal | Binary::NotEqual if is_nothing(&left.op) => (left, self.written(right_id, right)),
            Binary::In if matches!(&right.op.kind, Kind::Array(elements) if elements.iter().any(is_nothing)) => {
                (self.written(left_id, left), right)
            }
            _ => (left, right),
        }
    }

    /// What a variable stands for. If anybody asks whether it is missing, it is what was written.
    pub(super) fn declared_default(&mut self, name: &str, value: Id, typed: Typed<'s>) -> Typed<'s> {
        let tree = self.tree;
        if !self.is_defaulted(value) {
            return typed;
        }
        let is_name = |id: Id| matches!(tree.kind(id), Syntax::Identifier(known) if *known == name);
        let is_none = |id: Id| match tree.kind(id) {
            Syntax::Nil => true,
            Syntax::Text(text) => text.as_ref().is_empty(),
            _ => false,
        };
        let is_asked = tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::Equal | Binary::NotEqual, left, right) => {
                is_name(*left) && is_none(*right) || is_none(*left) && is_name(*right)
            }
            Syntax::Binary(Binary::Coalesce, left, _) => is_name(*left),
            Syntax::Binary(Binary::In, left, right) => {
                let has_none = matches!(tree.kind(*right), Syntax::Array(elements) if elements.iter().any(|id| is_none(*id)));
                has_none && is_name(*left)
            }
            _ => false,
        });
        if is_asked { self.written(value, typed) } else { typed }
    }

    /// A field as it was written.
    fn written(&mut self, id: Id, typed: Typed<'s>) -> Typed<'s> {
        let Some(index) = self.defaulted.iter().position(|(defaulted, _)| *defaulted == id) else { return typed };
        self.defaulted.swap_remove(index);
        let Typed { op: Op { kind, at }, mut known } = typed;
        let op = match kind {
            Kind::Coalesce { first, .. } => *first,
            kind => return Typed { op: Op { kind, at }, known },
        };
        known.may_be_nil = !self.is_present(id);
        Typed { op, known }
    }

    /// Warns of `replicas ?? 0`, where Kubernetes takes what is missing for something else.
    fn warn_of_other_default(&mut self, field: Id, other: Id) {
        let Some((_, filled)) = self.defaulted.iter().find(|(defaulted, _)| *defaulted == field) else { return };
        let is_other = match (filled, self.tree.kind(other)) {
            (Filled::Int(own), Syntax::Integer(other)) => own != other,
            (Filled::Bool(own), Syntax::Bool(other)) => own != other,
            (Filled::Text(own), Syntax::Text(other)) => *own != other.as_ref() && !other.is_empty(),
            _ => false,
        };
        if is_other {
            let (text, filled) = (self.shown(field), *filled);
            let message = format!(
                "`{text}` may be missing in a file, and Kubernetes takes it for {filled} then, which this rule does not: write `{text}`, \
                 which is {filled} then"
            );
            self.warn(self.at(other), message);
        }
    }
}

fn is_nothing(op: &Op) -> bool {
    match &op.kind {
        Kind::Constant(Constant::Nil) => true,
        Kind::Constant(Constant::Text(text)) => text.is_empty(),
        _ => false,
    }
}
