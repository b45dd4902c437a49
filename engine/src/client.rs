//! The way to the API server.

use std::path::Path;
use std::time::Duration;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::watch::chain;

/// A connection on which an answer is awaited and nothing comes for this long is dead: its peer may be gone without a word.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// A client by the kubeconfig as it is now, or else as `kubectl` or a pod would find its way. An error is for people.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, String> {
    let mut config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| chain(&error))?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| chain(&error))?
        }
        None => Config::infer().await.map_err(|error| chain(&error))?,
    };
    config.read_timeout = Some(SILENCE);
    // Else a connection that lay idle would have less time for its next answer.
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|error| chain(&error))
}
