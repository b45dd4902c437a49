//! What is spoken, and what is said to those who speak something else.

use std::sync::Arc;

use rustls::{HandshakeKind, ProtocolVersion, client::Resumption, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::kit::{head, review, setup, soon};
use crate::admission::limits::ServerLimits;

#[tokio::test]
async fn http_1_1_is_spoken_with_whoever_knows_it() {
    let fixture = setup(ServerLimits::default()).await;
    let offer = async |protocols: &[&[u8]]| {
        let protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        fixture.client_with(None, |config| config.alpn_protocols = protocols).await
    };
    let both: &[&[u8]] = &[b"h2", b"http/1.1"];
    for (offered, expected) in [(both, Some("http/1.1")), (&both[1..], Some("http/1.1")), (&[], None)] {
        let mut client = offer(offered).await.unwrap();
        assert_eq!(client.stream.get_ref().1.alpn_protocol(), expected.map(str::as_bytes));
        client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    }
    assert!(offer(&both[..1]).await.is_err());
    // Without a word before, HTTP/2 is no request.
    let mut client = fixture.client().await;
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    client.next().await;
    client.ends().await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"handshake-failed\"}", 1).await;
}

#[tokio::test]
async fn both_versions_of_tls_are_spoken_and_no_session_is_resumed() {
    let fixture = setup(ServerLimits::default()).await;
    let versions = [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)];
    for (version, expected) in versions {
        let mut config = fixture.config_of(&[version], None);
        config.resumption = Resumption::in_memory_sessions(8);
        let config = Arc::new(config);
        for _ in 0..2 {
            let mut client = fixture.connect(Arc::clone(&config)).await.unwrap();
            client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
            let (_, session) = client.stream.get_ref();
            assert_eq!(session.protocol_version(), Some(expected));
            assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
        }
    }
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_in_words() {
    let fixture = setup(ServerLimits::default()).await;
    for first in [review("/review", 8 << 20), "GET / HTTP/1.0\r\n\r\n".to_owned(), "\0\u{1}\u{2}nonsense".to_owned()] {
        let mut stream = fixture.tcp().await;
        stream.write_all(first.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert_eq!(body, "This port speaks HTTPS and not HTTP\n");
    }
    fixture.counts("portal_admission_connections_closed_total{reason=\"not-tls\"}", 3).await;
    // What begins as TLS does and is none.
    let mut stream = fixture.tcp().await;
    stream.write_all(&[0x16, 0x03, 0x01, 0x00, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff]).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"handshake-failed\"}", 1).await;
    fixture.counts("portal_admission_connections", 0).await;
}

#[tokio::test]
async fn requests_that_are_sent_at_once_are_answered_in_their_order() {
    let fixture = setup(ServerLimits::default()).await;
    let mut client = fixture.client().await;
    client.send((1..=40).map(|length| review("/review", length)).collect::<String>()).await;
    for length in 1..=40 {
        client.answer().await.check(200, &format!("{length} bytes\n"));
    }
}

#[tokio::test]
async fn heads_that_are_no_heads_are_refused() {
    let fixture = setup(ServerLimits::default()).await;
    let large = head("/review", 5).replace("Host:", &format!("X: {}\r\nHost:", "x".repeat(9_000)));
    for (request, status) in [(large, 431), ("what is this\r\n\r\n".to_owned(), 400), ("\0".repeat(100), 400)] {
        let mut client = fixture.client().await;
        assert_eq!(client.ask(request).await.status, status);
        client.ends().await;
    }
}

#[tokio::test]
async fn a_panic_costs_the_request_that_it_happened_in() {
    let fixture = setup(ServerLimits::default()).await;
    let mut client = fixture.client().await;
    let words = "the request could not be decided because of a mistake in Portal: the log of the engine has more\n";
    for _ in 0..3 {
        client.ask(review("/panic", 5)).await.check(500, words);
        client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    }
    fixture.counts("portal_admission_requests_refused_total{reason=\"panic\"}", 3).await;
    fixture.counts("portal_admission_body_bytes", 0).await;
}

#[tokio::test]
async fn who_asks_for_json_is_refused_in_the_form_of_kubernetes() {
    let fixture = setup(ServerLimits { body_bytes: 100, ..ServerLimits::default() }).await;
    let mut client = fixture.client().await;
    let asking = |request: String| request.replace("Host:", "Accept: application/json, */*\r\nHost:");
    let status = |code: u16, words: &str| {
        format!(
            r#"{{"apiVersion":"v1","code":{code},"kind":"Status","message":"{words}","metadata":{{}},"status":"Failure"}}"#
        )
    };
    let too_large = "the body is larger than 100 bytes, which no review of what the API server takes can be";
    client.ask(asking(review("/review", 101))).await.check(413, &status(413, too_large));
    client.ask(asking(review("/nowhere", 5))).await.check(404, &status(404, "there is nothing at this path"));
    let answer = client.ask(asking(review("/panic", 5))).await;
    assert!(answer.status == 500 && answer.body.contains("a mistake in Portal"), "{answer:?}");
    assert!(answer.head.to_lowercase().contains("content-type: application/json"), "{}", answer.head);
    // Decisions are as they are, and people are told in words.
    client.ask(asking(review("/review", 5))).await.check(200, "5 bytes\n");
    client.ask(review("/nowhere", 5)).await.check(404, "there is nothing at this path\n");
    fixture.counts("portal_admission_requests_refused_total{reason=\"too-large\"}", 1).await;
}
