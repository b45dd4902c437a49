//! The one listener for people and machines that look after a process.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Handle},
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    health::Health,
    metrics::{self, Metrics, Registry},
};

/// What there is to tell.
#[derive(Clone, Debug)]
pub struct Served {
    /// How the parts are.
    pub health: Health,
    /// What the process counts.
    pub metrics: Metrics,
    /// Everything that is counted, by whichever table.
    pub registry: Registry,
}

/// How long a connection may last, and a head may take to come. Who asks again and again connects anew.
const CONNECTION: Duration = Duration::from_secs(60);
const HEAD: Duration = Duration::from_secs(5);

/// What is read of one connection at a time.
const READ_BUFFER: usize = 16 << 10;

/// How many connections there may be. For one more the oldest is closed: probes come anew each time, and are answered at once.
const CONNECTIONS: usize = 256;

/// The pause after an error of the listener.
const PAUSE: Duration = Duration::from_millis(100);

/// How long those who have begun to ask may take at the end. A request that never becomes whole must not keep the process.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Answers until the end. It has a thread of its own: whoever asks how the process is must be told while its work takes all others.
pub async fn serve(listener: TcpListener, served: Served, shutdown: CancellationToken) {
    let (process, (ended, has_ended)) = (Handle::current(), oneshot::channel());
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let served = runtime.and_then(|runtime| {
            let listener = listener.into_std()?;
            runtime.block_on(async { answer(TcpListener::from_std(listener)?, served, process, shutdown).await })
        });
        // Nobody waits if the process ends otherwise.
        let _ = ended.send(served);
    });
    match has_ended.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("the listener ended: {error}"),
        Err(_) => panic!("the listener panicked"),
    }
}

async fn answer(
    listener: TcpListener,
    served: Served,
    process: Handle,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let metrics = move |State(served): State<Served>| metrics_text(served, process.metrics().num_alive_tasks());
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(served);
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        oldest_first.retain(|connection| !connection.is_finished());
        if oldest_first.len() >= CONNECTIONS {
            oldest_first.pop_front().inspect(AbortHandle::abort);
        }
        oldest_first.push_back(connections.spawn(converse(stream, router.clone(), shutdown.clone())));
    }
    drop(listener);
    // Those that are not done by then are cut off.
    let _ = tokio::time::timeout(LAST_ANSWERS, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

/// Answers on one connection. When the process ends, what has been asked is answered and nothing more.
async fn converse(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(READ_BUFFER);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let answering = async {
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = shutdown.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    if let Ok(Err(error)) = tokio::time::timeout(CONNECTION, answering).await {
        tracing::debug!(%error, "A connection ended early");
    }
}

/// Binds the listener, so that an address that is taken is told before anything starts.
/// Returns its address too, with the port that the system chose if `address` has port 0.
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = match TcpListener::bind(address).await {
        // Whoever asks for every address of both families means those that there are.
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && has_no_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await?
        }
        bound => bound?,
    };
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Whether the system knows no IPv6, or has no address of it.
fn has_no_ipv6(error: &std::io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    const EADDRNOTAVAIL: i32 = 99;
    matches!(error.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL))
}

/// Lets the process have as many files open as the system allows. What it is given at first is often as few as a webhook has connections.
pub fn open_more_files() {
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, more)
    {
        tracing::warn!(%error, limit = limit.current, "The limit of open files stays as it is");
    }
}

async fn ready(State(served): State<Served>, Query(query): Query<HashMap<String, String>>) -> impl IntoResponse {
    let is_ready = served.health.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // As Kubernetes' own programs do: the reasons come unasked when it is not ready.
    let text = if is_ready && !query.contains_key("verbose") { "ok\n".to_owned() } else { served.health.report() };
    (status, text)
}

async fn metrics_text(served: Served, tasks: usize) -> impl IntoResponse {
    served.metrics.tasks.set(tasks as i64);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::text(&served.registry))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::mpsc;

    use tokio::runtime::Runtime;
    use tokio_util::sync::DropGuard;

    use super::*;
    use crate::health::Part;

    /// How long a test waits for what comes at once on a machine that is not busy. Less than [`HEAD`].
    const SOON: Duration = Duration::from_secs(4);

    /// A process with one worker, which serves.
    struct Serving {
        address: SocketAddr,
        health: Health,
        runtime: Runtime,
        _shutdown: DropGuard,
    }

    /// What is answered: the line of the status, and the body.
    fn ask(mut stream: TcpStream, path: &str) -> (String, String) {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: portal\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Whether the other end has closed a connection on which nothing is under way.
    fn is_closed(stream: &mut TcpStream) -> bool {
        matches!(stream.read(&mut [0]), Ok(0))
    }

    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let (_listener, address) = bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).await.unwrap();
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).await.unwrap();
    }

    impl Serving {
        fn start() -> Serving {
            open_more_files();
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (listener, address) = runtime.block_on(bind(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
            let (registry, health, shutdown) = (Registry::new(), Health::default(), CancellationToken::new());
            let served = Served { health: health.clone(), metrics: Metrics::register(&registry), registry };
            runtime.spawn(serve(listener, served, shutdown.clone()));
            let serving = Serving { address, health, runtime, _shutdown: shutdown.drop_guard() };
            drop(serving.idle());
            serving
        }

        fn connect(&self) -> TcpStream {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            stream
        }

        /// A connection on which something was answered.
        fn idle(&self) -> TcpStream {
            let (mut stream, mut answer) = (self.connect(), Vec::new());
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: portal\r\n\r\n").unwrap();
            while !answer.ends_with(b"ok\n") {
                let mut bytes = [0; 512];
                let count = stream.read(&mut bytes).unwrap();
                assert_ne!(count, 0, "{}", String::from_utf8_lossy(&answer));
                answer.extend_from_slice(&bytes[..count]);
            }
            stream
        }
    }

    #[test]
    fn whoever_asks_is_answered_while_the_work_takes_every_worker() {
        let serving = Serving::start();
        let (begins, has_begun) = mpsc::channel();
        let (go_on, is_over) = mpsc::channel::<()>();
        serving.runtime.spawn(async move {
            begins.send(()).unwrap();
            // A worker that waits like this does nothing else.
            let _ = is_over.recv();
        });
        has_begun.recv().unwrap();
        serving.health.failed(&Part::Kinds, "the work is hard");
        assert_eq!(ask(serving.connect(), "/healthz"), ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
        let (status, report) = ask(serving.connect(), "/readyz");
        assert_eq!(
            (&*status, &*report),
            ("HTTP/1.1 503 Service Unavailable", "[-]kinds the work is hard\nnot ready\n")
        );
        assert!(ask(serving.connect(), "/metrics").1.contains("# TYPE portal_"));
        drop(go_on);
    }

    #[test]
    fn for_one_connection_too_many_the_oldest_is_closed() {
        const TOO_MANY: usize = 44;
        let serving = Serving::start();
        let mut idle: Vec<TcpStream> = (0..CONNECTIONS + TOO_MANY).map(|_| serving.idle()).collect();
        for (number, stream) in idle.iter_mut().enumerate().take(TOO_MANY) {
            assert!(is_closed(stream), "{number} is open");
        }
        let oldest = idle.swap_remove(TOO_MANY);
        assert_eq!(ask(oldest, "/healthz").1, "ok\n");
        assert_eq!(ask(serving.connect(), "/healthz").1, "ok\n");
    }
}
