//! What people are told that is neither a violation nor wrong: what was not judged, and what was taken for granted.

use crate::check::{
    judge::Judgement,
    unknown::{DEFINITIONS, UnknownKind},
};

impl Judgement {
    /// How many objects are of kinds that nobody knows.
    pub(crate) fn count_unknown(&self) -> usize {
        self.unknown.iter().map(|kind| kind.objects).sum()
    }

    /// What people are told, a line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let assumed: Vec<String> = self.assumed.iter().map(ToString::to_string).collect();
        let assumed = (!assumed.is_empty()).then(|| {
            format!(
                "nothing defines {}: rules that name it judge by `match` alone. Definitions are taken from {DEFINITIONS}",
                assumed.join(", ")
            )
        });
        assumed.into_iter().chain(self.unknown.iter().map(UnknownKind::note)).collect()
    }
}
