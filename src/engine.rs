//! `portal engine`: flags, environment and a file of settings, then the engine.

mod audit;
mod config;
#[cfg(test)]
mod flags;
mod peers;
pub(crate) mod webhook;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;
use portal_cluster::rules::{quota::RULES_PER_NAMESPACE, selector};
use portal_core::layers::Layers;
use portal_engine::run::{self, EngineSettings};

use crate::logs::Logs;
use crate::process::{self, ProcessArguments, name};

pub(crate) use self::config::with_file;

/// Run the engine: load rules, judge by them what enters the cluster and what is in it, and say what has become of each rule
///
/// Without `--admission` and `--audit` nothing is judged: the status of each rule says whether it could be used.
///
/// Every setting is a flag, an environment variable and a key of the file of `--config`, which is the flag in camel case
/// (`rulesFolder`). A flag wins over the environment, and the environment over the file.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  portal engine --rules-from-cluster\n  portal engine --rules-folder /etc/portal/rules --listen 127.0.0.1:8080\n  PORTAL_RULES_FROM_CLUSTER=true portal engine --config /etc/portal/engine.yaml"
)]
pub(crate) struct Arguments {
    /// A YAML file with settings. Its `log` is followed while the engine runs, unless a flag or the environment gives one
    #[arg(long, value_name = "FILE", env = "PORTAL_CONFIG")]
    config: Option<PathBuf>,

    /// Load the cluster's PortalClusterRule and PortalRule objects, and write their status
    #[arg(long, env = "PORTAL_RULES_FROM_CLUSTER")]
    rules_from_cluster: bool,

    /// Load only the rules of the cluster whose labels fit this selector, such as `team=payments`
    #[arg(long, value_name = "SELECTOR", env = "PORTAL_RULE_SELECTOR", default_value = "")]
    rule_selector: String,

    /// How many PortalRules a namespace may have. If there are more, the oldest ones are in force
    #[arg(long, value_name = "NUMBER", env = "PORTAL_RULES_PER_NAMESPACE", default_value_t = RULES_PER_NAMESPACE)]
    rules_per_namespace: usize,

    /// Load the rules of the YAML and JSON files below a folder, and follow their changes
    #[arg(long, value_name = "DIR", env = "PORTAL_RULES_FOLDER")]
    rules_folder: Option<PathBuf>,

    /// Kinds that are watched even while no rule looks them up, so that such a rule is in force at once: plurals such as
    /// `pods,deployments.apps`, or kinds such as `Pod,Deployment.apps`. For `--admission` and
    /// `--audit`, without which nothing is watched for rules
    #[arg(long, value_name = "KINDS", env = "PORTAL_WATCHED_KINDS", value_delimiter = ',')]
    watched_kinds: Vec<String>,

    /// The name of the PortalInstance that this engine belongs to
    #[arg(long, value_name = "NAME", env = "PORTAL_INSTANCE", default_value = "default")]
    instance: String,

    /// The UID of the PortalInstance. The Lease of the engine goes with it
    #[arg(long, value_name = "UID", env = "PORTAL_INSTANCE_UID")]
    instance_uid: Option<String>,

    /// The namespace of the engine, where its Lease is
    #[arg(long, value_name = "NAMESPACE", env = "PORTAL_NAMESPACE", default_value = "portal-system")]
    namespace: String,

    #[command(flatten)]
    process: ProcessArguments,

    /// Judge what enters the cluster: answer the API server's questions by HTTPS. Needs `--tls-cert` and `--tls-key`
    #[arg(long, env = "PORTAL_ADMISSION")]
    admission: bool,

    #[command(flatten)]
    webhook: webhook::WebhookArguments,

    #[command(flatten)]
    peers: peers::PeerArguments,

    #[command(flatten)]
    auditing: audit::AuditArguments,

    /// Judge what NetworkPolicies allow (not there yet)
    #[arg(long, env = "PORTAL_NETWORK")]
    network: bool,

    /// Act on violations (not there yet)
    #[arg(long, env = "PORTAL_ACTIONS")]
    actions: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments)?;
    let process = &arguments.process;
    let file = arguments.config.as_deref().filter(|_| process.log.is_none());
    let from_file = file.map(config::levels).transpose()?.flatten();
    let logs = Logs::start(process.log.as_deref().or(from_file.as_deref()))?;
    process::run(|shutdown| async move {
        if let Some(path) = file {
            tokio::spawn(config::follow_log(path.to_owned(), from_file, logs));
        }
        Ok(run::run(|| process.connect(), settings, shutdown).await?)
    })
}

fn settings(arguments: &Arguments) -> anyhow::Result<EngineSettings> {
    let &Arguments { admission, network, actions, .. } = arguments;
    let audit = arguments.auditing.audit;
    let layers = Layers { admission, audit, network, actions };
    let names = [("network", network), ("actions", actions)];
    if let Some((layer, _)) = names.iter().find(|(_, is_wanted)| *is_wanted) {
        bail!(
            "the layer `{layer}` is not there yet: this engine judges requests and what is in the cluster; leave out --{layer}"
        );
    }
    if audit && arguments.peers.no_lease {
        bail!("--no-lease leaves nobody to tell what audit finds: leave it out, or leave out --audit");
    }
    if !arguments.rules_from_cluster && arguments.rules_folder.is_none() {
        bail!("there are no rules to load: give --rules-from-cluster, --rules-folder DIR, or both");
    }
    let rule_selector = selector::parse(&arguments.rule_selector).map_err(|error| {
        anyhow!("--rule-selector `{}` cannot be read: {error}; write it as for kubectl", arguments.rule_selector)
    })?;
    let process = &arguments.process;
    Ok(EngineSettings {
        instance: name("instance", &arguments.instance)?,
        instance_uid: arguments.instance_uid.clone(),
        namespace: name("namespace", &arguments.namespace)?,
        identity: process.identity(),
        listen: process.listen,
        address: process.address()?,
        layers,
        rules_from_cluster: arguments.rules_from_cluster,
        rule_selector,
        rules_folder: arguments.rules_folder.clone(),
        rules_per_namespace: arguments.rules_per_namespace,
        watched_kinds: arguments.watched_kinds.iter().filter(|name| !name.is_empty()).cloned().collect(),
        timing: process.timing()?,
        other_layers: arguments.peers.others(),
        stands: !arguments.peers.no_lease,
        peers: arguments.peers.settings(&arguments.instance, &arguments.namespace)?,
        admission: match admission {
            true => Some(arguments.webhook.settings(&arguments.namespace, arguments.peers.accounts()?)?),
            false => None,
        },
        finding_log: arguments.webhook.logs_findings(),
        reports: arguments.auditing.reports(),
        alerts: arguments.auditing.alerts(&arguments.instance)?,
        audit: match audit {
            true => {
                let namespaces = arguments.webhook.namespaces()?;
                Some(arguments.auditing.settings(namespaces, arguments.webhook.evaluation_limits()))
            }
            false => None,
        },
    })
}
