//! What can go wrong between a client and the API server.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::request::Requests;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The request waits for so long before it is passed on.
    Delay(Duration),
    /// The request is not passed on, and this is the answer.
    Answer(Answer),
    /// The connection is closed before the request is passed on.
    CutBefore,
    /// The request is passed on and done, and the connection is closed instead of an answer.
    CutAfter,
    /// The request is passed on and done, and this is the answer.
    AnswerAfter(Answer),
    /// The request is passed on and done, and the client waits for an answer that never comes.
    Hold,
    /// The connection is closed at once, and the request is passed on so much later.
    Late(Duration),
    /// A read is answered with what was stored at this revision. A read that asks for a newer one is left alone, and so
    /// is a watch.
    Stale(u64),
    /// A watch begins, and its only event says that the resourceVersion is too old.
    Expire,
    /// Requests end with a closed connection, and open streams are cut, for as long as the fault is injected. How often
    /// and with which chance does not apply.
    Refuse,
    /// Nothing passes in either direction, for as long as the fault is injected; then it goes on. How often and with
    /// which chance does not apply.
    Silence,
    /// An event of a watch does not arrive. No real API server does this to a watch that goes on.
    DropEvent,
    /// An event of a watch arrives twice.
    DuplicateEvent,
    /// An event of a watch arrives so much later, and what follows it behind it.
    DelayEvent(Duration),
    /// A watch is cut where an event would have arrived.
    CutStream,
    /// A watch ends with the word that its resourceVersion is too old, where an event would have arrived.
    ExpireStream,
}

/// What the API server says when it refuses something.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The word by which clients decide.
    pub reason: &'static str,
    /// After how many seconds the client should try again, if it is told.
    pub retry_after: Option<u32>,
}

/// A fault, the requests that it is for, and how often it happens.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is given to `FaultProxy::inject`"]
pub struct Injection {
    pub(super) fault: Fault,
    pub(super) requests: Requests,
    pub(super) skip: u32,
    pub(super) limit: Option<u32>,
    pub(super) chance: f64,
}

impl Fault {
    /// This fault for these requests, each time.
    pub fn on(self, requests: Requests) -> Injection {
        Injection { fault: self, requests, skip: 0, limit: None, chance: 1.0 }
    }

    /// Whether it happens to events rather than to requests.
    pub(super) fn is_for_events(&self) -> bool {
        matches!(
            self,
            Self::DropEvent | Self::DuplicateEvent | Self::DelayEvent(_) | Self::CutStream | Self::ExpireStream
        )
    }

    /// Whether it holds for a time rather than for a request.
    pub(super) fn is_partition(&self) -> bool {
        matches!(self, Self::Refuse | Self::Silence)
    }

    /// Whether nothing else can happen to the same request or event.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::Delay(_) | Self::Stale(_) | Self::DelayEvent(_) | Self::DuplicateEvent | Self::Silence)
    }
}

impl Injection {
    /// Only for the next so many, after which nothing happens any more.
    pub fn next(self, times: u32) -> Self {
        Self { limit: Some(times), ..self }
    }

    /// Only after so many went well.
    pub fn after(self, times: u32) -> Self {
        Self { skip: times, ..self }
    }

    /// Only with a chance between 0 and 1, drawn from the proxy's seed.
    pub fn chance(self, chance: f64) -> Self {
        Self { chance, ..self }
    }
}

impl Answer {
    /// 409: somebody else changed the object.
    pub const CONFLICT: Self = Self { status: 409, reason: "Conflict", retry_after: None };
    /// 410: the resourceVersion is too old.
    pub const EXPIRED: Self = Self { status: 410, reason: "Expired", retry_after: None };
    /// 429: too busy, try again in a second. A kube client does so by itself.
    pub const TOO_MANY_REQUESTS: Self = Self { status: 429, reason: "TooManyRequests", retry_after: Some(1) };
    /// 500: something broke.
    pub const INTERNAL_ERROR: Self = Self { status: 500, reason: "InternalError", retry_after: None };
    /// 503: not there now. A kube client tries again by itself.
    pub const UNAVAILABLE: Self = Self { status: 503, reason: "ServiceUnavailable", retry_after: None };
    /// 504: it took too long. A kube client tries again by itself.
    pub const TIMEOUT: Self = Self { status: 504, reason: "Timeout", retry_after: None };

    /// The body of the answer.
    pub(super) fn body(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("{} by the fault proxy", self.reason), "reason": self.reason, "code": self.status,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(duration) => write!(formatter, "delayed by {duration:?}"),
            Self::Answer(answer) => write!(formatter, "answered {} in the server's place", answer.status),
            Self::CutBefore => formatter.write_str("cut before it was passed on"),
            Self::CutAfter => formatter.write_str("done, and its answer lost"),
            Self::AnswerAfter(answer) => write!(formatter, "done, and answered {}", answer.status),
            Self::Hold => formatter.write_str("done, and never answered"),
            Self::Late(duration) => write!(formatter, "cut, and passed on {duration:?} later"),
            Self::Stale(revision) => write!(formatter, "answered as of revision {revision}"),
            Self::Expire => formatter.write_str("begun and expired"),
            Self::Refuse => formatter.write_str("refused by a partition"),
            Self::Silence => formatter.write_str("held by a partition"),
            Self::DropEvent => formatter.write_str("dropped"),
            Self::DuplicateEvent => formatter.write_str("doubled"),
            Self::DelayEvent(duration) => write!(formatter, "delayed by {duration:?}"),
            Self::CutStream => formatter.write_str("the stream was cut"),
            Self::ExpireStream => formatter.write_str("the stream expired"),
        }
    }
}
