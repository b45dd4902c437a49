//! `portal operator`: flags and environment, then the operator.

use std::process::ExitCode;

use clap::Args;
use portal_operator::{
    instance::OperatorSettings,
    run::{self, Settings},
};

use crate::logs::Logs;
use crate::process::{self, ProcessArguments, name};

/// Run the operator: turn each PortalInstance and the rules into engines, certificates, a webhook configuration and roles
///
/// `portal generate install` prints the manifest that runs it in a cluster. Every setting is a flag and an environment variable; a flag
/// wins.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  portal operator --image registry.example/portal:v1")]
pub(crate) struct Arguments {
    /// The namespace of the operator, where its Lease and the authorities of certificates are
    #[arg(long, value_name = "NAMESPACE", env = "PORTAL_NAMESPACE", default_value = "portal-operator")]
    namespace: String,

    /// The name of the ServiceAccount that the operator runs as, which rules never judge
    #[arg(long, value_name = "NAME", env = "PORTAL_ACCOUNT", default_value = "portal-operator")]
    account: String,

    /// The image of engines whose instance names none: that of the operator itself
    #[arg(long, value_name = "IMAGE", env = "PORTAL_IMAGE")]
    image: String,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let process = &arguments.process;
    let settings = Settings {
        operator: OperatorSettings {
            namespace: name("namespace", &arguments.namespace)?,
            account: name("account", &arguments.account)?,
            image: arguments.image.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        identity: process.identity(),
        listen: process.listen,
        address: process.address()?,
        timing: process.timing()?,
    };
    let _logs = Logs::start(process.log.as_deref())?;
    process::run(|shutdown| async move { Ok(run::run(|| process.connect(), settings, shutdown).await?) })
}
