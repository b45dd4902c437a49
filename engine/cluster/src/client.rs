//! The way to the API server.

use std::path::Path;
use std::time::Duration;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::watch::{chain, explain};

/// A connection on which an answer is awaited and nothing comes for this long is dead: its peer may be gone without a word.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// How long the first answer may take. After that the kubeconfig is read again: it may name another server.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

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
    // The silence counts from the last write: otherwise an idle connection would have less time for its next answer.
    config.reset_reader_on_write = true;
    // The client would try for minutes before anybody learns that something is wrong. Whoever asks tries again, and says why.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| chain(&error))
}

/// Whether the API server answers, and knows who asks. An error is for people.
pub(crate) async fn greet(client: &Client) -> Result<(), String> {
    match tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(()),
        // It knows who asks, and does not tell its version to everybody.
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok(()),
        Ok(Err(error)) => Err(explain("get", "/version", &error)),
        Err(_) => Err(format!("could not get /version: no answer within {FIRST_ANSWER:?}")),
    }
}
