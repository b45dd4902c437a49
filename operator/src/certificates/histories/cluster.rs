//! What is there: Secrets and the webhook configuration with their past, API servers, and pods.

use std::collections::HashMap;
use std::rc::Rc;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use super::super::{
    Data, Secret, Validity,
    read::{self, Certificate, entry},
    trust,
};
use super::{CHECKED_AGAIN, DAY};

/// Seconds of the time that nobody in the history can see.
pub(super) type Time = i64;

/// Counts what is written. No two things that are written have the same.
pub(super) type Version = u64;

/// The beginning, as the clocks show it.
const BEGINNING: i64 = 1_800_000_000;

/// How much of the past is kept: nobody reads anything that is older.
const PAST: usize = 100;

pub(super) struct Cluster {
    pub(super) time: Time,
    /// How far all clocks are wrong.
    pub(super) clock_is_off: Time,
    pub(super) names: Vec<String>,
    pub(super) validity: Validity,
    pub(super) authority: Stored<Data>,
    pub(super) leaf: Stored<Data>,
    pub(super) config: Stored<Config>,
    pub(super) servers: [Server; 3],
    pub(super) pods: Vec<Pod>,
    version: Version,
    /// Between when and when a certificate is trusted by whoever trusts a bundle.
    trusted: HashMap<(String, Version), Vec<(Timestamp, Timestamp)>>,
}

/// An object, with its past.
pub(super) struct Stored<T> {
    past: Vec<(Time, Version, Option<Rc<T>>)>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Config {
    pub(super) bundle: Vec<u8>,
    pub(super) since: Timestamp,
}

/// What an API server knows.
#[derive(Default)]
pub(super) struct Server {
    version: Version,
    config: Option<Rc<Config>>,
}

pub(super) struct Pod {
    pub(super) name: u64,
    pub(super) is_running: bool,
    /// What the kubelet has mounted. It only gets newer.
    mounted: Option<(Version, Rc<Data>)>,
    /// What the process shows: as the engine, it keeps what it has if something new is bad.
    pub(super) shown: Option<Rc<Shown>>,
    /// Until then it cannot be asked.
    pub(super) silent_until: Time,
    /// Until then its kubelet hears of nothing.
    pub(super) stuck_until: Time,
}

pub(super) struct Shown {
    certificate: Certificate,
    pub(super) fingerprint: String,
}

impl<T> Stored<T> {
    fn new() -> Self {
        Stored { past: vec![(Time::MIN, 0, None)] }
    }

    pub(super) fn version(&self) -> Version {
        self.past.last().map_or(0, |(_, version, _)| *version)
    }

    /// What somebody sees who is told what was there at this time.
    pub(super) fn at(&self, time: Time) -> (Version, Option<Rc<T>>) {
        let seen = self.past.iter().rev().find(|(written, ..)| *written <= time).unwrap_or(&self.past[0]);
        (seen.1, seen.2.clone())
    }

    fn store(&mut self, time: Time, version: Version, value: Option<T>) {
        self.past.push((time, version, value.map(Rc::new)));
        if self.past.len() > 2 * PAST {
            self.past.drain(..PAST);
        }
    }

    fn of_version(&self, version: Version) -> Option<Rc<T>> {
        self.past.iter().find(|(_, found, _)| *found == version)?.2.clone()
    }
}

impl Cluster {
    pub(super) fn new(random: &mut Rng) -> Cluster {
        Cluster {
            time: 0,
            clock_is_off: 0,
            names: vec!["portal.portal-system.svc".to_owned(), "portal.portal-system.svc.cluster.local".to_owned()],
            validity: any_validity(random),
            authority: Stored::new(),
            leaf: Stored::new(),
            config: Stored::new(),
            servers: Default::default(),
            pods: Vec::new(),
            version: 0,
            trusted: HashMap::new(),
        }
    }

    /// What every clock shows.
    pub(super) fn clock(&self) -> Timestamp {
        Timestamp::from_second(BEGINNING + self.time + self.clock_is_off).unwrap()
    }

    pub(super) fn secret(&self, secret: Secret) -> &Stored<Data> {
        match secret {
            Secret::Authority => &self.authority,
            Secret::Leaf => &self.leaf,
        }
    }

    pub(super) fn store(&mut self, secret: Secret, data: Option<Data>) {
        self.version += 1;
        let stored = match secret {
            Secret::Authority => &mut self.authority,
            Secret::Leaf => &mut self.leaf,
        };
        stored.store(self.time, self.version, data);
    }

    pub(super) fn store_config(&mut self, config: Option<Config>) {
        self.version += 1;
        self.config.store(self.time, self.version, config);
    }

    /// An API server hears of a webhook configuration.
    pub(super) fn hear(&mut self, server: usize, version: Version) {
        let server = &mut self.servers[server];
        if version > server.version {
            *server = Server { version, config: self.config.of_version(version) };
        }
    }

    /// A pod starts, with what the Secret held some seconds ago, if it held anything.
    pub(super) fn start(&mut self, pod: u64, age: Time) -> bool {
        let oldest = self.leaf.at(self.time - age);
        let (version, data) = if oldest.1.is_some() { oldest } else { self.leaf.at(self.time) };
        let Some(data) = data else { return false };
        let clock = self.clock();
        let Some(pod) = self.pods.iter_mut().find(|found| found.name == pod) else { return true };
        if !pod.is_running {
            pod.is_running = true;
            pod.mounted = Some((version, data));
            pod.look(clock);
        }
        true
    }

    /// The kubelet of a pod hears of a Secret.
    pub(super) fn mount(&mut self, pod: u64, version: Version) {
        let (clock, data) = (self.clock(), self.leaf.of_version(version));
        let Some(pod) = self.pods.iter_mut().find(|found| found.name == pod && found.is_running) else { return };
        if let Some(data) = data
            && pod.mounted.as_ref().is_none_or(|(mounted, _)| *mounted < version)
        {
            pod.mounted = Some((version, data));
            pod.look(clock);
        }
    }

    /// How often a leaf is due within some time, at least.
    pub(super) fn renewals(&self, time: Time) -> u64 {
        let shortest = 10 * DAY * 2 / 3;
        u64::try_from(time / shortest).unwrap()
    }

    /// What some pod serves that some API server does not trust.
    pub(super) fn distrust(&mut self, random: &mut Rng) -> Result<Option<String>, String> {
        let now = self.clock();
        for (index, server) in self.servers.iter().enumerate() {
            let Some(config) = &server.config else { continue };
            for pod in self.pods.iter().filter(|pod| pod.is_running) {
                let Some(shown) = &pod.shown else { continue };
                let certificate = &shown.certificate;
                let key = (shown.fingerprint.clone(), server.version);
                let spans = self.trusted.entry(key).or_insert_with(|| spans(certificate, config, &self.names[0]));
                let is_trusted = spans.iter().any(|(from, until)| *from <= now && now <= *until);
                if random.u64(..CHECKED_AGAIN) == 0 {
                    let names = &self.names[..1];
                    let authorities = read::readable(&config.bundle);
                    let verified =
                        trust::verify(std::slice::from_ref(&certificate.der), &authorities, names, now).is_ok();
                    if verified != is_trusted {
                        return Err(format!("the library says {verified}, and we say {is_trusted}"));
                    }
                }
                if !is_trusted {
                    let authorities = read::readable(&config.bundle);
                    let authorities: Vec<String> = authorities.iter().map(|found| found.subject.to_string()).collect();
                    return Ok(Some(format!(
                        "API server {index} trusts {authorities:?}, and pod {} shows one of {}, from {} to {}",
                        pod.name, certificate.issuer, certificate.from, certificate.until
                    )));
                }
            }
        }
        Ok(None)
    }
}

/// Between when and when a certificate is trusted: each authority of a bundle is one that may have signed it.
fn spans(shown: &Certificate, config: &Config, name: &String) -> Vec<(Timestamp, Timestamp)> {
    let is_named = shown.names.contains(name);
    let authorities = read::readable(&config.bundle).into_iter();
    let issuers = authorities.filter(|authority| is_named && trust::is_issued_by(shown, authority));
    issuers.map(|issuer| (shown.from.max(issuer.from), shown.until.min(issuer.until))).collect()
}

pub(super) fn any_validity(random: &mut Rng) -> Validity {
    let (authority, leaf) = random.choice([(365, 30), (90, 30), (40, 40), (30, 10)]).unwrap();
    Validity { authority: SignedDuration::from_hours(24 * authority), leaf: SignedDuration::from_hours(24 * leaf) }
}

impl Pod {
    pub(super) fn new(name: u64) -> Pod {
        Pod { name, is_running: false, mounted: None, shown: None, silent_until: 0, stuck_until: 0 }
    }

    /// The process starts again.
    pub(super) fn restart(&mut self, clock: Timestamp) {
        self.shown = None;
        if self.is_running {
            self.look(clock);
        }
    }

    /// Reads the files, as the engine does.
    fn look(&mut self, clock: Timestamp) {
        let Some((_, data)) = &self.mounted else { return };
        let Ok(found) = read::pair(data, entry::LEAF) else { return };
        let has_better = self.shown.as_ref().is_some_and(|shown| !shown.certificate.has_expired(clock));
        if !found.has_expired(clock) || !has_better {
            self.shown = Some(Rc::new(Shown { fingerprint: read::fingerprint_of_der(&found.der), certificate: found }));
        }
    }
}
