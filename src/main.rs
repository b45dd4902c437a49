//! The one binary. Each subcommand is a file: it parses flags, calls a crate and prints.

mod check;
mod command_line;
mod eval;
mod generate;
mod test;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use crate::command_line::{Command, CommandLine};

fn main() -> ExitCode {
    match run(&CommandLine::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(arguments) => return check::run(arguments),
        Command::Test(arguments) => return test::run(arguments),
        Command::Eval(arguments) => eval::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
