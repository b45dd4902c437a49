//! What is broken in the Secrets, foreign, or strange: what it is called, and what takes its place.

use expect_test::expect;

use super::super::{scene::Scene, *};
use super::{DAY, HOUR, check};

/// What somebody does to a Secret.
type Change<'a> = dyn Fn(&mut Data) + 'a;

/// Flips a bit in the middle of an entry's base64, so that it stays base64.
fn flip(data: &mut Data, key: &str, position: usize) {
    let text = data.get_mut(key).unwrap();
    let letter = &mut text[position];
    *letter = if *letter == b'A' { b'B' } else { b'A' };
}

#[test]
fn an_authority_that_cannot_sign_is_replaced() {
    let other = Scene::running();
    let garbage = b"garbage".to_vec();
    let changes: [(&str, &Change<'_>); 10] = [
        ("no certificate", &|data| drop(data.remove("ca.crt"))),
        ("no key", &|data| drop(data.remove("ca.key"))),
        ("garbage", &|data| drop(data.insert("ca.crt".into(), garbage.clone()))),
        ("garbage for a key", &|data| drop(data.insert("ca.key".into(), garbage.clone()))),
        ("half", &|data| data.get_mut("ca.crt").unwrap().truncate(300)),
        ("another key", &|data| {
            drop(data.insert("ca.key".into(), other.authority.as_ref().unwrap()["ca.key"].clone()))
        }),
        ("a leaf", &|data| {
            data.extend([
                ("ca.crt".into(), other.leaf.as_ref().unwrap()["tls.crt"].clone()),
                ("ca.key".into(), other.leaf.as_ref().unwrap()["tls.key"].clone()),
            ])
        }),
        ("a bit of its name", &|data| flip(data, "ca.crt", 110)),
        ("a bit of its signature", &|data| {
            let end = data["ca.crt"].len() - 60;
            flip(data, "ca.crt", end)
        }),
        ("nothing", &|data| data.clear()),
    ];
    let mut text = String::new();
    for (name, change) in changes {
        let mut scene = Scene::running();
        let bundle = scene.judge().bundle;
        scene.letters(&bundle);
        change(scene.authority());
        let message = scene.judge().state.message;
        // What pods serve stays trusted, all the time.
        let story = scene.story(SETTLING, true);
        for line in story.lines() {
            let (_, bundle) = line.rsplit_once(' ').unwrap();
            assert!(bundle.contains('A'), "{name}: {story}");
        }
        let after = scene.story(HOUR, true);
        assert_eq!(scene.judge().action, None);
        let bundle = scene.judge().bundle;
        assert_eq!(scene.letters(&bundle), "B", "{name}:\n{story}{after}");
        text += &format!("{name}: {message}\n");
    }
    expect![[r#"
        no certificate: the authority cannot sign: ca.crt is missing; another one takes its place
        no key: the authority cannot sign: ca.key is missing; another one takes its place
        garbage: the authority cannot sign: there is no certificate in ca.crt; another one takes its place
        garbage for a key: the authority cannot sign: the key in ca.key cannot be used; another one takes its place
        half: the authority cannot sign: ca.crt is not PEM: a section has no end; another one takes its place
        another key: the authority cannot sign: the key in ca.key is not that of the certificate in ca.crt; another one takes its place
        a leaf: the authority cannot sign: the certificate in ca.crt is not one of an authority that Portal made; another one takes its place
        a bit of its name: the authority cannot sign: the certificate in ca.crt is not one of an authority that Portal made; another one takes its place
        a bit of its signature: the authority cannot sign: the certificate in ca.crt is not one of an authority that Portal made; another one takes its place
        nothing: the authority cannot sign: ca.crt is missing; another one takes its place
    "#]].assert_eq(&text);
}

#[test]
fn a_leaf_that_cannot_be_shown_is_replaced_at_once() {
    let other = Scene::running();
    let other = other.leaf.as_ref().unwrap();
    let garbage = b"garbage".to_vec();
    let changes: [(&str, &Change<'_>); 9] = [
        ("no certificate", &|data| drop(data.remove("tls.crt"))),
        ("no key", &|data| drop(data.remove("tls.key"))),
        ("garbage", &|data| drop(data.insert("tls.crt".into(), garbage.clone()))),
        ("garbage for a key", &|data| drop(data.insert("tls.key".into(), garbage.clone()))),
        ("half", &|data| data.get_mut("tls.crt").unwrap().truncate(300)),
        ("another key", &|data| drop(data.insert("tls.key".into(), other["tls.key"].clone()))),
        ("of another authority", &|data| {
            data.extend(["tls.crt", "tls.key"].map(|key| (key.to_owned(), other[key].clone())));
        }),
        ("a bit of its signature", &|data| {
            let end = data["tls.crt"].len() - 60;
            flip(data, "tls.crt", end)
        }),
        ("nothing", &|data| data.clear()),
    ];
    let mut text = String::new();
    for (name, change) in changes {
        let mut scene = Scene::running();
        change(scene.leaf());
        let judgement = scene.judge();
        assert_eq!((judgement.action, judgement.state.is_ready), (Some(Action::Issue), false), "{name}");
        text += &format!("{name}: {}\n", judgement.state.message);
        scene.step();
        scene.serve(&["engine-0"]);
        assert_eq!(scene.judge().action, None, "{name}");
    }
    expect![[r#"
        no certificate: the certificate cannot be used: tls.crt is missing; another one is being made
        no key: the certificate cannot be used: tls.key is missing; another one is being made
        garbage: the certificate cannot be used: there is no certificate in tls.crt; another one is being made
        garbage for a key: the certificate cannot be used: the key in tls.key cannot be used; another one is being made
        half: the certificate cannot be used: tls.crt is not PEM: a section has no end; another one is being made
        another key: the certificate cannot be used: the key in tls.key is not that of the certificate in tls.crt; another one is being made
        of another authority: the certificate cannot be used: no authority that is trusted has signed it; another one is being made
        a bit of its signature: the certificate cannot be used: no authority that is trusted has signed it; another one is being made
        nothing: the certificate cannot be used: tls.crt is missing; another one is being made
    "#]].assert_eq(&text);
}

#[test]
fn a_leaf_that_comes_with_its_authority_is_trusted_and_replaced() {
    // As from a backup. Pods may serve it before we know.
    let mut scene = Scene::running();
    let bundle = scene.judge().bundle;
    scene.letters(&bundle);
    scene.leaf = Scene::running().leaf;
    check(
        &mut scene,
        HOUR,
        expect![[r#"
            24h ShareBundle AB
            24h Issue AB
            24h published AB
            24h 1m pods follow AB
            24h 5m ShareBundle A
            24h 5m published A
            24h 6m pods follow A
        "#]],
    );
}

#[test]
fn what_is_beside_the_leaf_follows_without_another_leaf() {
    let mut scene = Scene::running();
    let before = scene.leaf.clone();
    for change in [
        |data: &mut Data| drop(data.remove("ca.crt")),
        |data: &mut Data| data.get_mut("ca.crt").unwrap().push(b' '),
        |data: &mut Data| drop(data.insert("foreign".to_owned(), Vec::new())),
    ] {
        change(scene.leaf());
        assert_eq!(scene.step(), Some(Action::ShareBundle));
        assert_eq!(scene.leaf, before);
        assert_eq!(scene.judge().action, None);
    }
}

#[test]
fn a_foreign_authority_in_the_webhook_configuration_does_not_stay() {
    let mut scene = Scene::running();
    let (bundle, since) = scene.published.clone().unwrap();
    let foreign = Scene::running().judge().bundle;
    scene.published = Some(([bundle.clone(), foreign].concat(), since));
    let judgement = scene.judge();
    assert_eq!((judgement.bundle, judgement.action), (bundle.clone(), None));
    // As long as we do not know what pods serve, nobody knows that it is foreign.
    scene.served[0].fingerprint = None;
    assert_eq!(scene.judge().bundle.len(), 2 * bundle.len());
}

#[test]
fn a_broken_next_authority_is_forgotten() {
    let mut scene = Scene::running();
    scene.authority().insert("next.crt".to_owned(), b"garbage".to_vec());
    assert_eq!(scene.step(), Some(Action::Forget));
    assert_eq!(scene.judge().action, None);
    scene.validity.authority = 200 * DAY;
    assert_eq!(scene.step(), Some(Action::PrepareNext));
    scene.authority().remove("next.key");
    assert_eq!(scene.step(), Some(Action::PrepareNext));
    // The next one takes over at once if the current one is lost.
    scene.authority().remove("ca.key");
    assert_eq!(scene.step(), Some(Action::Promote));
    assert_eq!(scene.step(), Some(Action::ShareBundle));
    assert_eq!(scene.step(), None, "API servers do not trust it yet");
}

#[test]
fn no_secret_is_too_strange() {
    let scene = Scene::running();
    let (authority, leaf) = (scene.authority.as_ref().unwrap(), scene.leaf.as_ref().unwrap());
    for (secret, key) in
        [(authority, "ca.crt"), (authority, "ca.key"), (leaf, "tls.crt"), (leaf, "tls.key"), (leaf, "ca.crt")]
    {
        for position in (0..secret[key].len()).step_by(31) {
            for is_cut in [false, true] {
                let mut data = secret.clone();
                let text = data.get_mut(key).unwrap();
                if is_cut {
                    text.truncate(position)
                } else {
                    text[position] ^= 1 << (position % 8)
                }
                let mut given = scene.given();
                if key.starts_with("tls") || std::ptr::eq(secret, leaf) {
                    given.leaf = Some(&data)
                } else {
                    given.authority = Some(&data)
                }
                let judgement = judge(&given);
                if let Some(action) = judgement.action {
                    perform(action, &given).unwrap();
                }
                assert!(judgement.bundle.starts_with(&scene.judge().bundle), "what pods serve is trusted");
            }
        }
    }
}
