//! Who may ask what, when clients have to show a certificate.

use portal_test_kit::certificates::{Authority, Pair};

use super::kit::{API_SERVER, Answer, Fixture, review, setup};
use crate::admission::limits::ServerLimits;

const STATE: &str = "GET /state HTTP/1.1\r\nHost: portal\r\n\r\n";
const NONE: &str = "a client certificate is needed here: the API server shows one if its --admission-control-config-file names a \
                    kubeconfig that has one for this webhook\n";

async fn fixture(authority: &Authority) -> Fixture {
    let mut setup = setup(ServerLimits::default());
    setup.clients = Some(authority.pair().certificate);
    setup.await
}

/// Asks with a certificate. What is not for the API server alone is answered in any case.
async fn ask(fixture: &Fixture, pair: Option<&Pair>) -> Answer {
    let mut client = fixture.client_with(pair, |_| {}).await.unwrap();
    client.ask(STATE).await.check(200, "well\n");
    let answer = client.ask(review("/review", 5)).await;
    assert_eq!(answer.closes(), answer.status != 200);
    answer
}

#[tokio::test]
async fn only_the_api_server_may_ask_the_webhook() {
    let authority = Authority::new("clients").unwrap();
    let fixture = fixture(&authority).await;
    let right = authority.client(API_SERVER, Some("system:masters")).unwrap();
    ask(&fixture, Some(&right)).await.check(200, "5 bytes\n");
    ask(&fixture, None).await.check(401, NONE);
    let other_name = authority.client("prometheus", None).unwrap();
    let words = "the client certificate is for prometheus, not for kube-apiserver\n";
    ask(&fixture, Some(&other_name)).await.check(403, words);
    let other_authority = Authority::new("clients").unwrap().client(API_SERVER, None).unwrap();
    let words = "the client certificate is not valid here: invalid peer certificate: BadSignature\n";
    ask(&fixture, Some(&other_authority)).await.check(403, words);
    let unknown_authority = Authority::new("strangers").unwrap().client(API_SERVER, None).unwrap();
    let words = "the client certificate is not valid here: invalid peer certificate: UnknownIssuer\n";
    ask(&fixture, Some(&unknown_authority)).await.check(403, words);
    // A certificate for servers is none for clients.
    let server = authority.server(API_SERVER, &[API_SERVER]).unwrap();
    assert_eq!(ask(&fixture, Some(&server)).await.status, 403);
    fixture.counts("portal_admission_requests_refused_total{reason=\"no-certificate\"}", 1).await;
    fixture.counts("portal_admission_requests_refused_total{reason=\"wrong-certificate\"}", 4).await;
}

#[tokio::test]
async fn a_new_authority_counts_from_the_next_connection_on() {
    let (first, second) = (Authority::new("first").unwrap(), Authority::new("second").unwrap());
    let fixture = fixture(&first).await;
    let of_first = first.client(API_SERVER, None).unwrap();
    let of_second = second.client(API_SERVER, None).unwrap();
    let mut open = fixture.client_with(Some(&of_first), |_| {}).await.unwrap();
    open.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    assert_eq!(ask(&fixture, Some(&of_second)).await.status, 403);

    let both = first.pair().certificate + &second.pair().certificate;
    fixture.volume.write(&fixture.pair(), &both);
    fixture.counts("portal_admission_certificate_loads_total{result=\"loaded\"}", 4).await;
    for pair in [&of_first, &of_second] {
        ask(&fixture, Some(pair)).await.check(200, "5 bytes\n");
    }
    fixture.volume.write(&fixture.pair(), "nothing");
    let problem =
        "[!]certificate there is no certificate of an authority in /ca.crt: it takes PEM; the one before stays in use";
    fixture.certificate_is(problem).await;
    ask(&fixture, Some(&of_second)).await.check(200, "5 bytes\n");
    fixture.volume.write(&fixture.pair(), &second.pair().certificate);
    fixture.certificate_is("[+]certificate ok").await;
    assert_eq!(ask(&fixture, Some(&of_first)).await.status, 403);
    open.ask(review("/review", 5)).await.check(200, "5 bytes\n");
}

#[tokio::test]
async fn without_an_authority_nobody_is_the_api_server() {
    let mut setup = setup(ServerLimits::default());
    setup.clients = Some("nothing".to_owned());
    let fixture = setup.await;
    fixture.certificate_is("[-]certificate there is no certificate of an authority in /ca.crt: it takes PEM").await;
    let pair = Authority::new("clients").unwrap().client(API_SERVER, None).unwrap();
    let words = "the authority of client certificates cannot be read: see /readyz\n";
    for pair in [None, Some(&pair)] {
        ask(&fixture, pair).await.check(403, words);
    }
}
