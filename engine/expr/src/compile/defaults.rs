//! Fields that Kubernetes fills in where they are left out. An object of a file is not filled in yet, and a rule says the same of it as of the
//! one that the API server makes of it: such a field reads as what it will be. Whoever asks whether it is missing hears what was written.

use portal_document::Key;

use super::{
    Compiler, Typed,
    form::{Form, Member},
    lacking::OBJECT,
};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    facts::{Read, Segment},
    program::{Constant, Kind, Missing, Op},
    schema::Filled,
};

/// The field that says of which kind an object is.
const KIND: &str = "kind";

impl<'s> Compiler<'s> {
    /// A field that was read, and what it reads as where it is missing, if there is anything.
    pub(super) fn with_default(&mut self, id: Id, typed: Typed<'s>) -> Typed<'s> {
        // What conditions have found to be there may be so on one kind because it will be filled in.
        if self.strict || !typed.known.may_be_nil && self.present.is_empty() {
            return typed;
        }
        let Some((filled, kinds)) = self.filled_at(id) else { return typed };
        if !typed.known.may_be_nil && kinds.is_empty() {
            return typed;
        }
        let at = typed.op.at;
        let constant = match filled {
            Filled::Bool(value) => Constant::Bool(value),
            Filled::Int(value) => Constant::Int(value),
            Filled::Text(value) => Constant::Text(value.into()),
        };
        let second = Op { kind: Kind::Constant(constant), at };
        let mut known = typed.known;
        let second = match self.kind_in(at, &kinds) {
            // On the other kinds it is missing, whatever they say.
            Some(condition) => {
                let no = Op { kind: Kind::Constant(Constant::Nil), at }.into();
                Op { kind: Kind::Conditional { condition: condition.into(), yes: second.into(), no }, at }
            }
            None => {
                self.defaulted.push((id, filled));
                known.may_be_nil = false;
                second
            }
        };
        let kind = Kind::Coalesce { first: typed.op.into(), second: second.into(), of_empty: false };
        Typed { op: Op { kind, at }, known }
    }

    /// Whether the object is of one of these kinds. Nothing if it can be of no other.
    fn kind_in(&mut self, at: u32, kinds: &[&str]) -> Option<Op> {
        let root = self.schema.root(OBJECT).filter(|_| !kinds.is_empty())?.slot;
        self.facts.read(Read { root, path: vec![Segment::Field(KIND.to_owned())] });
        let base = Op { kind: Kind::Root(root), at }.into();
        let kind = Kind::Path { base, keys: [Key::new(KIND)].into(), missing: Missing::Nil };
        let texts = kinds.iter().map(|kind| Op { kind: Kind::Constant(Constant::Text((*kind).into())), at }).collect();
        let (needle, haystack) = (Op { kind, at }.into(), Op { kind: Kind::Array(texts), at }.into());
        Some(Op { kind: Kind::In { needle, haystack }, at })
    }

    /// What a field reads as where it is missing, and the kinds on which it does if others lack it. Nothing where the object that it is a
    /// field of may be missing too, and means nothing then, and where not all that this may be have the same.
    fn filled_at(&self, id: Id) -> Option<(Filled, Vec<&'s str>)> {
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
        steps.reverse();
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
        let is_object = matches!(self.tree.kind(node), Syntax::Identifier(OBJECT));
        let (mut found, mut kinds, mut is_lacking) = (None, Vec::new(), false);
        for form in form.alternatives() {
            match self.filled_below(form.clone(), &steps, rows)? {
                None if !is_object => return None,
                None => is_lacking = true,
                Some(filled) if found.is_some_and(|known| known != filled) => return None,
                Some(filled) => {
                    found = Some(filled);
                    kinds.extend(form.object().map(|id| self.kind_of(id)));
                }
            }
        }
        if !is_lacking {
            kinds.clear();
        }
        found.map(|filled| (filled, kinds))
    }

    /// What a field reads as where it is missing, at the end of a way down from something of this form. `Some(None)`: there is no such way.
    fn filled_below(
        &self,
        mut form: Form<'s>,
        steps: &[(Id, &str)],
        rows: &[(&'static str, Filled)],
    ) -> Option<Option<Filled>> {
        let (&(_, last), steps) = steps.split_last()?;
        for (step, name) in steps {
            let mut found = Vec::new();
            for alternative in form.alternatives() {
                match alternative.member(self.schema, name) {
                    Member::None => return Some(None),
                    Member::Read { form, required, .. } => {
                        if !required && !self.schema.is_implied(name) && !self.is_present(*step) {
                            return None;
                        }
                        found.push(form);
                    }
                    Member::Computed { .. } => return None,
                }
            }
            form = Form::any_of(found);
        }
        let mut filled = None;
        for alternative in form.alternatives() {
            let object = self.schema.object(alternative.object()?);
            if !object.fields.contains_key(last) {
                return Some(None);
            }
            let (_, own) = rows.iter().find(|(of, _)| *of == object.name)?;
            if filled.is_some_and(|known| known != *own) {
                return None;
            }
            filled = Some(*own);
        }
        Some(filled)
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
            Binary::Equal | Binary::NotEqual if is_nothing(&right.op) => {
                self.warn_of_never_missing(operator, left_id);
                (self.written(left_id, left), right)
            }
            Binary::Equal | Binary::NotEqual if is_nothing(&left.op) => {
                self.warn_of_never_missing(operator, right_id);
                (left, self.written(right_id, right))
            }
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
                let has_none =
                    matches!(tree.kind(*right), Syntax::Array(elements) if elements.iter().any(|id| is_none(*id)));
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

    /// Warns of `replicas == nil`, which is true of files alone, unless more is asked of it.
    fn warn_of_never_missing(&mut self, operator: Binary, field: Id) {
        let Some((_, filled)) = self.defaulted.iter().find(|(defaulted, _)| *defaulted == field) else { return };
        let filled = *filled;
        if !self.is_filled_in(field) || self.is_read_twice(field) {
            return;
        }
        let text = self.shown(field);
        let never = if operator == Binary::Equal { "never" } else { "always" };
        let message = format!(
            "the API server fills in {filled} where `{text}` is left out, before a rule sees it: in the cluster this is {never} true, \
             and only files are asked whether it is written"
        );
        self.warn(self.at(field), message);
    }

    /// Whether a field is filled in by then, rather than taken for something.
    fn is_filled_in(&self, field: Id) -> bool {
        let Syntax::Member { base, .. } = self.tree.kind(field) else { return false };
        let (Some(name), Some(form)) = (self.last_name(field), self.form_of(*base)) else { return false };
        let is_filled_in = |form: &Form<'s>| {
            let meant = form.object().map(|id| self.schema.meant(&self.schema.object(id).name, name));
            match meant {
                None => false,
                Some(None) => true,
                Some(Some(meant)) => meant.filled_in.is_some_and(|owner| self.is_owned_by(*base, owner)),
            }
        };
        form.alternatives().iter().all(is_filled_in)
    }

    /// Whether something is a field of an object of this name, and of no other.
    fn is_owned_by(&self, id: Id, owner: &str) -> bool {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return false };
        let Some(form) = self.form_of(*base) else { return false };
        form.alternatives().iter().all(|form| form.object().is_some_and(|id| self.schema.object(id).name == owner))
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
