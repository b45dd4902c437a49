//! The subcommands, in the order that `--help` and the reference page show them.

use clap::{Parser, Subcommand};

use crate::{check, completion, engine, eval, explain, generate, operator, test, version};

/// A Kubernetes policy engine: one-line rules decide what may enter the cluster, find what already violates, and act on it
#[derive(Debug, Parser)]
#[command(name = "portal", version = version::LINE, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::Arguments),
    Test(test::Arguments),
    Engine(Box<engine::Arguments>),
    Operator(operator::Arguments),
    Eval(eval::Arguments),
    Explain(explain::Arguments),
    Completion(completion::Arguments),
    Version(version::Arguments),
    Generate(generate::Arguments),
}
