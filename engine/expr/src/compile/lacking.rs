//! Fields that only some of the kinds have that a rule is for. On the others they are missing always, and a rule that is true because of that
//! refuses every object of these kinds.

use super::{
    Compiler,
    form::{Form, Member},
    guards::same_literal,
    nil::holds,
};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    schema::Shape,
};

/// How deep conditions are looked into. Nobody writes more by hand.
const MAX_DEPTH: usize = 16;

/// The root that is of one of several kinds.
pub(super) const OBJECT: &str = "object";

impl<'s> Compiler<'s> {
    /// Warns of a condition that is true of every object of a kind, because the kind lacks the field that is asked for.
    pub(super) fn warn_of_lacking(&mut self) {
        let Some(Shape::OneOf(shapes)) = self.schema.root(OBJECT).map(|root| &root.shape) else { return };
        if self.strict || self.names_kind() {
            return;
        }
        let forms: Vec<Form<'s>> = shapes.iter().map(Form::shaped).collect();
        let name_of = |form: &Form<'s>| form.object().map(|id| self.kind_of(id));
        let mut told: Option<(Id, Vec<&'s str>, Vec<&'s str>)> = None;
        for form in &forms {
            let Some(kind) = name_of(form) else { return };
            let Some(field) = self.is_true_without(self.tree.root, true, form, 0) else { continue };
            let (having, lacking): (Vec<&Form<'s>>, Vec<&Form<'s>>) =
                forms.iter().partition(|form| self.lacks_on(field, form) == Some(false));
            let names = |forms: &[&Form<'s>]| -> Vec<&'s str> {
                let mut names: Vec<&str> = forms.iter().filter_map(|form| name_of(form)).collect();
                names.dedup();
                names
            };
            let (having, lacking) = (names(&having), names(&lacking));
            // Of a kind of several versions one may have it.
            if !having.is_empty() && !having.contains(&kind) {
                told = Some((field, having, lacking));
                break;
            }
        }
        let Some((field, having, lacking)) = told else { return };
        let condition = match &having[..] {
            [kind] => format!("{OBJECT}.kind == {kind:?} && …"),
            kinds => format!("{OBJECT}.kind in {kinds:?} && …"),
        };
        let message = format!(
            "{} {} no `{}`, so that this is true of every one of them: write `{condition}` before it, or leave out the kind in `match`",
            lacking.join(" and "),
            if lacking.len() > 1 { "have" } else { "has" },
            self.shown(field)
        );
        self.warn(self.at(field), message);
    }

    /// Whether the expression asks which kind it is.
    fn names_kind(&self) -> bool {
        let ids = (0..self.tree.nodes.len() as u32).map(Id);
        ids.into_iter().any(|id| {
            matches!(self.tree.kind(id), Syntax::Member { .. })
                && matches!(self.last_name(id), Some("kind" | "apiVersion"))
        })
    }

    /// The kind of an object of the schema.
    pub(super) fn kind_of(&self, id: crate::schema::ObjectId) -> &'s str {
        let name = &*self.schema.object(id).name;
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Whether a way below the object leads to a field that objects of this form lack.
    fn lacks_on(&self, id: Id, form: &Form<'s>) -> Option<bool> {
        let (mut names, mut node) = (Vec::new(), id);
        loop {
            node = match self.tree.kind(node) {
                Syntax::Member { base, .. } => {
                    names.push(self.last_name(node)?);
                    *base
                }
                Syntax::Chain(inner) => *inner,
                Syntax::Identifier(OBJECT) => break,
                _ => return None,
            };
        }
        let mut form = form.clone();
        for name in names.into_iter().rev() {
            form = match form.member(self.schema, name) {
                Member::None => return Some(true),
                Member::Read { form, .. } => form,
                Member::Computed { .. } => return Some(false),
            };
        }
        Some(false)
    }

    /// A field that is lacking, if a condition turns out so because of it.
    fn is_true_without(&self, id: Id, truth: bool, form: &Form<'s>, depth: usize) -> Option<Id> {
        let tree = self.tree;
        let below = |id: Id, truth: bool| self.is_true_without(id, truth, form, depth + 1);
        let lacking = |id: Id| Some(id).filter(|id| self.lacks_on(*id, form) == Some(true));
        match tree.kind(id) {
            _ if depth > MAX_DEPTH => None,
            Syntax::Unary(Unary::Not { .. }, inner) => below(*inner, !truth),
            Syntax::Binary(operator @ (Binary::And { .. } | Binary::Or { .. }), left, right) => {
                let (one, other) = (below(*left, truth), below(*right, truth));
                match matches!(operator, Binary::And { .. }) == truth {
                    // What is asked beside it must be able to turn out so too.
                    true => one
                        .filter(|_| below(*right, !truth).is_none())
                        .or(other.filter(|_| below(*left, !truth).is_none())),
                    false => one.or(other),
                }
            }
            Syntax::Binary(operator, left, right) => {
                for (one, other, is_left) in [(*left, *right, true), (*right, *left, false)] {
                    let (field, default) = match tree.kind(one) {
                        Syntax::Binary(Binary::Coalesce, first, default) => (*first, Some(*default)),
                        _ => (one, None),
                    };
                    let Some(field) = lacking(field) else { continue };
                    return self
                        .relation_without(*operator, default, other, is_left)
                        .filter(|is| *is == truth)
                        .map(|_| field);
                }
                None
            }
            Syntax::Member { .. } if !truth => lacking(id),
            _ => None,
        }
    }

    /// How a relation turns out for a field that is missing, as far as literals tell.
    pub(super) fn relation_without(
        &self,
        operator: Binary,
        default: Option<Id>,
        other: Id,
        is_left: bool,
    ) -> Option<bool> {
        let tree = self.tree;
        let own = default.map_or(&Syntax::Nil, |default| tree.kind(default));
        match operator {
            Binary::Equal => same_literal(own, tree.kind(other)),
            Binary::NotEqual => same_literal(own, tree.kind(other)).map(|is_same| !is_same),
            Binary::In if is_left => match tree.kind(other) {
                Syntax::Array(elements) => {
                    let same: Option<Vec<bool>> =
                        elements.iter().map(|element| same_literal(own, tree.kind(*element))).collect();
                    same.map(|same| same.contains(&true))
                }
                _ => None,
            },
            Binary::StartsWith | Binary::EndsWith | Binary::Contains | Binary::Matches => {
                (matches!(own, Syntax::Nil) && is_left).then_some(false)
            }
            _ if operator.is_ordering() => match (own, tree.kind(other)) {
                (Syntax::Nil, _) => Some(false),
                (Syntax::Integer(own), Syntax::Integer(other)) if is_left => holds(operator, *own, *other),
                (Syntax::Integer(own), Syntax::Integer(other)) => holds(operator, *other, *own),
                _ => None,
            },
            _ => None,
        }
    }
}
