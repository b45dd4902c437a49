//! Histories of a board, a cluster that stores reports, and writers that come and go between them.

pub(crate) mod reporter;

use fastrand::Rng;
use portal_core::rule::Rule;
use portal_test_kit::share;

use super::super::testing::{offender, rules};
use super::*;
use crate::findings::{Board, Pass};

/// What a cluster stores, by namespace and name.
#[derive(Default)]
struct Cluster {
    reports: BTreeMap<(Option<String>, String), Report>,
    versions: u64,
    writes: usize,
}

impl Cluster {
    /// Does a step as the API server would, and says what came of it.
    fn take(&mut self, layout: &mut Layout, key: &Key, step: Step) {
        self.writes += 1;
        let place = (key.namespace.as_deref().map(str::to_owned), layout.about.name(key.level, key.shard));
        let stored = self.reports.get(&place);
        let version = |report: &Report| {
            let Metadata { uid, resource_version, .. } = report.metadata.clone();
            Version { uid, resource_version }
        };
        match step {
            Step::Write(writing) => {
                let Writing { mut report, print, left_out } = *writing;
                if version(&report) != stored.map(version).unwrap_or_default() {
                    return self.reread(layout, key, &place);
                }
                assert!(serde_json::to_vec(&report).unwrap().len() < layout.sizes.most + 1_000);
                self.versions += 1;
                report.metadata.resource_version = self.versions.to_string();
                if report.metadata.uid.is_empty() {
                    report.metadata.uid = format!("uid-{}", self.versions);
                }
                layout.wrote(key, version(&report), print, left_out);
                // As it comes back from the API server.
                let json = serde_json::to_string(&report).unwrap();
                self.reports.insert(place, serde_json::from_str(&json).unwrap());
            }
            Step::Delete(expected) => {
                if stored.map(version) == Some(expected) {
                    self.reports.remove(&place);
                    layout.gone(key);
                } else {
                    self.reread(layout, key, &place);
                }
            }
        }
    }

    fn reread(&self, layout: &mut Layout, key: &Key, place: &(Option<String>, String)) {
        match self.reports.get(place) {
            Some(report) => layout.found(layout.about.seen(report.clone(), false).unwrap()),
            None => layout.gone(key),
        }
    }

    /// Writes until nothing is left to do.
    fn settle(&mut self, layout: &mut Layout) {
        for _ in 0..100 {
            let dirty = layout.take_dirty();
            if dirty.is_empty() {
                return;
            }
            for key in dirty {
                if let Some(step) = layout.step(&key) {
                    self.take(layout, &key, step);
                }
            }
        }
        panic!("there is always something to write");
    }

    fn listed(&self) -> Vec<Report> {
        self.reports.values().cloned().collect()
    }

    /// Has a layout take what there is.
    fn show(&self, layout: &mut Layout, is_complete: bool) {
        let seen = self.listed().into_iter().filter_map(|report| layout.about.seen(report, !is_complete));
        layout.adopt(seen.collect());
    }

    /// The results without the times, and how often each is there. Checks what holds for each report alone.
    fn results(&self) -> BTreeMap<String, usize> {
        let mut results = BTreeMap::new();
        for ((namespace, name), report) in &self.reports {
            let mut summary = Summary::default();
            for result in &report.results {
                summary.count(&result.result);
                assert_eq!(result.resources[0].namespace, *namespace);
                let shown = ReportResult { timestamp: Time::default(), ..result.clone() };
                *results.entry(serde_json::to_string(&shown).unwrap()).or_default() += 1;
            }
            let left_out = report.metadata.annotations.get(LEFT_OUT).map_or(0, |count| count.parse().unwrap());
            let Summary { pass, fail, warn, error, skip } = report.summary;
            let counted = pass + fail + warn + error + skip;
            assert_eq!(counted, report.results.len() as i64 + left_out, "{name}");
            if left_out == 0 {
                assert_eq!(report.summary, summary, "{name}");
            }
            assert!(counted > 0, "{name} says nothing");
        }
        results
    }

    fn names(&self) -> Vec<&str> {
        self.reports.keys().map(|(_, name)| name.as_str()).collect()
    }
}

fn about(api: Api) -> About {
    About { api, instance: "stable".to_owned(), instance_uid: Some("i".to_owned()) }
}

/// Small, so that a few objects make it split.
const SMALL: Sizes = Sizes { split: 4_000, most: 12_000 };

fn follow(layout: &mut Layout, board: &Board) {
    for (id, offender) in board.outlet_with_passes().take() {
        layout.put(id, offender);
    }
}

/// The reports that one write of a board makes, in a cluster that has none.
fn written_at_once(board: &Board) -> BTreeMap<String, usize> {
    let (mut layout, mut cluster) = (Layout::new(about(Api::PolicyReport), SMALL), Cluster::default());
    follow(&mut layout, board);
    cluster.settle(&mut layout);
    cluster.results()
}

/// An object in one of the places that a history has.
fn random_offender(
    random: &mut Rng,
    uid: &str,
    namespace: Option<&str>,
    rules: &HashMap<String, Arc<Rule>>,
) -> Offender {
    let mut all: Vec<&Arc<Rule>> = rules.values().collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    random.shuffle(&mut all);
    // Of some objects it is said as well which rules they meet, and of some of these nothing else.
    let tells_passes = random.bool();
    let violated = random.usize(usize::from(!tells_passes)..=all.len());
    let since = "2023-11-14T22:13:20Z".parse().unwrap();
    let passes = all.split_off(violated).into_iter().filter(|_| tells_passes);
    let passes: Vec<Pass> = passes.map(|rule| Pass { rule: Arc::clone(rule), since }).collect();
    let messages: Vec<String> = all.iter().map(|_| "m".repeat(random.usize(0..200))).collect();
    let findings: Vec<(&Arc<Rule>, &str)> = all.into_iter().zip(messages.iter().map(String::as_str)).collect();
    let mut offender = offender(uid, namespace, &findings);
    for finding in &mut offender.findings {
        finding.is_failure = random.u8(..8) == 0;
        finding.container = (random.u8(..3) == 0).then(|| "app".to_owned());
    }
    offender.passes = passes;
    offender
}

/// One history: objects come, change and go; steps are done in any order; the writer is cut off at any point and another one, which
/// may not have judged everything yet, takes over.
fn history(seed: u64, rules: &HashMap<String, Arc<Rule>>) {
    let mut random = Rng::with_seed(seed);
    let places = [None, Some("shop"), Some("bank")];
    // Enough for a report of 16 to be too large, in some histories.
    let objects = [4, 40, 400][random.usize(..3)];
    let (mut board, mut outlet) = fresh();
    let mut now: BTreeMap<u64, Offender> = BTreeMap::new();
    let mut cluster = Cluster::default();
    let mut layout = Layout::new(about(Api::PolicyReport), SMALL);
    let mut is_complete = true;
    // What is on its way, and whether it has to be looked at again once it is done.
    let mut flying: BTreeMap<Key, (Step, bool)> = BTreeMap::new();
    for _ in 0..random.usize(1..200) {
        let event = random.u8(..20);
        if event < 2 {
            // Whatever was on its way is done or not, and nobody hears of it.
            for (key, (step, _)) in std::mem::take(&mut flying) {
                if random.bool() {
                    cluster.take(&mut layout, &key, step);
                }
            }
        }
        match event {
            0 => {
                // Another replica takes over. Its audit has found a part of what is wrong.
                (board, outlet) = fresh();
                layout = Layout::new(about(Api::PolicyReport), SMALL);
                is_complete = random.bool();
                for (id, offender) in &now {
                    if is_complete || random.bool() {
                        board.put(*id, Some(offender.clone()));
                    }
                }
                outlet.take().into_iter().for_each(|(id, offender)| layout.put(id, offender));
                cluster.show(&mut layout, is_complete);
            }
            1 => {
                // It lost the Lease and gets it back.
                cluster.show(&mut layout, is_complete);
            }
            2 => {
                // Somebody deletes a report, which nobody is told of.
                if let Some(place) = cluster.reports.keys().nth(random.usize(..3)).cloned() {
                    cluster.reports.remove(&place);
                }
            }
            3..=10 => {
                for _ in 0..random.usize(1..=objects.min(60)) {
                    let id = random.u64(..objects as u64);
                    // The third part in each of the places.
                    let (uid, namespace) = (format!("object-{id}"), places[id as usize % 3]);
                    if random.u8(..3) == 0 {
                        now.remove(&id);
                        board.put(id, None);
                    } else {
                        let offender = random_offender(&mut random, &uid, namespace, rules);
                        now.insert(id, offender.clone());
                        board.put(id, Some(offender));
                    }
                }
                outlet.take().into_iter().for_each(|(id, offender)| layout.put(id, offender));
            }
            11..=13 => {
                let done = random.usize(..=flying.len());
                for _ in 0..done {
                    let Some(key) = flying.keys().nth(random.usize(..flying.len())).cloned() else { break };
                    let Some((step, again)) = flying.remove(&key) else { break };
                    cluster.take(&mut layout, &key, step);
                    if again {
                        layout.dirty.insert(key);
                    }
                }
            }
            _ => {
                let mut dirty: Vec<Key> = layout.take_dirty().into_iter().collect();
                random.shuffle(&mut dirty);
                let begun = random.usize(..=dirty.len());
                for key in &dirty[..begun] {
                    if let Some((_, again)) = flying.get_mut(key) {
                        *again = true;
                    } else if let Some(step) = layout.step(key) {
                        flying.insert(key.clone(), (step, false));
                    }
                }
                // The others wait for their turn.
                layout.dirty.extend(dirty.drain(begun..));
            }
        }
        cluster.results();
    }
    // In the end everything is judged, and somebody looks at what there is, as is done now and then.
    for (id, offender) in &now {
        board.put(*id, Some(offender.clone()));
    }
    outlet.take().into_iter().for_each(|(id, offender)| layout.put(id, offender));
    layout.complete();
    for (key, (step, again)) in flying {
        cluster.take(&mut layout, &key, step);
        if again {
            layout.dirty.insert(key);
        }
    }
    if layout.versions().keys().ne(cluster.reports.keys()) {
        cluster.show(&mut layout, true);
    }
    cluster.settle(&mut layout);
    let results = cluster.results();
    let expected = written_at_once(&board);
    // What there is no room for depends on how many reports there are.
    if cluster.reports.values().all(|report| report.metadata.annotations.is_empty()) {
        assert_eq!(results.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    }
    assert!(results.values().all(|times| *times == 1), "a result is in two reports");
    let versions: Vec<_> = layout.versions().into_iter().collect();
    let stored = |((namespace, name), report): (&(Option<String>, String), &Report)| {
        ((namespace.clone(), name.clone()), report.metadata.resource_version.clone())
    };
    assert_eq!(versions, cluster.reports.iter().map(stored).collect::<Vec<_>>());
    // Nothing is written twice.
    let writes = cluster.writes;
    cluster.show(&mut layout, true);
    cluster.settle(&mut layout);
    assert_eq!(cluster.writes, writes);
}

fn fresh() -> (Board, crate::findings::Outlet) {
    let board = Board::default();
    let outlet = board.outlet_with_passes();
    (board, outlet)
}

#[test]
fn any_history_ends_in_the_reports_that_one_write_of_its_end_makes() {
    let rules = rules(&[("a", "deny"), ("b", "warn"), ("c", "dryrun")]);
    for seed in share::seeds(40, 2_000) {
        let history = std::panic::AssertUnwindSafe(|| history(seed, &rules));
        if let Err(panic) = std::panic::catch_unwind(history) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// A layout with so many objects of one namespace, each with a result of about 600 bytes.
fn with_objects(count: u64, sizes: Sizes) -> (Layout, HashMap<String, Arc<Rule>>) {
    let rules = rules(&[("a", "deny")]);
    let mut layout = Layout::new(about(Api::PolicyReport), sizes);
    for id in 0..count {
        let offender = offender(&format!("object-{id}"), Some("shop"), &[(&rules["a"], &"m".repeat(200))]);
        layout.put(id, Some(Arc::new(offender)));
    }
    (layout, rules)
}

#[test]
fn what_meets_rules_has_the_room_that_is_left_and_is_counted_beyond() {
    let rules = rules(&[("a", "deny"), ("b", "warn")]);
    let sizes = Sizes { split: 6_000, most: 60_000 };
    let (mut layout, mut cluster) = (Layout::new(about(Api::PolicyReport), sizes), Cluster::default());
    // In one slot, so that there cannot be more reports than one in the end.
    let uids: Vec<String> = (0..).map(|id| format!("object-{id}")).filter(|uid| slot(uid) == 7).take(60).collect();
    for (id, uid) in uids.iter().enumerate() {
        let mut offender = offender(uid, Some("shop"), &[(&rules["a"], "m")]);
        let since = offender.findings[0].since;
        offender.passes = vec![Pass { rule: Arc::clone(&rules["b"]), since }];
        if id >= 8 {
            offender.findings.clear();
        }
        layout.put(id as u64, Some(Arc::new(offender)));
    }
    cluster.settle(&mut layout);
    assert_eq!(cluster.names(), ["portal-stable.256-007"]);
    let report = cluster.listed().remove(0);
    let Summary { pass, fail, .. } = report.summary;
    assert_eq!((pass, fail), (60, 8));
    let told = |outcome: &str| report.results.iter().filter(|result| result.result == outcome).count();
    // All that is wrong is told, and of the rest as much as fits.
    assert_eq!(told("fail"), 8);
    assert!((1..52).contains(&told("pass")), "{}", told("pass"));
    assert!(length(&report.results) <= sizes.split + 2, "{}", length(&report.results));
    assert_eq!(report.metadata.annotations[LEFT_OUT], (60 - told("pass")).to_string());
    // What is wrong takes their place.
    for (id, uid) in uids.iter().enumerate() {
        layout.put(id as u64, Some(Arc::new(offender(uid, Some("shop"), &[(&rules["a"], "m")]))));
    }
    cluster.settle(&mut layout);
    let report = cluster.listed().remove(0);
    assert_eq!((report.results.len(), report.summary.fail, report.metadata.annotations.len()), (60, 60, 0));
}

#[test]
fn a_namespace_has_one_report_then_16_then_256_and_never_fewer_again() {
    let (mut layout, rules) = with_objects(5, SMALL);
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    assert_eq!(cluster.names(), ["portal-stable"]);
    for id in 5..40 {
        let offender = offender(&format!("object-{id}"), Some("shop"), &[(&rules["a"], "m")]);
        layout.put(id, Some(Arc::new(offender)));
    }
    cluster.settle(&mut layout);
    assert!(cluster.names().iter().all(|name| name.starts_with("portal-stable.16-")), "{:?}", cluster.names());
    for id in 10..40 {
        layout.put(id, None);
    }
    cluster.settle(&mut layout);
    assert_eq!(cluster.results().len(), 10);
    assert!(cluster.names().iter().all(|name| name.starts_with("portal-stable.16-")), "{:?}", cluster.names());
    // Also after a restart.
    let (mut layout, _) = with_objects(10, Sizes { split: 1 << 20, ..SMALL });
    cluster.show(&mut layout, true);
    cluster.settle(&mut layout);
    assert!(cluster.names().iter().all(|name| name.starts_with("portal-stable.16-")), "{:?}", cluster.names());
    // What was clean begins again with one.
    (0..10).for_each(|id| layout.put(id, None));
    cluster.settle(&mut layout);
    assert_eq!(cluster.names(), Vec::<&str>::new());
    let again = offender("again", Some("shop"), &[(&rules["a"], "m")]);
    layout.put(99, Some(Arc::new(again)));
    cluster.settle(&mut layout);
    assert_eq!(cluster.names(), ["portal-stable"]);
}

#[test]
fn one_change_among_thousands_rewrites_one_report() {
    let (mut layout, rules) = with_objects(5_000, Sizes::default());
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    assert_eq!(cluster.names().len(), 256);
    let writes = cluster.writes;
    layout.put(77, None);
    cluster.settle(&mut layout);
    assert_eq!(cluster.writes, writes + 1);
    // The same said again is no change.
    let same = offender("object-78", Some("shop"), &[(&rules["a"], &"m".repeat(200))]);
    layout.put(78, Some(Arc::new(same)));
    cluster.settle(&mut layout);
    assert_eq!(cluster.writes, writes + 1);
}

#[test]
fn no_report_is_too_large_whatever_is_wrong_with_an_object() {
    let names: Vec<String> = (0..60).map(|number| format!("rule-{number:02}")).collect();
    let rules = rules(&names.iter().map(|name| (name.as_str(), "deny")).collect::<Vec<_>>());
    // Each character takes six bytes in JSON.
    let message = "\u{1}".repeat(1 << 12);
    let findings: Vec<(&Arc<Rule>, &str)> = names.iter().map(|name| (&rules[name], message.as_str())).collect();
    let mut hostile = offender("hostile", None, &findings);
    let one = hostile.findings.clone();
    for container in 0..40 {
        let mut more = one.clone();
        more.iter_mut().for_each(|finding| finding.container = Some(format!("container-{container}")));
        hostile.findings.extend(more);
    }
    let count = hostile.findings.len();
    let mut layout = Layout::new(about(Api::OpenReports), Sizes::default());
    layout.put(0, Some(Arc::new(hostile)));
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    let reports = cluster.listed();
    let [report] = &reports[..] else { panic!("{:?}", cluster.names()) };
    assert!(serde_json::to_vec(report).unwrap().len() < 1_000_000);
    assert_eq!(report.summary.fail, count as i64);
    let left_out = count - report.results.len();
    assert!(left_out > 0 && !report.results.is_empty());
    assert_eq!(report.metadata.annotations[LEFT_OUT], left_out.to_string());
    assert_eq!(layout.counts(), (1, left_out));
}

#[test]
fn the_old_report_goes_only_when_the_new_ones_are_there() {
    let (mut layout, rules) = with_objects(5, SMALL);
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    for id in 5..20 {
        let offender = offender(&format!("object-{id}"), Some("shop"), &[(&rules["a"], &"m".repeat(200))]);
        layout.put(id, Some(Arc::new(offender)));
    }
    let before = cluster.results();
    let mut steps = 0;
    loop {
        let dirty = layout.take_dirty();
        if dirty.is_empty() {
            break;
        }
        // The one that may be deleted is tried before each of the others.
        for key in dirty {
            let old = Key { level: Level::One, shard: 0, ..key.clone() };
            for key in [old, key] {
                if let Some(step) = layout.step(&key) {
                    cluster.take(&mut layout, &key, step);
                    steps += 1;
                }
            }
            let results = cluster.results();
            assert!(before.keys().all(|result| results.contains_key(result)), "after {steps} steps");
        }
    }
    assert!(!cluster.names().contains(&"portal-stable"));
    assert_eq!(cluster.results().values().sum::<usize>(), 20);
}

#[test]
fn what_is_mended_while_it_is_first_written_is_deleted_again() {
    let (mut layout, _) = with_objects(1, SMALL);
    let mut cluster = Cluster::default();
    let key = layout.take_dirty().pop_first().unwrap();
    let step = layout.step(&key).unwrap();
    layout.put(0, None);
    // Whoever writes it looks at it again afterwards.
    assert!(layout.take_dirty().contains(&key));
    cluster.take(&mut layout, &key, step);
    assert!(matches!(layout.step(&key), Some(Step::Delete(_))));
}

#[test]
fn until_everything_is_judged_nothing_is_taken_for_mended() {
    let (mut layout, rules) = with_objects(5, SMALL);
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    let before = cluster.results();
    // Another process begins. It knows of one object, and finds another one.
    let mut layout = Layout::new(about(Api::PolicyReport), SMALL);
    let known = offender("object-3", Some("shop"), &[(&rules["a"], &"m".repeat(200))]);
    layout.put(700, Some(Arc::new(known)));
    cluster.show(&mut layout, false);
    cluster.settle(&mut layout);
    assert_eq!(cluster.results(), before);
    layout.put(701, Some(Arc::new(offender("new", Some("shop"), &[(&rules["a"], "m")]))));
    cluster.settle(&mut layout);
    assert_eq!(cluster.results().len(), 6);
    // That one is mended is certain: it was seen.
    layout.put(700, None);
    cluster.settle(&mut layout);
    assert_eq!(cluster.results().len(), 5);
    layout.complete();
    cluster.settle(&mut layout);
    assert_eq!(cluster.results().len(), 1);
    layout.put(701, None);
    cluster.settle(&mut layout);
    assert_eq!(cluster.names(), Vec::<&str>::new());
    assert!(layout.groups.is_empty() && layout.kept.is_empty() && layout.places.is_empty());
}

#[test]
fn a_result_keeps_the_time_that_a_report_has_until_it_is_mended() {
    let rules = rules(&[("a", "deny"), ("b", "deny")]);
    let at = |time: &str, names: &[&str]| {
        let findings: Vec<(&Arc<Rule>, &str)> = names.iter().map(|name| (&rules[*name], "m")).collect();
        let mut offender = offender("one", Some("shop"), &findings);
        offender.findings.iter_mut().for_each(|finding| finding.since = time.parse().unwrap());
        Some(Arc::new(offender))
    };
    let times = |cluster: &Cluster| -> Vec<i64> {
        cluster.reports.values().flat_map(|report| &report.results).map(|result| result.timestamp.seconds).collect()
    };
    let (mut layout, mut cluster) = (Layout::new(about(Api::PolicyReport), SMALL), Cluster::default());
    layout.put(0, at("1970-01-01T00:00:10Z", &["a", "b"]));
    cluster.settle(&mut layout);
    assert_eq!(times(&cluster), [10, 10]);
    // Before and after the list.
    for is_early in [true, false] {
        let writes = cluster.writes;
        layout = Layout::new(about(Api::PolicyReport), SMALL);
        if is_early {
            layout.put(5, at("1970-01-01T00:00:20Z", &["a", "b"]));
        }
        cluster.show(&mut layout, is_early);
        layout.put(5, at("1970-01-01T00:00:20Z", &["a", "b"]));
        cluster.settle(&mut layout);
        assert_eq!((times(&cluster), cluster.writes), (vec![10, 10], writes));
    }
    layout.put(5, at("1970-01-01T00:00:30Z", &["a"]));
    layout.put(5, at("1970-01-01T00:00:40Z", &["a", "b"]));
    cluster.settle(&mut layout);
    assert_eq!(times(&cluster), [10, 40]);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (mut layout, _) = with_objects(1, SMALL);
    let mut cluster = Cluster::default();
    cluster.settle(&mut layout);
    let ours = cluster.listed().remove(0);
    let foreign = |change: fn(&mut Metadata)| {
        let mut report = ours.clone();
        change(&mut report.metadata);
        report
    };
    let reports = [
        foreign(|metadata| metadata.name = "portal-stable.16-16".to_owned()),
        foreign(|metadata| metadata.name = "portal-stable.16-3".to_owned()),
        foreign(|metadata| metadata.name = "portal-stable2".to_owned()),
        foreign(|metadata| metadata.name = "other".to_owned()),
        foreign(|metadata| (metadata.labels, metadata.owner_references) = Default::default()),
        foreign(|metadata| {
            metadata.owner_references.clear();
            metadata.labels.insert(INSTANCE.to_owned(), "canary".to_owned());
        }),
    ];
    for report in reports {
        assert_eq!(about(Api::PolicyReport).key(&report.metadata), None, "{:?}", report.metadata);
    }
    // Ours it is without its labels, and is given them again; labels of others are no reason to write.
    let key = Key { namespace: Some("shop".into()), level: Level::One, shard: 0 };
    let seen = |report: Report| about(Api::PolicyReport).seen(report, false).unwrap();
    layout.found(seen(foreign(|metadata| _ = metadata.labels.insert("team".to_owned(), "a".to_owned()))));
    assert_eq!(layout.step(&key), None);
    layout.found(seen(foreign(|metadata| metadata.labels.clear())));
    assert!(matches!(layout.step(&key), Some(Step::Write(_))));
}
