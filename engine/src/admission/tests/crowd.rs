//! More connections than there is room for, and a listener that has none.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    time::sleep,
};

use super::kit::{Client, Fixture, review, setup, soon};
use crate::admission::{limits::ServerLimits, server::Accept};

fn limits(connections: usize) -> ServerLimits {
    ServerLimits { connections, patience: Duration::from_millis(300), ..ServerLimits::default() }
}

/// A client that was answered and is idle.
async fn idle(fixture: &Fixture) -> Client {
    let mut client = fixture.client().await;
    client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    sleep(Duration::from_millis(20)).await;
    client
}

#[tokio::test]
async fn when_there_is_no_room_the_one_that_was_idle_longest_goes() {
    let fixture = setup(limits(3)).await;
    let (mut first, mut second, mut third) = (idle(&fixture).await, idle(&fixture).await, idle(&fixture).await);
    first.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    let mut fourth = idle(&fixture).await;
    second.ends().await;
    for client in [&mut first, &mut third, &mut fourth] {
        client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    }
    fixture.counts("portal_admission_connections", 3).await;
    fixture.counts("portal_admission_connections_closed_total{reason=\"make-room\"}", 1).await;
}

#[tokio::test]
async fn who_keeps_us_waiting_goes_before_who_is_idle() {
    let fixture = setup(limits(3)).await;
    let mut known = idle(&fixture).await;
    let mut silent = fixture.tcp().await;
    let mut unused = fixture.client().await;
    fixture.counts("portal_admission_connections", 3).await;
    sleep(Duration::from_millis(400)).await;
    let mut next = idle(&fixture).await;
    assert_eq!(soon(silent.read(&mut [0])).await.unwrap_or(0), 0);
    let mut last = idle(&fixture).await;
    unused.ends().await;
    for client in [&mut known, &mut next, &mut last] {
        client.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let fixture = setup(limits(20)).await;
    let mut crowd = Vec::new();
    for _ in 0..10 {
        for _ in 0..20 {
            crowd.push(fixture.tcp().await);
        }
        fixture.client().await.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    }
}

#[tokio::test]
async fn who_waits_for_a_decision_is_never_closed_for_another() {
    let fixture = setup(limits(2)).await;
    let (mut first, mut second) = (fixture.client().await, fixture.client().await);
    first.send(review("/gate", 5)).await;
    second.send(review("/gate", 5)).await;
    fixture.counts("portal_admission_body_bytes", 10).await;
    sleep(Duration::from_millis(400)).await;
    assert!(fixture.client_with(None, |_| {}).await.is_err());
    fixture.counts("portal_admission_connections_closed_total{reason=\"no-room\"}", 1).await;
    fixture.gate.add_permits(2);
    first.answer().await.check(200, "5 bytes\n");
    second.answer().await.check(200, "5 bytes\n");
    fixture.client().await.ask(review("/review", 5)).await.check(200, "5 bytes\n");
}

/// A listener that fails as often as it is told to.
struct Failing {
    listener: TcpListener,
    errors: VecDeque<i32>,
}

impl Accept for Failing {
    async fn accept(&mut self) -> io::Result<TcpStream> {
        match self.errors.pop_front() {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Accept::accept(&mut self.listener).await,
        }
    }
}

#[tokio::test]
async fn no_error_of_the_listener_ends_it_and_only_its_own_make_it_unready() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // EMFILE, ENOMEM, ECONNABORTED, EHOSTUNREACH, EBADF.
    let errors = [24, 12, 103, 113, 9].into();
    let fixture = setup(ServerLimits::default()).start(address, Failing { listener, errors });
    let says = async |expected: &str| {
        let seen = async {
            while !fixture.health.report().contains(expected) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        soon(seen).await;
    };
    let shortage = "no connection can be taken: Too many open files (os error 24); others are closed instead";
    says(&format!("[!]listener {shortage}\n")).await;
    says("[-]listener no connection can be taken: Bad file descriptor (os error 9)\n").await;
    fixture.client().await.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    says("[+]listener ok\n").await;
    fixture.counts("portal_admission_accept_errors_total", 5).await;
}
