//! Certificates that come, go and are wrong.

use portal_test_kit::certificates::Pair;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::kit::{review, setup};
use crate::admission::limits::ServerLimits;

fn der(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()
}

/// A pair whose certificate has expired long ago.
fn expired() -> Pair {
    let mut parameters = CertificateParams::new(["portal".to_owned()]).unwrap();
    parameters.not_after = date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    Pair { certificate: parameters.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_connections_and_closes_none() {
    let fixture = setup(ServerLimits::default()).await;
    let mut old = fixture.client().await;
    old.ask(review("/review", 5)).await.check(200, "5 bytes\n");

    let second = fixture.pair();
    assert_ne!(old.shown(), der(&second));
    fixture.volume.write(&second, "");
    fixture.counts("portal_admission_certificate_loads_total{result=\"loaded\"}", 2).await;
    old.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    let mut new = fixture.client().await;
    assert_eq!(new.shown(), der(&second));
    new.ask(review("/review", 5)).await.check(200, "5 bytes\n");
    // 2100-01-01, as the kit makes them.
    fixture.counts("portal_admission_certificate_expiry_timestamp_seconds", 4_102_444_800).await;
}

#[tokio::test]
async fn a_bad_certificate_leaves_the_one_before_in_use_until_a_good_one_comes() {
    let fixture = setup(ServerLimits::default()).await;
    fixture.certificate_is("[+]certificate ok").await;
    let shown = fixture.client().await.shown();
    let (one, other) = (fixture.pair(), fixture.pair());

    fixture.volume.write(&Pair { key: other.key.clone(), ..one.clone() }, "");
    let problem = "[!]certificate the key in /tls.key is not that of the first certificate in /tls.crt: replace both at once; \
                   the one before stays in use";
    fixture.certificate_is(problem).await;
    assert_eq!(fixture.client().await.shown(), shown);
    assert!(fixture.health.is_ready());
    fixture.volume.write(&expired(), "");
    let problem = "[!]certificate the certificate in /tls.crt has expired at 2020-01-01T00:00:00Z: renew it; the one before stays \
                   in use";
    fixture.certificate_is(problem).await;
    assert_eq!(fixture.client().await.shown(), shown);
    fixture.volume.clear();
    let problem =
        "[!]certificate /tls.crt cannot be read: No such file or directory (os error 2); the one before stays in use";
    fixture.certificate_is(problem).await;
    assert_eq!(fixture.client().await.shown(), shown);
    fixture.counts("portal_admission_certificate_loads_total{result=\"refused\"}", 3).await;

    fixture.volume.write(&other, "");
    fixture.certificate_is("[+]certificate ok").await;
    assert_eq!(fixture.client().await.shown(), der(&other));
}

#[tokio::test]
async fn without_a_certificate_the_replica_is_not_ready_until_there_is_one() {
    let nothing = Pair { certificate: String::new(), key: String::new() };
    let mut setup = setup(ServerLimits::default());
    setup.pair = Some(nothing);
    let fixture = setup.await;
    let problem =
        "[-]certificate there is no certificate in /tls.crt: it takes PEM, with the certificate first that is shown";
    fixture.certificate_is(problem).await;
    assert!(!fixture.health.is_ready());
    assert!(fixture.client_with(None, |_| {}).await.is_err());

    fixture.volume.write(&fixture.pair(), "");
    fixture.certificate_is("[+]certificate ok").await;
    fixture.client().await.ask(review("/review", 5)).await.check(200, "5 bytes\n");
}

#[tokio::test]
async fn with_a_certificate_that_has_expired_the_replica_is_not_ready() {
    let mut setup = setup(ServerLimits::default());
    setup.pair = Some(expired());
    let fixture = setup.await;
    fixture.certificate_is("[-]certificate the certificate in /tls.crt has expired: renew it").await;
    assert!(!fixture.health.is_ready());
    // A bad one does not hide that.
    fixture.volume.clear();
    fixture.counts("portal_admission_certificate_loads_total{result=\"refused\"}", 1).await;
    fixture.certificate_is("[-]certificate the certificate in /tls.crt has expired: renew it").await;
    fixture.volume.write(&fixture.pair(), "");
    fixture.certificate_is("[+]certificate ok").await;
}
