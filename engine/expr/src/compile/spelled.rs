//! Texts that nobody has: with a `${…}` that would be filled in elsewhere, or a name that is spelled in another way.

use super::{Compiler, Typed, patterns::texts};
use crate::{
    ast::{Id, Kind as Syntax},
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Warns of a text with `${…}` in it, which nobody fills in.
    pub(super) fn warn_of_placeholder(&mut self, id: Id) {
        let Syntax::Text(text) = self.tree.kind(id) else { return };
        let signs = [("${", "}"), ("{{", "}}")];
        let meant = signs.into_iter().find_map(|(open, close)| Some((open, close, self.filled_in(text, open, close)?)));
        let Some((open, close, meant)) = meant.filter(|_| !self.strict) else { return };
        self.warn(self.at(id), format!("a text has no `{open}…{close}` that would be filled in: write `{meant}`"));
    }

    /// The parts of a text with paths between such signs, put together.
    fn filled_in(&self, text: &str, open: &str, close: &str) -> Option<String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once(open) {
            let (path, behind) = behind.split_once(close)?;
            let path = path.trim();
            let root = path.split('.').next()?;
            let is_path = path.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_'));
            if !is_path || self.schema.root(root).is_none() && self.variable(root).is_none() {
                return None;
            }
            parts.extend((!before.is_empty()).then(|| format!("{before:?}")));
            parts.push(path.to_owned());
            rest = behind;
        }
        if parts.is_empty() {
            return None;
        }
        parts.extend((!rest.is_empty()).then(|| format!("{rest:?}")));
        Some(parts.join(" + "))
    }

    /// Warns of `ownerReferences[0].kind == "replicaset"`, which nothing is called.
    pub(super) fn warn_of_spelling(
        &mut self,
        at: u32,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        for (id, subject, other) in [(left_id, left, right), (right_id, right, left)] {
            let meant = self.last_name(id).and_then(|name| self.schema.spelling(name));
            let Some(meant) = meant.filter(|_| !self.strict && subject.known.kind == Type::TEXT) else { continue };
            let texts = texts(&other.op);
            let found =
                texts.iter().find_map(|text| Some((*text, meant(text).filter(|meant| !texts.contains(&&**meant))?)));
            if let Some((text, meant)) = found {
                let message = format!("nothing is called {text:?} there: put `{meant:?}` in its place");
                return self.warn(at, message);
            }
        }
    }
}
