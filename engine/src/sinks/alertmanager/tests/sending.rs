//! What is sent over real connections, to receivers that fail in every way.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portal_cluster::metrics::Registry;
use portal_test_kit::certificates::{Authority, Pair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::findings::Board;
use crate::metrics::{AlertFailure, EngineMetrics};
use crate::sinks::alertmanager::{Address, Alertmanager, AlertmanagerSettings, Audit, Denials, ROOM, Refused, Turn};

/// How a receiver answers a request.
#[derive(Clone, Debug)]
enum Answer {
    Taken,
    Status(u16, &'static str),
    /// It closes the connection in the middle of the answer.
    Cut,
    /// It says nothing.
    Silence,
    /// It asks for an alert of another namespace, by its status.
    RefuseNamespace(&'static str),
    Redirect(SocketAddr),
}

/// A request as it came.
#[derive(Clone, Debug)]
struct Received {
    head: String,
    alerts: Vec<Value>,
}

/// An address that answers as it is told: first by these answers, then by the last.
struct Fake {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

/// A sender. It ends with this.
struct Sender {
    board: Board,
    denials: Denials,
    term: watch::Sender<Option<i32>>,
    metrics: EngineMetrics,
    task: JoinHandle<()>,
    shutdown: DropGuard,
}

/// What happens by itself happens within this time.
const SOON: Duration = Duration::from_secs(60);

impl Fake {
    async fn start(answers: Vec<Answer>, tls: Option<&Pair>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers));
        let acceptor = tls.map(|pair| {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap();
            TlsAcceptor::from(Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap()))
        });
        let seen = Arc::clone(&received);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, answers, acceptor) = (Arc::clone(&seen), Arc::clone(&answers), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, &seen, &answers).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, &seen, &answers).await;
                            }
                        }
                    }
                });
            }
        });
        Fake { address, received, task }
    }

    fn url(&self, scheme: &str) -> Address {
        Address::parse(&format!("{scheme}://{}", self.address)).unwrap()
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The names of the objects that it was ever told of.
    fn names(&self) -> BTreeSet<String> {
        let received = self.received();
        let alerts = received.iter().flat_map(|received| &received.alerts);
        alerts.map(|alert| alert["labels"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn knows(&self, names: &[&str]) {
        let expected: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        eventually(|| self.names() == expected, || format!("{:?} is not {expected:?}", self.names())).await;
    }
}

async fn eventually(is_so: impl Fn() -> bool, what: impl Fn() -> String) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, wait).await.is_ok(), "{}", what());
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers the requests of a connection.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Mutex<Vec<Received>>,
    answers: &Mutex<Vec<Answer>>,
) {
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
                return;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap();
        while bytes.len() < end + length {
            if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
                return;
            }
        }
        let alerts: Vec<Value> = serde_json::from_slice(&bytes[end..end + length]).unwrap();
        bytes.drain(..end + length);
        let answer = {
            let mut answers = answers.lock().unwrap();
            if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
        };
        let is_bad = |namespace: &str| alerts.iter().any(|alert| alert["labels"]["namespace"] == namespace);
        let answer = match answer {
            Answer::RefuseNamespace(namespace) if is_bad(namespace) => Answer::Status(400, "bad alert"),
            Answer::RefuseNamespace(_) => Answer::Taken,
            other => other,
        };
        let text = match answer {
            Answer::Taken | Answer::RefuseNamespace(_) => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Answer::Status(status, text) => {
                format!("HTTP/1.1 {status} X\r\nRetry-After: 1\r\nContent-Length: {}\r\n\r\n{text}", text.len())
            }
            Answer::Cut => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned(),
            Answer::Silence => return std::future::pending().await,
            Answer::Redirect(to) => {
                format!("HTTP/1.1 307 X\r\nLocation: http://{to}/api/v2/alerts\r\nContent-Length: 0\r\n\r\n")
            }
        };
        if matches!(answer, Answer::Taken) {
            seen.lock().unwrap().push(Received { head, alerts });
        }
        if stream.write_all(text.as_bytes()).await.is_err() || matches!(answer, Answer::Cut) {
            return;
        }
    }
}

fn start(addresses: Vec<Address>, credentials: Option<&Path>) -> Sender {
    let metrics = EngineMetrics::register(&Registry::new());
    let (board, shutdown) = (Board::default(), CancellationToken::new());
    let (term, turn) = watch::channel(Some(1));
    board.set_complete();
    let settings = AlertmanagerSettings {
        addresses,
        credentials: credentials.map(Path::to_owned),
        instance: "default".to_owned(),
    };
    let audit = Some(Audit::new(&board, Turn::Test(turn)));
    let (alertmanager, denials) = Alertmanager::with(settings, audit, ROOM, metrics.clone(), shutdown.clone());
    let task = tokio::spawn(alertmanager.run());
    Sender { board, denials, term, metrics, task, shutdown: shutdown.drop_guard() }
}

impl Sender {
    fn violates(&self, id: u64, namespace: &str, name: &str) {
        let rule = alerting("privileged", "alert: Privileged");
        let found = vec![finding(&rule, None, "It is privileged.", Timestamp::now())];
        self.board.put(id, Some(pod(namespace, name, found)));
    }

    fn deny(&self, owner: &str) {
        let rule = alerting("privileged", "alert: Privileged");
        let refused = Refused { namespace: Some("shop"), kind: "Pod", owner };
        self.denials.denied(&rule, refused, "It is privileged.", None);
    }

    fn failures(&self, reason: AlertFailure) -> u64 {
        self.metrics.alert_failures.at(&reason).get()
    }
}

#[tokio::test]
async fn whatever_is_wrong_with_one_receiver_holds_up_no_other_and_is_tried_again() {
    let elsewhere = Fake::start(vec![Answer::Taken], None).await;
    let failing = [
        (Answer::Status(500, "ill"), AlertFailure::Server),
        (Answer::Status(429, "later"), AlertFailure::Busy),
        (Answer::Status(401, "who?"), AlertFailure::Unexpected),
        (Answer::Cut, AlertFailure::Broken),
        (Answer::Silence, AlertFailure::TooLate),
        (Answer::Redirect(elsewhere.address), AlertFailure::Redirected),
    ];
    let good = Fake::start(vec![Answer::Taken], None).await;
    let mut fakes = Vec::new();
    for (answer, _) in &failing {
        fakes.push(Fake::start(vec![answer.clone(), answer.clone(), Answer::Taken], None).await);
    }
    // Nobody is there yet.
    let absent = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = fakes.iter().chain([&good]).map(|fake| fake.url("http"));
    let absent = Address::parse(&format!("http://{absent}")).unwrap();
    let sender = start(addresses.chain([absent]).collect(), None);
    sender.violates(1, "shop", "web");
    good.knows(&["web"]).await;
    let hung = &fakes[4];
    assert_eq!(hung.names(), BTreeSet::new(), "the good one was told while another still said nothing");
    sender.violates(2, "shop", "db");
    for fake in &fakes {
        fake.knows(&["web", "db"]).await;
    }
    for (_, reason) in failing {
        assert_eq!(sender.failures(reason), 2, "{reason:?}");
    }
    assert!(sender.failures(AlertFailure::Unreachable) > 0);
    assert_eq!(elsewhere.received().len(), 0, "a redirection is not followed");
    assert!(!sender.task.is_finished());
}

#[tokio::test]
async fn one_bad_alert_loses_no_other() {
    let picky = Fake::start(vec![Answer::RefuseNamespace("poison")], None).await;
    let sender = start(vec![picky.url("http")], None);
    for id in 0..20 {
        sender.violates(id, if id == 7 { "poison" } else { "shop" }, &format!("web-{id}"));
    }
    eventually(|| picky.names().len() == 19, || format!("{:?}", picky.names())).await;
    assert!(!picky.names().contains("web-7"));
    let lost = || sender.metrics.alerts_lost.at(&crate::metrics::AlertLoss::Refused).get();
    eventually(|| lost() == 1, || format!("{} alerts are counted as refused", lost())).await;
}

#[tokio::test]
async fn credentials_are_read_anew_and_receivers_have_to_prove_themselves() {
    let (authority, other) = (Authority::new("first").unwrap(), Authority::new("other").unwrap());
    let pair = authority.server("127.0.0.1", &["127.0.0.1"]).unwrap();
    let fake = Fake::start(vec![Answer::Taken], Some(&pair)).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("token", "first");
    write("ca.crt", &other.pair().certificate);
    let sender = start(vec![fake.url("https")], Some(folder.path()));
    sender.violates(1, "shop", "web");
    eventually(|| sender.failures(AlertFailure::Certificate) > 0, || "the certificate is accepted".to_owned()).await;
    write("ca.crt", &authority.pair().certificate);
    fake.knows(&["web"]).await;
    write("token", "second");
    sender.violates(2, "shop", "db");
    fake.knows(&["web", "db"]).await;
    let shown = |received: &Received| {
        let line = received.head.lines().find(|line| line.to_lowercase().starts_with("authorization: ")).unwrap();
        line.split_once(": ").unwrap().1.to_owned()
    };
    let received = fake.received();
    assert_eq!(shown(&received[0]), "Bearer first");
    assert_eq!(shown(received.last().unwrap()), "Bearer second");
    assert!(received[0].head.starts_with("POST /api/v2/alerts HTTP/1.1\r\n"), "{}", received[0].head);
    // With another authority a connection that is kept does not count.
    write("ca.crt", &other.pair().certificate);
    let before = sender.failures(AlertFailure::Certificate);
    sender.violates(3, "shop", "cache");
    eventually(|| sender.failures(AlertFailure::Certificate) > before, || "the old authority counts".to_owned()).await;
    write("username", "both");
    eventually(|| sender.failures(AlertFailure::Credentials) > 0, || "both credentials are taken".to_owned()).await;
    assert_eq!(fake.names().len(), 2);
}

#[tokio::test]
async fn only_the_holder_speaks_for_audit_and_whoever_refused_for_a_denial() {
    let fake = Fake::start(vec![Answer::Taken], None).await;
    let sender = start(vec![fake.url("http")], None);
    sender.term.send(None).unwrap();
    sender.violates(1, "shop", "web");
    sender.deny("refused");
    fake.knows(&["refused"]).await;
    sender.term.send(Some(2)).unwrap();
    fake.knows(&["refused", "web"]).await;
    let told = |name: &str| {
        let received = fake.received();
        let alerts = received.iter().flat_map(|received| &received.alerts);
        alerts.filter(|alert| alert["labels"]["name"] == name).count()
    };
    assert_eq!(told("web"), 1);
    // A new term begins: everything is told again, and it is the same alert.
    sender.term.send(Some(3)).unwrap();
    eventually(|| told("web") == 2, || format!("{}", told("web"))).await;
    assert_eq!(told("refused"), 1);
    sender.term.send(None).unwrap();
    sender.violates(2, "shop", "db");
    sender.deny("at-the-end");
    // What was refused is told before the process ends.
    let Sender { task, shutdown, .. } = sender;
    drop(shutdown);
    tokio::time::timeout(SOON, task).await.unwrap().unwrap();
    assert_eq!(fake.names().into_iter().collect::<Vec<_>>(), ["at-the-end", "refused", "web"]);
}
