//! What is said of certificates that somebody else issued.

use expect_test::{Expect, expect};
use portal_test_kit::certificates::{Authority, Pair};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use super::*;

const NAME: &str = "portal.portal-system.svc";

fn now() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().unwrap()
}

fn secret_of(pair: &Pair, authority: &str) -> Data {
    let entries = [("tls.crt", pair.certificate.as_str()), ("tls.key", &pair.key), ("ca.crt", authority)];
    entries.map(|(key, text)| (key.to_owned(), text.as_bytes().to_vec())).into()
}

/// An authority, and a Secret with a certificate of its own.
fn good() -> (Authority, Data) {
    let authority = Authority::new("company").unwrap();
    let data = secret_of(&authority.server("webhook", &[NAME]).unwrap(), &authority.pair().certificate);
    (authority, data)
}

fn with<'a>(secret: Option<&'a Data>, names: &'a [String]) -> Supplied<'a> {
    Supplied {
        now: now(),
        source: Source::Secret,
        names,
        secret_name: "webhook-tls",
        secret,
        bundle: None,
        published: None,
        served: &[],
    }
}

fn shown(judgement: &Judgement) -> String {
    let State { is_ready, reason, message, .. } = &judgement.state;
    format!("{is_ready} {reason}: {message}")
}

/// Compares what is said of a Secret.
#[track_caller]
fn check(secret: Option<&Data>, expected: Expect) {
    expected.assert_eq(&shown(&verify(&with(secret, &[NAME.to_owned()]))));
}

/// Compares what is said of the good Secret with one entry changed.
#[track_caller]
fn check_entry(key: &str, text: Option<&str>, expected: Expect) {
    let (_, mut data) = good();
    data.remove(key);
    data.extend(text.map(|text| (key.to_owned(), text.as_bytes().to_vec())));
    check(Some(&data), expected);
}

/// A certificate between two days, for a server or for an authority, that an authority of the same time has signed.
fn between(from: &str, until: &str, is_authority: bool) -> Data {
    let moment = |text: &str| {
        let moment = format!("{text}T00:00:00Z").parse::<Timestamp>().unwrap().as_second().unsigned_abs();
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(moment)
    };
    let parameters = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        (parameters.not_before, parameters.not_after) = (moment(from), moment(until));
        parameters
    };
    let (mut authority, mut leaf) = (parameters(&[]), parameters(&[NAME]));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    if is_authority {
        leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = leaf.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).unwrap();
    let pair = Pair { certificate: certificate.pem(), key: key.serialize_pem() };
    secret_of(&pair, &authority.self_signed(&authority_key).unwrap().pem())
}

#[test]
fn a_good_certificate_is_taken_as_it_is() {
    let (_, data) = good();
    check(
        Some(&data),
        expect!["true Valid: the certificate in the Secret webhook-tls is valid until 2100-01-01T00:00:00Z"],
    );
    let judgement = verify(&with(Some(&data), &[NAME.to_owned()]));
    assert_eq!((judgement.bundle, judgement.action), (data["ca.crt"].clone(), None));
    // A wildcard is for a name too.
    let authority = Authority::new("company").unwrap();
    let data =
        secret_of(&authority.server("webhook", &["*.portal-system.svc"]).unwrap(), &authority.pair().certificate);
    assert!(verify(&with(Some(&data), &[NAME.to_owned()])).state.is_ready);
}

#[test]
fn what_is_missing_is_told() {
    check(
        None,
        expect![
            "false SecretMissing: there is no Secret webhook-tls in the namespace of the engine: create it, with a certificate for portal.portal-system.svc in tls.crt, its key in tls.key, and in ca.crt the authority that signed it"
        ],
    );
    let waiting = verify(&Supplied { source: Source::CertManager, ..with(None, &[]) });
    expect!["false WaitingForCertManager: cert-manager has not written the Secret webhook-tls yet: kubectl describe certificates"].assert_eq(&shown(&waiting));
    assert_eq!(waiting.bundle, b"");
    check_entry(
        "tls.crt",
        None,
        expect![
            "false CertificateUnreadable: the Secret webhook-tls: tls.crt is missing: it takes PEM, with the certificate first that is shown"
        ],
    );
    check_entry(
        "tls.key",
        None,
        expect![
            "false KeyUnreadable: the Secret webhook-tls: tls.key is missing: it takes PEM, with a key that needs no passphrase"
        ],
    );
    check_entry(
        "ca.crt",
        None,
        expect![
            "false AuthorityMissing: nobody says which authority API servers have to trust: the Secret webhook-tls has no ca.crt; add it, or set spec.certificates.caBundle"
        ],
    );
    check_entry(
        "ca.crt",
        Some(""),
        expect![
            "false AuthorityMissing: nobody says which authority API servers have to trust: the Secret webhook-tls has no ca.crt; add it, or set spec.certificates.caBundle"
        ],
    );
}

#[test]
fn what_cannot_be_read_is_told() {
    let half = "-----BEGIN CERTIFICATE-----\nAAAA";
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check_entry(
        "tls.crt",
        Some("garbage"),
        expect![
            "false CertificateUnreadable: the Secret webhook-tls: there is no certificate in tls.crt: it takes PEM, with the certificate first that is shown"
        ],
    );
    check_entry(
        "tls.crt",
        Some(half),
        expect![
            "false CertificateUnreadable: the Secret webhook-tls: tls.crt is not PEM: a section has no end: it takes PEM, with the certificate first that is shown"
        ],
    );
    check_entry(
        "tls.crt",
        Some(nonsense),
        expect![
            "false CertificateUnreadable: the Secret webhook-tls: the certificate in tls.crt cannot be read: issue another one"
        ],
    );
    check_entry(
        "tls.key",
        Some("garbage"),
        expect![
            "false KeyUnreadable: the Secret webhook-tls: the key in tls.key cannot be used: it takes RSA, P-256, P-384 or Ed25519, in PEM and without a passphrase"
        ],
    );
    check_entry(
        "tls.key",
        Some(half),
        expect![
            "false KeyUnreadable: the Secret webhook-tls: tls.key is not PEM: a section has no end: it takes PEM, with a key that needs no passphrase"
        ],
    );
    check_entry(
        "tls.key",
        Some(&nonsense.replace("CERTIFICATE", "PRIVATE KEY")),
        expect![
            "false KeyUnreadable: the Secret webhook-tls: the key in tls.key cannot be used: it takes RSA, P-256, P-384 or Ed25519, in PEM and without a passphrase"
        ],
    );
    check_entry(
        "ca.crt",
        Some("garbage"),
        expect![
            "false AuthorityUnreadable: ca.crt of the Secret webhook-tls cannot be read: it takes certificates in PEM, one behind the other"
        ],
    );
    check_entry(
        "ca.crt",
        Some(nonsense),
        expect![
            "false AuthorityUnreadable: ca.crt of the Secret webhook-tls cannot be read: it takes certificates in PEM, one behind the other"
        ],
    );
}

#[test]
fn what_does_not_fit_is_told() {
    let (authority, data) = good();
    let other = authority.server("other", &["other.portal-system.svc"]).unwrap();
    check_entry(
        "tls.key",
        Some(&other.key),
        expect![
            "false KeyMismatch: the Secret webhook-tls: the key in tls.key is not that of the certificate in tls.crt: replace both at once"
        ],
    );
    check(
        Some(&secret_of(&other, &authority.pair().certificate)),
        expect![
            "false NameNotCovered: the Secret webhook-tls: the certificate is for other.portal-system.svc, and not for portal.portal-system.svc: issue one that is"
        ],
    );
    let unnamed = authority.server(NAME, &[]).unwrap();
    check(
        Some(&secret_of(&unnamed, &authority.pair().certificate)),
        expect![
            "false NameNotCovered: the Secret webhook-tls: the certificate is for no DNS name, and not for portal.portal-system.svc: issue one that is"
        ],
    );
    let stranger = Authority::new("stranger").unwrap();
    check_entry(
        "ca.crt",
        Some(&stranger.pair().certificate),
        expect![
            "false NotTrusted: the Secret webhook-tls: the certificate does not lead to an authority in ca.crt (UnknownIssuer): put the authority there, and those between them into tls.crt, behind the certificate"
        ],
    );
    let client = authority.client(NAME, None).unwrap();
    check(
        Some(&secret_of(&client, &authority.pair().certificate)),
        expect![
            "false NotTrusted: the Secret webhook-tls: the certificate is not for servers: issue one with the extended key usage serverAuth"
        ],
    );
    check(
        Some(&between("2026-01-01", "2028-01-01", true)),
        expect![
            "false NotTrusted: the Secret webhook-tls: the certificate in tls.crt is one of an authority: issue one for a server, that the authority signs"
        ],
    );
    // Of several authorities one is enough, and an explicit one counts instead.
    let both = format!("{}{}", stranger.pair().certificate, String::from_utf8_lossy(&data["ca.crt"]));
    let both = Data::from([("ca.crt".to_owned(), both.into_bytes())])
        .into_iter()
        .chain(data.clone().into_iter().filter(|(key, _)| key != "ca.crt"))
        .collect();
    assert!(verify(&with(Some(&both), &[NAME.to_owned()])).state.is_ready);
    let names = [NAME.to_owned()];
    let stranger = stranger.pair().certificate;
    let explicit = Supplied { bundle: Some(stranger.as_bytes()), ..with(Some(&data), &names) };
    expect!["false NotTrusted: the Secret webhook-tls: the certificate does not lead to an authority in spec.certificates.caBundle (UnknownIssuer): put the authority there, and those between them into tls.crt, behind the certificate"].assert_eq(&shown(&verify(&explicit)));
}

#[test]
fn times_are_told() {
    check(
        Some(&between("2026-01-01", "2026-06-01", false)),
        expect![
            "false Expired: the Secret webhook-tls: the certificate cannot be used, it has expired at 2026-06-01T00:00:00Z: renew it"
        ],
    );
    check(
        Some(&between("2027-06-01", "2028-01-01", false)),
        expect![
            "false NotYetValid: the Secret webhook-tls: the certificate cannot be used, it is not valid before 2027-06-01T00:00:00Z: compare the clocks of whoever issued it"
        ],
    );
    check(
        Some(&between("2026-01-01", "2027-01-10", false)),
        expect![
            "true ExpiresSoon: the certificate in the Secret webhook-tls is valid only until 2027-01-10T00:00:00Z: write a new one into it"
        ],
    );
    // A short life is no reason to worry before most of it is over.
    check(
        Some(&between("2026-12-20", "2027-01-10", false)),
        expect!["true Valid: the certificate in the Secret webhook-tls is valid until 2027-01-10T00:00:00Z"],
    );
    let data = between("2026-01-01", "2027-01-10", false);
    let names = [NAME.to_owned()];
    let late = verify(&Supplied { source: Source::CertManager, ..with(Some(&data), &names) });
    expect!["true ExpiresSoon: the certificate in the Secret webhook-tls is valid only until 2027-01-10T00:00:00Z: cert-manager should have renewed it: kubectl describe certificates"].assert_eq(&shown(&late));
    assert_eq!(late.look_again, "2027-01-01T00:00:30Z".parse().unwrap(), "nobody serves it yet");
}

#[test]
fn an_authority_that_has_expired_is_told() {
    let (expired, key) = (between("2025-01-01", "2026-01-01", false), KeyPair::generate().unwrap());
    let authority = CertificateParams::default();
    let mut leaf = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    leaf.not_after = rcgen::date_time_ymd(2030, 1, 1);
    let certificate = leaf.signed_by(&key, &Issuer::from_params(&authority, KeyPair::generate().unwrap())).unwrap();
    let pair = Pair { certificate: certificate.pem(), key: key.serialize_pem() };
    let data = secret_of(&pair, &String::from_utf8_lossy(&expired["ca.crt"]));
    check(
        Some(&data),
        expect![
            "false NotTrusted: the Secret webhook-tls: the authority in ca.crt cannot be used, it has expired at 2026-01-01T00:00:00Z: renew it"
        ],
    );
}

#[test]
fn what_was_trusted_stays_trusted_until_every_pod_follows() {
    let ((_, before), (_, after)) = (good(), good());
    let names = [NAME.to_owned()];
    let serving = |data: &Data| Served { pod: "engine-0".to_owned(), fingerprint: read::fingerprint(&data["tls.crt"]) };
    let published = Some(Published { bundle: &before["ca.crt"], since: now() });
    let check = |secret: Option<&Data>, served: &[Served], expected: &[&[u8]]| {
        let judgement = verify(&Supplied { published, served, ..with(secret, &names) });
        let mut wanted: Vec<Certificate> = expected.iter().flat_map(|text| read::readable(text)).collect();
        read::in_order(&mut wanted);
        assert_eq!(judgement.bundle, text(&wanted));
        judgement
    };
    let (old, new): (&[u8], &[u8]) = (&before["ca.crt"], &after["ca.crt"]);
    assert_eq!(check(Some(&before), &[serving(&before)], &[old]).since, now());
    let rotating = check(Some(&after), &[serving(&before)], &[old, new]);
    assert!(!rotating.can_begin && rotating.state.is_ready);
    assert_eq!(rotating.look_again, now().checked_add(ASK_AGAIN).unwrap());
    check(Some(&after), &[serving(&after), Served { pod: "engine-1".to_owned(), fingerprint: None }], &[old, new]);
    assert!(check(Some(&after), &[serving(&after)], &[new]).can_begin);
    // Nothing is taken back because of something that is bad.
    check(None, &[serving(&before)], &[old]);
}
