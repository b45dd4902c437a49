//! Which files are below a folder.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files below a folder.
#[derive(Debug, Default)]
pub struct Found {
    /// Their paths, in order.
    pub files: Vec<PathBuf>,
    /// Folders that were read, in the order in which that was done.
    pub folders: Vec<PathBuf>,
    /// Folders that could not be read, or entries that may be folders, and why.
    pub unreadable: Vec<(PathBuf, std::io::Error)>,
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
                return Ok(None);
            }
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().map(Some)
        });
        let mut entries = match entries {
            Ok(Some(entries)) => entries,
            Ok(None) => return,
            Err(error) => return self.unreadable.push((folder.to_owned(), error)),
        };
        self.folders.push(folder.to_owned());
        // Of two links to one folder the same one is followed each time.
        entries.sort();
        for entry in entries {
            let is_hidden = entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let is_manifest = entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
            if is_hidden {
                continue;
            }
            match fs::metadata(&entry) {
                Ok(metadata) if metadata.is_dir() => self.add(&entry, seen),
                // If a file cannot be looked at, reading it will fail and say why.
                _ if is_manifest => self.files.push(entry),
                Ok(_) => {}
                // It may be a folder with rules, unless somebody removed it just now.
                Err(error) => {
                    if fs::symlink_metadata(&entry).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                        continue;
                    }
                    self.unreadable.push((entry, error));
                }
            }
        }
    }
}
