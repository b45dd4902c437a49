//! The one binary. Each subcommand is a file: it parses flags, calls a crate and prints.

mod command_line;
mod eval;
mod generate;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use crate::command_line::{Command, CommandLine};

fn main() -> ExitCode {
    match run(&CommandLine::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Eval(arguments) => eval::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
    }
}
