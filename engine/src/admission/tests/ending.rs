//! The end of a server.

use std::time::Duration;

use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::kit::{head, review, setup, soon};
use crate::admission::limits::ServerLimits;

const DRAIN: Duration = Duration::from_secs(3);
const LAST_ANSWERS: Duration = Duration::from_secs(1);

fn limits() -> ServerLimits {
    ServerLimits { drain: DRAIN, last_answers: LAST_ANSWERS, ..ServerLimits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_at_the_end() {
    let fixture = setup(limits()).await;
    let (mut under_way, mut idle, mut quiet) = (fixture.client().await, fixture.client().await, fixture.client().await);
    for client in [&mut idle, &mut quiet] {
        let answer = client.ask(review("/review", 5)).await;
        answer.check(200, "5 bytes\n");
        assert!(!answer.closes());
    }
    under_way.send(review("/gate", 5)).await;
    fixture.counts("portal_admission_body_bytes", 5).await;

    let began = Instant::now();
    fixture.shutdown.cancel();
    sleep(Duration::from_millis(100)).await;
    // Somebody who has not heard of it yet.
    let mut late = fixture.client().await;
    for client in [&mut late, &mut idle] {
        let answer = client.ask(review("/review", 5)).await;
        answer.check(200, "5 bytes\n");
        assert!(answer.closes(), "{}", answer.head);
        client.ends().await;
    }
    assert!(began.elapsed() < DRAIN, "the machine is too slow for this test");
    // Who asks nothing is closed when nobody is taken any more. Before, a request might have been on its way.
    quiet.ends().await;
    assert!(began.elapsed() >= DRAIN);
    assert!(TcpStream::connect(fixture.address).await.is_err());
    assert!(!fixture.serving.is_finished());

    fixture.gate.add_permits(1);
    let answer = under_way.answer().await;
    answer.check(200, "5 bytes\n");
    assert!(answer.closes());
    under_way.ends().await;
    soon(fixture.serving).await.unwrap();
    assert!(began.elapsed() < DRAIN + LAST_ANSWERS, "it waits although there is nothing to wait for");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_can_keep_the_server_from_its_end() {
    let fixture = setup(limits()).await;
    let (mut undecided, mut half, _silent) = (fixture.client().await, fixture.client().await, fixture.tcp().await);
    undecided.send(review("/gate", 5)).await;
    half.send(&head("/review", 5)[..20]).await;
    fixture.counts("portal_admission_body_bytes", 5).await;
    let began = Instant::now();
    fixture.shutdown.cancel();
    soon(fixture.serving).await.unwrap();
    assert!(began.elapsed() >= DRAIN + LAST_ANSWERS);
    assert!(began.elapsed() < 2 * (DRAIN + LAST_ANSWERS));
    undecided.ends().await;
    half.ends().await;
}
