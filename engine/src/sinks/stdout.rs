//! Decisions as lines of JSON on standard output. Logs go to standard error.

use std::io::{self, Write as _};

use super::{OutputSink, Record};
use crate::metrics::SinkName;

/// Prints decisions.
#[derive(Debug)]
pub struct Stdout {
    /// Whether all are printed, and not only those in which a rule had something to say or was passed by.
    pub all: bool,
}

impl OutputSink for Stdout {
    fn name(&self) -> SinkName {
        SinkName("stdout")
    }

    fn wants(&self, decision: &str, has_rules: bool) -> bool {
        self.all || has_rules || decision == "bypassed"
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        io::stdout().lock().write_all(&line)
    }
}
