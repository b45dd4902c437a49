//! An API double that replays recorded streams: the pods of a large cluster, as a streaming list or in pages, and what happens to them
//! afterwards.
//!
//! It is a thread of its own process for each connection, and writes what was made before: who listens is measured, in another
//! process.

use std::error::Error;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::UPDATES;
use super::events::{END, changed, name_of};
use crate::objects::crowd;

/// A server on loopback that goes on until the process ends.
pub struct Double {
    address: SocketAddr,
}

/// What it tells to one who listens.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    /// This many pods as a streaming list.
    Stream(usize),
    /// This many pods in pages, as an API server does that has no streaming lists.
    Pages(usize),
    /// A streaming list of all pods, and a while later the changes.
    Changes,
}

/// Streams as an API server sends them: each event is a chunk of the body.
struct Recording {
    bytes: Vec<u8>,
    /// Where the pods are in it.
    pods: Vec<Range<usize>>,
    changes: Vec<u8>,
}

/// What a pod begins with in an event, and not in a list.
const TYPE: &str = r#"{"apiVersion":"v1","kind":"Pod","#;

/// What is behind a pod in its chunk.
const AFTER: &[u8] = b"}\n\r\n";

const BOOKMARK: &str = r#"{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"1000000000","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}"#;

/// So long after a list the changes begin. Whoever has read the list takes its time in between.
const PAUSE: Duration = Duration::from_secs(2);

impl Double {
    /// Makes this many pods, and serves them.
    pub fn start(pods: usize) -> Result<Double, Box<dyn Error>> {
        let recording = Arc::new(Recording::new(pods));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recording = Arc::clone(&recording);
                // Whatever goes wrong, the client notices.
                std::thread::spawn(move || recording.serve(stream));
            }
        });
        Ok(Double { address })
    }

    /// Writes a kubeconfig for one who is told this.
    pub fn kubeconfig(&self, offer: Offer, file: &Path) -> io::Result<()> {
        let path = match offer {
            Offer::Stream(pods) => format!("stream/{pods}"),
            Offer::Pages(pods) => format!("pages/{pods}"),
            Offer::Changes => "changes/0".to_owned(),
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "double",
            "clusters": [{"name": "double", "cluster": {"server": format!("http://{}/{path}", self.address)}}],
            "contexts": [{"name": "double", "context": {"cluster": "double", "user": "double"}}],
            "users": [{"name": "double", "user": {}}],
        });
        std::fs::write(file, config.to_string())
    }
}

impl Recording {
    fn new(count: usize) -> Recording {
        let (mut bytes, mut pods, mut changes) = (Vec::with_capacity(count * 12_000), Vec::new(), Vec::new());
        // As the API server has them: by namespace and name.
        let mut all: Vec<String> = crowd(count).collect();
        all.sort_by_cached_key(|pod| name_of(pod));
        for (number, pod) in all.into_iter().enumerate() {
            let end = push_chunk(&mut bytes, &format!(r#"{{"type":"ADDED","object":{pod}}}"#)) - AFTER.len();
            pods.push(end - pod.len()..end);
            if number < UPDATES {
                push_chunk(&mut changes, &format!(r#"{{"type":"MODIFIED","object":{}}}"#, changed(&pod, 1)));
            }
        }
        push_chunk(&mut changes, END);
        Recording { bytes, pods, changes }
    }

    /// Answers the requests of a connection.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while let Some(request) = lines.next().transpose()? {
            while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
            let target = request.split(' ').nth(1).unwrap_or_default();
            let mut parts = target.split('/').skip(1);
            let (form, count) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let count = count.parse().unwrap_or(0);
            let (watches, lists) = (target.contains("watch=true"), target.contains("sendInitialEvents=true"));
            match (watches, lists) {
                (true, true) if form == "pages" => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "message": "no"});
                    answer(&mut stream, "422 Unprocessable Entity", &[status.to_string().as_bytes()])?;
                }
                (true, _) => {
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    )?;
                    if lists {
                        self.stream(&mut stream, (form != "changes").then_some(count))?;
                    }
                    // Nothing more happens until the other side goes.
                    return stream.read_to_end(&mut Vec::new()).map(drop);
                }
                (false, _) => self.page(&mut stream, target, count)?,
            }
        }
        Ok(())
    }

    /// Sends some pods, or all and what happens to them.
    fn stream(&self, stream: &mut TcpStream, count: Option<usize>) -> io::Result<()> {
        let pods = &self.pods[..count.unwrap_or(self.pods.len())];
        stream.write_all(&self.bytes[..pods.last().map_or(0, |pod| pod.end + AFTER.len())])?;
        let mut bookmark = Vec::new();
        push_chunk(&mut bookmark, BOOKMARK);
        stream.write_all(&bookmark)?;
        if count.is_none() {
            std::thread::sleep(PAUSE);
            stream.write_all(&self.changes)?;
        }
        Ok(())
    }

    /// Sends a page of so many pods.
    fn page(&self, stream: &mut TcpStream, target: &str, count: usize) -> io::Result<()> {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse::<usize>().ok())
        };
        let begin = parameter("continue").unwrap_or(0).min(count);
        let end = (begin + parameter("limit").unwrap_or(count)).min(count);
        let next = if end < count { end.to_string() } else { String::new() };
        let metadata = json!({"resourceVersion": "1000000000", "continue": next});
        let head = format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{metadata},"items":["#);
        let mut parts = vec![head.as_bytes()];
        for (number, pod) in self.pods[begin..end].iter().enumerate() {
            parts.extend([
                if number == 0 { b"{".as_slice() } else { b",{" },
                &self.bytes[pod.start + TYPE.len()..pod.end],
            ]);
        }
        parts.push(b"]}");
        answer(stream, "200 OK", &parts)
    }
}

/// Adds a chunk with a line. Returns where it ends.
fn push_chunk(bytes: &mut Vec<u8>, line: &str) -> usize {
    bytes.extend_from_slice(format!("{:x}\r\n{line}\n\r\n", line.len() + 1).as_bytes());
    bytes.len()
}

fn answer(stream: &mut TcpStream, status: &str, parts: &[&[u8]]) -> io::Result<()> {
    let body = parts.concat();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(&body)
}
