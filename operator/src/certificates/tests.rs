//! Each promise of [`super`] as a table.

mod damage;

use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use x509_cert::{
    der::Decode as _,
    ext::pkix::{AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier},
};

use super::{scene::Scene, *};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Compares what is done from now on.
#[track_caller]
fn check(scene: &mut Scene, lasts: SignedDuration, expected: Expect) {
    expected.assert_eq(&scene.story(lasts, true));
}

/// Compares the state.
#[track_caller]
fn check_state(scene: &Scene, expected: Expect) {
    let State { is_ready, reason, message, .. } = scene.judge().state;
    expected.assert_eq(&format!("{is_ready} {reason}: {message}"));
}

#[test]
fn an_installation_needs_two_writes() {
    let mut scene = Scene::empty();
    check_state(
        &scene,
        expect!["false Issuing: the certificate cannot be used: its Secret does not exist; another one is being made"],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        0s FoundAuthority 
        0s Issue A
        0s published A
        1m pods follow A
    "#]],
    );
}

#[test]
fn when_all_is_well_nothing_is_done_until_the_leaf_is_due() {
    let mut scene = Scene::running();
    check(
        &mut scene,
        60 * DAY,
        expect![[r#"
        479h 40m Issue A
        479h 41m pods follow A
        959h 20m Issue A
        959h 21m pods follow A
        1439h Issue A
        1439h 1m pods follow A
    "#]],
    );
    check_state(
        &scene,
        expect![
            "true Valid: the certificate is valid until 2027-03-31T23:00:00Z, and is replaced after 2027-03-21T22:40:00Z"
        ],
    );
}

#[test]
fn an_authority_is_replaced_step_by_step() {
    let mut scene = Scene::running();
    scene.validity.leaf = 300 * DAY;
    scene.story(DAY, true);
    check(
        &mut scene,
        245 * DAY,
        expect![[r#"
        4823h 40m Issue A
        4823h 41m pods follow A
        5839h 40m PrepareNext A
        5839h 40m ShareBundle AB
        5839h 40m published AB
        5839h 41m Promote AB
        5839h 41m Issue AB
        5839h 41m pods follow AB
        5839h 46m ShareBundle B
        5839h 46m Forget B
        5839h 46m published B
        5839h 47m pods follow B
    "#]],
    );
    assert_eq!(scene.authority().keys().collect::<Vec<_>>(), ["ca.crt", "ca.key"]);
}

#[test]
fn an_authority_stays_for_a_pod_that_does_not_follow() {
    let mut scene = Scene::running();
    scene.validity.authority = 200 * DAY;
    expect![[r#"
        24h PrepareNext A
        24h ShareBundle AB
        24h published AB
        24h 1m Promote AB
        24h 1m Issue AB
    "#]]
    .assert_eq(&scene.story(HOUR, false));
    check_state(
        &scene,
        expect![
            "true WaitingForPods: the authority before stays trusted, because these pods do not serve the new certificate yet, or could not be asked: engine-0, engine-1; a pod that is still named here after ten minutes has to be deleted"
        ],
    );
    // A pod that cannot be asked is as good as one that serves something else.
    scene.serve(&["engine-0", "engine-1"]);
    scene.served[1].fingerprint = None;
    expect![""].assert_eq(&scene.story(HOUR, false));
    check_state(
        &scene,
        expect![
            "true WaitingForPods: the authority before stays trusted, because these pods do not serve the new certificate yet, or could not be asked: engine-1; a pod that is still named here after ten minutes has to be deleted"
        ],
    );
    scene.served.pop();
    expect![[r#"
        26h ShareBundle B
        26h Forget B
        26h published B
    "#]]
    .assert_eq(&scene.story(HOUR, false));
}

#[test]
fn a_lost_authority_is_replaced_and_stays_trusted() {
    let mut scene = Scene::running();
    scene.authority = None;
    check_state(
        &scene,
        expect![
            "true RotatingAuthority: the authority cannot sign: its Secret does not exist; another one takes its place"
        ],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        24h FoundAuthority A
        24h ShareBundle AB
        24h published AB
        24h 1m Issue AB
        24h 1m pods follow AB
        24h 6m ShareBundle B
        24h 6m Forget B
        24h 6m published B
        24h 7m pods follow B
    "#]],
    );
}

#[test]
fn a_lost_leaf_is_issued_at_once() {
    let mut scene = Scene::running();
    scene.leaf = None;
    check_state(
        &scene,
        expect!["false Issuing: the certificate cannot be used: its Secret does not exist; another one is being made"],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        24h Issue A
        24h 1m pods follow A
    "#]],
    );
}

#[test]
fn both_lost_are_replaced_while_pods_go_on_with_what_they_have() {
    let mut scene = Scene::running();
    (scene.authority, scene.leaf) = (None, None);
    scene.step();
    scene.publish();
    check_state(
        &scene,
        expect![
            "false WaitingForApiServers: the certificate cannot be used: its Secret does not exist; another one is made at 2027-01-02T00:01:00Z, when every API server trusts its authority; until then pods go on with what they have"
        ],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        24h 1m Issue AB
        24h 2m pods follow AB
        24h 6m ShareBundle B
        24h 6m Forget B
        24h 6m published B
        24h 7m pods follow B
    "#]],
    );
}

#[test]
fn nobody_waits_for_api_servers_where_nothing_valid_is_served() {
    let mut scene = Scene::running();
    (scene.authority, scene.leaf) = (None, None);
    scene.served.clear();
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        24h FoundAuthority A
        24h Issue AB
        24h published AB
        24h 1m pods follow AB
        24h 5m ShareBundle B
        24h 5m Forget B
        24h 5m published B
        24h 6m pods follow B
    "#]],
    );
}

#[test]
fn without_a_webhook_configuration_an_authority_has_to_be_a_minute_old() {
    // One may have been made since we looked.
    let mut scene = Scene::running();
    scene.published = None;
    (scene.authority, scene.leaf) = (None, None);
    assert_eq!([scene.step(), scene.step()], [Some(Action::FoundAuthority), None]);
    scene.wait(PROPAGATION);
    assert_eq!(scene.step(), Some(Action::Issue));
}

#[test]
fn everything_is_healed_after_a_long_pause() {
    let mut scene = Scene::running();
    scene.wait(25 * DAY);
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        624h Issue A
        624h 1m pods follow A
    "#]],
    );
    let mut scene = Scene::running();
    scene.wait(40 * DAY);
    check_state(
        &scene,
        expect![
            "false Issuing: the certificate cannot be used: it has expired at 2027-01-31T00:00:00Z; another one is being made"
        ],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        984h Issue A
        984h 1m pods follow A
    "#]],
    );
    let mut scene = Scene::running();
    scene.wait(400 * DAY);
    check_state(
        &scene,
        expect![
            "false Issuing: the certificate cannot be used: it has expired at 2027-01-31T00:00:00Z; another one is being made"
        ],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        9624h FoundAuthority 
        9624h Issue A
        9624h published A
        9624h 1m pods follow A
    "#]],
    );
}

#[test]
fn everything_is_healed_after_the_clock_was_set() {
    let mut scene = Scene::running();
    scene.wait(-40 * DAY);
    check_state(
        &scene,
        expect![
            "false Issuing: the certificate cannot be used: it is not valid before 2026-12-31T23:00:00Z; another one is being made"
        ],
    );
    check(
        &mut scene,
        HOUR,
        expect![[r#"
            936h ago FoundAuthority A
            936h ago Issue AB
            936h ago published AB
            935h 59m ago pods follow AB
            935h 55m ago ShareBundle B
            935h 55m ago Forget B
            935h 55m ago published B
            935h 54m ago pods follow B
        "#]],
    );
    scene.wait(40 * DAY);
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        25h Issue B
        25h 1m pods follow B
    "#]],
    );
    // Certificates begin an hour before they are made: a small step is no reason for anything.
    let mut scene = Scene::running();
    scene.wait(-DAY - MINUTE * 30);
    assert_eq!(scene.judge().action, None);
    // What has yet to come was never published.
    assert_eq!(scene.judge().since, scene.now);
}

#[test]
fn a_rotation_begins_anew_after_the_clock_was_set() {
    let mut scene = Scene::running();
    scene.validity.authority = 200 * DAY;
    scene.story(MINUTE / 2, true);
    scene.wait(-MINUTE * 40);
    check(
        &mut scene,
        HOUR,
        expect![[r#"
        23h 20m 30s published AB
        23h 21m 30s Promote AB
        23h 21m 30s Issue AB
        23h 22m 30s pods follow AB
        23h 26m 30s ShareBundle B
        23h 26m 30s Forget B
        23h 26m 30s published B
        23h 27m 30s pods follow B
    "#]],
    );
}

#[test]
fn a_leaf_follows_what_it_is_for() {
    let mut scene = Scene::running();
    scene.names.push("portal.example".to_owned());
    assert_eq!(scene.step(), Some(Action::Issue));
    assert_eq!(scene.judge().action, None);
    scene.names.reverse();
    assert_eq!(scene.judge().action, None, "the order of names says nothing");
    scene.validity.leaf = 7 * DAY;
    assert_eq!(scene.step(), Some(Action::Issue));
    assert_eq!(scene.judge().action, None);
    assert_eq!(scene.judge().state.expires, scene.now.checked_add(7 * DAY).ok());
}

#[test]
fn a_leaf_never_outlives_its_authority_and_is_not_replaced_for_nothing() {
    let mut scene = Scene::running();
    scene.validity = Validity { authority: 100 * DAY, leaf: 300 * DAY };
    scene.story(HOUR, true);
    // The authority cannot be replaced, because nobody writes the webhook configuration.
    let published = scene.published.clone();
    let mut writes = Vec::new();
    for _ in 0..110 {
        scene.wait(DAY);
        while let Some(action) = scene.step() {
            writes.push(action);
            scene.published = published.clone();
        }
        let state = scene.judge().state;
        assert!(state.expires.unwrap() <= state.authority_expires.unwrap());
    }
    expect!["[PrepareNext, ShareBundle, Promote, Issue]"].assert_eq(&format!("{writes:?}"));
}

#[test]
fn no_validity_is_too_short_or_too_long() {
    for (authority, leaf) in [
        (SignedDuration::ZERO, SignedDuration::ZERO),
        (SignedDuration::MIN, SignedDuration::MIN),
        (SignedDuration::MAX, SignedDuration::MAX),
        (SignedDuration::from_secs(1), SignedDuration::MAX),
    ] {
        let mut scene = Scene::empty();
        scene.validity = Validity { authority, leaf };
        while scene.step().is_some() {}
        scene.serve(&["engine-0"]);
        scene.publish();
        assert_eq!(scene.judge().action, None);
        assert!(scene.judge().state.is_ready);
    }
}

#[test]
fn an_action_of_another_judgement_is_refused() {
    let scene = Scene::running();
    assert!(matches!(perform(Action::Promote, &scene.given()), Err(Error::Outdated(Action::Promote))));
    assert!(matches!(perform(Action::Issue, &Scene::empty().given()), Err(Error::Outdated(Action::Issue))));
    let mut scene = Scene::running();
    scene.names.push("Größe".to_owned());
    let error = perform(scene.judge().action.unwrap(), &scene.given()).unwrap_err();
    assert_eq!(error.to_string(), "\"Größe\" cannot be a name of a certificate");
}

#[test]
fn judging_is_a_function() {
    let scene = Scene::running();
    assert_eq!(scene.judge(), scene.judge());
}

#[test]
fn certificates_say_what_they_are_for() {
    let mut scene = Scene::running();
    scene.validity.authority = 200 * DAY;
    scene.step();
    let (authority, leaf) = (scene.authority.clone().unwrap(), scene.leaf.clone().unwrap());
    let show = |text: &[u8]| {
        let certificate = x509_cert::Certificate::from_der(&CertificateDer::from_pem_slice(text).unwrap()).unwrap();
        let signed = certificate.tbs_certificate();
        let validity = signed.validity();
        let identifier = signed.get_extension::<SubjectKeyIdentifier>().unwrap().unwrap().1;
        let issuer = signed.get_extension::<AuthorityKeyIdentifier>().unwrap().unwrap().1;
        let usage = signed.get_extension::<ExtendedKeyUsage>().unwrap().map(|(_, ExtendedKeyUsage(usage))| usage);
        let lines = format!(
            "{} by {}\n{} to {}\n{:?}\n{:?}\n{:?}\n",
            signed.subject(),
            signed.issuer(),
            validity.not_before,
            validity.not_after,
            signed.get_extension::<BasicConstraints>().unwrap().unwrap(),
            signed.get_extension::<KeyUsage>().unwrap().unwrap(),
            usage,
        );
        // All of the hash of a random key, but for zeros in front.
        assert!((16..=20).contains(&signed.serial_number().as_bytes().len()));
        (lines, identifier.0, issuer.key_identifier.unwrap(), signed.serial_number().clone())
    };
    let (first, next) = (show(&authority["ca.crt"]), show(&authority["next.crt"]));
    let leaf = show(&leaf["tls.crt"]);
    assert_eq!((&first.1, &leaf.2), (&first.2, &first.1));
    assert!(first.0.lines().next() != next.0.lines().next(), "each has a name of its own");
    assert!(first.3 != next.3);
    // A name ends with a part of the key.
    let name = first.0[..first.0.find(" by ").unwrap()].to_owned();
    let number = name.rsplit(' ').next().unwrap().to_owned();
    expect![[r#"
        CN=Portal authority 2027-01-01 NUMBER by CN=Portal authority 2027-01-01 NUMBER
        2026-12-31T23:00:00Z to 2028-01-01T00:00:00Z
        (true, BasicConstraints { ca: true, path_len_constraint: Some(0) })
        (true, KeyUsage(FlagSet(KeyCertSign | CRLSign)))
        None
        CN=portal.portal-system.svc by CN=Portal authority 2027-01-01 NUMBER
        2026-12-31T23:00:00Z to 2027-01-31T00:00:00Z
        (true, BasicConstraints { ca: false, path_len_constraint: None })
        (true, KeyUsage(FlagSet(DigitalSignature)))
        Some([ObjectIdentifier(1.3.6.1.5.5.7.3.1)])
    "#]]
    .assert_eq(&format!("{}{}", first.0, leaf.0).replace(&number, "NUMBER"));
    let all: std::collections::BTreeSet<_> =
        (0..20).map(|_| Scene::running().authority.unwrap()["ca.crt"].clone()).collect();
    assert_eq!(all.len(), 20);
}

#[test]
fn a_fingerprint_is_that_of_openssl() {
    let pem = include_bytes!("../../../engine/core/src/context/certificate/leaf.pem");
    expect!["9782475e89eabf9feff726f7e69e124c8ed94d1992735f9ab6c44719cd3d6819"].assert_eq(&fingerprint(pem).unwrap());
    assert_eq!(fingerprint(b"garbage"), None);
    assert_eq!(fingerprint(b""), None);
}

#[test]
fn secrets_are_not_shown() {
    let scene = Scene::empty();
    let write = perform(Action::FoundAuthority, &scene.given()).unwrap();
    assert_eq!(format!("{write:?}"), "Write { secret: Authority, .. }");
}

#[test]
fn a_time_between_two_seconds_is_a_time() {
    let mut scene = Scene::empty();
    scene.now = "2027-01-01T00:00:00.999Z".parse::<Timestamp>().unwrap();
    while scene.step().is_some() {}
    assert_eq!(scene.judge().action, None);
}
