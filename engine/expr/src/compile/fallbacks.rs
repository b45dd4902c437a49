//! Fields that something else counts for where they are missing: the requests of a container are its limits then, and its user is the
//! pod's. Whoever reads only the one says something else than they mean.

use super::Compiler;
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    facts::Substituted,
    print::written,
    schema::{Instead, ObjectId},
};

/// How many different fields are looked at. Nobody names more in one expression.
const MAX_SUBJECTS: usize = 16;

/// A field that is read, and what counts in its place.
pub(super) struct Replaceable {
    id: Id,
    instead: String,
    of: Instead,
}

impl<'s> Compiler<'s> {
    /// Notes that a field of an object is read for which something else may count. `owner` is what that object is a field of.
    pub(super) fn note_fallback(&mut self, id: Id, object: Option<ObjectId>, owner: Option<ObjectId>) {
        if let Some((instead, of)) = self.find_fallback(id, object, owner).filter(|_| !self.strict) {
            self.replaceable.push(Replaceable { id, instead, of });
        }
    }

    /// What counts where a field is missing, as it would be written.
    pub(super) fn fallback(&self, id: Id) -> Option<&str> {
        self.replaceable.iter().find(|replaceable| replaceable.id == id).map(|replaceable| replaceable.instead.as_str())
    }

    fn find_fallback(&self, id: Id, object: Option<ObjectId>, owner: Option<ObjectId>) -> Option<(String, Instead)> {
        let (base, name) = self.step_to(id)?;
        match object.and_then(|object| self.fallback_in(object, name)) {
            Some(of @ Instead::Field(other)) => {
                let text = self.shown(id);
                return Some((format!("{}{other}", text.strip_suffix(name)?), of));
            }
            Some(of @ Instead::Around { lists, element, merged }) if !merged.contains(&name) => {
                let outside = self.outside(base, lists, element)?;
                return Some((format!("{outside}.{name}"), of));
            }
            _ => {}
        }
        let (around, field) = self.step_to(base)?;
        match self.fallback_in(owner?, field)? {
            of @ Instead::Key(other) => {
                let (map, entry) = (self.shown(base), self.shown(id));
                Some((format!("{}{other}{}", map.strip_suffix(field)?, entry.strip_prefix(&map)?), of))
            }
            of @ Instead::Around { lists, element, merged } if merged.contains(&field) => {
                let outside = self.outside(around, lists, element)?;
                Some((format!("{outside}.{field}.{name}"), of))
            }
            _ => None,
        }
    }

    /// What a field is a field of, and its name.
    fn step_to(&self, id: Id) -> Option<(Id, &'s str)> {
        let Syntax::Member { base, property, method: false, .. } = self.tree.kind(id) else { return None };
        match self.tree.kind(*property) {
            Syntax::Text(name) => Some((*base, name.as_ref())),
            _ => None,
        }
    }

    /// What counts where this field of an object is missing.
    fn fallback_in(&self, object: ObjectId, name: &str) -> Option<Instead> {
        self.schema.fallback_of(&self.schema.object(object).name, name)
    }

    /// The object of the same name as this one, beside the list of which this one's is an element.
    fn outside(&self, id: Id, lists: &[&str], element: &str) -> Option<String> {
        let (owner, name) = self.step_to(self.declared_here(id))?;
        match self.tree.kind(self.declared_here(owner)) {
            // The root that is an element stands beside one that is what is around it.
            Syntax::Identifier(root) if *root == element && self.variable(root).is_none() => Some(name.to_owned()),
            Syntax::Pointer("") => Some(format!("{}.{name}", self.around(self.scopes.last()?.collection, lists)?)),
            _ => None,
        }
    }

    /// What one of these lists is a field of, also if some of its elements were chosen, or others added that are fields of the same.
    fn around(&self, list: Id, lists: &[&str]) -> Option<String> {
        let mut list = list;
        loop {
            list = match self.tree.kind(list) {
                Syntax::Builtin { name: "concat", arguments } => {
                    let mut found = arguments.iter().map(|list| match self.step_to(*list)? {
                        (owner, name) if lists.contains(&name) => Some(owner),
                        _ => None,
                    });
                    let first = found.next()??;
                    let is_same = |owner: Option<Id>| owner.is_some_and(|owner| self.shown(owner) == self.shown(first));
                    return (found.all(is_same) && !self.has_item(first)).then(|| self.shown(first));
                }
                Syntax::Builtin { name: "filter", arguments } => *arguments.first()?,
                Syntax::Identifier(name) => match self.variable(name) {
                    // A value comes before whatever names it.
                    Some(variable) if variable.value.0 < list.0 => variable.value,
                    _ => return None,
                },
                _ => {
                    let (owner, name) = self.step_to(list)?;
                    // The element of a predicate around this one has no name here.
                    return (lists.contains(&name) && !self.has_item(owner)).then(|| self.shown(owner));
                }
            };
        }
    }

    /// What a name stands for, if what it says can be said here too.
    fn declared_here(&self, id: Id) -> Id {
        let Syntax::Identifier(name) = self.tree.kind(id) else { return id };
        let variable = self.variable(name).filter(|variable| variable.level == self.scopes.len());
        variable.map_or(id, |variable| variable.value)
    }

    /// Warns of `container.a != true && securityContext.a != true`: a container that says otherwise gets through if the pod says what is right.
    pub(super) fn warn_of_hidden_by_outside(&mut self, id: Id, operands: &[Id], is_and: bool) {
        let is_outside = |replaceable: &&Replaceable| matches!(replaceable.of, Instead::Around { .. });
        if self.strict
            || !self.replaceable.iter().any(|replaceable| is_outside(&replaceable))
            || !self.is_so(id, is_and)
        {
            return;
        }
        for inside in operands {
            let is_within = |replaceable: &&Replaceable| self.is_within(replaceable.id, *inside);
            let Some(own) = self.replaceable.iter().filter(is_outside).find(is_within) else { continue };
            let (subject, text) = (self.shown(own.id), written(self.tree, *inside));
            if text.matches(&subject).count() != 1 || self.asks_for_nil(*inside) {
                continue;
            }
            // The pod's has two names.
            let is_other = |other: &&Id| {
                let shown = written(self.tree, **other);
                [own.instead.clone(), format!("spec.{}", own.instead)]
                    .iter()
                    .any(|instead| text.replacen(&subject, instead, 1) == shown)
            };
            let Some(other) = operands.iter().find(is_other) else { continue };
            let together = text.replacen(&subject, &format!("({subject} ?? {})", own.instead), 1);
            let message = format!(
                "what a container says counts alone, and this lets it through if the pod says what is right: write `{together}` in \
                 place of `{text}` and `{}`",
                written(self.tree, *other)
            );
            return self.warn(self.at(own.id), message);
        }
    }

    /// Whether a condition asks whether something is there, and nothing more.
    fn asks_for_nil(&self, id: Id) -> bool {
        match self.tree.kind(id) {
            Syntax::Unary(_, inner) => self.asks_for_nil(*inner),
            Syntax::Binary(Binary::Equal | Binary::NotEqual, one, other) => {
                [one, other].into_iter().any(|side| matches!(self.tree.kind(*side), Syntax::Nil))
            }
            _ => false,
        }
    }

    /// What is read although something else counts where it is missing, and the expression does not look at that.
    pub(super) fn substituted(&self) -> Vec<Substituted> {
        let mut judged: Vec<(String, Vec<&Replaceable>)> = Vec::new();
        for replaceable in &self.replaceable {
            let subject = self.shown(replaceable.id);
            match judged.iter().position(|(known, _)| *known == subject) {
                Some(index) => judged[index].1.push(replaceable),
                None if judged.len() < MAX_SUBJECTS => judged.push((subject, vec![replaceable])),
                None => {}
            }
        }
        judged.retain(|(_, reads)| self.is_amiss(reads));
        let substituted = judged.into_iter().map(|(subject, reads)| {
            let place = self.error(self.at(reads[0].id), "");
            Substituted {
                subject,
                instead: reads[0].instead.clone(),
                is_outside: matches!(reads[0].of, Instead::Around { .. }),
                line: place.line,
                column: place.column,
            }
        });
        substituted.collect()
    }

    /// Whether what is read says something else without what counts in its place.
    fn is_amiss(&self, reads: &[&Replaceable]) -> bool {
        let Replaceable { id, instead, of } = reads[0];
        let members = |name: Option<&str>| {
            let ids = (0..self.tree.nodes.len() as u32).map(Id);
            let is_member = move |id: &Id| matches!(self.tree.kind(*id), Syntax::Member { .. });
            let name = name.map(str::to_owned);
            ids.filter(is_member).filter(move |id| self.last_name(*id) == name.as_deref()).collect::<Vec<Id>>()
        };
        let own = members(self.last_name(*id));
        if matches!(of, Instead::Around { .. }) {
            let is_replaceable = |id: &Id| self.replaceable.iter().any(|replaceable| replaceable.id == *id);
            return own.iter().all(is_replaceable);
        }
        let others = match of {
            Instead::Field(other) => members(Some(other)),
            _ => own,
        };
        let others: Vec<Id> = others.into_iter().filter(|id| self.shown(*id) == *instead).collect();
        let is_subject = |id: &Id| reads.iter().any(|read| read.id == *id);
        let compared = self.tree.nodes.iter().filter_map(|node| match &node.kind {
            Syntax::Binary(Binary::Equal | Binary::NotEqual | Binary::In, left, right) => {
                let sides = [(*left, *right), (*right, *left)];
                sides.into_iter().find(|(side, _)| is_subject(side))
            }
            _ => None,
        });
        let compared: Vec<(Id, Id)> = compared.collect();
        let is_nil = |id: Id| matches!(self.tree.kind(id), Syntax::Nil);
        if !others.is_empty() {
            // Whoever compares the two has to say what they are if one of them is missing.
            let is_asked = compared.iter().any(|(_, other)| is_nil(*other));
            return !is_asked && compared.iter().any(|(_, other)| others.contains(other));
        }
        // That something must be there is asked of what was written, and a name is not what a number stands in for.
        let is_meant = |id: &Id| {
            compared.iter().any(|(side, other)| {
                let is_name = matches!(of, Instead::Field(_)) && matches!(self.tree.kind(*other), Syntax::Text(_));
                side == id && (is_nil(*other) || is_name)
            })
        };
        reads.iter().any(|read| !is_meant(&read.id))
    }
}
