//! Judges the objects of files, on every core.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use portal_core::{
    evaluate::{Evaluation, evaluate},
    event::{Event, Operation, Subject},
    kinds::{Assumed, Kinds},
    manifest::{Item, Manifest, Placed, Problem, items_between, list_len},
    object::Object,
    review::Review,
    rule::{RequestReads, RuleSet},
};
use portal_crds::EnforcementAction;
use portal_document::{Interning, Node};
use portal_expr::{Limits, Moment};

use crate::check::{
    Arguments,
    cluster::Cluster,
    existing::{self, Existing},
    files,
    live::{Connection, Live},
    progress::Progress,
    queue::Queue,
    rules::{self, Loaded},
    skipped::{self, Doubts},
    unknown::{Unknown, UnknownKind},
};
use crate::clock;

/// What came of judging everything.
#[derive(Default)]
pub(crate) struct Judgement {
    pub(crate) objects: usize,
    pub(crate) rules: usize,
    pub(crate) skipped: usize,
    pub(crate) violations: Vec<Found>,
    pub(crate) failures: Vec<Failed>,
    pub(crate) warnings: Vec<Problem>,
    /// What rules name although nothing defines it.
    pub(crate) assumed: BTreeSet<Assumed>,
    pub(crate) unknown: Vec<UnknownKind>,
    /// Whether those are failures too.
    pub(crate) is_strict: bool,
    /// Whether a cluster was asked.
    pub(crate) is_live: bool,
    /// Files of folders that hold no object, and why.
    pub(crate) skipped_files: Vec<Failed>,
    /// What makes pods that rules looked for, and that no file has.
    pub(crate) unmade: BTreeSet<String>,
    /// The Namespaces that were looked up, and that no file has.
    pub(crate) assumed_namespaces: BTreeSet<String>,
    /// The rules that compare the UID of an object that has none.
    pub(crate) without_uid: BTreeSet<String>,
}

/// Where an object is, and what it is called.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Location {
    /// The number of the file, so that results come in the order of the files.
    order: usize,
    pub(crate) line: Option<usize>,
    /// The places of the object in the lists around it, which may share the line.
    path: Vec<usize>,
    pub(crate) file: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// The UID of an object of the cluster.
    pub(crate) uid: Option<String>,
}

/// A violation of an object.
pub(crate) struct Found {
    pub(crate) location: Location,
    pub(crate) violation: portal_core::evaluate::Violation,
}

/// Something that could not be judged.
pub(crate) struct Failed {
    pub(crate) location: Location,
    pub(crate) column: Option<usize>,
    pub(crate) rule: Option<String>,
    pub(crate) error: String,
}

/// What each worker needs.
struct Work<'a> {
    /// What objects are judged by: every rule that can do without a real request.
    rules: RuleSet,
    /// What reviews are judged by.
    review_rules: &'a RuleSet,
    kinds: &'a Kinds,
    /// The objects of files.
    cluster: Cluster,
    /// The cluster that they are laid over, if there is one.
    live: Option<Live<'a>>,
    /// The namespace of objects that name none.
    namespace: &'a str,
    /// Whether everything must be a review.
    only_reviews: bool,
    needs_request: bool,
    /// Whether some rule compares UIDs, which files seldom have.
    compares_uids: bool,
    now: Moment,
}

/// What a worker takes.
enum Task {
    /// A part of the file of this number.
    Piece(usize, Manifest),
    /// Some items of a list.
    Items(Arc<Listed>, Range<usize>),
    /// Some objects of the cluster.
    Existing(Vec<Arc<Object<'static>>>),
}

/// A document whose items are judged, perhaps by several workers.
struct Listed {
    order: usize,
    piece: Manifest,
    placed: Placed,
    /// How many items it has, if it is a list.
    count: usize,
    /// The lines of its items. Written by the first worker that has something to say about one.
    lines: OnceLock<Vec<usize>>,
}

/// What a worker found in a piece.
#[derive(Default)]
struct Outcome {
    objects: usize,
    /// How many of them were reviews.
    reviews: usize,
    violations: Vec<Found>,
    failures: Vec<Failed>,
    unknown: Unknown,
    doubts: Doubts,
    without_uid: BTreeSet<String>,
}

/// How much text goes to a worker at once.
const PIECE_BYTES: usize = 256 << 10;

/// How many items of a list go to a worker at once: about as much as a piece of text.
const ITEMS: usize = 64;

pub(crate) fn judge(loaded: &Loaded, arguments: &Arguments, connection: Option<&Connection>) -> Judgement {
    let (mut problems, mut skipped_cluster_files) = (Vec::new(), Vec::new());
    let named = arguments.paths();
    let paths = files::expand(&named, &mut problems);
    let (skipped, rules): (Vec<_>, Vec<_>) = loaded
        .rules
        .rules()
        .iter()
        .cloned()
        .partition(|rule| rule.request == RequestReads::Everything || !rule.judges_creation());
    let looks_up = loaded.rules.rules().iter().any(|rule| rule.looks_up());
    let needs_request = rules.iter().any(|rule| rule.names_request);
    let compares_uids = rules.iter().any(|rule| rule.compares_uid());
    let namespace = connection.map_or(files::DEFAULT_NAMESPACE, Connection::namespace);
    let cluster = if looks_up {
        let skipped = (!arguments.strict).then_some(&mut skipped_cluster_files);
        Cluster::read(&arguments.cluster, &paths, &loaded.kinds, namespace, &mut problems, skipped)
    } else {
        Cluster::default()
    };
    let (judges_cluster, rules) = (arguments.judges_cluster(), RuleSet::new(rules));
    // Reviews are judged by all rules, and there are none of the cluster.
    let looking = if judges_cluster { &rules } else { &loaded.rules };
    let live = connection.map(|connection| connection.list(looking, judges_cluster));
    let work = Work {
        rules,
        review_rules: &loaded.rules,
        kinds: &loaded.kinds,
        cluster,
        live,
        namespace,
        only_reviews: arguments.request,
        needs_request,
        compares_uids,
        now: clock::now(),
    };
    let existing = work.live.as_ref().filter(|_| judges_cluster).map(|live| live.existing(&work.rules));
    let mut outcome = run(&work, &paths, existing.as_ref());
    if let Some(existing) = &existing {
        existing.fold(&mut outcome.violations, &work.rules);
        outcome.failures.extend(existing.failures());
    }
    let (mut wrong, mut skipped_files) = outcome.doubts.settle(&paths, &named, arguments.strict);
    outcome.failures.append(&mut wrong);
    skipped_files.extend(skipped_cluster_files.into_iter().map(|problem| unread(0, problem)));
    let mut failures: Vec<Failed> =
        loaded.errors.iter().cloned().chain(problems).map(|problem| unread(0, problem)).collect();
    outcome.failures.sort_by(|one, other| one.location.cmp(&other.location));
    outcome.violations.sort_by(|one, other| one.location.cmp(&other.location));
    failures.append(&mut outcome.failures);
    let (unknown, known) = outcome.unknown.settle(|| rules::definitions(&[&arguments.rules, &arguments.cluster]));
    if arguments.strict {
        failures.extend(unknown.iter().map(|unknown| unknown.failed(connection.is_some())));
    }
    Judgement {
        objects: outcome.objects + known,
        rules: loaded.rules.rules().len(),
        skipped: if outcome.objects > outcome.reviews { skipped.len() } else { 0 },
        violations: outcome.violations,
        failures,
        warnings: loaded.warnings.clone(),
        assumed: loaded.assumed.clone(),
        unknown,
        is_strict: arguments.strict,
        is_live: connection.is_some(),
        skipped_files,
        unmade: work.cluster.unmade(),
        assumed_namespaces: work.cluster.assumed_namespaces(),
        without_uid: outcome.without_uid,
    }
}

/// Reads the files one after the other and lets every core judge what is in them. What waits is bounded.
fn run(work: &Work<'_>, paths: &[PathBuf], existing: Option<&Existing>) -> Outcome {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Queue::new(2 * workers);
    let outcome = Mutex::new(Outcome::default());
    let progress = Progress::new(paths.len());
    // A file may come in many pieces. A file without anything in any of them is reported: it is a mistake.
    let filled: Vec<AtomicBool> = paths.iter().map(|_| AtomicBool::new(false)).collect();
    let mut firsts = Vec::new();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let mut own = Outcome::default();
                queue.work(|task| {
                    let before = own.objects;
                    let order = match task {
                        Task::Piece(order, piece) => {
                            let (lists, has_content) = work.judge_piece(order, piece, &mut own);
                            filled[order].fetch_or(has_content, Ordering::Relaxed);
                            lists.into_iter().for_each(|list| queue.split(parts(list)));
                            order
                        }
                        Task::Items(list, range) => {
                            work.judge_items(&list, range, &mut own);
                            list.order
                        }
                        Task::Existing(objects) => {
                            for object in objects {
                                work.judge_object(object.root(), Location::of_cluster(), &mut own);
                            }
                            0
                        }
                    };
                    progress.judged(order, own.objects - before);
                });
                if let Ok(mut outcome) = outcome.lock() {
                    outcome.objects += own.objects;
                    outcome.reviews += own.reviews;
                    outcome.violations.append(&mut own.violations);
                    outcome.failures.append(&mut own.failures);
                    outcome.unknown.append(own.unknown);
                    outcome.doubts.append(own.doubts);
                    outcome.without_uid.append(&mut own.without_uid);
                }
            });
        }
        for (order, path) in paths.iter().enumerate() {
            match files::read(path) {
                Ok(manifest) => {
                    firsts.push((order, files::empty(&manifest, "object")));
                    for piece in manifest.pieces(PIECE_BYTES) {
                        queue.add(Task::Piece(order, piece));
                    }
                }
                Err(problem) => {
                    if let Ok(mut outcome) = outcome.lock() {
                        outcome.failures.push(unread(order, problem));
                    }
                }
            }
        }
        for objects in existing.into_iter().flat_map(|existing| existing.objects().chunks(ITEMS)) {
            queue.add(Task::Existing(objects.to_vec()));
        }
        queue.close();
    });
    progress.end();
    let mut outcome = outcome.into_inner().unwrap_or_default();
    let empty = firsts.into_iter().filter(|(order, _)| !filled[*order].load(Ordering::Relaxed));
    empty.for_each(|(order, problem)| outcome.doubts.add_empty(order, problem));
    outcome
}

/// The parts of a list that workers take.
fn parts(list: Arc<Listed>) -> impl DoubleEndedIterator<Item = Task> {
    let count = list.count;
    (0..count.div_ceil(ITEMS))
        .map(move |part| Task::Items(Arc::clone(&list), part * ITEMS..count.min((part + 1) * ITEMS)))
}

pub(crate) fn unread(order: usize, problem: Problem) -> Failed {
    let location = Location { order, file: problem.file.to_string(), line: problem.line, ..Location::default() };
    let rule = problem.rule.map(|rule| rule.to_string());
    Failed { location, column: problem.column, rule, error: problem.message }
}

impl Work<'_> {
    /// Judges what is in a piece, but for long lists, which are returned. Says whether there was anything.
    fn judge_piece(&self, order: usize, piece: Manifest, outcome: &mut Outcome) -> (Vec<Arc<Listed>>, bool) {
        let (documents, problems) = piece.documents(Interning::Add);
        let has_content = !documents.is_empty() || !problems.is_empty();
        let problems = problems.into_iter();
        outcome.failures.extend(problems.filter_map(|problem| outcome.doubts.add_template(order, &piece, problem)));
        let mut long = Vec::new();
        for placed in documents {
            let count = list_len(placed.document.root()).unwrap_or_default();
            let listed = Listed { order, piece: piece.clone(), placed, count, lines: OnceLock::new() };
            if count > ITEMS {
                long.push(Arc::new(listed));
            } else {
                self.judge_items(&listed, 0..ITEMS, outcome);
            }
        }
        (long, has_content)
    }

    /// Judges some items of a list, or a document that is none.
    fn judge_items(&self, listed: &Listed, range: Range<usize>, outcome: &mut Outcome) {
        let Listed { order, piece, placed, count, lines } = listed;
        for Item { path, content } in items_between(placed.document.root(), range) {
            let first = path.first().copied();
            let file = piece.file().to_owned();
            let location = Location { order: *order, line: Some(placed.line), path, file, ..Location::default() };
            let (violations, failures) = (outcome.violations.len(), outcome.failures.len());
            match content {
                Ok(content) => self.judge_content(content.root(), location, outcome),
                Err(error) => outcome.failures.push(Failed::whole(location, error)),
            }
            let violations = outcome.violations[violations..].iter_mut().map(|found| &mut found.location);
            let failures = outcome.failures[failures..].iter_mut().map(|failed| &mut failed.location);
            for location in violations.chain(failures) {
                // The lines of a list's items are looked for when something is said of one.
                let line = |item: usize| lines.get_or_init(|| piece.item_lines(placed.line, *count)).get(item).copied();
                location.line = first.and_then(line).or(location.line);
            }
        }
    }

    fn judge_content(&self, object: Node<'_>, location: Location, outcome: &mut Outcome) {
        let is_review = object.get_str("kind").and_then(Node::as_str) == Some("AdmissionReview");
        outcome.reviews += usize::from(is_review);
        if is_review || self.only_reviews {
            outcome.objects += 1;
            outcome.doubts.hold(location.order);
            self.judge_review(object, location, outcome);
        } else {
            self.judge_object(object, location, outcome);
        }
    }

    fn judge_review(&self, review: Node<'_>, mut location: Location, outcome: &mut Outcome) {
        match Review::of(review, self.kinds) {
            Ok(review) => {
                let event = review.event(self.now);
                location.name_after(&event);
                self.evaluate(self.review_rules, &event, location, outcome);
            }
            Err(error) => outcome.failures.push(Failed::whole(location, error.to_string())),
        }
    }

    fn judge_object(&self, object: Node<'_>, mut location: Location, outcome: &mut Outcome) {
        let text = |name: &str| object.get_str(name).and_then(Node::as_str);
        if let Some(error) = skipped::no_object(object) {
            let (order, failed) = (location.order, Failed::whole(location, error));
            return match skipped::is_meant(object) {
                true => outcome.failures.push(failed),
                false => outcome.doubts.add_no_object(order, failed),
            };
        }
        outcome.doubts.hold(location.order);
        let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else { return };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        // No rule judges a kind that is not known: what rules name is known.
        let Some(kind) = self.kinds.get(group, kind) else {
            location.name_after_manifest(object, api_version, kind);
            return outcome.unknown.add(location);
        };
        outcome.objects += 1;
        if let Some(error) = skipped::misnamed(object) {
            return outcome.failures.push(Failed::whole(location, error));
        }
        if let Some(defined) = rules::custom_kind(object) {
            outcome.unknown.define(defined);
        }
        let Some(subject) = Subject::of(object, kind, version, self.namespace) else {
            return outcome.failures.push(Failed::whole(location, "the object is too large to be judged"));
        };
        // A rule that reads `request` would find nothing in its place, and pass.
        let Some(subject) = (if self.needs_request { subject.requested() } else { Some(subject) }) else {
            let error = "the object is nested too deep to be in a request, which a rule reads";
            return outcome.failures.push(Failed::whole(location, error));
        };
        let event = subject.event(Operation::Create, None, self.now);
        location.name_after(&event);
        location.uid = event.judged().and_then(existing::uid_of).map(str::to_owned);
        if self.compares_uids && location.uid.is_none() {
            let rules = self.rules.for_kind(kind).filter(|(rule, _)| rule.compares_uid());
            outcome.without_uid.extend(rules.map(|(rule, _)| rule.id.to_string()));
        }
        self.evaluate(&self.rules, &event, location, outcome);
    }

    fn evaluate(&self, rules: &RuleSet, event: &Event<'_>, location: Location, outcome: &mut Outcome) {
        let Evaluation { violations, failures, .. } = match &self.live {
            Some(live) => live.evaluate(rules, &self.cluster, event, &Limits::default()),
            None => evaluate(rules, &self.cluster, event, &Limits::default()),
        };
        outcome
            .violations
            .extend(violations.into_iter().map(|violation| Found { location: location.clone(), violation }));
        outcome.failures.extend(failures.into_iter().map(|failure| Failed {
            location: location.clone(),
            column: None,
            rule: Some(failure.rule.to_string()),
            error: failure.to_string(),
        }));
    }
}

impl Failed {
    /// An object that no rule can judge.
    fn whole(location: Location, error: impl Into<String>) -> Failed {
        Failed { location, column: None, rule: None, error: error.into() }
    }
}

impl Location {
    /// Where the objects of a cluster are.
    pub(crate) fn of_cluster() -> Location {
        Location { file: "cluster".to_owned(), ..Location::default() }
    }

    fn name_after(&mut self, event: &Event<'_>) {
        self.api_version = if event.kind.group.is_empty() {
            event.version.to_owned()
        } else {
            format!("{}/{}", event.kind.group, event.version)
        };
        self.kind = event.kind.kind.clone();
        self.namespace = event.namespace.filter(|_| event.kind.namespaced).map(str::to_owned);
        self.name = event.name.to_owned();
    }

    /// Of a kind that is not known, no more can be said than what its object says itself.
    fn name_after_manifest(&mut self, object: Node<'_>, api_version: &str, kind: &str) {
        let metadata = |name| object.get_str("metadata")?.get_str(name).and_then(Node::as_str).map(str::to_owned);
        (self.api_version, self.kind) = (api_version.to_owned(), kind.to_owned());
        self.namespace = metadata("namespace");
        self.name = metadata("name").or_else(|| metadata("generateName")).unwrap_or_default();
    }
}

impl Judgement {
    /// Nothing could be judged.
    pub(crate) fn failed(problem: Problem) -> Judgement {
        Judgement { failures: vec![unread(0, problem)], ..Judgement::default() }
    }

    /// How many violations rules of this action have.
    pub(crate) fn count(&self, action: EnforcementAction) -> usize {
        self.violations.iter().filter(|found| found.violation.enforcement == action).count()
    }

    pub(crate) fn exit_code(&self, warn_as_error: bool) -> ExitCode {
        let is_bad = |action: EnforcementAction| match action {
            EnforcementAction::Deny => true,
            EnforcementAction::Warn => warn_as_error,
            EnforcementAction::Dryrun => false,
        };
        if !self.failures.is_empty() {
            ExitCode::from(2)
        } else if self.violations.iter().any(|found| is_bad(found.violation.enforcement)) {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        }
    }
}
