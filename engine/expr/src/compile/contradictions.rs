//! Conditions that can only turn out one way, because a value is never equal to two others: `x != "a" || x != "b"`.

use super::{Compiler, guards::same_literal};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    error::Error,
    value::{Amount, Version},
};

/// Of more conditions than these nobody says such things by hand.
const MAX_CONDITIONS: usize = 32;

impl<'s> Compiler<'s> {
    /// Refuses `x != "a" || x != "b"`, which is always true, and `x == "a" && x == "b"`, which never is.
    pub(super) fn refuse_contradiction(&self, conditions: &[Id], are_all_needed: bool) -> Result<(), Error> {
        if self.strict || conditions.len() > MAX_CONDITIONS {
            return Ok(());
        }
        let compared: Vec<(Id, Id)> = conditions.iter().filter_map(|id| self.compared(*id, are_all_needed)).collect();
        for (index, (subject, literal)) in compared.iter().enumerate() {
            let Some(way) = self.way(*subject) else { continue };
            let is_same = |(other, _): &&(Id, Id)| self.way(*other).is_some_and(|other| other == way);
            let others: Vec<Id> = compared[index + 1..].iter().filter(is_same).map(|(_, literal)| *literal).collect();
            let Some(other) = others.iter().find(|other| self.differ(*literal, **other)) else { continue };
            let mut listed: Vec<String> = Vec::new();
            for text in [&[*literal], &others[..]].concat().into_iter().map(|id| self.shown(id)) {
                if !listed.contains(&text) {
                    listed.push(text);
                }
            }
            let (answer, sign) = if are_all_needed { ("never", "in") } else { ("always", "not in") };
            let message = format!(
                "this is {answer} true, because nothing is both {} and {}: write `{} {sign} [{}]`",
                self.shown(*literal),
                self.shown(*other),
                self.shown(*subject),
                listed.join(", ")
            );
            return Err(self.error(self.at(*subject), message));
        }
        Ok(())
    }

    /// What a condition compares with which literal, if it does so by the operator that can contradict others.
    fn compared(&self, condition: Id, are_all_needed: bool) -> Option<(Id, Id)> {
        let wanted = if are_all_needed { Binary::Equal } else { Binary::NotEqual };
        let Syntax::Binary(operator, left, right) = self.tree.kind(condition) else { return None };
        let is_literal = |id: Id| {
            matches!(self.tree.kind(id), Syntax::Text(_) | Syntax::Integer(_) | Syntax::Float(_) | Syntax::Bool(_))
        };
        match (*operator == wanted, is_literal(*left), is_literal(*right)) {
            (true, false, true) => Some((*left, *right)),
            (true, true, false) => Some((*right, *left)),
            _ => None,
        }
    }

    /// Whether two literals are never equal to the same value. Two texts may say the same amount, or the same version.
    fn differ(&self, one: Id, other: Id) -> bool {
        let (one, other) = (self.tree.kind(one), self.tree.kind(other));
        if let (Syntax::Text(one), Syntax::Text(other)) = (one, other) {
            let is_amount = Amount::parse(one).is_some() && Amount::parse(other).is_some();
            let is_version = Version::parse(one).is_some() && Version::parse(other).is_some();
            return one != other && !is_amount && !is_version;
        }
        same_literal(one, other) == Some(false)
    }
}
