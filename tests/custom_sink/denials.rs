//! What was refused, as lines of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use portal_engine::metrics::SinkName;
use portal_engine::sinks::{OutputSink, Record};

/// Appends what was refused to a file.
pub struct DenialFile {
    file: Mutex<File>,
}

impl DenialFile {
    /// Opens the file when the engine starts: one that cannot be opened ends the start, and not the first request.
    pub fn open(path: &Path) -> io::Result<DenialFile> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(DenialFile { file: Mutex::new(file) })
    }
}

impl OutputSink for DenialFile {
    fn name(&self) -> SinkName {
        SinkName("denial-file")
    }

    fn wants(&self, decision: &str, _has_rules: bool) -> bool {
        decision == "denied"
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let about = &record.about;
        let rules = record.rules.get("denied-by").map_or("", String::as_str);
        let line = format!("{} {} {}/{} {rules}\n", about.operation, about.resource, about.namespace, about.name);
        // One call for the whole line, so that a line is never cut by another one.
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}
