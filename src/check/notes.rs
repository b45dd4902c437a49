//! What people are told that is neither a violation nor wrong: what was not judged, and what was taken for granted.

use crate::check::{
    judge::Judgement,
    report::describe,
    unknown::{UnknownKind, definitions},
};

/// How many files are told one by one: a folder of charts may hold hundreds of templates.
const MAX_FILES: usize = 10;

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
                "nothing defines {}: rules that name it judge by `match` alone. Definitions are taken from {}",
                assumed.join(", "),
                definitions(self.is_live)
            )
        });
        let unknown = self.unknown.iter().filter(|_| !self.is_strict).map(UnknownKind::note);
        assumed
            .into_iter()
            .chain(unknown)
            .chain(self.unmade_note())
            .chain(self.namespaces_note())
            .chain(self.uids_note())
            .chain(self.skipped_notes())
            .collect()
    }

    /// Objects are judged before there are pods, as in a cluster to which everything is applied at once.
    fn unmade_note(&self) -> Option<String> {
        let first = self.unmade.first()?;
        let makers = match self.unmade.len() - 1 {
            0 => format!("{first} makes pods"),
            1 => format!("{first} and 1 object more make pods"),
            more => format!("{first} and {more} objects more make pods"),
        };
        Some(format!(
            "{makers} that a rule looked up, and no file has them: lookups find what is written down. Put such pods into --cluster, or ask a \
             cluster with --live"
        ))
    }

    /// Nobody can tell what labels a Namespace has that is in no file.
    fn namespaces_note(&self) -> Option<String> {
        let first = self.assumed_namespaces.first()?;
        let which = match self.assumed_namespaces.len() - 1 {
            0 => format!("Namespace {first}, which was looked up: it was taken for one"),
            more => format!("Namespace {first} and {more} more, which were looked up: they were taken for ones"),
        };
        Some(format!(
            "no file has the {which} without labels and annotations. Put such Namespaces into --cluster, or ask a cluster with --live"
        ))
    }

    /// What has no UID differs in it from nothing, and equals nothing.
    fn uids_note(&self) -> Option<String> {
        let first = self.without_uid.first()?;
        let which = match self.without_uid.len() - 1 {
            0 => format!("rule {first} compares"),
            more => format!("rule {first} and {more} more compare"),
        };
        Some(format!(
            "{which} `metadata.uid`, which objects of files do not have before a cluster gives it to them: `.metadata.uid != metadata.uid` is not \
             true of any of them. Write `(.metadata.name != metadata.name || .metadata.namespace != metadata.namespace)` to tell them apart"
        ))
    }

    fn skipped_notes(&self) -> impl Iterator<Item = String> {
        let told = self.skipped_files.iter().take(MAX_FILES).map(|failed| format!("skipped {}", describe(failed)));
        let more = self.skipped_files.len().saturating_sub(MAX_FILES);
        let rest = (more > 0).then(|| format!("skipped {more} files more, which `-o json` lists"));
        told.chain(rest)
    }
}
