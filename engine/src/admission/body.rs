//! The bodies of requests. Whoever asks for one gets it whole, in one piece, or not at all: it is read within its time, its size and
//! the memory that all bodies share, whatever the handler does.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use futures_util::FutureExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use super::{
    connection::{Connection, Phase},
    connections::Connections,
    refusal::Refusal,
};

/// What the body of one request tells whoever answers it.
#[derive(Debug, Default)]
pub(super) struct Reading(Mutex<Outcome>);

/// What has become of a body.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Why it could not be read.
    pub(super) refusal: Option<Refusal>,
    /// What nobody has read of it.
    pub(super) leftovers: Option<Incoming>,
}

/// A body that is read when somebody asks for it.
pub(super) struct Whole {
    /// Where it comes from, until it is all there or refused.
    incoming: Option<Incoming>,
    bytes: Vec<u8>,
    /// The end of its time. Only a body that is waited for has one.
    deadline: Option<Pin<Box<Sleep>>>,
    reading: Arc<Reading>,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// Memory is held in steps: a client that names a length has not sent it yet. Most bodies fit into the first.
const FIRST_STEP: usize = 64 << 10;

impl Reading {
    pub(super) fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Whole {
    pub(super) fn new(
        incoming: Incoming,
        reading: Arc<Reading>,
        connection: Arc<Connection>,
        connections: Arc<Connections>,
    ) -> Whole {
        let incoming = Some(incoming);
        Whole { incoming, bytes: Vec::new(), deadline: None, reading, connection, connections }
    }

    /// Reads until the body is all there.
    fn poll_whole(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Refusal>> {
        let Some(mut incoming) = self.incoming.take() else { return Poll::Ready(Ok(Bytes::new())) };
        let polled = self.poll_incoming(&mut incoming, cx);
        if !matches!(polled, Poll::Ready(Ok(_))) {
            self.incoming = Some(incoming);
        }
        polled
    }

    fn poll_incoming(&mut self, incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<Result<Bytes, Refusal>> {
        let limit = self.connections.limits.body_bytes;
        if incoming.size_hint().lower() > (limit - self.bytes.len()) as u64 {
            return Poll::Ready(Err(Refusal::TooLarge { limit }));
        }
        while !incoming.is_end_stream() {
            match Pin::new(&mut *incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // What is no data is a trailer, which no review has.
                    let Ok(data) = frame.into_data() else { continue };
                    // Most bodies come in one piece, which is part of the buffer that was read into.
                    if self.bytes.is_empty() && incoming.is_end_stream() {
                        self.hold(data.len())?;
                        return Poll::Ready(Ok(data));
                    }
                    self.add(&data, incoming.size_hint().exact())?;
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Refusal::Broken)),
                Poll::Ready(None) => break,
                Poll::Pending => return self.poll_deadline(cx).map(|()| Err(Refusal::TooSlow)),
            }
        }
        Poll::Ready(Ok(Bytes::from(std::mem::take(&mut self.bytes))))
    }

    /// Waits for the end of the time, which begins with the first wait.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline.get_or_insert_with(|| {
            self.connection.enter(Phase::Body);
            Box::pin(sleep(self.connections.limits.body))
        });
        deadline.poll_unpin(cx)
    }

    /// Adds a piece, and holds the memory for it. `rest` is what is to come, if that is known.
    fn add(&mut self, data: &[u8], rest: Option<u64>) -> Result<(), Refusal> {
        let limit = self.connections.limits.body_bytes;
        let needed = self.bytes.len() + data.len();
        if needed > limit {
            return Err(Refusal::TooLarge { limit });
        }
        let capacity = self.bytes.capacity();
        if needed > capacity {
            let most = rest.map_or(limit, |rest| limit.min(needed.saturating_add(rest as usize)));
            let wanted = (2 * capacity).max(FIRST_STEP).min(most).max(needed);
            self.hold(wanted - capacity)?;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        if self.connections.hold(&self.connection, bytes) { Ok(()) } else { Err(Refusal::NoMemory) }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let this = self.get_mut();
        if this.incoming.is_none() {
            return Poll::Ready(None);
        }
        let read = ready!(this.poll_whole(cx));
        if this.deadline.is_some() {
            this.connection.enter(Phase::Decision);
        }
        Poll::Ready(Some(match read {
            Ok(bytes) => Ok(Frame::data(bytes)),
            Err(refusal) => {
                this.bytes = Vec::new();
                let mut outcome = this.reading.outcome();
                outcome.refusal = Some(refusal.clone());
                outcome.leftovers = this.incoming.take();
                Err(refusal)
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // Nobody asked for it, or not to its end.
        if let Some(incoming) = self.incoming.take() {
            self.reading.outcome().leftovers = Some(incoming);
        }
    }
}

/// Reads what nobody wants of a body, so that the client can read the answer and the connection can go on. A client that is still
/// writing would otherwise find it closed, and lose the answer. The connection ends if there is too much, or if its time is up.
pub(super) async fn discard(mut incoming: Incoming, connection: Arc<Connection>, limit: usize) {
    let mut count = 0;
    // By its length, where it is known: whoever sends it tells its end only with the next request.
    while !incoming.is_end_stream() {
        match std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
            Some(Ok(frame)) => count += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => break,
        }
        if count > limit {
            return;
        }
    }
    connection.leftovers_end();
}
