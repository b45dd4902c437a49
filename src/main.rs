//! The one binary. Each subcommand is a file: it parses flags, calls a crate and prints.

mod check;
mod clock;
mod command_line;
mod completion;
mod engine;
mod eval;
mod explain;
mod generate;
mod logs;
mod operator;
mod output;
mod process;
mod test;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::command_line::{Command, CommandLine};
use crate::output::Unwritten;

// The static program that users get copies and compares bytes faster than musl: see `docs/adr/0022-memcpy-of-our-own.md`.
#[cfg(target_env = "musl")]
use portal_memory as _;

/// The static program that users get has jemalloc: see `docs/adr/0011-allocator.md`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match parse().and_then(|line| run(&line.command)) {
        Ok(code) => code,
        Err(error) => {
            let unwritten = error.downcast_ref::<Unwritten>();
            if unwritten.is_some_and(Unwritten::is_closed) {
                return ExitCode::SUCCESS;
            }
            eprintln!("error: {error:#}");
            // `check` and `test` end with 1 for what they found, which must not be claimed for output that was not written.
            if unwritten.is_some() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// The command line, with what the engine's file of settings adds to it.
fn parse() -> anyhow::Result<CommandLine> {
    let command = CommandLine::command();
    let line: Vec<_> = std::env::args_os().collect();
    let matches = command.clone().get_matches_from(&line);
    let line = engine::with_file(&command, &matches, line)?;
    Ok(CommandLine::from_arg_matches(&command.get_matches_from(line))?)
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(arguments) => return check::run(arguments),
        Command::Test(arguments) => return test::run(arguments),
        Command::Engine(arguments) => return engine::run(arguments),
        Command::Operator(arguments) => return operator::run(arguments),
        Command::Eval(arguments) => eval::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Completion(arguments) => completion::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
