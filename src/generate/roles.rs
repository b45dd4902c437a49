//! `portal generate roles`: what an engine must be allowed to do, for those who run one without the operator.

use anyhow::bail;
use clap::Args;
use portal_cluster::names::is_name;
use portal_core::{
    permissions::{Roles, roles},
    webhook::configuration_name,
};
use serde::Serialize;

/// Print the roles that an engine needs whatever its rules say, as YAML for `kubectl apply -f -`
///
/// Rules that look other objects up need to read those too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  portal generate roles --account portal-engine | kubectl apply -f -")]
pub(crate) struct Arguments {
    /// The name of the instance
    #[arg(long, value_name = "NAME", default_value = "default")]
    instance: String,
    /// The namespace of the engine and of its account
    #[arg(long, value_name = "NAMESPACE", default_value = "portal-system")]
    namespace: String,
    /// The name of the ServiceAccount that the engine runs as
    #[arg(long, value_name = "NAME", default_value = "portal-engine")]
    account: String,
    /// The API group of the reports that an engine with audit writes, such as `wgpolicyk8s.io`. Unset: it writes none
    #[arg(long, value_name = "GROUP", value_parser = ["wgpolicyk8s.io", "openreports.io"])]
    reports: Option<String>,
}

/// The roles, as YAML.
pub(crate) fn yaml(arguments: &Arguments) -> anyhow::Result<String> {
    let Arguments { instance, namespace, account, reports } = arguments;
    for (flag, name) in [("instance", instance), ("namespace", namespace), ("account", account)] {
        if !is_name(name) {
            bail!("--{flag} `{name}` is no name of an object: up to 63 of a-z, 0-9 and -, not at an end");
        }
    }
    let Roles { cluster_role, cluster_binding, role, binding } =
        roles(instance, &configuration_name(instance), namespace, account, reports.as_deref());
    let documents = [document(&cluster_role)?, document(&cluster_binding)?, document(&role)?, document(&binding)?];
    Ok(documents.join("---\n"))
}

fn document(object: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_saphyr::to_string(object)?)
}
