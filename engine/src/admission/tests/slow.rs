//! Clients that take their time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustls::{ClientConnection, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep},
};

use super::kit::{Client, Fixture, head, review, setup, soon};
use crate::admission::limits::ServerLimits;

/// Enough for all clients to come to where they stop, on a machine that is busy.
const TIME: Duration = Duration::from_secs(3);

fn limits() -> ServerLimits {
    ServerLimits { handshake: TIME, header: TIME, body: TIME, answer: TIME, ..ServerLimits::default() }
}

/// Waits until the server has closed a connection on which no answer comes. Returns how long that took.
async fn closed(mut stream: TcpStream, began: Instant) -> Duration {
    let mut bytes = [0; 64];
    while let Ok(1..) = soon(stream.read(&mut bytes)).await {}
    began.elapsed()
}

async fn half_handshake(fixture: &Fixture) -> TcpStream {
    let name = ServerName::try_from("portal").unwrap();
    let mut session = ClientConnection::new(Arc::new(fixture.config(None)), name).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    let mut stream = fixture.tcp().await;
    stream.write_all(&hello[..hello.len() / 2]).await.unwrap();
    stream
}

async fn begun(fixture: &Fixture, bytes: impl AsRef<[u8]>) -> Client {
    let mut client = fixture.client().await;
    client.send(bytes).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_half_way_keeps_nobody_from_an_answer_and_is_gone_after_its_time() {
    let fixture = setup(limits()).await;
    let began = Instant::now();
    let silent = join_all((0..60).map(|_| fixture.tcp())).await;
    let handshakes = join_all((0..60).map(|_| half_handshake(&fixture))).await;
    let headers = join_all((0..60).map(|_| begun(&fixture, "POST /review HTTP/1.1\r\nHost: portal\r\nContent-"))).await;
    let half_body = &review("/review", 20_000)[..10_000];
    let bodies = join_all((0..60).map(|_| begun(&fixture, half_body))).await;
    for _ in 0..5 {
        fixture.client().await.ask(review("/review", 1000)).await.check(200, "1000 bytes\n");
    }

    let silent = join_all(silent.into_iter().chain(handshakes).map(|stream| closed(stream, began)));
    let headers = join_all(headers.into_iter().map(async |mut client| {
        client.ends().await;
        began.elapsed()
    }));
    let bodies = join_all(bodies.into_iter().map(async |mut client| {
        let answer = client.answer().await;
        answer.check(408, "the body was not there in time\n");
        assert!(answer.closes());
        client.ends().await;
        began.elapsed()
    }));
    let (silent, headers, bodies) = tokio::join!(silent, headers, bodies);
    for time in silent.into_iter().chain(headers).chain(bodies) {
        assert!(time >= TIME * 9 / 10, "{time:?} is before its time");
    }
    fixture.counts("portal_admission_connections_closed_total{reason=\"handshake\"}", 120).await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"header\"}", 60).await;
    fixture.counts("portal_admission_requests_refused_total{reason=\"too-slow\"}", 60).await;
    fixture.counts("portal_admission_connections", 0).await;
    fixture.counts("portal_admission_body_bytes", 0).await;
}

#[tokio::test]
async fn a_byte_now_and_then_gains_no_time() {
    let time = Duration::from_millis(700);
    let fixture = setup(ServerLimits { header: time, body: time, ..limits() }).await;
    let trickle = async |mut client: Client| {
        let began = Instant::now();
        while client.stream.write_all(b"x").await.is_ok() && client.stream.flush().await.is_ok() {
            assert!(began.elapsed() < 20 * time, "it goes on for ever");
            sleep(time / 20).await;
        }
    };
    let header = begun(&fixture, "POST /review HTTP/1.1\r\nHost: ").await;
    let body = begun(&fixture, head("/review", 100_000)).await;
    tokio::join!(trickle(header), trickle(body));
    fixture.counts("portal_admission_connections_closed_total{reason=\"header\"}", 1).await;
    fixture.counts("portal_admission_requests_refused_total{reason=\"too-slow\"}", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_its_answer_is_gone_after_its_time() {
    let fixture = setup(ServerLimits { answer: TIME / 3, ..limits() }).await;
    let mut readers = join_all((0..5).map(|_| begun(&fixture, review("/large", 10)))).await;
    // One reads a little now and then, which gains it no time.
    let mut reader = readers.remove(0);
    tokio::spawn(async move {
        while let Ok(1..) = reader.stream.read(&mut [0; 1024]).await {
            sleep(Duration::from_millis(20)).await;
        }
    });
    fixture.counts("portal_admission_connections_closed_total{reason=\"answer\"}", 5).await;
    fixture.client().await.ask(review("/review", 1000)).await.check(200, "1000 bytes\n");
}

#[tokio::test]
async fn who_asks_again_and_reads_nothing_is_gone_after_its_time() {
    let fixture = setup(ServerLimits { answer: TIME / 3, ..limits() }).await;
    let _client = begun(&fixture, review("/large", 10).repeat(5)).await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"answer\"}", 1).await;
}

#[tokio::test]
async fn a_connection_without_a_request_stays_open_longer_than_a_head_may_take() {
    let idle = Duration::from_secs(3);
    let fixture = setup(ServerLimits { header: Duration::from_millis(200), idle, ..limits() }).await;
    let mut client = fixture.client().await;
    for _ in 0..2 {
        sleep(Duration::from_millis(600)).await;
        client.ask(review("/review", 10)).await.check(200, "10 bytes\n");
    }
    let began = Instant::now();
    client.ends().await;
    assert!(began.elapsed() >= idle * 9 / 10);
    fixture.counts("portal_admission_connections_closed_total{reason=\"idle\"}", 1).await;
}

#[tokio::test]
async fn a_decision_that_never_comes_ends_its_connection() {
    let fixture = setup(ServerLimits { decision: Duration::from_millis(300), ..limits() }).await;
    let mut client = begun(&fixture, review("/gate", 1000)).await;
    client.ends().await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"decision\"}", 1).await;
    fixture.counts("portal_admission_body_bytes", 0).await;
}
