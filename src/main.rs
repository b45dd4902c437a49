//! The one binary. Each subcommand is a file: it parses flags, calls a crate and prints.

mod command_line;
mod generate;
mod version;

use clap::Parser as _;

use crate::command_line::{Command, CommandLine};

fn main() -> anyhow::Result<()> {
    match CommandLine::parse().command {
        Command::Version(arguments) => version::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
    }
}
