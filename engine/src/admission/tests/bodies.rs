//! Bodies that are too large, too many, or not what they say.

use std::time::Duration;

use tokio::time::sleep;

use super::kit::{Answer, Fixture, head, review, setup};
use crate::admission::limits::ServerLimits;

const KIB: usize = 1 << 10;

async fn fixture() -> Fixture {
    setup(ServerLimits { body_bytes: 100 * KIB, bytes_in_flight: 250 * KIB, ..ServerLimits::default() }).await
}

/// Sends a request, and then shows that the connection goes on.
async fn ask(fixture: &Fixture, request: impl AsRef<[u8]>) -> Answer {
    let mut client = fixture.client().await;
    let answer = client.ask(request).await;
    client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    answer
}

fn chunked(pieces: &[&str]) -> String {
    let mut text = head("/review", 0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    for piece in pieces {
        text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    text.push_str("0\r\n\r\n");
    text
}

#[tokio::test]
async fn a_body_may_be_as_large_as_its_limit_and_no_larger() {
    let fixture = fixture().await;
    let too_large = "the body is larger than 102400 bytes, which no review of what the API server takes can be\n";
    ask(&fixture, review("/review", 0)).await.check(200, "0 bytes\n");
    ask(&fixture, review("/review", 100 * KIB)).await.check(200, "102400 bytes\n");
    ask(&fixture, review("/review", 100 * KIB + 1)).await.check(413, too_large);
    let piece = "x".repeat(10 * KIB);
    ask(&fixture, chunked(&[&*piece; 10])).await.check(200, "102400 bytes\n");
    ask(&fixture, chunked(&[&[&*piece; 10][..], &["y"]].concat())).await.check(413, too_large);
    fixture.counts("portal_admission_requests_refused_total{reason=\"too-large\"}", 2).await;
    fixture.counts("portal_admission_body_bytes", 0).await;
}

#[tokio::test]
async fn the_largest_review_of_the_api_server_is_taken() {
    let fixture = setup(ServerLimits::default()).await;
    ask(&fixture, review("/review", 7 << 20)).await.check(200, "7340032 bytes\n");
    // Whatever the handler does with it.
    for path in ["/review", "/anybody"] {
        let answer = ask(&fixture, review(path, (7 << 20) + 1)).await;
        assert_eq!(answer.status, 413);
        assert!(answer.body.starts_with("the body is larger than 7340032 bytes"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_length_that_is_a_lie_costs_nothing() {
    let fixture = fixture().await;
    // An answer comes before the body does, which never would.
    let mut client = fixture.client().await;
    let answer = client.ask(head("/review", usize::MAX / 2)).await;
    assert_eq!(answer.status, 413);
    // What was promised is not held before it is there.
    let mut promises = Vec::new();
    for _ in 0..20 {
        let mut client = fixture.client().await;
        client.send(head("/review", 100 * KIB)).await;
        promises.push(client);
    }
    fixture.counts("portal_admission_body_bytes", 0).await;
    ask(&fixture, review("/review", 100 * KIB)).await.check(200, "102400 bytes\n");
    // Less was promised than came: the rest is taken for a request, and is none.
    let mut client = fixture.client().await;
    client.send(head("/review", 5) + "xxxxx\u{1}\u{2}\r\n\r\n").await;
    client.answer().await.check(200, "5 bytes\n");
    assert_eq!(client.answer().await.status, 400);
    client.ends().await;
    for length in ["abc", "-1", "5, 6"] {
        let mut client = fixture.client().await;
        let request = head("/review", 5).replace("Length: 5", &format!("Length: {length}"));
        assert_eq!(client.ask(request).await.status, 400, "{length}");
    }
}

#[tokio::test]
async fn a_body_whose_pieces_are_nonsense_is_refused() {
    let fixture = fixture().await;
    let mut client = fixture.client().await;
    client.send(chunked(&[]).replace("0\r\n\r\n", "zz\r\n")).await;
    let answer = client.answer().await;
    answer.check(400, "the body ended before its end\n");
    assert!(answer.closes());
    client.ends().await;
    fixture.counts("portal_admission_requests_refused_total{reason=\"broken\"}", 1).await;
}

#[tokio::test]
async fn who_goes_in_the_middle_of_a_body_holds_nothing() {
    let fixture = fixture().await;
    let mut client = fixture.client().await;
    client.send(&review("/review", 90 * KIB)[..50 * KIB]).await;
    fixture.counts("portal_admission_body_bytes", 64 << 10).await;
    drop(client);
    fixture.counts("portal_admission_body_bytes", 0).await;
    fixture.counts("portal_admission_connections", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_bodies_hold_all_memory_others_are_told_to_come_again() {
    let fixture = fixture().await;
    let (mut first, mut second) = (fixture.client().await, fixture.client().await);
    first.send(review("/gate", 100 * KIB)).await;
    second.send(review("/gate", 100 * KIB)).await;
    fixture.counts("portal_admission_body_bytes", 200 << 10).await;

    let mut third = fixture.client().await;
    let answer = third.ask(review("/review", 100 * KIB)).await;
    answer.check(503, "the bodies of other requests hold all memory that there is for them: try again\n");
    assert!(answer.head.contains("\r\nretry-after: 1\r\n"), "{}", answer.head);
    assert!(!answer.closes());
    // What fits is answered, on the same connection.
    third.ask(review("/review", 40 * KIB)).await.check(200, "40960 bytes\n");

    fixture.gate.add_permits(2);
    first.answer().await.check(200, "102400 bytes\n");
    second.answer().await.check(200, "102400 bytes\n");
    fixture.counts("portal_admission_body_bytes", 0).await;
    third.ask(review("/review", 100 * KIB)).await.check(200, "102400 bytes\n");
    fixture.counts("portal_admission_requests_refused_total{reason=\"no-memory\"}", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_get_on_make_room_for_others() {
    let patience = Duration::from_millis(100);
    let limits =
        ServerLimits { body_bytes: 100 * KIB, bytes_in_flight: 250 * KIB, patience, ..ServerLimits::default() };
    let fixture = setup(limits).await;
    let mut stuck = Vec::new();
    for _ in 0..2 {
        let mut client = fixture.client().await;
        client.send(&review("/review", 100 * KIB)[..99 * KIB]).await;
        fixture.counts("portal_admission_body_bytes", (stuck.len() as i64 + 1) * (100 << 10)).await;
        stuck.push(client);
        sleep(2 * patience).await;
    }
    ask(&fixture, review("/review", 100 * KIB)).await.check(200, "102400 bytes\n");
    // The one that was stuck for longer.
    stuck[0].ends().await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"make-room\"}", 1).await;
    stuck[1].send("x".repeat(KIB + head("/review", 100 * KIB).len())).await;
    stuck[1].answer().await.check(200, "102400 bytes\n");
}

#[tokio::test]
async fn who_waits_for_leave_to_send_gets_it_or_the_answer() {
    let fixture = fixture().await;
    let waiting = |length| head("/review", length).replace("Host:", "Expect: 100-continue\r\nHost:");
    let mut client = fixture.client().await;
    assert_eq!(client.ask(waiting(10)).await.status, 100);
    client.ask("x".repeat(10)).await.check(200, "10 bytes\n");
    assert_eq!(client.ask(waiting(200 * KIB)).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_wants_is_read_past() {
    let fixture = fixture().await;
    let request = review("/review", 90 * KIB);
    ask(&fixture, request.replace("/review", "/nowhere")).await.check(404, "there is nothing at this path\n");
    ask(&fixture, request.replace("POST", "PUT")).await.check(405, "this path takes POST, not PUT\n");
    let text = request.replace("application/json", "text/plain");
    ask(&fixture, text).await.check(415, "the body has to be application/json, and is text/plain\n");
    let unnamed = request.replace("Content-Type: application/json\r\n", "");
    ask(&fixture, unnamed).await.check(415, "the body has to be application/json, and is not named\n");
    let with_charset = request.replace("/json", "/JSON; charset=utf-8");
    ask(&fixture, with_charset).await.check(200, "92160 bytes\n");
    // But not for ever.
    let mut client = fixture.client().await;
    client.send(head("/nowhere", 300 * KIB)).await;
    client.answer().await.check(404, "there is nothing at this path\n");
    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, "x".repeat(300 * KIB).as_bytes()).await;
    client.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_read_past_has_its_time_and_what_comes_after_it_is_idle() {
    let limits = ServerLimits {
        body: Duration::from_millis(500),
        answer: Duration::from_millis(500),
        header: Duration::from_millis(200),
        ..ServerLimits::default()
    };
    let fixture = setup(limits).await;
    let mut client = fixture.client().await;
    client.ask(review("/nowhere", 90 * KIB)).await.check(404, "there is nothing at this path\n");
    sleep(Duration::from_millis(1500)).await;
    client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    client.ask(&review("/nowhere", 90 * KIB)[..50 * KIB]).await.check(404, "there is nothing at this path\n");
    client.ends().await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"body\"}", 1).await;
}
