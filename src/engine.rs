//! `portal engine`: flags, environment and a file of settings, then the engine.

mod config;
mod logs;
mod peers;
pub(crate) mod webhook;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use portal_cluster::{
    client,
    holder::Timing,
    names::is_name,
    rules::{quota::RULES_PER_NAMESPACE, selector},
};
use portal_core::layers::Layers;
use portal_engine::run::{self, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) use self::config::with_file;
use self::logs::Logs;

/// Run the engine: load rules, resolve the kinds that they name, and report on each rule
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

    /// How many PortalRules a namespace may have. The oldest ones count
    #[arg(long, value_name = "NUMBER", env = "PORTAL_RULES_PER_NAMESPACE", default_value_t = RULES_PER_NAMESPACE)]
    rules_per_namespace: usize,

    /// Load the rules of the YAML and JSON files below a folder, and follow their changes
    #[arg(long, value_name = "DIR", env = "PORTAL_RULES_FOLDER")]
    rules_folder: Option<PathBuf>,

    /// Kinds that are watched even while no rule looks them up, so that such a rule is in force at once: plurals such as
    /// `pods,deployments.apps`. They are watched with `--admission`
    #[arg(long, value_name = "PLURALS", env = "PORTAL_WATCHED_KINDS", value_delimiter = ',')]
    watched_kinds: Vec<String>,

    /// The name of the PortalInstance that this engine belongs to
    #[arg(long, value_name = "NAME", env = "PORTAL_INSTANCE", default_value = "default")]
    instance: String,

    /// The namespace of the engine, where its Lease is
    #[arg(long, value_name = "NAMESPACE", env = "PORTAL_NAMESPACE", default_value = "portal-system")]
    namespace: String,

    /// The name of this replica in the Lease: that of the pod. Unset: the name of the host
    #[arg(long, value_name = "NAME", env = "PORTAL_IDENTITY")]
    identity: Option<String>,

    /// Where /healthz, /readyz and /metrics are
    #[arg(long, value_name = "ADDRESS", env = "PORTAL_LISTEN", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,

    /// The IP by which other replicas reach this one, which they read in the Lease: that of the pod. Unset: the IP of `--listen`,
    /// or, if that stands for every address, the one of the host's name
    #[arg(long, value_name = "IP", env = "PORTAL_ADDRESS")]
    address: Option<IpAddr>,

    /// The kubeconfig by which the API server is reached. Unset: KUBECONFIG, ~/.kube/config or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", env = "PORTAL_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// What is logged: a level, or levels of modules such as `info,portal_cluster::rules=debug`. Else `info`
    #[arg(long, value_name = "LEVELS", env = "PORTAL_LOG")]
    log: Option<String>,

    /// After how many seconds without a sign of life another replica takes over
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_DURATION", default_value_t = 15)]
    lease_duration: u64,

    /// After how many seconds without a successful renewal the holder no longer acts
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_RENEW_DEADLINE", default_value_t = 10)]
    lease_renew_deadline: u64,

    /// How many seconds are between two tries to take or renew the Lease
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_RETRY", default_value_t = 2)]
    lease_retry: u64,

    /// Judge what enters the cluster: answer the API server's questions by HTTPS. Needs `--tls-cert` and `--tls-key`
    #[arg(long, env = "PORTAL_ADMISSION")]
    admission: bool,

    #[command(flatten)]
    webhook: webhook::WebhookArguments,

    #[command(flatten)]
    peers: peers::PeerArguments,

    /// Judge what is in the cluster (not there yet)
    #[arg(long, env = "PORTAL_AUDIT")]
    audit: bool,

    /// Judge what NetworkPolicies allow (not there yet)
    #[arg(long, env = "PORTAL_NETWORK")]
    network: bool,

    /// Act on violations (not there yet)
    #[arg(long, env = "PORTAL_ACTIONS")]
    actions: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments)?;
    let file = arguments.config.as_deref().filter(|_| arguments.log.is_none());
    let from_file = file.map(config::levels).transpose()?.flatten();
    let logs = Logs::start(arguments.log.as_deref().or(from_file.as_deref()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.cancel();
        });
        if let Some(path) = file {
            tokio::spawn(config::follow_log(path.to_owned(), from_file, logs));
        }
        let kubeconfig = &arguments.kubeconfig;
        let connect = || client::connect(kubeconfig.as_deref());
        run::run(connect, settings, shutdown).await.map_err(anyhow::Error::from)
    });
    // Does not wait for threads that block: a file system may never answer.
    runtime.shutdown_background();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(arguments: &Arguments) -> anyhow::Result<Settings> {
    let &Arguments { admission, audit, network, actions, .. } = arguments;
    let layers = Layers { admission, audit, network, actions };
    let names = [("audit", audit), ("network", network), ("actions", actions)];
    if let Some((layer, _)) = names.iter().find(|(_, is_wanted)| *is_wanted) {
        bail!(
            "the layer `{layer}` is not there yet: this engine judges requests and reports on rules; leave out --{layer}"
        );
    }
    if !arguments.rules_from_cluster && arguments.rules_folder.is_none() {
        bail!("there are no rules to load: give --rules-from-cluster, --rules-folder DIR, or both");
    }
    let rule_selector = selector::parse(&arguments.rule_selector).map_err(|error| {
        anyhow!("--rule-selector `{}` cannot be read: {error}; write it as for kubectl", arguments.rule_selector)
    })?;
    let seconds = Duration::from_secs;
    let timing = Timing::new(
        seconds(arguments.lease_duration),
        seconds(arguments.lease_renew_deadline),
        seconds(arguments.lease_retry),
    );
    Ok(Settings {
        instance: name("instance", &arguments.instance)?,
        namespace: name("namespace", &arguments.namespace)?,
        identity: arguments.identity.clone().unwrap_or_else(host_name),
        listen: arguments.listen,
        address: address(arguments)?,
        layers,
        rules_from_cluster: arguments.rules_from_cluster,
        rule_selector,
        rules_folder: arguments.rules_folder.clone(),
        rules_per_namespace: arguments.rules_per_namespace,
        watched_kinds: arguments.watched_kinds.iter().filter(|name| !name.is_empty()).cloned().collect(),
        timing: timing.context("the times of the Lease do not fit")?,
        peers: arguments.peers.settings(&arguments.instance, &arguments.namespace)?,
        admission: match admission {
            true => Some(arguments.webhook.settings(&arguments.namespace, arguments.peers.accounts()?)?),
            false => None,
        },
    })
}

/// A name that objects can have.
fn name(flag: &str, name: &str) -> anyhow::Result<String> {
    if !is_name(name) {
        bail!("--{flag} `{name}` is no name of an object: up to 63 of a-z, 0-9 and -, not at an end");
    }
    Ok(name.to_owned())
}

/// The address for the Lease, if it can be known.
fn address(arguments: &Arguments) -> anyhow::Result<Option<IpAddr>> {
    if let Some(address) = arguments.address {
        if address.is_unspecified() {
            bail!(
                "--address {address} is every address and leads nowhere: give the one by which others reach this replica"
            );
        }
        return Ok(Some(address));
    }
    let listen = arguments.listen.ip();
    if !listen.is_unspecified() {
        return Ok(Some(listen));
    }
    let mut known = (host_name(), 0).to_socket_addrs().into_iter().flatten().map(|found| found.ip());
    Ok(known.find(|address| address.is_ipv4() || listen.is_ipv6()))
}

fn host_name() -> String {
    let name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "portal".to_owned())
}

#[cfg(test)]
mod tests;
