//! Rules from a folder, read again whenever it changes.
//!
//! A file is taken as a whole. What cannot be read keeps what it said before, and so does a folder that vanishes: rules are
//! removed by removing a file from a folder that can be read.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io::ErrorKind;
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

/// The files below a folder.
#[derive(Debug, Default)]
pub struct Found {
    /// Their paths, in order.
    pub files: Vec<PathBuf>,
    /// Folders that could not be read, and why.
    pub unreadable: Vec<(PathBuf, std::io::Error)>,
}

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
                health.recovered(Part::Folder);
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
        let Found { files, unreadable } = search(&self.path);
        if let Some((folder, error)) = unreadable.first() {
            scan.problem = Some(format!("{} cannot be read: {error}; its rules stay as they were", folder.display()));
        }
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| files.binary_search(path).is_err())
            .filter(|path| !unreadable.iter().any(|(folder, _)| path.starts_with(folder)))
            .cloned()
            .collect();
        for path in gone {
            self.files.remove(&path);
            scan.updates.push(Update::File(path, None));
        }
        for path in files {
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

/// The YAML and JSON files below a folder, in order. Follows links, each folder once: they may lead around in a circle. Names that
/// begin with a dot are left out: that is where Kubernetes keeps the versions of a ConfigMap.
pub fn search(folder: &Path) -> Found {
    let mut found = Found::default();
    found.add(folder, &mut HashSet::new());
    found.files.sort();
    found
}

impl Found {
    fn add(&mut self, folder: &Path, seen: &mut HashSet<PathBuf>) {
        let entries = folder.canonicalize().and_then(|real| {
            if !seen.insert(real) {
                return Ok(Vec::new());
            }
            fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()
        });
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.unreadable.push((folder.to_owned(), error)),
        };
        for entry in entries {
            let path = entry.path();
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_manifest = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
            let is_plain = || entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_hidden {
                continue;
            }
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.add(&path, seen),
                _ if is_manifest => self.files.push(path),
                // It may be a folder, and what is below it is not gone because we may not look.
                Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_plain() => {
                    self.unreadable.push((path, error));
                }
                _ => {}
            }
        }
    }
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
    let at = portal_document::locate(text, document, &diagnostic.document_steps());
    let (line, column) = at.map_or((line, None), |at| (at.line, Some(at.column)));
    Problem { line: Some(line), column, message: diagnostic.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, Folder) {
        // In memory where that can be had: a disk takes long for ten thousand files.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let folder = Folder { path: root.path().join("rules"), ..Folder::default() };
        fs::create_dir(&folder.path).unwrap();
        (root, folder)
    }

    fn text(name: &str) -> String {
        format!("name: {name}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostNetwork == true\n")
    }

    /// What a scan tells: files with the names of their rules, with what is wrong, or gone.
    fn tell(folder: &mut Folder) -> Vec<String> {
        let scan = folder.scan();
        let mut lines: Vec<String> = scan.updates.iter().map(|update| line(&folder.path, update)).collect();
        lines.extend(scan.problem.map(|problem| problem.replace(folder.path.to_str().unwrap(), "FOLDER")));
        lines
    }

    fn line(folder: &Path, update: &Update) -> String {
        let Update::File(path, content) = update else { panic!("a folder tells of files") };
        let path = path.strip_prefix(folder).unwrap().display();
        match content {
            None => format!("{path} gone"),
            Some(Ok(rules)) => {
                let names: Vec<_> = rules.iter().map(|rule| rule.id.to_string()).collect();
                format!("{path} {}", names.join(" "))
            }
            Some(Err(problems)) => {
                let Problem { line, column, message } = &problems[0];
                let place: Vec<_> = [line, column].into_iter().flatten().map(ToString::to_string).collect();
                format!("{path}:{} {message}", place.join(":"))
            }
        }
    }

    #[test]
    fn files_are_told_once_until_they_change() {
        let (_root, mut folder) = folder();
        fs::create_dir(folder.path.join("deep")).unwrap();
        fs::write(folder.path.join("b.yaml"), text("b")).unwrap();
        fs::write(folder.path.join("deep/a.yml"), text("a")).unwrap();
        fs::write(folder.path.join("notes.txt"), "nothing").unwrap();
        assert_eq!(tell(&mut folder), ["b.yaml b", "deep/a.yml a"]);
        assert_eq!(tell(&mut folder), [""; 0]);
        fs::write(folder.path.join("b.yaml"), format!("{}---\n{}", text("b"), text("c"))).unwrap();
        assert_eq!(tell(&mut folder), ["b.yaml b c"]);
        fs::remove_file(folder.path.join("deep/a.yml")).unwrap();
        assert_eq!(tell(&mut folder), ["deep/a.yml gone"]);
    }

    #[test]
    fn a_file_that_is_written_again_as_it_was_is_no_news() {
        let (_root, mut folder) = folder();
        let path = folder.path.join("a.yaml");
        fs::write(&path, text("a")).unwrap();
        tell(&mut folder);
        fs::write(&path, text("a")).unwrap();
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn an_editor_that_renames_over_is_seen() {
        let (root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        tell(&mut folder);
        // Of the same length and in the same second.
        fs::write(root.path().join("new"), text("b")).unwrap();
        fs::rename(root.path().join("new"), folder.path.join("a.yaml")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml b"]);
    }

    /// As the kubelet does: files are links into `..data`, which is a link to a folder of the version.
    #[test]
    fn a_config_map_that_is_swapped_is_seen_as_one_change_of_each_file() {
        let (_root, mut folder) = folder();
        let version = |number: u32, rules: &[(&str, &str)]| {
            let version = folder.path.join(format!("..version-{number}"));
            fs::create_dir(&version).unwrap();
            for (file, name) in rules {
                fs::write(version.join(file), text(name)).unwrap();
                let _ = symlink(format!("..data/{file}"), folder.path.join(file));
            }
            symlink(&version, folder.path.join("..data_tmp")).unwrap();
            fs::rename(folder.path.join("..data_tmp"), folder.path.join("..data")).unwrap();
        };
        version(1, &[("a.yaml", "a"), ("b.yaml", "b")]);
        let mut looked = Folder { path: folder.path.clone(), ..Folder::default() };
        assert_eq!(tell(&mut looked), ["a.yaml a", "b.yaml b"]);
        version(2, &[("a.yaml", "a"), ("b.yaml", "c")]);
        fs::remove_dir_all(folder.path.join("..version-1")).unwrap();
        assert_eq!(tell(&mut looked), ["b.yaml c"]);
        folder = looked;
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn a_partial_write_is_a_problem_with_its_place() {
        let (_root, mut folder) = folder();
        let path = folder.path.join("a.yaml");
        fs::write(&path, text("a")).unwrap();
        tell(&mut folder);
        fs::write(&path, "name: a\nmatch: {gvk: [{ki").unwrap();
        let told = tell(&mut folder);
        assert!(told.len() == 1 && told[0].starts_with("a.yaml:2:"), "{told:?}");
        fs::write(&path, "").unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml: there is no rule in this file: remove the file to remove its rules"]);
        fs::write(&path, "name: a\nmatch: {gvk: [{kind: Pod}]}\nrul: x\n").unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml:3:1 rule a: rul: unknown field `rul`, did you mean `rule`?"]);
    }

    #[test]
    fn a_folder_that_vanishes_keeps_its_rules() {
        let (root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        tell(&mut folder);
        let away = root.path().join("away");
        fs::rename(&folder.path, &away).unwrap();
        let gone = "FOLDER cannot be read: No such file or directory (os error 2); its rules stay as they were";
        assert_eq!(tell(&mut folder), [gone]);
        fs::rename(&away, &folder.path).unwrap();
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_and_read_when_it_can() {
        let (_root, mut folder) = folder();
        // Whoever may read everything is stopped by a link that leads nowhere.
        symlink("nowhere", folder.path.join("a.yaml")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml: this file cannot be read: No such file or directory (os error 2)"]);
        fs::write(folder.path.join("nowhere"), text("a")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml a"]);
        fs::set_permissions(folder.path.join("nowhere"), fs::Permissions::from_mode(0o000)).unwrap();
        let is_root = fs::read(folder.path.join("nowhere")).is_ok();
        let told = tell(&mut folder);
        assert!(if is_root { told.is_empty() } else { told[0].contains("Permission denied") }, "{told:?}");
        fs::set_permissions(folder.path.join("nowhere"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(tell(&mut folder).len() <= 1);
    }

    #[test]
    fn links_that_lead_around_end() {
        let (_root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        symlink(&folder.path, folder.path.join("again")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml a"]);
    }

    #[test]
    fn ten_thousand_files_are_read_once() {
        let (_root, mut folder) = folder();
        for number in 0..10_000 {
            fs::write(folder.path.join(format!("{number}.yaml")), text(&format!("rule-{number}"))).unwrap();
        }
        assert_eq!(tell(&mut folder).len(), 10_000);
        assert_eq!(tell(&mut folder), [""; 0]);
        fs::write(folder.path.join("77.yaml"), text("other")).unwrap();
        assert_eq!(tell(&mut folder), ["77.yaml other"]);
    }
}
