//! `portal version`: what this binary was built from.

use clap::{Args, ValueEnum};

use crate::output;

/// Print the version, the commit and the target that this binary was built from
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Output {
    /// One line for people
    #[default]
    Text,
    /// One JSON object for programs
    Json,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const COMMIT: &str = env!("PORTAL_COMMIT");
const TARGET: &str = env!("PORTAL_TARGET");

/// What `--version` prints behind the name.
pub(crate) const LINE: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("PORTAL_COMMIT"), ", target ", env!("PORTAL_TARGET"), ")");

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let line = match arguments.output {
        Output::Text => format!("portal {LINE}\n"),
        // No field can hold a character that JSON escapes: a version, a commit's hash, a target triple.
        Output::Json => format!("{{\"version\":\"{VERSION}\",\"commit\":\"{COMMIT}\",\"target\":\"{TARGET}\"}}\n"),
    };
    Ok(output::print(line)?)
}
