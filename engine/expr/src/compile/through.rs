//! Calls through a root that has no value: `root.name.function(…)`, and `root.any("name", …).function(…)` where only an evaluation knows
//! which of the names is meant.

#[cfg(test)]
mod tests;

use super::{Compiler, Typed, form::Form, known::Known};
use crate::{
    ast::{Argument, Id, Kind as Syntax},
    error::Error,
    explain::field_of,
    program::Written,
    schema::{Among, Calls, Function, Shape, Slot},
    suggest,
};

/// How a call comes to its function. A plain function needs none.
#[derive(Default)]
pub(super) struct Route {
    pub(super) root: Option<Slot>,
    pub(super) names: Vec<String>,
    pub(super) among: Vec<Written>,
}

/// A call through a root that has no value.
pub(super) struct Through<'s> {
    root: &'s str,
    slot: Slot,
    calls: &'s Calls,
    /// The names after the root, the function last, with their places.
    names: Vec<(&'s str, u32)>,
    /// The names that are written out before the function.
    listed: Option<Listed<'s>>,
}

/// `any("a", "b")` between a root and a function.
#[derive(Clone, Copy)]
struct Listed<'s> {
    word: &'s str,
    at: u32,
    arguments: &'s [Argument<'s>],
}

impl<'s> Compiler<'s> {
    /// Whether a callee goes through a root that has no value, by names and constant texts alone.
    pub(super) fn through(&self, callee: Id) -> Option<Through<'s>> {
        let tree = self.tree;
        let mut names = Vec::new();
        let mut listed = None;
        let mut node = callee;
        loop {
            match tree.kind(node) {
                Syntax::Member { base, property, .. } => {
                    let Syntax::Text(name) = tree.kind(*property) else { return None };
                    names.push((name.as_ref(), self.at(node)));
                    node = *base;
                }
                Syntax::Chain(inner) => node = *inner,
                // What was called before the function: nothing but it stands behind.
                Syntax::Call { callee, arguments } if names.len() == 1 && listed.is_none() => {
                    let Syntax::Member { base, property, .. } = tree.kind(*callee) else { return None };
                    let Syntax::Text(word) = tree.kind(*property) else { return None };
                    listed = Some(Listed { word: word.as_ref(), at: self.at(*callee), arguments });
                    node = *base;
                }
                Syntax::Identifier(root) => {
                    let is_variable = self.variable(root).is_some();
                    let schema = self.schema;
                    let found = schema.root(root).filter(|_| !is_variable)?;
                    let Shape::Calls(calls) = &found.shape else { return None };
                    let is_word =
                        |listed: Listed<'_>| calls.among.as_ref().is_some_and(|among| among.word == listed.word);
                    if !listed.is_none_or(is_word) {
                        return None;
                    }
                    names.reverse();
                    return Some(Through { root, slot: found.slot, calls, names, listed });
                }
                _ => return None,
            }
        }
    }

    pub(super) fn call_through(
        &mut self,
        at: u32,
        through: Through<'s>,
        arguments: &'s [Argument<'s>],
    ) -> Result<Typed<'s>, Error> {
        if let (Some(listed), Some(among)) = (through.listed, &through.calls.among) {
            return self.call_among(at, through, among, listed, arguments);
        }
        let Through { root, slot, calls, mut names, .. } = through;
        let Some((name, name_at)) = names.pop() else { return Err(self.restricted(at, root, calls)) };
        let Some(index) = calls.functions.iter().position(|function| function.name == name) else {
            let before: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            let hint = self.among_meant(root, calls, &before, name, arguments);
            let hint = hint.unwrap_or_else(|| self.function_meant(root, calls, &before, name, arguments));
            return Err(self.error(name_at, format!("`{root}` has no function `{name}`{hint}")));
        };
        if !calls.names.contains(&names.len()) {
            return Err(self.restricted(at, root, calls));
        }
        let function = &calls.functions[index];
        let known = names.last().and_then(|(name, _)| calls.results.get(*name)?.get(index));
        let names = names.into_iter().map(|(name, _)| name.to_owned()).collect();
        let known = Known::shaped(known.unwrap_or(&function.result), None);
        self.host_call(at, function, known, Route { root: Some(slot), names, among: Vec::new() }, arguments)
    }

    /// A call of a function of several names that are written out.
    fn call_among(
        &mut self,
        at: u32,
        through: Through<'s>,
        among: &'s Among,
        listed: Listed<'s>,
        arguments: &'s [Argument<'s>],
    ) -> Result<Typed<'s>, Error> {
        let Through { root, slot, calls, mut names, .. } = through;
        let Some((name, name_at)) = names.pop() else { return Err(self.restricted(at, root, calls)) };
        let before: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let written = self.written_out(among, listed)?;
        let Some(index) = among.functions.iter().position(|function| function.name == name) else {
            let hint = self.one_by_one(root, calls, &before, &written, name, arguments);
            let has = || among.functions.iter().map(|function| function.name.as_str());
            let hint = hint.or_else(|| suggest::nearest(name, has()).map(|name| format!(", did you mean `{name}`?")));
            let hint = hint.unwrap_or_else(|| format!(", it has {}", quoted(has())));
            return Err(self.error(name_at, format!("`{}(…)` has no function `{name}`{hint}", among.word)));
        };
        // The names that are written out stand where one would.
        if !calls.names.contains(&(names.len() + 1)) {
            return Err(self.restricted(at, root, calls));
        }
        let function = &among.functions[index];
        let place = calls.functions.len() + index;
        let result = |name: &Written| calls.results.get(&name.text).and_then(|shapes| shapes.get(place));
        let shapes = written.iter().map(|name| result(name).unwrap_or(&function.result));
        let known = Known::read(Form::any_of(shapes.map(Form::shaped)));
        let names = before.into_iter().map(str::to_owned).collect();
        self.host_call(at, function, known, Route { root: Some(slot), names, among: written }, arguments)
    }

    /// The names that are written out. What is looked up must be known before there is anything to look up.
    fn written_out(&self, among: &Among, listed: Listed<'s>) -> Result<Vec<Written>, Error> {
        let word = among.word;
        let arguments = self.unnamed(listed.arguments)?;
        if arguments.is_empty() {
            let message = format!("`{word}` needs every name that may be meant: write `{word}(\"NAME\", …)`");
            return Err(self.error(listed.at, message));
        }
        let written = arguments.into_iter().map(|argument| match self.tree.kind(argument) {
            Syntax::Text(text) => {
                let place = self.error(self.at(argument), "");
                Ok(Written { text: text.to_string(), line: place.line, column: place.column })
            }
            other => {
                let hint = match other {
                    Syntax::Array(_) => ": leave the brackets out".to_owned(),
                    _ => format!(
                        ": write `{word}(\"NAME\", …)`, because what is looked up must be known before the rule runs"
                    ),
                };
                Err(self.error(self.at(argument), format!("the names of `{word}` are texts in quotes{hint}")))
            }
        });
        written.collect()
    }

    /// What is meant by a function that there is not.
    fn function_meant(
        &self,
        root: &str,
        calls: &Calls,
        before: &[&str],
        name: &str,
        arguments: &[Argument<'s>],
    ) -> String {
        let names = || calls.functions.iter().map(|function| function.name.as_str());
        match suggest::nearest(name, names()).filter(|_| !matches!(name, "exists" | "get")) {
            Some(nearest) => format!(", did you mean `{nearest}`?"),
            None if matches!(name, "exists" | "get" | "has")
                && arguments.iter().all(|argument| argument.name.is_none()) =>
            {
                let given: Vec<String> = arguments.iter().map(|argument| self.shown(argument.value)).collect();
                let asked = if name == "get" { "" } else { " != nil" };
                format!(": write `{root}.{}.byName({}){asked}`", before.join("."), given.join(", "))
            }
            None => format!(", it has {}", quoted(names())),
        }
    }

    /// What is meant by a function that several names have, and that was called without them.
    fn among_meant(
        &self,
        root: &str,
        calls: &Calls,
        before: &[&str],
        name: &str,
        arguments: &[Argument<'s>],
    ) -> Option<String> {
        let Among { word, functions } = calls.among.as_ref()?;
        let is_got = matches!(name, "exists" | "get" | "has" | "lookup" | "resolve" | "follow" | "ref" | "byReference");
        let function = functions.iter().find(|function| function.name == name);
        let function =
            function.or_else(|| functions.first().filter(|_| name == *word || is_got && before.is_empty()))?;
        let given: Vec<String> = arguments.iter().map(|argument| self.shown(argument.value)).collect();
        if name == *word {
            let path = before.iter().fold(root.to_owned(), |path, name| field_of(&path, name));
            let given = if given.is_empty() { "\"NAME\", …".to_owned() } else { given.join(", ") };
            return Some(format!(
                " alone: write `{path}.{word}({given}).{}({})`",
                function.name,
                filled(function, &[])
            ));
        }
        let asked = if matches!(name, "exists" | "has") { " != nil" } else { "" };
        // As others have it, the first argument says which kind is meant.
        if let (true, [], [first, rest @ ..], Some(one)) = (is_got, before, arguments, calls.functions.first())
            && let Syntax::Text(kind) = self.tree.kind(first.value)
            && calls.results.contains_key(kind.as_ref())
        {
            let given: Vec<String> = rest.iter().map(|argument| self.shown(argument.value)).collect();
            let given = if given.is_empty() { "…".to_owned() } else { given.join(", ") };
            return Some(format!(": write `{}.{}({given}){asked}`", field_of(root, kind), one.name));
        }
        let call = format!(".{}({}){asked}", function.name, filled(function, &given));
        Some(match before {
            [] => format!(": write `{root}.{word}(\"NAME\", …){call}`, with every NAME that may be meant"),
            [words @ .., name] => {
                let path = words.iter().fold(root.to_owned(), |path, name| field_of(&path, name));
                format!(": write `{path}.{word}({name:?}){call}`")
            }
        })
    }

    /// How several names are asked for what only one can be asked for.
    fn one_by_one(
        &self,
        root: &str,
        calls: &Calls,
        before: &[&str],
        written: &[Written],
        name: &str,
        arguments: &[Argument<'s>],
    ) -> Option<String> {
        let function = calls.functions.iter().find(|function| function.name == name)?;
        let given: Vec<String> = arguments
            .iter()
            .map(|argument| match argument.name {
                Some((name, _)) => format!("{name}={}", self.shown(argument.value)),
                None => self.shown(argument.value),
            })
            .collect();
        let path = before.iter().fold(root.to_owned(), |path, name| field_of(&path, name));
        let call = |written: &Written| format!("{}.{name}({})", field_of(&path, &written.text), given.join(", "));
        let all: Vec<String> = written.iter().map(call).collect();
        Some(match (&function.result, &*all) {
            (_, [only]) => format!(": write `{only}`"),
            (Shape::List { .. }, all) => format!(": write `concat({})`", all.join(", ")),
            (_, all) => format!(": write `({})`", all.join(" ?? ")),
        })
    }
}

/// The arguments of a function, those that were not given by their names.
fn filled(function: &Function, given: &[String]) -> String {
    let left = function.parameters.len().saturating_sub(given.len());
    let names = function.parameters.iter().take(left).map(|parameter| parameter.name.clone());
    names.chain(given.iter().cloned()).collect::<Vec<_>>().join(", ")
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
