//! Which result belongs into which report, and what has to be done about each report. Pure: the writer asks, and says what came of it.
//!
//! A namespace has one report until that grows too large, then 16, then 256: an object is in the one that its UID says. The smaller
//! ones are written before the larger one is deleted. There is never less than what is wrong in all of them together, and once all
//! is written no result is in two.

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{
    model::{Api, Metadata, Owner, Report, ReportResult, ResultId, Summary, Time},
    results::{PASS, SOURCE, ids, length, outcomes, results, slot},
};
use crate::{
    findings::{Offender, OffenderId},
    outcomes::Outcome,
};

/// Whose reports these are, and of which kind.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) api: Api,
    pub(super) instance: String,
    /// The instance's UID, if it is an object of the cluster: its reports go with it.
    pub(super) instance_uid: Option<String>,
}

/// The labels of our reports, the second with the name of the instance.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "portal");
pub(super) const INSTANCE: &str = "portal.io/instance";

/// The annotation that says how many results a report had no room for. They are in its summary.
pub(super) const LEFT_OUT: &str = "portal.io/results-left-out";

/// How large the results of a report may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Beyond this, a namespace has more reports, as long as there can be more. What meets rules is told up to here alone: it must not fill
    /// the cluster's storage, nor take the place of what is wrong.
    pub(super) split: usize,
    /// Never more than this. What goes beyond is counted and not told.
    pub(super) most: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        // With its metadata, a report stays well below a million bytes: etcd takes 1.5 MiB.
        Sizes { split: 64 << 10, most: 900_000 }
    }
}

/// In how many reports the results of a namespace are.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Level {
    #[default]
    One,
    Sixteen,
    All,
}

/// A place for a report. In no namespace are the results of what lives in none.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) level: Level,
    pub(super) shard: u8,
}

/// What has to be done about a report.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// It is written, as a new one or in place of the version that is known.
    Write(Box<Writing>),
    /// It is deleted, if it is still this version.
    Delete(Version),
}

/// A report that is to be written.
#[derive(Debug, PartialEq)]
pub(super) struct Writing {
    pub(super) report: Report,
    /// What tells its content from others.
    pub(super) print: u64,
    /// How many results it has no room for.
    pub(super) left_out: usize,
}

/// A version of a report.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Version {
    pub(super) uid: String,
    pub(super) resource_version: String,
}

/// Everything that is wrong, and the reports that are known to say so.
#[derive(Debug)]
pub(super) struct Layout {
    about: About,
    sizes: Sizes,
    groups: BTreeMap<Option<Arc<str>>, Group>,
    /// Where each object of the board is.
    places: HashMap<OffenderId, (Option<Arc<str>>, u8, String)>,
    /// Since when reports know of results, if they knew before us.
    kept: HashMap<ResultId, Time>,
    /// The reports that may not be as they should.
    dirty: BTreeSet<Key>,
}

/// What is wrong in a namespace, and its reports.
#[derive(Debug, Default)]
struct Group {
    level: Level,
    /// By slot, UID and the number on the board. Without a number is what reports say of an object of which the board says nothing yet.
    objects: BTreeMap<(u8, String, Option<OffenderId>), Object>,
    /// How large the results of 16 slots are.
    sizes: [usize; 16],
    stored: BTreeMap<(Level, u8), Stored>,
}

#[derive(Debug)]
struct Object {
    what: What,
    size: usize,
}

#[derive(Debug)]
enum What {
    Offender(Arc<Offender>),
    Carried(Vec<ReportResult>),
}

/// A report that is in the cluster.
#[derive(Clone, Debug)]
struct Stored {
    version: Version,
    print: u64,
    left_out: usize,
}

/// What is kept of a report of ours that was found in the cluster.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) key: Key,
    stored: Stored,
    results: Vec<SeenResult>,
    /// What only admission can tell of it.
    pub(super) outcomes: Vec<Outcome>,
}

#[derive(Debug)]
struct SeenResult {
    id: ResultId,
    uid: String,
    time: Time,
    /// All of it, if it may have to be written again.
    whole: Option<Box<ReportResult>>,
}

impl Level {
    fn next(self) -> Level {
        match self {
            Level::One => Level::Sixteen,
            Level::Sixteen | Level::All => Level::All,
        }
    }

    fn shard_of(self, slot: u8) -> u8 {
        match self {
            Level::One => 0,
            Level::Sixteen => slot >> 4,
            Level::All => slot,
        }
    }

    fn slots(self, shard: u8) -> RangeInclusive<u8> {
        match self {
            Level::One => 0..=u8::MAX,
            Level::Sixteen => shard << 4..=shard << 4 | 0xf,
            Level::All => shard..=shard,
        }
    }
}

impl About {
    /// What a report is called. A dot cannot be in the name of an instance, so that no report of another one is called so.
    pub(super) fn name(&self, level: Level, shard: u8) -> String {
        let instance = &self.instance;
        match level {
            Level::One => format!("portal-{instance}"),
            Level::Sixteen => format!("portal-{instance}.16-{shard:02}"),
            Level::All => format!("portal-{instance}.256-{shard:03}"),
        }
    }

    /// The place of a report, if it is one of ours.
    fn key(&self, metadata: &Metadata) -> Option<Key> {
        let rest = metadata.name.strip_prefix("portal-")?.strip_prefix(self.instance.as_str())?;
        let (level, shard) = match rest.strip_prefix('.').and_then(|rest| rest.split_once('-')) {
            Some(("16", shard)) => (Level::Sixteen, shard.parse::<u8>().ok().filter(|shard| *shard < 16)?),
            Some(("256", shard)) => (Level::All, shard.parse().ok()?),
            _ => (Level::One, 0),
        };
        let is_so = self.name(level, shard) == metadata.name && self.owns(metadata);
        is_so.then(|| Key { namespace: metadata.namespace.as_deref().map(Arc::from), level, shard })
    }

    /// Whether a report is one of ours.
    pub(super) fn is_ours(&self, metadata: &Metadata) -> bool {
        self.key(metadata).is_some()
    }

    /// Whether a report says that it is ours: by its labels, or by what it goes with if somebody has taken them away.
    fn owns(&self, metadata: &Metadata) -> bool {
        let label = |key: &str| metadata.labels.get(key).map(String::as_str);
        let is_labelled = label(MANAGED_BY.0) == Some(MANAGED_BY.1) && label(INSTANCE) == Some(&self.instance);
        let is_owned = |uid: &String| metadata.owner_references.iter().any(|owner| owner.uid == *uid);
        is_labelled || self.instance_uid.as_ref().is_some_and(is_owned)
    }

    /// Takes what is needed out of a report that was found, if it is one of ours. `keeps` says whether all that it says may be needed.
    pub(super) fn seen(&self, report: Report, keeps: bool) -> Option<Seen> {
        let key = self.key(&report.metadata)?;
        let print = self.print(&report);
        let Metadata { uid, resource_version, annotations, .. } = report.metadata;
        let left_out = annotations.get(LEFT_OUT).and_then(|count| count.parse().ok()).unwrap_or_default();
        let outcomes = outcomes(&report.results);
        let results = report.results.into_iter().filter_map(|result| {
            let (id, [object]) = (result.id()?, &*result.resources) else { return None };
            let (uid, time) = (object.uid.clone(), result.timestamp);
            let whole = (keeps && !uid.is_empty()).then(|| Box::new(result));
            Some(SeenResult { id, uid, time, whole })
        });
        let results = results.collect();
        Some(Seen {
            key,
            stored: Stored { version: Version { uid, resource_version }, print, left_out },
            results,
            outcomes,
        })
    }

    fn report(&self, key: &Key, results: Vec<ReportResult>, summary: Summary, left_out: usize) -> Report {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let owner = |uid: &String| Owner {
            api_version: "portal.io/v1alpha1".to_owned(),
            kind: "PortalInstance".to_owned(),
            name: self.instance.clone(),
            uid: uid.clone(),
        };
        let is_namespaced = key.namespace.is_some();
        Report {
            api_version: format!("{}/{}", self.api.group(), self.api.version()).into(),
            kind: self.api.kind(is_namespaced).into(),
            metadata: Metadata {
                name: self.name(key.level, key.shard),
                namespace: key.namespace.as_deref().map(str::to_owned),
                labels: [label(MANAGED_BY.0, MANAGED_BY.1), label(INSTANCE, &self.instance)].into(),
                annotations: (left_out > 0).then(|| label(LEFT_OUT, &left_out.to_string())).into_iter().collect(),
                owner_references: self.instance_uid.iter().map(owner).collect(),
                ..Metadata::default()
            },
            source: (self.api == Api::OpenReports).then(|| SOURCE.into()),
            summary,
            results,
        }
    }

    /// What tells the content of a report from others. What other tools add to its metadata is none of it.
    fn print(&self, report: &Report) -> u64 {
        let Report { api_version: _, kind: _, metadata, source, summary, results } = report;
        let label = |key| metadata.labels.get(key);
        let owners = metadata.owner_references.iter().filter(|owner| owner.kind == "PortalInstance");
        let mut hasher = DefaultHasher::new();
        (label(MANAGED_BY.0), label(INSTANCE), metadata.annotations.get(LEFT_OUT)).hash(&mut hasher);
        owners.for_each(|owner| owner.hash(&mut hasher));
        (source, summary, results).hash(&mut hasher);
        hasher.finish()
    }
}

impl Layout {
    pub(super) fn new(about: About, sizes: Sizes) -> Layout {
        let (groups, places, kept, dirty) = Default::default();
        Layout { about, sizes, groups, places, kept, dirty }
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// Takes what the board says of an object now.
    pub(super) fn put(&mut self, id: OffenderId, offender: Option<Arc<Offender>>) {
        let before = self.places.remove(&id).and_then(|place| self.take(place, Some(id)));
        if !self.kept.is_empty() {
            let still: HashSet<ResultId> =
                offender.iter().flat_map(|offender| ids(offender, &self.about.instance)).collect();
            // What begins again begins now.
            if let Some(What::Offender(before)) = before {
                for id in ids(&before, &self.about.instance).filter(|id| !still.contains(id)) {
                    self.kept.remove(&id);
                }
            }
        }
        let Some(offender) = offender else { return };
        let (namespace, slot) = (offender.namespace.as_deref().map(Arc::from), slot(&offender.uid));
        let place = (namespace, slot, offender.uid.clone());
        if let Some(What::Carried(results)) = self.take(place.clone(), None) {
            let still: HashSet<ResultId> = ids(&offender, &self.about.instance).collect();
            for id in results.iter().filter_map(ReportResult::id).filter(|id| !still.contains(id)) {
                self.kept.remove(&id);
            }
        }
        let size = results(&offender, &self.about.instance).iter().map(|result| length(result) + 1).sum();
        self.insert(&place, Some(id), Object { what: What::Offender(offender), size });
        self.places.insert(id, place);
    }

    /// Takes what was seen of the reports that are in the cluster. What they say of objects that are not on the board is believed until the
    /// board has [everything](Self::complete), if it was kept.
    pub(super) fn adopt(&mut self, mut seen: Vec<Seen>) {
        self.forget();
        // Those of smaller shards are newer, if there are others.
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.key.level));
        let mut carried: HashMap<String, (Key, Vec<ReportResult>)> = HashMap::new();
        let known: HashSet<String> = self.places.values().map(|(_, _, uid)| uid.clone()).collect();
        for Seen { key, stored, results, .. } in seen {
            let group = self.groups.entry(key.namespace.clone()).or_default();
            group.level = group.level.max(key.level);
            group.stored.insert((key.level, key.shard), stored);
            for SeenResult { id, uid, time, whole } in results {
                if known.contains(&uid) {
                    self.kept.entry(id).or_insert(time);
                } else if let Some(whole) = whole {
                    let (from, results) = carried.entry(uid).or_insert_with(|| (key.clone(), Vec::new()));
                    if *from == key {
                        self.kept.insert(id, time);
                        results.push(*whole);
                    }
                }
            }
        }
        for (uid, (key, results)) in carried {
            let size = results.iter().map(|result| length(result) + 1).sum();
            let place = (key.namespace, slot(&uid), uid);
            self.insert(&place, None, Object { what: What::Carried(results), size });
        }
        for namespace in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.grow(&namespace);
            self.look_again(&namespace);
        }
    }

    /// Forgets what was known of the cluster: another replica may write from here on.
    pub(super) fn forget(&mut self) {
        self.dirty.clear();
        self.kept.clear();
        for group in self.groups.values_mut() {
            group.stored.clear();
            group.level = Level::One;
            group.objects.retain(|(_, _, id), _| id.is_some());
            group.sizes = [0; 16];
            for ((slot, _, _), object) in &group.objects {
                group.sizes[usize::from(slot >> 4)] += object.size;
            }
        }
        self.groups.retain(|_, group| !group.objects.is_empty());
    }

    /// The board has everything: of whatever is not on it, nothing is wrong any more.
    pub(super) fn complete(&mut self) {
        let mut carried = Vec::new();
        for (namespace, group) in &self.groups {
            let without = group.objects.keys().filter(|(_, _, id)| id.is_none());
            carried.extend(without.map(|(slot, uid, _)| (namespace.clone(), *slot, uid.clone())));
        }
        for place in carried {
            if let Some(What::Carried(results)) = self.take(place, None) {
                for id in results.iter().filter_map(ReportResult::id) {
                    self.kept.remove(&id);
                }
            }
        }
    }

    /// The reports that may not be as they should, since this was last asked.
    pub(super) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    /// What has to be done about a report. Nothing if it is as it should be, or has to wait for others, which make it dirty again.
    pub(super) fn step(&self, key: &Key) -> Option<Step> {
        let group = self.groups.get(&key.namespace)?;
        let stored = group.stored.get(&(key.level, key.shard));
        if key.level < group.level {
            // All that it said is in smaller ones before it goes.
            let mut slots = group.range(key.level.slots(key.shard)).map(|((slot, _, _), _)| *slot);
            let is_told = slots.all(|slot| group.stored.contains_key(&(group.level, group.level.shard_of(slot))));
            return stored.filter(|_| is_told).map(|stored| Step::Delete(stored.version.clone()));
        }
        let Writing { mut report, print, left_out } = match self.write(group, key) {
            Some(writing) => writing,
            None => return stored.map(|stored| Step::Delete(stored.version.clone())),
        };
        if let Some(stored) = stored {
            if stored.print == print {
                return None;
            }
            report.metadata.uid = stored.version.uid.clone();
            report.metadata.resource_version = stored.version.resource_version.clone();
        }
        Some(Step::Write(Box::new(Writing { report, print, left_out })))
    }

    /// A report was written.
    pub(super) fn wrote(&mut self, key: &Key, version: Version, print: u64, left_out: usize) {
        let group = self.groups.entry(key.namespace.clone()).or_default();
        group.level = group.level.max(key.level);
        group.stored.insert((key.level, key.shard), Stored { version, print, left_out });
        self.look_again_behind(key);
    }

    /// A report is as it was found now.
    pub(super) fn found(&mut self, seen: Seen) {
        let Seen { key, stored, .. } = seen;
        self.groups.entry(key.namespace.clone()).or_default().stored.insert((key.level, key.shard), stored);
        self.dirty.insert(key);
    }

    /// A report is not there, or not there any more.
    pub(super) fn gone(&mut self, key: &Key) {
        if let Some(group) = self.groups.get_mut(&key.namespace) {
            group.stored.remove(&(key.level, key.shard));
            if group.objects.is_empty() && group.stored.is_empty() {
                self.groups.remove(&key.namespace);
            } else {
                self.look_again(&key.namespace);
            }
        }
    }

    /// The versions of all reports that are known to be in the cluster, by namespace and name.
    pub(super) fn versions(&self) -> BTreeMap<(Option<String>, String), String> {
        let of_group = |(namespace, group): (&Option<Arc<str>>, &Group)| {
            let namespace = namespace.as_deref().map(str::to_owned);
            let name = |(level, shard): &(Level, u8)| self.about.name(*level, *shard);
            let entry = |(key, stored): (&(Level, u8), &Stored)| {
                ((namespace.clone(), name(key)), stored.version.resource_version.clone())
            };
            group.stored.iter().map(entry).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of_group).collect()
    }

    /// How many reports there are, and how many results they have no room for.
    pub(super) fn counts(&self) -> (usize, usize) {
        let stored = self.groups.values().flat_map(|group| group.stored.values());
        stored.fold((0, 0), |(reports, left_out), stored| (reports + 1, left_out + stored.left_out))
    }

    /// A report as it should be, unless there should be none.
    fn write(&self, group: &Group, key: &Key) -> Option<Writing> {
        let (mut told, mut summary, mut left_out, mut size) = (Vec::new(), Summary::default(), 0, 0);
        let mut passes = Vec::new();
        for (_, object) in group.range(key.level.slots(key.shard)) {
            let results = match &object.what {
                What::Offender(offender) => {
                    let mut results = results(offender, &self.about.instance);
                    for result in &mut results {
                        if let Some(time) = result.id().and_then(|id| self.kept.get(&id)) {
                            result.timestamp = *time;
                        }
                    }
                    results
                }
                What::Carried(results) => results.clone(),
            };
            for result in results {
                summary.count(&result.result);
                if result.result == PASS {
                    passes.push(result);
                    continue;
                }
                size += length(&result) + 1;
                if size > self.sizes.most {
                    left_out += 1;
                } else {
                    told.push(result);
                }
            }
        }
        for result in passes {
            size += length(&result) + 1;
            if size > self.sizes.split {
                left_out += 1;
            } else {
                told.push(result);
            }
        }
        if told.is_empty() && left_out == 0 {
            return None;
        }
        let report = self.about.report(key, told, summary, left_out);
        let print = self.about.print(&report);
        Some(Writing { report, print, left_out })
    }

    fn take(&mut self, (namespace, slot, uid): (Option<Arc<str>>, u8, String), id: Option<OffenderId>) -> Option<What> {
        let group = self.groups.get_mut(&namespace)?;
        let object = group.objects.remove(&(slot, uid, id))?;
        group.sizes[usize::from(slot >> 4)] -= object.size;
        let (level, is_empty) = (group.level, group.objects.is_empty() && group.stored.is_empty());
        // Even if nothing is known to be there: a report may be on its way.
        self.dirty.insert(Key { namespace: namespace.clone(), level, shard: level.shard_of(slot) });
        if is_empty {
            self.groups.remove(&namespace);
        } else {
            // What waits for a smaller report need not wait if that has nothing to say.
            self.look_again_at_old(&namespace);
        }
        Some(object.what)
    }

    fn insert(&mut self, place: &(Option<Arc<str>>, u8, String), id: Option<OffenderId>, object: Object) {
        let (namespace, slot, uid) = place;
        let group = self.groups.entry(namespace.clone()).or_default();
        group.sizes[usize::from(slot >> 4)] += object.size;
        group.objects.insert((*slot, uid.clone(), id), object);
        let level = group.level;
        self.dirty.insert(Key { namespace: namespace.clone(), level, shard: level.shard_of(*slot) });
        self.grow(namespace);
    }

    /// Gives a namespace more reports, if those that it has are too large.
    fn grow(&mut self, namespace: &Option<Arc<str>>) {
        let Some(group) = self.groups.get_mut(namespace) else { return };
        let before = group.level;
        while group.level != Level::All {
            let largest = match group.level {
                Level::One => group.sizes.iter().sum(),
                _ => group.sizes.iter().copied().max().unwrap_or_default(),
            };
            if largest <= self.sizes.split {
                break;
            }
            group.level = group.level.next();
        }
        if group.level != before {
            self.look_again(namespace);
        }
    }

    /// Every report of a namespace may not be as it should.
    fn look_again(&mut self, namespace: &Option<Arc<str>>) {
        let Some(group) = self.groups.get(namespace) else { return };
        let level = group.level;
        let of_objects = group.objects.keys().map(|(slot, _, _)| (level, level.shard_of(*slot)));
        let keys = of_objects.chain(group.stored.keys().copied());
        self.dirty.extend(keys.map(|(level, shard)| Key { namespace: namespace.clone(), level, shard }));
    }

    /// The larger reports of a namespace that has smaller ones may not be as they should, nor may one whose place another has taken.
    fn look_again_behind(&mut self, key: &Key) {
        let is_old = self.groups.get(&key.namespace).is_some_and(|group| key.level < group.level);
        if is_old {
            self.look_again(&key.namespace);
        } else {
            self.look_again_at_old(&key.namespace);
        }
    }

    fn look_again_at_old(&mut self, namespace: &Option<Arc<str>>) {
        let Some(group) = self.groups.get(namespace) else { return };
        let old = group.stored.keys().filter(|(level, _)| *level < group.level);
        self.dirty.extend(old.map(|(level, shard)| Key { namespace: namespace.clone(), level: *level, shard: *shard }));
    }
}

impl Group {
    fn range(&self, slots: RangeInclusive<u8>) -> impl Iterator<Item = (&(u8, String, Option<OffenderId>), &Object)> {
        let (first, last) = (*slots.start(), *slots.end());
        let from = self.objects.range((first, String::new(), None)..);
        from.take_while(move |((slot, _, _), _)| *slot <= last)
    }
}
