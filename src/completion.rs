//! `portal completion`: what a shell needs to complete commands and flags.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::command_line::CommandLine;
use crate::output;

/// Print a script that completes commands and flags in a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  source <(portal completion bash)\n  portal completion fish > ~/.config/fish/completions/portal.fish"
)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Into memory first: the library panics when standard output is closed while it writes.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::command(), "portal", &mut script);
    Ok(output::print(&script)?)
}
