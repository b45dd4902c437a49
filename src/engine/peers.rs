//! The flags by which the replicas of an instance find and ask each other.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use portal_core::layers::Layers;
use portal_engine::replicas::{ask::AskSettings, follow::PeerSettings, peers::Peers};

/// How the replica that holds the Lease finds the others, and who may ask a replica how it is.
#[derive(Debug, Args)]
pub(crate) struct PeerArguments {
    /// Ask the replicas behind this Service of the engine's namespace which rules they run. Needs `--peer-ca` and `--peer-token`
    #[arg(long, value_name = "NAME", env = "PORTAL_PEERS_SERVICE", conflicts_with = "peers")]
    peers_service: Option<String>,

    /// Ask the replicas at these addresses instead, such as `10.0.0.7:8443`, with commas between. For engines outside of a cluster
    #[arg(long, value_name = "ADDRESSES", env = "PORTAL_PEERS", value_delimiter = ',')]
    peers: Vec<SocketAddr>,

    /// The name that the certificate of a replica must have. Unset: `portal-INSTANCE.NAMESPACE.svc`
    #[arg(long, value_name = "NAME", env = "PORTAL_PEER_NAME")]
    peer_name: Option<String>,

    /// The authority of the replicas' certificates, in PEM
    #[arg(long, value_name = "FILE", env = "PORTAL_PEER_CA")]
    peer_ca: Option<PathBuf>,

    /// The file of the token that is shown to other replicas. Its audience is `portal-INSTANCE`
    #[arg(long, value_name = "FILE", env = "PORTAL_PEER_TOKEN")]
    peer_token: Option<PathBuf>,

    /// The accounts whose tokens may ask this replica, as `system:serviceaccount:NAMESPACE:NAME`, with commas between. Unset: the
    /// account that the engine has itself
    #[arg(long, value_name = "ACCOUNTS", env = "PORTAL_PEER_ACCOUNTS", value_delimiter = ',')]
    peer_accounts: Vec<String>,

    /// The layers that other pods of the instance have, in split mode, with commas between: whoever writes the status of rules has to know
    /// which loops ask a rule somewhere
    #[arg(long, value_name = "LAYERS", env = "PORTAL_OTHER_LAYERS", value_delimiter = ',')]
    other_layers: Vec<Layer>,

    /// Do not stand for the Lease, in split mode: other pods of the instance do, and write the status of rules
    #[arg(long, env = "PORTAL_NO_LEASE")]
    pub(super) no_lease: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Layer {
    Admission,
    Audit,
    Network,
    Actions,
}

impl PeerArguments {
    /// How other replicas are asked, if they are.
    pub(crate) fn settings(&self, instance: &str, namespace: &str) -> anyhow::Result<Option<PeerSettings>> {
        let peers = match &self.peers_service {
            Some(name) => Peers::Service { namespace: namespace.to_owned(), name: name.clone() },
            None if self.peers.is_empty() => return Ok(None),
            None => Peers::Named(self.peers.clone()),
        };
        let (Some(authority), Some(token)) = (self.peer_ca.clone(), self.peer_token.clone()) else {
            let flag = if self.peers_service.is_some() { "peers-service" } else { "peers" };
            bail!(
                "--{flag} needs a way to know the others and to be known by them: give --peer-ca FILE and --peer-token FILE"
            );
        };
        let name = self.peer_name.clone().unwrap_or_else(|| format!("portal-{instance}.{namespace}.svc"));
        Ok(Some(PeerSettings { peers, ask: AskSettings { name, authority, token } }))
    }

    /// What other pods of the instance do.
    pub(crate) fn others(&self) -> Layers {
        let has = |layer| self.other_layers.contains(&layer);
        Layers {
            admission: has(Layer::Admission),
            audit: has(Layer::Audit),
            network: has(Layer::Network),
            actions: has(Layer::Actions),
        }
    }

    /// Who may ask this replica.
    pub(crate) fn accounts(&self) -> anyhow::Result<Vec<String>> {
        for account in &self.peer_accounts {
            let parts: Vec<&str> = account.split(':').collect();
            if !matches!(parts[..], ["system", "serviceaccount", namespace, name] if !namespace.is_empty() && !name.is_empty())
            {
                bail!("--peer-accounts `{account}` is no account: write system:serviceaccount:NAMESPACE:NAME");
            }
        }
        Ok(self.peer_accounts.clone())
    }
}
