//! What a file says.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use portal_core::{
    manifest::{Manifest, Problem},
    rule::file::{self, RuleFile},
};

use crate::rules::FileContent;

/// A larger file is no file of rules.
const MAX_BYTES: u64 = 16 << 20;

/// The bytes of a file that has this metadata.
pub(super) fn read(path: &Path, metadata: &Metadata) -> Result<Vec<u8>, String> {
    // A pipe keeps whoever opens it waiting, and a device may have no end.
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES { Err(format!("it is larger than {} MB", MAX_BYTES >> 20)) } else { Ok(bytes) }
}

/// The rules of a file, or everything that is wrong with it.
pub(super) fn rules(path: &Path, text: Vec<u8>) -> FileContent {
    let name = path.display().to_string();
    let RuleFile { sources, mut problems, .. } = file::read(&Manifest::new(&*name, text));
    if sources.is_empty() && problems.is_empty() {
        problems.push(Problem::of_file(name, "there is no rule in this file: remove the file to remove its rules"));
    }
    if problems.is_empty() { Ok(sources) } else { Err(problems) }
}
