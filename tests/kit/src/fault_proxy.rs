//! A proxy between clients and the API server of a test cluster that does what networks and busy servers do.
//!
//! Each client has a port of its own on loopback, and the proxy speaks to the API server in its name: RBAC and the record
//! of requests see the client. A test injects faults and drops them when they are to end; a [`Storm`] injects them at
//! random. The proxy runs on a thread of its own, so that a test may block.
//!
//! What happens to a request is drawn from the seed, the client, verb, group, resource, subresource and name of the
//! request, and from how many alike came before it. It does not depend on time, on namespaces or on other requests. So
//! the same seed decides alike for the same history of requests. A client that asks more often in one run, because it
//! waited less or because its watch ended earlier, has another history from there on.

mod decide;
mod fault;
mod log;
mod request;
mod serve;
mod shared;
mod stale;
mod storm;
mod stream;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

pub use fault::{Answer, Fault, Injection};
pub use log::Entry;
pub use request::{Requests, Verb};
use serve::Identity;
use shared::Shared;
pub use storm::Storm;

use crate::cluster::Cluster;
use crate::state::State;
use crate::{components, keeper};

/// A running proxy. Everything about it ends when it is dropped. If the test fails, its seed and the end of its log go
/// to standard error.
pub struct FaultProxy {
    seed: u64,
    state: State,
    shared: Arc<Shared>,
    /// Taken when the proxy is dropped.
    runtime: Option<Runtime>,
}

/// A client of the proxy.
#[derive(Clone, Debug)]
pub struct ProxyClient {
    address: SocketAddr,
    kubeconfig: PathBuf,
}

/// What was injected. It ends when this is dropped.
#[must_use = "a fault ends when this is dropped"]
pub struct Injected {
    shared: Arc<Shared>,
    number: u64,
}

/// How much of the log is shown when a test fails.
const SHOWN: usize = 100;

impl FaultProxy {
    /// Starts a proxy in front of a cluster. All that is random is drawn from the seed.
    pub async fn start(cluster: &Cluster, seed: u64) -> anyhow::Result<Self> {
        let state = cluster.state().clone();
        let kubeconfig = components::write_front_proxy_kubeconfig(&state)?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fault-proxy").enable_all().build()?;
        let admin_state = state.clone();
        // Clients belong to the runtime that they are made on.
        let connected = runtime.spawn(async move {
            let mut config = keeper::config_of(&kubeconfig).await?;
            // What goes wrong is for the client to see.
            config.default_retry = false;
            let admin = keeper::admin_client(&admin_state).await?;
            let revision = revision(&admin).await?;
            anyhow::Ok(Shared::new(Client::try_from(config)?, admin, seed, revision))
        });
        match connected.await.map_err(anyhow::Error::from).flatten() {
            Ok(shared) => Ok(Self { seed, state, shared: Arc::new(shared), runtime: Some(runtime) }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// A client with a name for this test, which comes to the API server as this user. Two may have the same user.
    pub fn client(&self, name: &str, user: &str, groups: &[&str]) -> anyhow::Result<ProxyClient> {
        let identity = Arc::new(Identity::new(name, user, groups)?);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("loopback has no free port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = self.runtime.as_ref().expect("it is taken when the proxy is dropped");
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener)?
        };
        runtime.spawn(serve::serve(listener, identity, Arc::clone(&self.shared)));
        let file = format!("proxy-{}", address.port());
        let kubeconfig = components::write_plain_kubeconfig(&self.state, &file, address)?;
        Ok(ProxyClient { address, kubeconfig })
    }

    /// Lets a fault happen until what is returned is dropped. Of several, the first that was injected comes first.
    pub fn inject(&self, injection: Injection) -> Injected {
        let refused = (injection.fault == Fault::Refuse).then(|| injection.requests.clone());
        let number = self.shared.change(|decisions| decisions.inject(injection));
        if let Some(requests) = refused {
            self.shared.cut(&requests);
        }
        Injected { shared: Arc::clone(&self.shared), number }
    }

    /// Lets faults happen at random until what is returned is dropped.
    pub fn storm(&self, storm: Storm) -> Injected {
        let number = self.shared.change(|decisions| decisions.storm(storm));
        Injected { shared: Arc::clone(&self.shared), number }
    }

    /// Cuts what is under way at this moment: open watches, and requests that wait for their answer.
    pub fn cut(&self, requests: &Requests) {
        self.shared.cut(requests);
    }

    /// The revision of the cluster at this moment, for [`Fault::Stale`].
    pub async fn revision(&self) -> anyhow::Result<u64> {
        let admin = self.shared.admin.clone();
        let runtime = self.runtime.as_ref().expect("it is taken when the proxy is dropped");
        runtime.spawn(async move { revision(&admin).await }).await?
    }

    /// How many requests were done and never answered, by [`Fault::Hold`].
    pub fn held(&self) -> u32 {
        self.shared.held()
    }

    /// Waits until all that was held back by [`Fault::Late`] has been passed on.
    pub async fn passed_on(&self) {
        let mut late = self.shared.take_late();
        while late.join_next().await.is_some() {}
    }

    /// What came and what was done to it, oldest first: every request, and the events that something was done to. Only
    /// the last ten thousand are kept.
    pub fn log(&self) -> Vec<Entry> {
        self.shared.decisions().log.entries()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            eprintln!("the fault proxy had the seed {}, and did at last:", self.seed);
            for entry in &log[log.len().saturating_sub(SHOWN)..] {
                eprintln!("{entry}");
            }
        }
        if let Some(runtime) = self.runtime.take() {
            // A test drops it within a runtime, which must not be blocked. Every task is dropped.
            runtime.shutdown_background();
        }
    }
}

impl ProxyClient {
    /// How a program of this process reaches the proxy.
    pub fn config(&self) -> Config {
        Config::new(format!("http://{}", self.address).parse().expect("an address makes a valid URL"))
    }

    /// A client of the kube crate. It tries again by itself after 429, 503 and 504.
    pub fn client(&self) -> Client {
        Client::try_from(self.config()).expect("nothing but a URL is needed")
    }

    /// How another program reaches the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Injected {
    /// How often it happened.
    pub fn hits(&self) -> u32 {
        self.shared.decisions().hits(self.number)
    }

    /// Waits until it has happened so often.
    pub async fn hit(&self, times: u32) {
        let mut changes = self.shared.changes();
        while self.hits() < times {
            // The sender lives as long as `shared`.
            let _ = changes.changed().await;
        }
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        self.shared.change(|decisions| decisions.remove(self.number));
    }
}

/// Of all that is stored: revisions are counted for the whole cluster.
async fn revision(client: &Client) -> anyhow::Result<u64> {
    let request = http::Request::get("/api/v1/namespaces?limit=1").body(Vec::new())?;
    let list: serde_json::Value = client.request(request).await?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list has a resourceVersion")?;
    Ok(version.parse()?)
}
