//! Alerts at the real Alertmanager: what fires there, what it notifies people of, and how often.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use portal_cluster::{
    holder::{Candidacy, Holder, Timing},
    metrics::Registry,
};
use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    manifest::Manifest,
    rule::{Rule, compile::compile, file},
};
use portal_engine::{
    findings::{Board, Finding, Offender},
    metrics::{AlertLoss, EngineMetrics, ReceiverNumber},
    sinks::alertmanager::{Address, Alertmanager, AlertmanagerSettings, Denials, Refused},
};
use portal_test_kit::{Cluster, Namespace, Size, cache::Cache, held::Server};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An Alertmanager, and who it notifies.
struct Receiver {
    server: Server,
    _folder: TempDir,
}

/// Who is notified. Counts, for each alert, how often it was told to fire and to have ended.
#[derive(Clone)]
struct Notified {
    address: SocketAddr,
    counts: Arc<Mutex<BTreeMap<(String, String), usize>>>,
}

/// A way to an Alertmanager that can be down, lead to another one, and spoil alerts.
#[derive(Clone)]
struct Way {
    address: SocketAddr,
    leads_to: Arc<Mutex<Option<SocketAddr>>>,
    /// Alerts with this text come out as ones that nobody can take.
    spoils: Arc<Mutex<Option<String>>>,
}

/// A replica that wants the Lease and sends alerts while it holds.
struct Sender {
    board: Board,
    denials: Denials,
    metrics: EngineMetrics,
    holder: JoinHandle<()>,
    task: JoinHandle<()>,
    shutdown: DropGuard,
}

/// What happens by itself happens within this time: an alert is sent again after a minute.
const SOON: Duration = Duration::from_secs(150);

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < SOON, "after {SOON:?} it is still not so: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Receiver {
    fn start(notified: &Notified) -> Receiver {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = json!({
            "route": {
                "receiver": "test", "group_by": ["..."],
                "group_wait": "100ms", "group_interval": "500ms", "repeat_interval": "1h",
            },
            "receivers": [{
                "name": "test",
                "webhook_configs": [{"url": format!("http://{}/", notified.address), "send_resolved": true}],
            }],
        });
        std::fs::write(path("config.yml"), config.to_string()).unwrap();
        let arguments = |port: u16| {
            vec![
                format!("--config.file={}", path("config.yml")),
                format!("--storage.path={}", path("data")),
                format!("--web.listen-address=127.0.0.1:{port}"),
                // It looks for no others.
                "--cluster.listen-address=".to_owned(),
            ]
        };
        let cache = Cache::open().unwrap();
        let log = Path::new(&path("log")).to_owned();
        let server = Server::start(&cache, &portal_test_kit::alertmanager(), &log, arguments).unwrap();
        let receiver = Receiver { server, _folder: folder };
        eventually("Alertmanager is ready", || ask(receiver.server.address, "/-/ready").is_ok());
        receiver
    }

    /// What fires there: the name of each object, and when its alert began and would end.
    fn firing(&self) -> BTreeMap<String, (String, Timestamp)> {
        let alerts = ask(self.server.address, "/api/v2/alerts?active=true").unwrap();
        let alerts: Vec<Value> = serde_json::from_str(&alerts).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let alerts = alerts.iter().map(|alert| {
            let ends = text(&alert["endsAt"]).parse().unwrap();
            (text(&alert["labels"]["name"]), (text(&alert["startsAt"]), ends))
        });
        alerts.collect()
    }

    fn fires(&self, names: &[&str]) -> bool {
        self.firing().keys().eq(names)
    }
}

impl Notified {
    fn start() -> Notified {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), Arc::default());
        let notified = Notified { address, counts };
        let counts = Arc::clone(&notified.counts);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counts = Arc::clone(&counts);
                std::thread::spawn(move || -> Option<()> {
                    let (_, body) = read_request(&stream)?;
                    let notification: Value = serde_json::from_slice(&body).unwrap();
                    for alert in notification["alerts"].as_array().unwrap() {
                        let text = |value: &Value| value.as_str().unwrap().to_owned();
                        let key = (text(&alert["labels"]["name"]), text(&alert["status"]));
                        *counts.lock().unwrap().entry(key).or_insert(0) += 1;
                    }
                    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                    (&stream).write_all(answer).ok()
                });
            }
        });
        notified
    }

    /// How often people were told of an object that its alert fires, and that it has ended.
    fn of(&self, name: &str) -> (usize, usize) {
        let counts = self.counts.lock().unwrap();
        let count = |status: &str| counts.get(&(name.to_owned(), status.to_owned())).copied().unwrap_or_default();
        (count("firing"), count("resolved"))
    }
}

impl Way {
    fn to(receiver: Option<&Receiver>) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let way = Way { address, leads_to: Arc::default(), spoils: Arc::default() };
        way.lead_to(receiver);
        let on_the_way = way.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let way = on_the_way.clone();
                // A connection that cannot go on ends.
                std::thread::spawn(move || way.pass(&stream));
            }
        });
        way
    }

    fn lead_to(&self, receiver: Option<&Receiver>) {
        *self.leads_to.lock().unwrap() = receiver.map(|receiver| receiver.server.address);
    }

    fn pass(&self, mut stream: &TcpStream) -> Option<()> {
        loop {
            let (line, mut body) = read_request(stream)?;
            if let Some(word) = &*self.spoils.lock().unwrap() {
                let mut alerts: Vec<Value> = serde_json::from_slice(&body).unwrap();
                for alert in alerts.iter_mut().filter(|alert| alert.to_string().contains(word)) {
                    alert["startsAt"] = json!("2999-01-01T00:00:00Z");
                }
                body = serde_json::to_vec(&alerts).unwrap();
            }
            let leads_to = (*self.leads_to.lock().unwrap())?;
            let mut onwards = TcpStream::connect(leads_to).ok()?;
            let head = format!(
                "{line}\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            onwards.write_all(head.as_bytes()).ok()?;
            onwards.write_all(&body).ok()?;
            let mut answer = Vec::new();
            onwards.read_to_end(&mut answer).ok()?;
            stream.write_all(&answer).ok()?;
            if String::from_utf8_lossy(&answer).to_lowercase().contains("connection: close") {
                return None;
            }
        }
    }
}

/// The first line of a request, and its body.
fn read_request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((lines.first()?.clone(), body))
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    if !head.contains(" 200 ") {
        return Err(std::io::Error::other(answer));
    }
    Ok(body.to_owned())
}

fn rule() -> Arc<Rule> {
    let yaml = "name: no-privileged\nmatch: {gvk: [{kind: Pod}]}\nrule: container.securityContext.privileged == true\nalert: Privileged\n";
    let file = file::read(&Manifest::new("rules.yaml", yaml.as_bytes().to_vec()));
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    Arc::clone(rules.rules().first().unwrap_or_else(|| panic!("{diagnostics:?}")))
}

impl Sender {
    /// A replica whose audit has found these pods.
    async fn start(namespace: &Namespace<'_>, ways: &[&Way], pods: &[(u64, &str)]) -> Sender {
        let shutdown = CancellationToken::new();
        let candidacy = Candidacy {
            namespace: namespace.name.clone(),
            name: "portal".to_owned(),
            identity: "replica".to_owned(),
            address: None,
            owner: None,
            timing: Timing::default(),
        };
        let client = Cluster::shared(Size::Core).client().await;
        let (holder, holding) = Holder::start(client, &candidacy, shutdown.clone());
        let (metrics, board) = (EngineMetrics::register(&Registry::new()), Board::default());
        let addresses = ways.iter().map(|way| Address::parse(&format!("http://{}", way.address)).unwrap());
        let settings =
            AlertmanagerSettings { addresses: addresses.collect(), credentials: None, instance: "default".to_owned() };
        let audit = Some((&board, holder));
        let (alertmanager, denials) = Alertmanager::new(settings, audit, metrics.clone(), shutdown.clone());
        let task = tokio::spawn(alertmanager.run());
        let sender = Sender { board, denials, metrics, holder: holding, task, shutdown: shutdown.drop_guard() };
        for (id, name) in pods {
            sender.violates(*id, name);
        }
        sender.board.set_complete();
        sender
    }

    fn violates(&self, id: u64, name: &str) {
        let finding = Finding {
            rule: rule(),
            container: Some("app".to_owned()),
            is_failure: false,
            message: "Containers must not be privileged.".to_owned(),
            saw: None,
            since: Timestamp::now(),
        };
        let offender = Offender {
            uid: format!("uid-{id}"),
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            findings: vec![finding],
            passes: Vec::new(),
        };
        self.board.put(id, Some(offender));
    }

    fn sent(&self, receiver: usize) -> u64 {
        self.metrics.alerts_sent.at(&ReceiverNumber(receiver.to_string())).get()
    }

    async fn stop(self) {
        drop(self.shutdown);
        self.task.await.unwrap();
        self.holder.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_kept_alive_outlives_a_restart_and_ends_with_the_violation() {
    let namespace = Cluster::shared(Size::Core).namespace("alerts-alive").await;
    let (people, others) = (Notified::start(), Notified::start());
    let (lasting, restarting) = (Receiver::start(&people), Receiver::start(&others));
    let (way, other_way) = (Way::to(Some(&lasting)), Way::to(Some(&restarting)));
    let sender = Sender::start(&namespace, &[&way, &other_way], &[(1, "web")]).await;
    eventually("both know", || lasting.fires(&["web"]) && restarting.fires(&["web"]));
    eventually("people are notified", || people.of("web") == (1, 0) && others.of("web") == (1, 0));
    let (starts, ends) = lasting.firing().remove("web").unwrap();

    // Another Alertmanager in its place knows nothing, until the alert is sent again.
    restarting.server.stop().unwrap();
    let restarted = Receiver::start(&others);
    other_way.lead_to(Some(&restarted));
    eventually("it is sent again", || sender.sent(1) >= 2 && restarted.fires(&["web"]));
    let (same_start, later) = lasting.firing().remove("web").unwrap();
    assert_eq!(same_start, starts);
    assert!(later > ends, "{later} is not after {ends}");
    assert_eq!(people.of("web"), (1, 0), "people are notified once");

    sender.board.put(1, None);
    eventually("it has ended", || lasting.fires(&[]) && restarted.fires(&[]));
    eventually("people are told so", || people.of("web") == (1, 1));
    sender.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_down_a_bad_alert_and_a_new_sender_lose_nothing_and_notify_nobody_twice() {
    let namespace = Cluster::shared(Size::Core).namespace("alerts-faults").await;
    let (people, others) = (Notified::start(), Notified::start());
    let (up, down) = (Receiver::start(&people), Receiver::start(&others));
    let (way, other_way) = (Way::to(Some(&up)), Way::to(None));
    *way.spoils.lock().unwrap() = Some("bad".to_owned());
    let pods = [(1, "web"), (2, "bad"), (3, "db"), (4, "cache")];
    let sender = Sender::start(&namespace, &[&way, &other_way], &pods).await;
    eventually("the good ones are there", || up.fires(&["cache", "db", "web"]));
    eventually("the bad one is counted", || sender.metrics.alerts_lost.at(&AlertLoss::Refused).get() == 1);
    assert!(down.fires(&[]));
    other_way.lead_to(Some(&down));
    eventually("the other is told when it is back", || down.fires(&["bad", "cache", "db", "web"]));

    // A refusal is one alert, and it is there although nobody audits it.
    for _ in 0..3 {
        let refused = Refused { namespace: Some("shop"), kind: "Pod", owner: "refused" };
        sender.denials.denied(&rule(), refused, "Containers must not be privileged.", None);
    }
    eventually("the denial is told", || up.fires(&["cache", "db", "refused", "web"]));
    let (_, ends) = up.firing().remove("refused").unwrap();
    let left = ends.as_second() - Timestamp::now().as_second();
    assert!((1..=300).contains(&left), "{left} seconds are left");
    eventually("people are notified", || {
        ["cache", "db", "refused", "web"].iter().all(|name| people.of(name) == (1, 0))
    });

    // The next sender knows less at first. Nothing ends by that.
    sender.stop().await;
    *way.spoils.lock().unwrap() = None;
    let next = Sender::start(&namespace, &[&way, &other_way], &[(7, "web"), (9, "db"), (2, "bad")]).await;
    eventually("it has sent everything", || next.sent(1) >= 3 && next.sent(2) >= 3);
    assert!(up.fires(&["bad", "cache", "db", "refused", "web"]), "{:?}", up.firing());
    next.board.put(7, None);
    eventually("what is mended has ended", || up.fires(&["bad", "cache", "db", "refused"]));
    eventually("people are told so, and of the one that was bad before", || {
        people.of("web") == (1, 1) && people.of("bad") == (1, 0)
    });
    for name in ["cache", "db", "refused"] {
        assert_eq!(people.of(name), (1, 0), "{name}");
    }
    next.stop().await;
}
