//! `portal explain`: what follows from rules, before anybody installs them.

mod live;
mod permissions;

use clap::{Args, Subcommand};

/// Say what follows from rules
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Permissions(permissions::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::Permissions(arguments) => permissions::run(arguments),
    }
}
