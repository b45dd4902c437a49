//! The one binary. Each subcommand is a file: it parses flags, calls a crate and prints.

mod check;
mod clock;
mod command_line;
mod completion;
mod eval;
mod generate;
mod test;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use crate::command_line::{Command, CommandLine};

/// The static program that users get has jemalloc: see `docs/adr/0011-allocator.md`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match run(&CommandLine::parse().command) {
        Ok(code) => code,
        // Whoever reads has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
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
        Command::Completion(arguments) => completion::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
