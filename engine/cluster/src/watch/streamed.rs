//! A watch that begins with a list of all objects, read from the bytes of the answer.
//!
//! kube's watcher does the same for any type that can be deserialised, and so copies each event, looks for the end of the object in it, and
//! has it read once more. Of a list of 100,000 pods that was a third of the work. Here an object goes from where the connection left its
//! bytes into its form. What is no plain event is left to kube's types, and lists in pages are left to its watcher.

use std::io::{self, ErrorKind};
use std::pin::Pin;

use futures_util::{
    StreamExt as _,
    io::{AsyncBufRead, AsyncBufReadExt as _},
    stream::{self, BoxStream},
};
use kube::{
    Api, Client, Error,
    api::{WatchEvent, WatchParams},
    core::{Request, Status},
    runtime::watcher::{self, Event},
};

use super::object::{Form, Watched};

/// What is watched.
struct Watch {
    client: Client,
    request: Request,
    config: watcher::Config,
}

/// How far a watch is.
enum State {
    /// Nothing is known.
    Begin,
    /// The objects are listed.
    Listing(Lines),
    /// They are followed from a version on. Without lines the watch is over, and has to go on with another.
    Following(String, Option<Lines>),
}

/// The lines of an answer, each of which is an event.
struct Lines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    is_over: bool,
}

/// By this annotation of a bookmark the API server says that all objects were listed.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// What a buffer for lines in parts may keep.
const KEPT: usize = 256 << 10;

/// Kubernetes says so if what a watch wants to go on from is too long ago.
const GONE: u16 = 410;

/// The events of a watch, without an end.
pub(super) fn streamed<F: Form>(
    api: &Api<Watched<F>>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<Watched<F>>>> {
    let request = Request::new(api.resource_url());
    let watch = Watch { client: api.clone().into_client(), request, config };
    // In a box, because it is handed on with each event.
    stream::unfold(Box::new((watch, State::Begin)), |mut watched| async {
        let (watch, state) = &mut *watched;
        loop {
            if let Some(event) = watch.step(state).await {
                return Some((event, watched));
            }
        }
    })
    .boxed()
}

impl Watch {
    /// Goes on by a step, of which there may be nothing to tell.
    async fn step<F: Form>(&self, state: &mut State) -> Option<watcher::Result<Event<Watched<F>>>> {
        let event = match state {
            State::Begin => match self.open("0", true).await {
                Ok(lines) => {
                    *state = State::Listing(lines);
                    return Some(Ok(Event::Init));
                }
                Err(error) => return Some(Err(watcher::Error::WatchStartFailed(error))),
            },
            State::Following(version, lines @ None) => match self.open(version, false).await {
                Ok(opened) => {
                    *lines = Some(opened);
                    return None;
                }
                Err(error) => return Some(Err(watcher::Error::WatchStartFailed(error))),
            },
            State::Listing(lines) | State::Following(_, Some(lines)) => lines.next().await,
        };
        let event = match event {
            Some(Ok(WatchEvent::Error(status))) => {
                if status.code == GONE {
                    *state = State::Begin;
                }
                return Some(Err(watcher::Error::WatchError(status)));
            }
            Some(Ok(event)) => Some(event),
            Some(Err(error)) => return Some(Err(watcher::Error::WatchFailed(error))),
            None => None,
        };
        match state {
            State::Listing(_) => state.list(event),
            _ => state.follow(event),
        }
        .map(Ok)
    }

    /// Begins a watch, with a list of all objects or from a version on.
    async fn open(&self, version: &str, lists: bool) -> kube::Result<Lines> {
        let watcher::Config { label_selector, field_selector, timeout, bookmarks, .. } = self.config.clone();
        let parameters = WatchParams { label_selector, field_selector, timeout, bookmarks, send_initial_events: lists };
        let mut request = self.request.watch(&parameters, version).map_err(Error::BuildRequest)?;
        // From 1.37 on the API server compresses each event by itself, and the client reads the first of them alone.
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
        Ok(Lines::new(self.client.request_stream(request).await?))
    }
}

impl State {
    /// Takes an event of a list, or its end.
    fn list<F>(&mut self, event: Option<WatchEvent<Watched<F>>>) -> Option<Event<Watched<F>>> {
        match event {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => return Some(Event::InitApply(object)),
            Some(WatchEvent::Bookmark(bookmark)) => {
                if bookmark.metadata.annotations.contains_key(END_OF_LIST)
                    && let State::Listing(lines) = std::mem::replace(self, State::Begin)
                {
                    *self = State::Following(bookmark.metadata.resource_version, Some(lines));
                    return Some(Event::InitDone);
                }
            }
            // Nothing is deleted in a list. Whatever it means, another list tells the truth.
            Some(WatchEvent::Deleted(_) | WatchEvent::Error(_)) | None => *self = State::Begin,
        }
        None
    }

    /// Takes an event of what follows a list, or the end of the watch.
    fn follow<F>(&mut self, event: Option<WatchEvent<Watched<F>>>) -> Option<Event<Watched<F>>> {
        let State::Following(version, lines) = self else { return None };
        let (next, event) = match event {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                (object.version().to_owned(), Some(Event::Apply(object)))
            }
            Some(WatchEvent::Deleted(object)) => (object.version().to_owned(), Some(Event::Delete(object))),
            Some(WatchEvent::Bookmark(bookmark)) => (bookmark.metadata.resource_version, None),
            Some(WatchEvent::Error(_)) | None => {
                *lines = None;
                return None;
            }
        };
        if next.is_empty() {
            // Nobody could go on from there without missing something.
            *self = State::Begin;
            return None;
        }
        *version = next;
        event
    }
}

impl Lines {
    fn new(body: impl AsyncBufRead + Send + 'static) -> Lines {
        Lines { body: Box::pin(body), begun: Vec::new(), is_over: false }
    }

    /// The next event. None at the end of the answer, also if that comes too early: the watch goes on from where it was.
    async fn next<F: Form>(&mut self) -> Option<kube::Result<WatchEvent<Watched<F>>>> {
        while !self.is_over {
            let chunk = match self.body.fill_buf().await {
                Ok(chunk) => chunk,
                Err(error) => {
                    self.is_over = true;
                    return (!is_end(&error)).then_some(Err(Error::ReadEvents(error)));
                }
            };
            if chunk.is_empty() {
                // What has not come to its end is no event.
                self.is_over = true;
                return None;
            }
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                let length = chunk.len();
                self.begun.extend_from_slice(chunk);
                self.body.as_mut().consume(length);
                continue;
            };
            let event = if self.begun.is_empty() {
                read_event(&chunk[..end])
            } else {
                self.begun.extend_from_slice(&chunk[..end]);
                let event = read_event(&self.begun);
                self.begun.clear();
                self.begun.shrink_to(KEPT);
                event
            };
            self.body.as_mut().consume(end + 1);
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

/// Reads a line of a watch. Nothing if nothing is in it.
pub fn read_event<F: Form>(line: &[u8]) -> Option<kube::Result<WatchEvent<Watched<F>>>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Some(event) = read_plain(line) {
        return Some(Ok(event));
    }
    Some(serde_json::from_slice(line).map_err(|error| match serde_json::from_slice::<Status>(line) {
        Ok(status) => Error::Api(Box::new(status)),
        Err(_) => Error::SerdeError(error),
    }))
}

/// Reads an event as the API server writes those about objects, if the object can be read.
fn read_plain<F: Form>(line: &[u8]) -> Option<WatchEvent<Watched<F>>> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event, rest): (fn(Watched<F>) -> _, _) = match rest {
        [b'A', b'D', b'D', b'E', b'D', rest @ ..] => (WatchEvent::Added, rest),
        [b'M', b'O', b'D', b'I', b'F', b'I', b'E', b'D', rest @ ..] => (WatchEvent::Modified, rest),
        [b'D', b'E', b'L', b'E', b'T', b'E', b'D', rest @ ..] => (WatchEvent::Deleted, rest),
        _ => return None,
    };
    let object = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
    Watched::read(object).map(event)
}

/// Whether the other side has ended an answer, in order or not, or has said nothing for too long.
fn is_end(error: &(dyn std::error::Error + 'static)) -> bool {
    let within = match error.downcast_ref::<io::Error>() {
        Some(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::TimedOut) => return true,
        // Its source would be that of the error in it.
        Some(error) => error.get_ref().map(|error| error as &(dyn std::error::Error + 'static)),
        None => error.source(),
    };
    // hyper does not say it otherwise.
    error.to_string().contains("unexpected EOF during chunk") || within.is_some_and(is_end)
}

#[cfg(test)]
mod tests;
