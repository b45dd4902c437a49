//! Standard output. What is printed goes through here, so that a full disk is an error, and no panic.

use std::fmt;
use std::io::{self, Write as _};

/// The output of a subcommand could not be written.
#[derive(Debug)]
pub(crate) struct Unwritten(io::Error);

/// Prints a text.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    Ok(out.flush()?)
}

impl Unwritten {
    /// Whether the reader closed the pipe, as `head` does when it has seen enough.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Unwritten {
        Unwritten(error)
    }
}

impl From<serde_json::Error> for Unwritten {
    fn from(error: serde_json::Error) -> Unwritten {
        Unwritten(error.into())
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the output could not be written")
    }
}

impl std::error::Error for Unwritten {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
