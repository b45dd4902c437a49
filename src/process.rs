//! What `portal engine` and `portal operator` have in common: a process that runs until it is told to end.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use portal_cluster::{client, holder::Timing, names::is_name};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How a process that runs in a cluster is reached, and reaches others.
#[derive(Debug, Args)]
pub(crate) struct ProcessArguments {
    /// The name of this replica in the Lease: that of the pod. Unset: the name of the host
    #[arg(long, value_name = "NAME", env = "PORTAL_IDENTITY")]
    pub(crate) identity: Option<String>,

    /// Where /healthz, /readyz and /metrics are
    #[arg(long, value_name = "ADDRESS", env = "PORTAL_LISTEN", default_value = "0.0.0.0:8080")]
    pub(crate) listen: SocketAddr,

    /// The IP by which other replicas reach this one, which they read in the Lease: that of the pod. Unset: the IP of `--listen`,
    /// or, if that stands for every address, the one of the host's name
    #[arg(long, value_name = "IP", env = "PORTAL_ADDRESS")]
    address: Option<IpAddr>,

    /// The kubeconfig by which the API server is reached. Unset: KUBECONFIG, ~/.kube/config or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", env = "PORTAL_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// What is logged: a level, or levels of modules such as `info,portal_cluster::rules=debug`. Unset: `info`
    #[arg(long, value_name = "LEVELS", env = "PORTAL_LOG")]
    pub(crate) log: Option<String>,

    /// After how many seconds without a sign of life another replica takes over
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_DURATION", default_value_t = 15)]
    lease_duration: u64,

    /// After how many seconds without a successful renewal the holder no longer acts
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_RENEW_DEADLINE", default_value_t = 10)]
    lease_renew_deadline: u64,

    /// How many seconds are between two tries to take or renew the Lease
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LEASE_RETRY", default_value_t = 2)]
    lease_retry: u64,
}

/// Runs a process until it is told to end. `work` says whether every part ended as it should.
pub(crate) fn run<F>(work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<ExitCode>
where
    F: Future<Output = anyhow::Result<bool>>,
{
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
        work(shutdown).await
    });
    // Does not wait for threads that block: a file system may never answer.
    runtime.shutdown_background();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl ProcessArguments {
    /// Who this replica is.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(host_name)
    }

    /// A client for the API server. An error is for people.
    pub(crate) async fn connect(&self) -> Result<Client, String> {
        client::connect(self.kubeconfig.as_deref()).await
    }

    /// The times of the Lease.
    pub(crate) fn timing(&self) -> anyhow::Result<Timing> {
        let seconds = Duration::from_secs;
        let timing =
            Timing::new(seconds(self.lease_duration), seconds(self.lease_renew_deadline), seconds(self.lease_retry));
        timing.context("the times of the Lease do not fit")
    }

    /// The address for the Lease, if it can be known.
    pub(crate) fn address(&self) -> anyhow::Result<Option<IpAddr>> {
        if let Some(address) = self.address {
            if address.is_unspecified() {
                bail!(
                    "--address {address} is every address and leads nowhere: give the one by which others reach this replica"
                );
            }
            return Ok(Some(address));
        }
        let listen = self.listen.ip();
        if !listen.is_unspecified() {
            return Ok(Some(listen));
        }
        let mut known = (host_name(), 0).to_socket_addrs().into_iter().flatten().map(|found| found.ip());
        Ok(known.find(|address| address.is_ipv4() || listen.is_ipv6()))
    }
}

/// A name that objects can have.
pub(crate) fn name(flag: &str, name: &str) -> anyhow::Result<String> {
    if !is_name(name) {
        bail!("--{flag} `{name}` is no name of an object: up to 63 of a-z, 0-9 and -, not at an end");
    }
    Ok(name.to_owned())
}

fn host_name() -> String {
    let name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "portal".to_owned())
}
