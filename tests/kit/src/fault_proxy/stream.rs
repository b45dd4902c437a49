//! Passes an answer on, event by event if it is a watch, with the faults that were decided on.

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde::Deserialize;

use super::fault::{Answer, Fault};
use super::request::{Subject, Verb};
use super::serve::error_event;
use super::shared::{Cut, Open};

/// An answer that is being passed on. Nothing is read before the client took what came before.
struct Passing {
    open: Open,
    source: Source,
    /// Whether it is taken apart into events.
    is_watch: bool,
    /// Set when nothing follows any more.
    ended: bool,
}

/// What comes from the API server.
struct Source {
    body: Body,
    /// The beginning of the next lines.
    buffer: Vec<u8>,
    /// How much of it is known to have no end of a line.
    searched: usize,
}

/// What the proxy looks at in an event.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    object: Object,
}

#[derive(Default, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

/// Far more than an object can have. Whoever sends more is cut off.
const MAX_EVENT: usize = 16 << 20;

/// The body that the client gets.
pub(super) fn pass(open: Open, body: Body, is_json: bool) -> UnsyncBoxBody<Bytes, Cut> {
    let is_watch = is_json && open.subject().verb == Verb::Watch;
    let source = Source { body, buffer: Vec::new(), searched: 0 };
    let passing = Passing { open, source, is_watch, ended: false };
    let frames = stream::unfold(passing, async |mut passing| {
        let data = passing.next().await.transpose()?;
        Some((data.map(Frame::data), passing))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Passing {
    async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        if self.ended {
            return Ok(None);
        }
        let next = async {
            if !self.is_watch {
                let data = self.source.data().await?;
                self.open.shared.until_heard(self.open.subject()).await?;
                return Ok(data);
            }
            while let Some(line) = self.source.line().await? {
                if let Some(data) = event(&self.open, line, &mut self.ended).await? {
                    self.open.shared.until_heard(self.open.subject()).await?;
                    return Ok(Some(data));
                }
            }
            Ok(None)
        };
        let result = tokio::select! {
            () = self.open.is_cut() => Err(Cut),
            result = next => result,
        };
        if !matches!(result, Ok(Some(_))) {
            self.ended = true;
        }
        result
    }
}

impl Source {
    /// The next bytes, as they come.
    async fn data(&mut self) -> Result<Option<Bytes>, Cut> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.map_err(|_| Cut)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The next line with its end, or what is left.
    async fn line(&mut self) -> Result<Option<Bytes>, Cut> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.searched + end + 1);
                self.searched = 0;
                return Ok(Some(std::mem::replace(&mut self.buffer, rest).into()));
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_EVENT {
                return Err(Cut);
            }
            match self.data().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None if self.buffer.is_empty() => return Ok(None),
                None => {
                    self.searched = 0;
                    return Ok(Some(std::mem::take(&mut self.buffer).into()));
                }
            }
        }
    }
}

/// What becomes of an event. Nothing, if it does not arrive.
async fn event(open: &Open, line: Bytes, ended: &mut bool) -> Result<Option<Bytes>, Cut> {
    let Some(subject) = event_subject(open.subject(), &line) else { return Ok(Some(line)) };
    let mut times = 1;
    for fault in open.shared.decide(&subject).faults {
        match fault {
            Fault::DropEvent => return Ok(None),
            Fault::DuplicateEvent => times += 1,
            Fault::DelayEvent(duration) => tokio::time::sleep(duration).await,
            Fault::CutStream => return Err(Cut),
            Fault::ExpireStream => {
                *ended = true;
                return Ok(Some(format!("{}\n", error_event(&Answer::EXPIRED)).into()));
            }
            _ => unreachable!("requests meet these, not events"),
        }
    }
    Ok(Some(if times == 1 { line } else { line.repeat(times).into() }))
}

/// The object of an event. Bookmarks and errors have none: they are not touched.
fn event_subject(watch: &Subject, line: &[u8]) -> Option<Subject> {
    let event: Event = serde_json::from_slice(line).ok()?;
    if !matches!(event.kind.as_str(), "ADDED" | "MODIFIED" | "DELETED") {
        return None;
    }
    let mut subject = watch.clone();
    subject.object.name = event.object.metadata.name;
    subject.object.namespace = event.object.metadata.namespace;
    subject.event = Some(event.kind);
    Some(subject)
}
