//! The test kit's own program: builds what clusters are made of, starts and stops them, and runs every test.

mod bench;
mod demo;
mod fuzz;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use portal_test_kit::cache::Cache;
use portal_test_kit::keeper::{self, Request};
use portal_test_kit::suites::{self, Extent};
use portal_test_kit::{Size, detached, held, prepare};

/// Real Kubernetes for tests, the demo and a developer's own hands
#[derive(Parser)]
#[command(name = "portal-test-kit")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build what is missing: Kubernetes, test programs and, for full, images
    Prepare {
        /// The size of the cluster that it is for
        #[arg(value_parser = Size::parse, default_value = "full")]
        size: Size,
    },
    /// Build the container image that users get
    Image,
    /// Start a cluster that stays, and print how to reach it
    Up {
        /// core, control or full
        #[arg(value_parser = Size::parse)]
        size: Size,
        /// The API server's port on loopback; any that is free if left out
        #[arg(long)]
        port: Option<u16>,
    },
    /// Stop every cluster that stays
    Down,
    /// Run every test and sum up
    Test {
        /// Only the suites whose names contain this
        suite: Option<String>,
    },
    /// Run the long tests as a whole: histories, storms and soaks of which every run tries a share
    TestFaults {
        /// Only the suites whose names contain this
        suite: Option<String>,
    },
    /// Show Portal at work
    Demo,
    /// Measure, and print one table
    Bench {
        /// Only the part of this name
        part: Option<String>,
    },
    /// Look for inputs that break what must hold for every input
    Fuzz {
        /// Add what is found to the committed corpora
        #[arg(long)]
        keep: bool,
    },
    /// Own a cluster until standard input closes
    #[command(hide = true)]
    Keep {
        #[arg(value_parser = Size::parse)]
        size: Size,
        #[arg(long)]
        port: Option<u16>,
        #[arg(long)]
        detached: bool,
    },
    /// Run the components of a full cluster, from inside its namespaces
    #[command(hide = true)]
    Inside { id: String, state: PathBuf, programs: PathBuf },
    /// Run a command until standard input closes
    #[command(hide = true)]
    Hold {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn main() {
    // One thread: the kernel ends a component with the thread that started it, so that thread must be the last to go.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let status = match runtime.block_on(run(CommandLine::parse().command)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {error:#}");
            1
        }
    };
    // A thread may still wait for standard input, which would keep the runtime from ending.
    std::process::exit(status);
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Prepare { size } => prepare::prepare(&Cache::open()?, size),
        Command::Image => prepare::image(&Cache::open()?),
        Command::Up { size, port } => detached::up(&Cache::open()?, size, port),
        Command::Down => detached::down(&Cache::open()?),
        Command::Test { suite } => suites::run(&Cache::open()?, Extent::Share, suite.as_deref()),
        Command::TestFaults { suite } => suites::run(&Cache::open()?, Extent::Whole, suite.as_deref()),
        Command::Demo => demo::run(&Cache::open()?),
        Command::Bench { part } => bench::run(&Cache::open()?, part.as_deref()),
        Command::Fuzz { keep } => fuzz::run(&Cache::open()?, keep),
        Command::Keep { size, port, detached } => keeper::keep(Request { size, port, detached }).await,
        Command::Inside { id, state, programs } => keeper::inside(&id, &state, &programs).await,
        Command::Hold { command } => held::hold(&command),
    }
}
