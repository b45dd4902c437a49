//! A cluster for tests, as far as certificates see it: everything arrives at once, unless the test says otherwise.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::{Action, Data, Given, Judgement, Published, Secret, Served, Validity, fingerprint, judge, perform, read};

pub(super) struct Scene {
    pub(super) now: Timestamp,
    pub(super) names: Vec<String>,
    pub(super) authority: Option<Data>,
    pub(super) leaf: Option<Data>,
    pub(super) published: Option<(Vec<u8>, Timestamp)>,
    pub(super) served: Vec<Served>,
    pub(super) validity: Validity,
    start: Timestamp,
    /// Authorities in the order in which they came up: the first is A.
    seen: Vec<Vec<u8>>,
}

impl Scene {
    /// Nothing is there.
    pub(super) fn empty() -> Scene {
        let start = "2027-01-01T00:00:00Z".parse().unwrap();
        Scene {
            now: start,
            names: ["portal.portal-system.svc", "portal.portal-system.svc.cluster.local"].map(str::to_owned).into(),
            authority: None,
            leaf: None,
            published: None,
            served: Vec::new(),
            validity: Validity::default(),
            start,
            seen: Vec::new(),
        }
    }

    /// All is well, and has been for a day.
    pub(super) fn running() -> Scene {
        let mut scene = Scene::empty();
        while scene.step().is_some() {}
        scene.serve(&["engine-0", "engine-1"]);
        scene.publish();
        scene.wait(SignedDuration::from_hours(24));
        assert_eq!(scene.judge().action, None);
        scene
    }

    pub(super) fn given(&self) -> Given<'_> {
        Given {
            now: self.now,
            names: &self.names,
            authority: self.authority.as_ref(),
            leaf: self.leaf.as_ref(),
            published: self.published.as_ref().map(|(bundle, since)| Published { bundle, since: *since }),
            served: &self.served,
            validity: self.validity,
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        judge(&self.given())
    }

    /// Does what is to be done.
    pub(super) fn step(&mut self) -> Option<Action> {
        let action = self.judge().action?;
        let write = perform(action, &self.given()).unwrap();
        match write.secret {
            Secret::Authority => self.authority = Some(write.data),
            Secret::Leaf => self.leaf = Some(write.data),
        }
        Some(action)
    }

    /// Writes the webhook configuration as it has to be. Whether that changed it.
    pub(super) fn publish(&mut self) -> bool {
        let judgement = self.judge();
        let wanted = Some((judgement.bundle, judgement.since));
        let is_new = self.published != wanted;
        self.published = wanted;
        is_new
    }

    /// Lets these pods run, and serve what the Secret holds.
    pub(super) fn serve(&mut self, pods: &[&str]) {
        let fingerprint = self.leaf.as_ref().and_then(|data| fingerprint(data.get("tls.crt")?));
        self.served =
            pods.iter().map(|pod| Served { pod: (*pod).to_owned(), fingerprint: fingerprint.clone() }).collect();
    }

    pub(super) fn wait(&mut self, duration: SignedDuration) {
        self.now = self.now.checked_add(duration).unwrap();
    }

    pub(super) fn authority(&mut self) -> &mut Data {
        self.authority.as_mut().unwrap()
    }

    pub(super) fn leaf(&mut self) -> &mut Data {
        self.leaf.as_mut().unwrap()
    }

    /// The authorities of a text, by their letters.
    pub(super) fn letters(&mut self, text: &[u8]) -> String {
        let mut letters = Vec::new();
        for found in read::readable(text) {
            let index = self.seen.iter().position(|seen| *seen == found.der.to_vec()).unwrap_or_else(|| {
                self.seen.push(found.der.to_vec());
                self.seen.len() - 1
            });
            letters.push(char::from(b'A' + u8::try_from(index).unwrap()));
        }
        // Those of the same second are in no order of theirs.
        letters.sort_unstable();
        letters.into_iter().collect()
    }

    /// Does what is to be done for as long as there is something, publishes, and lets pods follow after a minute, if they do. One line
    /// for each thing that is done: when, what, and the bundle then.
    pub(super) fn story(&mut self, lasts: SignedDuration, pods_follow: bool) -> String {
        let mut text = String::new();
        let end = self.now.checked_add(lasts).unwrap();
        let (mut followed, mut count) = (self.leaf.clone(), 0);
        let mut pods_at = None;
        while self.now <= end {
            let bundle = self.judge().bundle;
            let bundle = self.letters(&bundle);
            let since_start = self.now.duration_since(self.start);
            let mut note = |what: &str| writeln!(text, "{since_start:#} {what} {bundle}").unwrap();
            if let Some(action) = self.step() {
                note(&format!("{action:?}"));
            } else if self.publish() {
                note("published");
            } else if pods_follow && pods_at.is_some_and(|moment| moment <= self.now) {
                (pods_at, followed) = (None, self.leaf.clone());
                let pods: Vec<String> = self.served.iter().map(|served| served.pod.clone()).collect();
                self.serve(&pods.iter().map(String::as_str).collect::<Vec<_>>());
                note("pods follow");
            } else {
                let again = self.judge().look_again;
                assert!(again > self.now, "it would be looked again for ever");
                if pods_at.is_none() && self.leaf != followed {
                    pods_at = self.now.checked_add(1.minute()).ok();
                }
                self.now = again.min(pods_at.filter(|_| pods_follow).unwrap_or(again));
            }
            count += 1;
            assert!(count < 1_000, "this does not end:\n{text}");
        }
        self.now = end;
        text
    }
}
