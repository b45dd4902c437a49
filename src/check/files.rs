//! Files, folders and standard input as manifests.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use portal_cluster::rules::folder::search;
use portal_core::manifest::{Manifest, Problem};

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 30;

/// The namespace of objects that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// The files below paths, in order. Folders are searched for YAML and JSON; a file that is named is taken whatever it is
/// called.
pub(crate) fn expand(paths: &[PathBuf], problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = search(path);
            if found.files.is_empty() && found.unreadable.is_empty() {
                let message = "there is nothing in this folder: files to read end in .yaml, .yml or .json";
                problems.push(problem(path, message));
            }
            // Opening a pipe that nobody writes to would wait for ever. A pipe that the user names is read all the same.
            let is_other = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
            let (others, regular): (Vec<_>, Vec<_>) = found.files.into_iter().partition(is_other);
            problems.extend(others.iter().map(|path| problem(path, "this is no regular file")));
            files.extend(regular);
            for (folder, error) in found.unreadable {
                problems.push(problem(&folder, format!("this folder cannot be read: {error}")));
            }
        } else {
            files.push(path.clone());
        }
    }
    files
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Manifest, Problem> {
    // Standard input can be read once only, and lookups read what is judged too.
    static STANDARD_INPUT: OnceLock<Result<Arc<[u8]>, String>> = OnceLock::new();
    let (name, text) = if path == Path::new("-") {
        (Path::new("(standard input)"), STANDARD_INPUT.get_or_init(|| read_all(std::io::stdin())).clone())
    } else {
        (path, fs::File::open(path).map_err(|error| error.to_string()).and_then(read_all))
    };
    match text {
        Ok(text) => Ok(Manifest::new(name.display().to_string(), text)),
        Err(error) => Err(problem(name, format!("this file cannot be read: {error}"))),
    }
}

/// What is wrong with a file that has nothing in it.
pub(crate) fn empty(manifest: &Manifest, what: &str) -> Problem {
    manifest.problem(Some(1), Some(1), format!("there is no {what} in this file: it is empty"))
}

fn problem(path: &Path, message: impl Into<String>) -> Problem {
    Problem::of_file(path.display().to_string(), message)
}

fn read_all(file: impl std::io::Read) -> Result<Arc<[u8]>, String> {
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE { Err(format!("it is larger than {MAX_FILE} bytes")) } else { Ok(text.into()) }
}
