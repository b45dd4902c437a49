//! What a client of the webhook may take: how long, how much, how many.

use std::time::Duration;

/// What a client may take. Nothing that a client does, or leaves undone, goes on without an end.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at a time. An API server keeps 25 that are idle, and has one more for each request beyond those: this is for a
    /// few of them on their worst day. See [`patience`](Self::patience) for what happens beyond.
    pub connections: usize,
    /// Time for the TLS handshake, from the moment that the connection was taken. It is two round trips.
    pub handshake: Duration,
    /// Time for the head of a request, from its first byte. The API server sends it in one piece.
    pub header: Duration,
    /// Time for the body of a request, from the moment that somebody asks for it. It is what the API server waits for an answer in
    /// all, by our own webhook configuration: a body that takes longer has nobody who would hear the decision.
    pub body: Duration,
    /// Time for a decision. Whoever decides has a shorter deadline; this one is for what has none. No webhook may take longer by
    /// Kubernetes' own rules.
    pub decision: Duration,
    /// Time in which the client has to take the answer, which mostly fits into the buffers of its socket.
    pub answer: Duration,
    /// Time that a connection may be open with no request. The API server closes its idle connections after 90 s. It has to be the one
    /// who does: a request that crosses with our closing is lost, and a lost request is a denial. And it keeps no TLS sessions, so that
    /// each new connection costs a whole handshake, as much as twenty requests.
    pub idle: Duration,
    /// Who has kept us waiting for longer than this is the first to go when there is no room for another connection or body. Whoever
    /// is well takes some milliseconds.
    pub patience: Duration,
    /// The largest body: an object and its former self of 3 MB each, which is what the API server takes, and what is around them.
    pub body_bytes: usize,
    /// What all bodies may hold together, so that `connections` × `body_bytes` is never reached: some thousand reviews of pods, or nine
    /// of the largest.
    pub bytes_in_flight: usize,
    /// How long connections are taken after the end was asked for: endpoints are followed by others, who lag.
    pub drain: Duration,
    /// How long requests under way may take after that.
    pub last_answers: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 1024,
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
            body: Duration::from_secs(5),
            decision: Duration::from_secs(30),
            answer: Duration::from_secs(5),
            idle: Duration::from_secs(180),
            patience: Duration::from_secs(1),
            body_bytes: 7 << 20,
            bytes_in_flight: 64 << 20,
            drain: Duration::from_secs(5),
            last_answers: Duration::from_secs(5),
        }
    }
}

impl ServerLimits {
    /// How often somebody looks whose time is up. A deadline is kept to within this.
    pub(super) fn tick(&self) -> Duration {
        let shortest = [self.handshake, self.header, self.body, self.answer].into_iter().min().unwrap_or_default();
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }
}
