//! The certificate that the webhook shows, and who its clients are by theirs. Both are files, followed by their content: a new one is
//! in use for the next handshake, connections that are open go on, and one that is bad leaves the one before in use.

mod clients;
mod der;
mod files;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use portal_cluster::health::{Health, Part};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, UnixTime},
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio_util::sync::CancellationToken;

use self::{
    clients::{AnyCertificate, Authority},
    files::{Error, Pair},
};
use crate::metrics::{CertificateLoad, EngineMetrics};

pub use self::clients::Peer;

/// Where certificates are.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate of the webhook and those that lead to its authority, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
    /// What clients have to show, if they have to.
    pub clients: Option<Clients>,
}

/// What clients have to show.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The authorities that sign their certificates, in PEM.
    pub authority: PathBuf,
    /// The common name or a DNS name of their certificate.
    pub name: String,
}

/// The certificates that are in use.
pub struct Certificates {
    files: Files,
    provider: Arc<CryptoProvider>,
    /// What is shown. Written by `look`, read by every handshake.
    shown: ArcSwapOption<Pair>,
    /// What clients are known by. Written by `look`, read after every handshake.
    authority: ArcSwapOption<Authority>,
    /// What the files said. Only `look` uses it.
    looked: Mutex<Looked>,
    health: Health,
    metrics: EngineMetrics,
}

/// What `look` remembers until the next time.
struct Looked {
    pair: Seen<(Vec<u8>, Vec<u8>)>,
    authority: Seen<Vec<u8>>,
    /// Whether something was missing without which nobody can be answered.
    has_failed: bool,
}

/// What some files said, and what is wrong with it.
struct Seen<C> {
    content: Option<Result<C, String>>,
    problem: Option<String>,
}

/// How often the files are read. By content, because the files of a Secret are links that are swapped, of which not every file system
/// tells. A Secret itself takes a minute to arrive.
const NOW_AND_THEN: Duration = Duration::from_secs(5);

/// What has changed is read again after this time, and counts if it is still the same: of two files one may have been written.
const SETTLED: Duration = Duration::from_millis(100);

/// The authorities of a file, or what is wrong with it.
pub fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let bytes = files::read(path).map_err(|error| error.to_string())?;
    files::authorities(path, &bytes).map_err(|error| error.to_string())
}

impl Certificates {
    /// Reads the files. What is wrong with them is told by the part `certificate`: they may be good later.
    pub fn new(files: Files, health: Health, metrics: EngineMetrics) -> Arc<Certificates> {
        let certificates = Certificates {
            files,
            provider: Arc::new(ring::default_provider()),
            shown: ArcSwapOption::empty(),
            authority: ArcSwapOption::empty(),
            looked: Mutex::new(Looked { pair: Seen::default(), authority: Seen::default(), has_failed: true }),
            health,
            metrics,
        };
        certificates.look(Duration::ZERO, Timestamp::now());
        Arc::new(certificates)
    }

    /// Follows the files until the end.
    pub async fn follow(self: Arc<Self>, shutdown: CancellationToken) {
        self.follow_every(NOW_AND_THEN, SETTLED, shutdown).await;
    }

    pub(super) async fn follow_every(self: Arc<Self>, pause: Duration, settled: Duration, shutdown: CancellationToken) {
        let looks = async {
            loop {
                tokio::time::sleep(pause).await;
                let certificates = Arc::clone(&self);
                let looking = tokio::task::spawn_blocking(move || certificates.look(settled, Timestamp::now()));
                if let Err(error) = looking.await {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
        };
        // A file system that does not answer must not keep the process from ending.
        shutdown.run_until_cancelled(looks).await;
    }

    /// How TLS is spoken.
    pub(super) fn config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let versions = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has cipher suites of both versions");
        let asking = match self.files.clients {
            Some(_) => versions.with_client_cert_verifier(Arc::new(AnyCertificate(Arc::clone(&self.provider)))),
            None => versions.with_no_client_auth(),
        };
        let mut config = asking.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        // One connection of HTTP/2 would bring all that an API server asks to one replica.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // The API server resumes no session, so that tickets are for nobody. A session that was resumed would carry on with what its
        // client once showed.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Arc::new(config)
    }

    /// Who has shown this chain of certificates.
    pub(super) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some(clients) = &self.files.clients else { return Peer::Anyone };
        match &*self.authority.load() {
            Some(authority) => authority.peer(chain.unwrap_or_default(), &clients.name, UnixTime::now()),
            None => Peer::Stranger("the authority of client certificates cannot be read: see /readyz".into()),
        }
    }

    /// Reads the files, and takes what is new and good. Blocks for as long as reading takes, and for `settled` if something is new.
    fn look(&self, settled: Duration, now: Timestamp) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = &mut *looked;
        let Files { certificate, key, clients } = &self.files;
        looked.pair.look(
            settled,
            || Ok((files::read(certificate)?, files::read(key)?)),
            |(certificate_bytes, key_bytes)| {
                let pair = files::pair((certificate, certificate_bytes), (key, key_bytes), &self.provider)?;
                self.show(pair, now)
            },
            &self.metrics,
        );
        if let Some(clients) = clients {
            let path = &clients.authority;
            looked.authority.look(
                settled,
                || files::read(path),
                |bytes| {
                    let roots = files::authorities(path, bytes)?;
                    let authority = Authority::new(roots, &self.provider)
                        .map_err(|_| Error::NoAuthority { path: path.display().to_string() })?;
                    self.authority.store(Some(Arc::new(authority)));
                    Ok(())
                },
                &self.metrics,
            );
        }
        self.report(looked, now);
    }

    /// Shows a certificate from the next handshake on.
    fn show(&self, pair: Pair, now: Timestamp) -> Result<(), Error> {
        let is_shown_good = self.shown.load().as_ref().is_some_and(|shown| !shown.has_expired(now));
        if let Some(moment) = pair.expires.filter(|moment| *moment < now)
            && is_shown_good
        {
            return Err(Error::Expired { path: self.files.certificate.display().to_string(), moment });
        }
        self.metrics.certificate_loaded.set(now.as_second());
        self.metrics.certificate_expires.set(pair.expires.map_or(0, Timestamp::as_second));
        self.shown.store(Some(Arc::new(pair)));
        Ok(())
    }

    /// Says how the certificates are. Without a valid one nobody can ask anything here: the replica is not ready, so that others are
    /// asked. A new one that is bad is no such reason.
    fn report(&self, looked: &mut Looked, now: Timestamp) {
        let problem = looked.pair.problem.as_ref().or(looked.authority.problem.as_ref());
        let failed = match &*self.shown.load() {
            None => problem.cloned().or_else(|| Some("no certificate is there".to_owned())),
            Some(shown) if shown.has_expired(now) => {
                let path = self.files.certificate.display();
                Some(format!("the certificate in {path} has expired: renew it"))
            }
            Some(_) if self.files.clients.is_some() && self.authority.load().is_none() => {
                looked.authority.problem.clone()
            }
            Some(_) => None,
        };
        if let Some(problem) = failed {
            looked.has_failed = true;
            self.health.failed(&Part::Certificate, &problem);
            return;
        }
        if std::mem::take(&mut looked.has_failed) || problem.is_none() {
            self.health.well(&Part::Certificate);
        }
        if let Some(problem) = problem {
            self.health.unwell(&Part::Certificate, &format!("{problem}; the one before stays in use"));
        }
    }
}

impl<C: PartialEq> Seen<C> {
    /// Reads files, and hands their content to `take` if it has changed.
    fn look(
        &mut self,
        settled: Duration,
        read: impl Fn() -> Result<C, Error>,
        take: impl FnOnce(&C) -> Result<(), Error>,
        metrics: &EngineMetrics,
    ) {
        let read = || Some(read().map_err(|error| error.to_string()));
        let content = read();
        if content == self.content {
            return;
        }
        if !settled.is_zero() {
            std::thread::sleep(settled);
            if read() != content {
                return;
            }
        }
        let taken = match content.as_ref() {
            Some(Ok(content)) => take(content).map_err(|error| error.to_string()),
            Some(Err(problem)) => Err(problem.clone()),
            None => Ok(()),
        };
        metrics
            .certificate_loads
            .at(if taken.is_ok() { &CertificateLoad::Loaded } else { &CertificateLoad::Refused })
            .inc();
        self.problem = taken.err();
        self.content = content;
    }
}

impl<C> Default for Seen<C> {
    fn default() -> Self {
        Seen { content: None, problem: None }
    }
}

impl Pair {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires < now)
    }
}

impl ResolvesServerCert for Certificates {
    /// The same for every name: whoever asks has our address from our own webhook configuration.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown.load().as_ref().map(|pair| Arc::clone(&pair.certified))
    }
}

/// Without what the files said, which has a key in it.
impl std::fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use portal_cluster::metrics::Registry;

    use super::*;

    #[test]
    fn what_is_still_being_written_is_not_taken() {
        let metrics = EngineMetrics::register(&Registry::new());
        let mut seen = Seen::default();
        let (reads, taken) = (Cell::new(0), Cell::new(None));
        // Changes for as long as it is read less than three times.
        let read = || Ok(reads.replace(reads.get() + 1).min(3));
        let mut look = || {
            let take = |content: &i32| {
                taken.set(Some(*content));
                Ok(())
            };
            seen.look(Duration::from_millis(1), read, take, &metrics);
            taken.take()
        };
        assert_eq!([look(), look(), look(), look()], [None, None, Some(3), None]);
    }
}
