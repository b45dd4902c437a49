//! Random histories: an operator that crashes and reads what is out of date, API servers and pods that hear late, people who delete
//! and change things, and clocks that are set. Over years, whatever a pod serves is trusted by every API server, at every moment,
//! unless somebody broke it by hand; then it is healed soon. And when nothing goes wrong, nothing is written but what is due.

mod cluster;
mod faults;

use std::ops::Range;
use std::rc::Rc;

use fastrand::Rng;
use jiff::Timestamp;
use portal_test_kit::share;

use self::cluster::{Cluster, Config, Pod, Time, Version};
use self::faults::Fault;
use super::{
    Given, Published, Secret, Served, decide, issue, judge,
    read::{self, Known},
};

const MINUTE: Time = 60;
const HOUR: Time = 60 * MINUTE;
const DAY: Time = 24 * HOUR;

/// How long a history lasts until nothing goes wrong any more, and how long it goes on then.
const EVENTFUL: Time = 200 * DAY;
const QUIET: Time = 40 * DAY;

/// What is broken by hand is healed within this time after the operator could know. Ten minutes of it are those in which nobody
/// looks at the clock.
const HEALED: Time = 30 * MINUTE;

/// How late anything is.
const API_SERVER_HEARS: Time = 50;
const KUBELET_HEARS: Time = 90;
const READ_IS_OLD: Time = 10;
const REQUEST_TAKES: Time = 5;
const CLOCK_IS_SEEN: Time = 10 * MINUTE;

/// Nothing goes round in circles.
const MAX_EVENTS: u64 = 100_000;

/// One of so many judgements is made again from the beginning, and one of so many verifications by the library.
const CHECKED_AGAIN: u64 = 40;

struct History {
    random: Rng,
    cluster: Cluster,
    events: std::collections::BTreeMap<(Time, u64), Event>,
    count: u64,
    /// The wake-up that counts, and when it is.
    waking: u64,
    wakes_at: Option<Time>,
    operator_sleeps_until: Time,
    all_lost_until: Time,
    /// Until then pods may serve what nobody trusts.
    untrusted_until: Time,
    /// Until then pods may have nothing to show.
    silent_until: Time,
    /// When something last went wrong, or ends to.
    troubled_until: Time,
    faults: u64,
    writes: u64,
    /// The first of the writes that have followed each other since.
    busy_since: Time,
    written: Time,
    known: std::collections::HashMap<(Version, Version, Version), Rc<Known>>,
    log: Option<String>,
}

enum Event {
    Wake(u64),
    Write { secret: Secret, base: Version, data: super::Data },
    Publish { base: Version, config: Config },
    Hear { server: usize, version: Version },
    Mount { pod: u64, version: Version },
    Start { pod: u64 },
    Fault(Fault),
}

impl History {
    fn new(seed: u64) -> History {
        let mut random = Rng::with_seed(seed);
        let cluster = Cluster::new(&mut random);
        let mut history = History {
            random,
            cluster,
            events: Default::default(),
            count: 0,
            waking: 0,
            wakes_at: None,
            operator_sleeps_until: 0,
            all_lost_until: 0,
            untrusted_until: 0,
            silent_until: HEALED,
            troubled_until: HEALED,
            faults: 0,
            writes: 0,
            busy_since: 0,
            written: 0,
            known: Default::default(),
            log: None,
        };
        history.wake_at(0);
        for pod in 0..2 + history.random.u64(..2) {
            history.cluster.pods.push(Pod::new(pod));
            history.schedule(1, Event::Start { pod });
        }
        for _ in 0..5 + history.random.u64(..12) {
            // Alone, or several at a time.
            let moment = HOUR + history.random.i64(0..EVENTFUL - HOUR);
            for _ in 0..1 + history.random.u64(..8).saturating_sub(4) {
                let soon = history.random.i64(0..10 * MINUTE);
                let fault = Fault::any(&mut history.random);
                history.schedule(moment + soon, Event::Fault(fault));
            }
        }
        history
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(((time, _), event)) = self.events.pop_first() {
            if time > EVENTFUL + QUIET {
                break;
            }
            self.cluster.time = time;
            if self.count > MAX_EVENTS {
                return Err(format!("{MAX_EVENTS} events are too many"));
            }
            self.happen(event)?;
            self.check_trust()?;
        }
        self.cluster.time = EVENTFUL + QUIET;
        self.check_end()
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        let now = self.cluster.time;
        match event {
            Event::Wake(waking) if waking == self.waking => {
                self.wakes_at = None;
                return self.wake();
            }
            Event::Wake(_) => {}
            Event::Write { secret, base, data } => {
                if self.cluster.secret(secret).version() == base {
                    self.note(|| format!("{secret:?} written: {:?}", data.keys().collect::<Vec<_>>()));
                    self.wrote()?;
                    self.store(secret, Some(data));
                }
            }
            Event::Publish { base, config } => {
                if self.cluster.config.version() == base {
                    self.note(|| format!("published {} authorities", read::readable(&config.bundle).len()));
                    self.wrote()?;
                    self.store_config(Some(config));
                }
            }
            Event::Hear { server, version } => self.cluster.hear(server, version),
            Event::Mount { pod, version } => {
                let stuck_until = self.cluster.pods.iter().find(|found| found.name == pod).map(|pod| pod.stuck_until);
                match stuck_until.filter(|until| *until > now) {
                    Some(until) => self.schedule(until, Event::Mount { pod, version }),
                    None => self.cluster.mount(pod, version),
                }
            }
            Event::Start { pod } => {
                // The kubelet of another node may have an old copy. Without any Secret a pod does not start. Where everything was
                // lost, nobody can know that there was something else before.
                let age = if now < self.all_lost_until { 0 } else { self.random.i64(0..KUBELET_HEARS) };
                if !self.cluster.start(pod, age) {
                    self.schedule(now + 5, Event::Start { pod });
                }
                let latest = self.cluster.leaf.version();
                self.schedule(now + KUBELET_HEARS, Event::Mount { pod, version: latest });
            }
            Event::Fault(fault) => {
                self.faults += 1;
                self.note(|| format!("{fault:?}"));
                self.suffer(fault);
            }
        }
        Ok(())
    }

    /// The operator judges, and does what there is to do, as far as it gets.
    fn wake(&mut self) -> Result<(), String> {
        let now = self.cluster.time;
        if self.operator_sleeps_until > now {
            self.wake_at(self.operator_sleeps_until);
            return Ok(());
        }
        let is_calm = now > EVENTFUL;
        let mut any_age = || if !is_calm && self.random.u64(..5) == 0 { self.random.i64(0..=READ_IS_OLD) } else { 0 };
        let ages = [any_age(), any_age(), any_age()];
        let (authority_version, authority) = self.cluster.authority.at(now - ages[0]);
        let (leaf_version, leaf) = self.cluster.leaf.at(now - ages[1]);
        let (config_version, config) = self.cluster.config.at(now - ages[2]);
        let served = self.served();
        let given = Given {
            now: self.cluster.clock(),
            names: &self.cluster.names,
            authority: authority.as_deref(),
            leaf: leaf.as_deref(),
            published: config.as_deref().map(|config| Published { bundle: &config.bundle, since: config.since }),
            served: &served,
            validity: self.cluster.validity,
        };
        let versions = (authority_version, leaf_version, config_version);
        let known = Rc::clone(self.known.entry(versions).or_insert_with(|| Rc::new(Known::read(&given))));
        let judgement = decide::judgement(&known, &given);
        if self.random.u64(..CHECKED_AGAIN) == 0 && judge(&given) != judgement {
            return Err("the same is judged differently".to_owned());
        }
        if judgement.look_again <= given.now {
            return Err(format!("it is looked again at {}, which has been", judgement.look_again));
        }
        let mut fate = || if is_calm { 50 } else { self.random.u64(..100) };
        let (crashes, is_lost, is_late) = (fate() < 4, fate() < 3, fate() < 10);
        let mut is_busy = false;
        if let Some(action) = judgement.action.filter(|_| !crashes) {
            is_busy = true;
            let write = issue::write(action, &known, &given).map_err(|error| format!("{action:?}: {error}"))?;
            let base = if write.secret == Secret::Authority { authority_version } else { leaf_version };
            let arrives = now + if is_late { self.random.i64(0..=REQUEST_TAKES) } else { 0 };
            self.note(|| format!("{action:?}{}", if is_lost { ", and it is lost" } else { "" }));
            if !is_lost {
                self.schedule(arrives, Event::Write { secret: write.secret, base, data: write.data });
            }
        }
        let wanted = Config { bundle: judgement.bundle, since: judgement.since };
        let is_wrong = match &config {
            // It is made after a wait for pods that is much longer than any read is old.
            None => judgement.can_begin && ages == [0; 3],
            Some(config) => **config != wanted,
        };
        if is_wrong && !wanted.bundle.is_empty() && !crashes && self.random.u64(..10) > 0 {
            is_busy = true;
            let arrives = now + if is_late { self.random.i64(0..=REQUEST_TAKES) } else { 0 };
            self.schedule(arrives, Event::Publish { base: config_version, config: wanted });
        }
        let again = if crashes {
            now + self.random.i64(1..MINUTE)
        } else if is_busy || is_wrong {
            now + self.random.i64(1..10)
        } else {
            now + judgement.look_again.as_second() - self.cluster.clock().as_second()
        };
        // What was read too early comes later, and wakes.
        let again = if ages.iter().any(|age| *age > 0) { again.min(now + READ_IS_OLD + 1) } else { again };
        self.wake_at(again);
        Ok(())
    }

    /// What the operator learns of the pods.
    fn served(&self) -> Vec<Served> {
        let pods = self.cluster.pods.iter().filter(|pod| pod.is_running);
        let served = pods.map(|pod| Served {
            pod: pod.name.to_string(),
            fingerprint: pod
                .shown
                .as_ref()
                .filter(|_| pod.silent_until <= self.cluster.time)
                .map(|shown| shown.fingerprint.clone()),
        });
        served.collect()
    }

    fn store(&mut self, secret: Secret, data: Option<super::Data>) {
        let now = self.cluster.time;
        self.cluster.store(secret, data);
        if secret == Secret::Leaf && self.cluster.leaf.at(now).1.is_some() {
            let version = self.cluster.leaf.version();
            for pod in self.cluster.pods.iter().map(|pod| pod.name).collect::<Vec<_>>() {
                let moment = now + self.random.i64(1..=KUBELET_HEARS);
                self.schedule(moment, Event::Mount { pod, version });
            }
            if now < EVENTFUL && self.random.u64(..4) == 0 {
                let moment = now + self.random.i64(0..=KUBELET_HEARS);
                self.schedule(moment, Event::Fault(Fault::PodIsReplaced));
            }
        }
        self.tell_operator();
    }

    fn store_config(&mut self, config: Option<Config>) {
        self.cluster.store_config(config);
        let version = self.cluster.config.version();
        for server in 0..self.cluster.servers.len() {
            let moment = self.cluster.time + self.random.i64(0..=API_SERVER_HEARS);
            self.schedule(moment, Event::Hear { server, version });
        }
        self.tell_operator();
    }

    /// A watch tells of a change, usually.
    fn tell_operator(&mut self) {
        if self.random.u64(..10) > 0 {
            let soon = self.cluster.time + self.random.i64(0..3);
            self.wake_at(soon.max(self.operator_sleeps_until));
        } else {
            // The list that is read again now and then.
            let later = self.cluster.time + self.random.i64(0..CLOCK_IS_SEEN);
            self.wake_at(later.max(self.operator_sleeps_until));
        }
    }

    /// Wakes the operator then, and not later. What is scheduled for an earlier time stays.
    fn wake_at(&mut self, time: Time) {
        let is_scheduled = self.wakes_at.is_some_and(|scheduled| scheduled >= self.cluster.time);
        if !is_scheduled || self.wakes_at > Some(time) {
            self.waking += 1;
            self.wakes_at = Some(time);
            self.schedule(time, Event::Wake(self.waking));
        }
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }

    fn wrote(&mut self) -> Result<(), String> {
        let now = self.cluster.time;
        self.writes += 1;
        if now > self.written + 20 * MINUTE {
            self.busy_since = now;
        }
        self.written = now;
        if now - self.busy_since > HOUR && self.troubled_until < self.busy_since {
            return Err(format!("it has been writing for {} s, and nothing is wrong", now - self.busy_since));
        }
        Ok(())
    }

    /// The promise.
    fn check_trust(&mut self) -> Result<(), String> {
        let now = self.cluster.time;
        if now >= self.untrusted_until
            && let Some(wrong) = self.cluster.distrust(&mut self.random)?
        {
            return Err(wrong);
        }
        if now >= self.silent_until
            && let Some(pod) = self.cluster.pods.iter().find(|pod| pod.is_running && pod.shown.is_none())
        {
            return Err(format!("pod {} has nothing to show", pod.name));
        }
        Ok(())
    }

    /// Everything has been done, and nothing is left.
    fn check_end(&mut self) -> Result<(), String> {
        let allowed = 14 * self.faults + 30 + 8 * self.cluster.renewals(EVENTFUL + QUIET);
        if self.writes > allowed {
            return Err(format!("{} writes, and {allowed} should be enough", self.writes));
        }
        let now = self.cluster.time;
        let ((_, authority), (_, leaf)) = (self.cluster.authority.at(now), self.cluster.leaf.at(now));
        let (_, config) = self.cluster.config.at(now);
        let (Some(authority), Some(leaf), Some(config)) = (authority, leaf, config) else {
            return Err("something is missing in the end".to_owned());
        };
        let keys: Vec<_> = authority.keys().collect();
        if keys != ["ca.crt", "ca.key"] || config.bundle != authority["ca.crt"] || config.bundle != leaf["ca.crt"] {
            return Err(format!("there is more in the end than there should be: {keys:?}"));
        }
        let fingerprint = super::fingerprint(&leaf["tls.crt"]);
        if self.served().iter().any(|served| served.fingerprint != fingerprint) {
            return Err("a pod serves something else in the end".to_owned());
        }
        Ok(())
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let (time, clock): (Time, Timestamp) = (self.cluster.time, self.cluster.clock());
            *log += &format!(
                "{}d {:02}:{:02}:{:02} ({clock}): {}\n",
                time / DAY,
                time / HOUR % 24,
                time / MINUTE % 60,
                time % MINUTE,
                what()
            );
        }
    }
}

#[track_caller]
fn check(seeds: Range<u64>) {
    for seed in seeds {
        if let Err(wrong) = History::new(seed).run() {
            let mut again = History::new(seed);
            again.log = Some(String::new());
            let outcome = again.run();
            let log = again.log.unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(60)..];
            panic!("seed {seed}: {wrong}\n{}\n{outcome:?} at {} s", last.join("\n"), again.cluster.time);
        }
    }
}

#[test]
fn whatever_a_pod_serves_is_trusted() {
    let seeds = share::seeds(100, 3_000);
    let middle = seeds.start + (seeds.end - seeds.start) / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| check(middle..seeds.end));
        check(seeds.start..middle);
        other.join().unwrap();
    });
}
