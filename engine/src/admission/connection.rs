//! What a connection is at, and since when. Whoever looks whose time is up, or who has to make room for others, decides by that alone.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::limits::ServerLimits;
use crate::metrics::Closed;

/// A connection as others see it.
#[derive(Debug)]
pub(super) struct Connection {
    /// When it was taken.
    began: Instant,
    /// The phase in the lowest bits, above it the milliseconds from `began` to the start of the phase. Written by the task of the
    /// connection, and by the one that reads what is left of a body.
    progress: AtomicU64,
    /// Whether a request was answered as its client wished.
    is_known: AtomicBool,
    /// Whether a body is being read that nobody wants. Written as `progress` is.
    has_leftovers: AtomicBool,
    /// Memory that it holds for a body. Added to by whoever reads the body. Taken by whoever ends the request or the connection, so that
    /// it is freed once.
    pub(super) held: AtomicUsize,
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The TLS handshake.
    Handshake,
    /// Between requests, or before the first.
    Idle,
    /// The first byte of a request was there, and the end of its head was not.
    Header,
    /// A body is read.
    Body,
    /// We are at work.
    Decision,
    /// The answer is written.
    Answer,
}

/// How much harm it does to close a connection, when one has to go. The first are the first to go.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Worth {
    /// It has kept us waiting for longer than anybody should.
    Stuck,
    /// It may be asked again, and costs a handshake if it is closed.
    Idle,
    /// It waits for its client, and not for long.
    Fresh,
}

const PHASES: [Phase; 6] = [Phase::Handshake, Phase::Idle, Phase::Header, Phase::Body, Phase::Decision, Phase::Answer];
const PHASE_BITS: u32 = 3;

impl Connection {
    pub(super) fn new() -> Connection {
        Connection {
            began: Instant::now(),
            progress: AtomicU64::new(Phase::Handshake as u64),
            is_known: AtomicBool::new(false),
            has_leftovers: AtomicBool::new(false),
            held: AtomicUsize::new(0),
        }
    }

    /// Begins a phase.
    pub(super) fn enter(&self, phase: Phase) {
        let since = self.began.elapsed().as_millis() as u64;
        self.progress.store((since << PHASE_BITS) | phase as u64, SeqCst);
    }

    /// What it is at, and for how long.
    pub(super) fn phase(&self) -> (Phase, Duration) {
        let progress = self.progress.load(SeqCst);
        let phase = PHASES[(progress & ((1 << PHASE_BITS) - 1)) as usize];
        (phase, self.began.elapsed().saturating_sub(Duration::from_millis(progress >> PHASE_BITS)))
    }

    fn is_at(&self, phase: Phase) -> bool {
        self.progress.load(SeqCst) & ((1 << PHASE_BITS) - 1) == phase as u64
    }

    /// A request was answered as its client wished.
    pub(super) fn becomes_known(&self) {
        self.is_known.store(true, SeqCst);
    }

    /// Something came from the client.
    fn heard(&self) {
        if self.is_at(Phase::Idle) {
            self.enter(Phase::Header);
        }
    }

    /// Whatever there was to write is written.
    fn flushed(&self) {
        if self.is_at(Phase::Answer) {
            self.enter(if self.has_leftovers.load(SeqCst) { Phase::Body } else { Phase::Idle });
            // Those that read them may just have ended.
            self.without_leftovers();
        }
    }

    /// Somebody begins to read what is left of a body.
    pub(super) fn leftovers_begin(&self) {
        self.has_leftovers.store(true, SeqCst);
    }

    /// Nothing is left of the body.
    pub(super) fn leftovers_end(&self) {
        self.has_leftovers.store(false, SeqCst);
        self.without_leftovers();
    }

    fn without_leftovers(&self) {
        if self.is_at(Phase::Body) && !self.has_leftovers.load(SeqCst) {
            self.enter(Phase::Idle);
        }
    }

    /// Why its time is up, if it is.
    pub(super) fn overdue(&self, limits: &ServerLimits) -> Option<Closed> {
        let (phase, time) = self.phase();
        let (limit, closed) = match phase {
            Phase::Handshake => (limits.handshake, Closed::Handshake),
            Phase::Idle => (limits.idle, Closed::Idle),
            Phase::Header => (limits.header, Closed::Header),
            // Whoever reads a body keeps its deadline, and then has an answer to give.
            Phase::Body => (limits.body + limits.answer, Closed::Body),
            Phase::Decision => (limits.decision, Closed::Decision),
            Phase::Answer => (limits.answer, Closed::Answer),
        };
        (time > limit).then_some(closed)
    }

    /// What closing it would cost, and for how long it waits. Nothing if it is us who it waits for.
    pub(super) fn worth(&self, limits: &ServerLimits) -> Option<(Worth, Duration)> {
        let (phase, time) = self.phase();
        let worth = match phase {
            Phase::Decision => return None,
            Phase::Idle if self.is_known.load(SeqCst) => Worth::Idle,
            _ if time > limits.patience => Worth::Stuck,
            _ => Worth::Fresh,
        };
        Some((worth, time))
    }
}

/// A stream that tells its connection what happens on it. HTTP has a deadline for heads too, but that would count from the end of
/// the answer before: idle connections would be closed by it.
pub(super) struct Heard<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Heard<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>) -> Heard<S> {
        Heard { stream, connection }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.connection.heard();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.connection.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
