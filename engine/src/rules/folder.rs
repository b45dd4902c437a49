//! Rules from a folder, read again whenever it changes.
//!
//! A file is taken as a whole. What cannot be read keeps what it said before, and so does a folder that vanishes: rules are
//! removed by removing a file from a folder that can be read.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};
use portal_core::rule::{
    diagnostic::{Diagnostic, Step},
    load,
    source::Origin,
};
use portal_document::{Document, Node, Options, from_yaml};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    health::{Health, Part},
    rules::{FileContent, Loader, Problem, Update},
    run::Shutdown,
};

/// A larger file is no file of rules.
const MAX_BYTES: u64 = 16 << 20;

/// A change is read when the folder was quiet for so long: editors and copies write in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// But no later than this.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// How often the folder is looked through although nothing was told: some file systems tell nothing.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// What is known of a folder.
#[derive(Debug, Default)]
struct Folder {
    path: PathBuf,
    files: BTreeMap<PathBuf, Known>,
    hasher: RandomState,
}

/// What is known of a file.
#[derive(Debug)]
struct Known {
    /// Tells a file from the one that was there before, without reading it. Nothing if it could not be looked at.
    print: Option<Print>,
    /// A hash of its text. Nothing if it could not be read.
    text: Option<u64>,
}

/// Device, inode, size, and the two times of change.
type Print = (u64, u64, u64, (i64, i64), (i64, i64));

/// What looking through a folder has found.
#[derive(Debug, Default)]
struct Scan {
    updates: Vec<Update>,
    /// What is wrong with folders.
    problem: Option<String>,
}

/// Tells of the rules of a folder and of their changes, until the end.
pub(crate) async fn follow(path: PathBuf, updates: mpsc::Sender<Update>, health: Health, mut shutdown: Shutdown) {
    let mut folder = Folder { path, ..Folder::default() };
    let changed = Arc::new(Notify::new());
    let mut watching = None;
    let mut is_loaded = false;
    loop {
        if watching.is_none() {
            watching = watch(&folder.path, Arc::clone(&changed));
        }
        let looked = tokio::task::spawn_blocking(move || {
            let scan = folder.scan();
            (folder, scan)
        });
        let Ok((same, scan)) = looked.await else { return };
        folder = same;
        for update in scan.updates {
            if updates.send(update).await.is_err() {
                return;
            }
        }
        match scan.problem {
            Some(problem) => {
                // A watch of a folder that was replaced sees nothing any more.
                watching = None;
                health.unwell(Part::Folder, &problem);
            }
            None => {
                health.well(Part::Folder);
                if !std::mem::replace(&mut is_loaded, true)
                    && updates.send(Update::Loaded(Loader::Folder)).await.is_err()
                {
                    return;
                }
            }
        }
        let pause = if watching.is_some() { NOW_AND_THEN } else { MAX_DELAY };
        tokio::select! {
            () = changed.notified() => quiet(&changed).await,
            () = sleep(pause) => {}
            () = shutdown.wait() => return,
        }
    }
}

/// Waits until nothing changes any more, for a while.
async fn quiet(changed: &Notify) {
    let end = Instant::now() + MAX_DELAY;
    loop {
        tokio::select! {
            () = changed.notified() => {}
            () = sleep(QUIET) => return,
            () = sleep_until(end) => return,
        }
    }
}

/// Listens to changes below a folder. Nothing if that cannot be had: the folder is looked through more often then.
fn watch(path: &Path, changed: Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        // Reading is no change, and looking through the folder reads.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            changed.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(tell).ok()?;
    watcher.watch(path, RecursiveMode::Recursive).ok()?;
    Some(watcher)
}

impl Folder {
    /// Looks through the folder and tells what changed since the last time.
    fn scan(&mut self) -> Scan {
        let mut scan = Scan::default();
        if self.path.is_file() {
            scan.problem = Some(format!("{} is a file: give the folder that it is in", self.path.display()));
            return scan;
        }
        let mut found = Vec::new();
        let mut unreadable = Vec::new();
        walk(&self.path, &mut HashSet::new(), &mut found, &mut unreadable);
        if let Some((folder, error)) = unreadable.first() {
            scan.problem = Some(format!("{} cannot be read: {error}; its rules stay as they were", folder.display()));
        }
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| found.binary_search(path).is_err())
            .filter(|path| !unreadable.iter().any(|(folder, _)| path.starts_with(folder)))
            .cloned()
            .collect();
        for path in gone {
            self.files.remove(&path);
            scan.updates.push(Update::File(path, None));
        }
        for path in found {
            if let Some(content) = self.look(&path) {
                scan.updates.push(Update::File(path, Some(content)));
            }
        }
        scan
    }

    /// What a file says, unless that was told already.
    fn look(&mut self, path: &Path) -> Option<FileContent> {
        let print = fs::metadata(path).map(|metadata| print(&metadata));
        let known = self.files.get(path);
        if let (Ok(print), Some(known)) = (&print, known)
            && known.print.as_ref() == Some(print)
        {
            return None;
        }
        let read = print.as_ref().map_err(ToString::to_string).and_then(|print| read(path, print.2));
        let text = read.as_ref().ok().map(|text| self.hasher.hash_one(text));
        let is_known = known.is_some_and(|known| known.text == text && text.is_some());
        self.files.insert(path.to_owned(), Known { print: print.ok().filter(|_| text.is_some()), text });
        if is_known {
            return None;
        }
        Some(match read {
            Ok(text) => rules(path, &text),
            Err(error) => Err(vec![Problem::of_file(format!("this file cannot be read: {error}"))]),
        })
    }
}

/// The files with rules below a folder, in order. Follows links, each folder once. Names that begin with a dot are left out:
/// that is where Kubernetes keeps the versions of a ConfigMap.
fn walk(
    folder: &Path,
    seen: &mut HashSet<PathBuf>,
    found: &mut Vec<PathBuf>,
    unreadable: &mut Vec<(PathBuf, std::io::Error)>,
) {
    let entries = folder.canonicalize().and_then(|real| {
        if !seen.insert(real) {
            return Ok(Vec::new());
        }
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()
    });
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return unreadable.push((folder.to_owned(), error)),
    };
    entries.sort();
    for entry in entries {
        let is_hidden = entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_manifest = entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if is_hidden {
            continue;
        }
        if entry.is_dir() {
            walk(&entry, seen, found, unreadable);
        } else if is_manifest {
            found.push(entry);
        }
    }
    found.sort();
}

fn print(metadata: &Metadata) -> Print {
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), metadata.size(), modified, (metadata.ctime(), metadata.ctime_nsec()))
}

fn read(path: &Path, size: u64) -> Result<String, String> {
    if size > MAX_BYTES {
        return Err(format!("it is larger than {} MB", MAX_BYTES >> 20));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The rules of a file, or everything that is wrong with it.
fn rules(path: &Path, text: &str) -> FileContent {
    let documents = from_yaml(text, &Options::default()).map_err(|error| {
        let place = error.position();
        let (line, column) = (place.map(|place| place.line), place.map(|place| place.column));
        vec![Problem { line, column, message: error.reason() }]
    })?;
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for (number, found) in documents.iter().enumerate().filter(|(_, found)| !found.document.root().is_null()) {
        for (object, base) in objects(&found.document) {
            // What else is in the folder, such as a definition beside the rules that name it.
            if !load::is_rule(object) && object.get_str("kind").is_some() {
                continue;
            }
            let origin = Origin::File { path: path.display().to_string(), line: found.line };
            match load::load(object, origin, base) {
                Ok(source) => sources.push(source),
                Err(diagnostics) => {
                    problems.extend(diagnostics.iter().map(|diagnostic| place(text, number, found.line, diagnostic)));
                }
            }
        }
    }
    if sources.is_empty() && problems.is_empty() {
        let message = "there is no rule in this file: remove the file to remove its rules";
        problems.push(Problem::of_file(message.to_owned()));
    }
    if problems.is_empty() { Ok(sources) } else { Err(problems) }
}

/// The objects of a document, each with the way to it: itself, or the items of a list.
fn objects(document: &Document) -> Vec<(Node<'_>, Vec<Step>)> {
    let root = document.root();
    let is_list = root.get_str("kind").and_then(Node::as_str).is_some_and(|kind| kind.ends_with("List"));
    match root.get_str("items").and_then(Node::as_array) {
        Some(items) if is_list => items
            .iter()
            .enumerate()
            .map(|(index, item)| (item, vec![Step::Field("items".to_owned()), Step::Index(index)]))
            .collect(),
        _ => vec![(root, Vec::new())],
    }
}

/// A diagnostic with its place in the text.
fn place(text: &str, document: usize, line: usize, diagnostic: &Diagnostic) -> Problem {
    let field: Vec<portal_document::Step<'_>> = diagnostic
        .field
        .iter()
        .map(|step| match step {
            Step::Field(name) => portal_document::Step::Field(name),
            Step::Index(index) => portal_document::Step::Index(*index),
        })
        .collect();
    let at = portal_document::locate(text, document, &field);
    let (line, column) = at.map_or((line, None), |at| (at.line, Some(at.column)));
    Problem { line: Some(line), column, message: diagnostic.to_string() }
}
