//! Histories of findings, denials, terms and faults, with receivers that merge alerts as Alertmanager does. Whatever happens: once it is
//! over, each receiver has exactly what fires.

pub(super) mod alerter;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use portal_core::rule::Rule;
use portal_crds::Front;
use portal_test_kit::share;
use serde_json::Value;

use super::{
    alert::{Alert, Subject, of_offender, of_subject},
    book::{Book, Class, KEPT_ALIVE, Now},
    receiver::{May, Message, Outcome, Receiver},
    tests::{alerting, finding, pod},
};
use crate::findings::Offender;

/// An Alertmanager. It stores what is valid of a message that it refuses.
#[derive(Default)]
struct Fake {
    alerts: BTreeMap<String, Stored>,
}

#[derive(Clone, Copy)]
struct Stored {
    starts: Timestamp,
    ends: Timestamp,
}

/// A replica of the engine.
struct Replica {
    book: Book,
    receivers: Vec<Receiver>,
    is_holder: bool,
    /// From when on everything has been judged once.
    is_complete: bool,
    /// For each receiver: the message that is on its way, and when its answer comes.
    on_the_way: Vec<Option<(Message, Timestamp)>>,
}

struct World {
    seed: u64,
    chance: Rng,
    second: u64,
    fakes: Vec<Fake>,
    replicas: Vec<Replica>,
    /// What is wrong now.
    offenders: BTreeMap<u64, Offender>,
    /// What the receivers should have of audit by that.
    expected: BTreeSet<String>,
    rules: Vec<Arc<Rule>>,
    /// Until when each receiver does not work.
    faulty: Vec<u64>,
    /// Alerts that fire at a receiver and have not ended since.
    lasting: Vec<BTreeSet<String>>,
    /// When something last happened that has to do with an alert.
    touched: BTreeMap<String, u64>,
    refused: usize,
}

const BEGIN: i64 = 1_700_000_000;
const INSTANCE: &str = "default";

/// An alert of this namespace is refused by every receiver.
const POISON: &str = "poison";

impl Fake {
    /// Takes a message, and says whether all of it is right.
    fn take(&mut self, body: &str, now: Timestamp) -> bool {
        let alerts: Vec<Value> = serde_json::from_str(body).unwrap();
        assert!(!alerts.is_empty() && alerts.len() <= 256);
        let mut is_good = true;
        for alert in alerts {
            let time = |name: &str| alert[name].as_str().unwrap().parse::<Timestamp>().unwrap();
            let (starts, ends) = (time("startsAt"), time("endsAt"));
            if alert["labels"]["namespace"] == POISON || ends < starts {
                is_good = false;
                continue;
            }
            let new = Stored { starts, ends };
            let stored = self.alerts.entry(alert["labels"].to_string()).or_insert(new);
            let overlaps = |one: Stored, other: Stored| {
                (one.ends > other.starts && one.ends < other.ends)
                    || (one.starts > other.starts && one.starts < other.ends)
            };
            *stored = match overlaps(new, *stored) {
                false => new,
                true => {
                    let ends = match (new.ends <= now, stored.ends <= now) {
                        (true, true) => new.ends.max(stored.ends),
                        (true, false) => new.ends,
                        (false, _) => new.ends.max(stored.ends),
                    };
                    Stored { starts: new.starts.min(stored.starts), ends }
                }
            };
        }
        is_good
    }

    fn firing(&self, now: Timestamp) -> BTreeSet<String> {
        self.alerts.iter().filter(|(_, stored)| stored.ends > now).map(|(labels, _)| labels.clone()).collect()
    }
}

impl Replica {
    fn new(chance: &mut Rng, receivers: usize) -> Replica {
        Replica {
            book: Book::new(INSTANCE, 1 << 20),
            receivers: (0..receivers).map(|_| Receiver::new(chance.u64(..))).collect(),
            is_holder: false,
            is_complete: false,
            on_the_way: (0..receivers).map(|_| None).collect(),
        }
    }

    fn note(&mut self, id: u64, offender: Option<&Offender>, now: Now) {
        let changed = self.book.note(id, offender, now);
        for receiver in &mut self.receivers {
            changed.iter().for_each(|alert| receiver.touch(*alert, Class::Audit, now));
        }
    }

    fn hold(&mut self, now: Now) {
        self.is_holder = true;
        let ids = self.book.audit();
        self.receivers.iter_mut().for_each(|receiver| receiver.begin(&ids, now));
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut chance = Rng::with_seed(seed);
        let receivers = chance.usize(1..4);
        let replicas = (0..2).map(|_| Replica::new(&mut chance, receivers)).collect();
        let rules = vec![
            alerting("privileged", "alert: Privileged"),
            alerting(
                "twice",
                "alert: Twice\nactions: [{type: alertmanager, template: Other, labels: {team: '{{ namespace }}'}}]",
            ),
            alerting("silent", ""),
            alerting("requests", "actions: [{type: alertmanager, 'on': [admission]}]"),
        ];
        World {
            seed,
            chance,
            second: 0,
            fakes: (0..receivers).map(|_| Fake::default()).collect(),
            replicas,
            offenders: BTreeMap::new(),
            expected: BTreeSet::new(),
            rules,
            faulty: vec![0; receivers],
            lasting: vec![BTreeSet::new(); receivers],
            touched: BTreeMap::new(),
            refused: 0,
        }
    }

    fn now(&self) -> Now {
        at(self.second)
    }

    /// Something happens to an object.
    fn change(&mut self) {
        let id = self.chance.u64(0..12);
        let now = self.now();
        // Two objects of another kind of the same name have the same alerts.
        let name = format!("web-{}", id % 11);
        let namespace = if id % 5 == 4 { POISON } else { "shop" };
        let chance = &mut self.chance;
        let findings: Vec<_> = self
            .rules
            .iter()
            .filter(|_| chance.u8(..3) > 0)
            .map(|rule| {
                finding(rule, Some(["app", "side"][usize::from(id.is_multiple_of(2))]), "It is privileged.", now.wall)
            })
            .collect();
        if findings.is_empty() {
            self.offenders.remove(&id);
        } else {
            self.offenders.insert(id, pod(namespace, &name, findings));
        }
        let offender = self.offenders.get(&id);
        for replica in &mut self.replicas {
            replica.note(id, offender, now);
        }
        let before = std::mem::take(&mut self.expected);
        let alerts = self.offenders.values().flat_map(|offender| of_offender(offender, INSTANCE));
        let labels = alerts.map(|alert| alert.labels.to_string());
        self.expected = labels.filter(|labels| !labels.contains(POISON)).collect();
        for labels in self.expected.symmetric_difference(&before) {
            self.touched.insert(labels.clone(), self.second);
        }
    }

    fn deny(&mut self) -> Alert {
        let now = self.now();
        let place = self.chance.usize(0..2);
        let owner = format!("owner-{}", self.chance.u8(..3));
        let subject = Subject {
            rule: &self.rules[3],
            namespace: Some("shop"),
            kind: "Pod",
            name: &owner,
            container: None,
            message: "It is privileged.",
            saw: None,
            since: now.wall,
        };
        let alert = of_subject(subject, Front::Admission, INSTANCE).remove(0);
        let replica = &mut self.replicas[place];
        let id = replica.book.deny(&alert, now).unwrap();
        replica.receivers.iter_mut().for_each(|receiver| receiver.touch_in_time(id, Class::Denial, now));
        alert
    }

    /// A replica takes over, or one starts anew.
    fn succeed(&mut self) {
        let now = self.now();
        let next = self.chance.usize(0..2);
        for replica in &mut self.replicas {
            replica.is_holder = false;
        }
        if self.chance.bool() {
            let mut fresh = Replica::new(&mut self.chance, self.fakes.len());
            for (id, offender) in &self.offenders {
                fresh.note(*id, Some(offender), now);
            }
            self.replicas[next] = fresh;
        }
        self.replicas[next].hold(now);
    }

    /// One second of everything that sends.
    fn send(&mut self) {
        let now = self.now();
        let World { replicas, fakes, chance, faulty, .. } = self;
        for Replica { book, receivers, is_holder, is_complete, on_the_way } in replicas {
            book.prune(now).into_iter().for_each(|(id, class)| {
                receivers.iter_mut().for_each(|receiver| _ = receiver.forget(id, class));
            });
            let may = May { audit: *is_holder, end: *is_complete };
            for (place, receiver) in receivers.iter_mut().enumerate() {
                // A quick receiver takes several messages in a second. Each of them has to be about something.
                for message in 0.. {
                    assert!(message < 100, "seed {}: it sends without end", self.seed);
                    if let Some((message, when)) = on_the_way[place].take() {
                        if when > now.wall {
                            on_the_way[place] = Some((message, when));
                            break;
                        }
                        let is_faulty = faulty[place] > self.second;
                        let (outcome, is_stored) = match (is_faulty, chance.u8(..6)) {
                            (false, _) | (true, 0) => (Outcome::Taken, true),
                            (true, 1) => (Outcome::Failed(None), true),
                            (true, 2) => (Outcome::Failed(Some(Duration::from_secs(chance.u64(0..90)))), false),
                            // It could not be read.
                            (true, 3) => (Outcome::Refused, false),
                            (true, _) => (Outcome::Failed(None), false),
                        };
                        let is_good = !is_stored || fakes[place].take(&message.body, now.wall);
                        let outcome = match outcome {
                            // It was cut off, and may have come all the same.
                            _ if message.class == Class::Audit && !*is_holder => Outcome::NotSent,
                            Outcome::Taken if !is_good => Outcome::Refused,
                            outcome => outcome,
                        };
                        let told = receiver.settle(outcome, book, now);
                        self.refused += usize::from(told.refused.is_some());
                    }
                    let Some(message) = receiver.next(book, may, now) else { break };
                    assert!(message.class == Class::Denial || *is_holder, "seed {}: a stranger speaks", self.seed);
                    let wait = if faulty[place] > self.second { chance.i64(0..6) } else { 0 };
                    on_the_way[place] = Some((message, now.wall + SignedDuration::from_secs(wait)));
                }
            }
        }
    }

    /// What fires all the time never ends at a receiver that has it: nobody is notified of it twice.
    fn check_lasting(&mut self) {
        let now = self.now().wall;
        for (fake, lasting) in self.fakes.iter().zip(&mut self.lasting) {
            let firing = fake.firing(now);
            lasting.retain(|labels| self.expected.contains(labels));
            let lost: Vec<_> = lasting.difference(&firing).collect();
            assert!(lost.is_empty(), "seed {}, second {}: {lost:?} ended by itself", self.seed, self.second);
            // What fires since it last changed was sent after that. Of what fires again a receiver may know only that it fired before.
            let is_of_now = |labels: &&String| {
                let touched = self.touched.get(*labels).map(|second| at(*second).wall);
                touched.is_none_or(|touched| fake.alerts[*labels].ends > touched + KEPT_ALIVE)
            };
            lasting.extend(firing.intersection(&self.expected).filter(is_of_now).cloned());
        }
    }
}

fn run(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    let start = world.now();
    for replica in &mut world.replicas {
        replica.is_complete = true;
    }
    world.replicas[0].hold(start);
    let (mut denials, mut next_term, mut healthy_since) = (0, 300, 0);
    for _ in 0..1_800 {
        world.second += 1;
        if world.chance.u8(..20) == 0 {
            world.change();
        }
        if world.chance.u8(..40) == 0 {
            world.deny();
            denials += 1;
        }
        for place in 0..world.fakes.len() {
            // Faults and terms leave enough time in between that nothing has to end.
            if world.faulty[place] + 150 < world.second && world.chance.u8(..100) == 0 {
                world.faulty[place] = world.second + world.chance.u64(1..60);
                healthy_since = world.faulty[place];
            }
            if world.chance.u16(..1500) == 0 {
                // It restarts, and has forgotten all.
                world.fakes[place] = Fake::default();
                world.lasting[place].clear();
            }
        }
        if world.second == next_term {
            world.succeed();
            for replica in &mut world.replicas {
                replica.is_complete = true;
            }
            next_term += world.chance.u64(200..500);
        }
        world.send();
        world.check_lasting();
    }
    assert!(healthy_since < world.second + 60);
    // Everything is well again, and nothing happens any more.
    for _ in 0..900 {
        world.second += 1;
        world.send();
        world.check_lasting();
    }
    let now = world.now().wall;
    for (place, fake) in world.fakes.iter().enumerate() {
        assert_eq!(fake.firing(now), world.expected, "seed {seed}, receiver {place}");
    }
    assert!(world.replicas.iter().all(|replica| replica.book.firing(Class::Denial) == 0), "denials end by themselves");
    (world.refused, denials)
}

#[test]
fn whatever_fails_each_receiver_has_exactly_what_fires_in_the_end() {
    let (mut runs, mut refused, mut denials) = (0, 0, 0);
    for seed in share::seeds(30, 3_000) {
        runs += 1;
        let (more_refused, more_denials) = run(seed);
        (refused, denials) = (refused + more_refused, denials + more_denials);
    }
    assert!(
        refused * 3 > runs && denials > 3 * runs,
        "{runs} runs: {refused} alerts were refused, {denials} denials told"
    );
}

/// What one receiver is sent at a time, by the names of the objects.
fn names(message: &Message) -> Vec<String> {
    let alerts: Vec<Value> = serde_json::from_str(&message.body).unwrap();
    alerts.iter().map(|alert| alert["labels"]["name"].as_str().unwrap().to_owned()).collect()
}

fn at(second: u64) -> Now {
    Now { since: Duration::from_secs(second), wall: Timestamp::from_second(BEGIN + second as i64).unwrap() }
}

const ALL: May = May { audit: true, end: true };

/// A replica with so many alerts that hold the Lease.
fn with_alerts(count: u64) -> Replica {
    let rule = alerting("privileged", "alert: Privileged");
    let mut replica = Replica::new(&mut Rng::with_seed(1), 1);
    for id in 0..count {
        let offender = pod("shop", &format!("web-{id}"), vec![finding(&rule, None, "m", at(0).wall)]);
        replica.note(id, Some(&offender), at(0));
    }
    replica
}

#[test]
fn one_bad_alert_among_many_costs_a_few_messages_and_is_told_once() {
    let Replica { book, mut receivers, .. } = with_alerts(256);
    let receiver = &mut receivers[0];
    let (mut messages, mut stored, mut told) = (0, BTreeSet::new(), 0);
    while let Some(message) = receiver.next(&book, ALL, at(1)) {
        messages += 1;
        let names = names(&message);
        let is_bad = names.contains(&"web-77".to_owned());
        if !is_bad {
            stored.extend(names);
        }
        let outcome = if is_bad { Outcome::Refused } else { Outcome::Taken };
        told += usize::from(receiver.settle(outcome, &book, at(1)).refused.is_some());
    }
    assert_eq!((messages, stored.len(), told), (17, 255, 1));
    // From then on it is sent alone, and ever more rarely.
    let mut tried = Vec::new();
    for second in 2..2_000 {
        while let Some(message) = receiver.next(&book, ALL, at(second)) {
            let is_bad = names(&message).contains(&"web-77".to_owned());
            assert!(!is_bad || message.alerts == 1);
            tried.extend(is_bad.then_some(second));
            let outcome = if is_bad { Outcome::Refused } else { Outcome::Taken };
            assert_eq!(receiver.settle(outcome, &book, at(second)).refused, None);
        }
    }
    assert_eq!(tried, [61, 121, 181, 301, 541, 1021, 1621]);
}

#[test]
fn whoever_refuses_everything_is_left_alone() {
    let Replica { book, mut receivers, .. } = with_alerts(2_000);
    let receiver = &mut receivers[0];
    let mut messages = 0;
    for second in 1..=600 {
        while receiver.next(&book, ALL, at(second)).is_some() {
            receiver.settle(Outcome::Refused, &book, at(second));
            messages += 1;
        }
    }
    assert!(messages < 120, "{messages} messages in ten minutes");
    // Once it takes them it has them all within a few messages.
    let mut taken = 0;
    for second in 601..=1300 {
        while receiver.next(&book, ALL, at(second)).is_some() {
            taken += receiver.settle(Outcome::Taken, &book, at(second)).taken;
        }
        if taken >= 2_000 {
            break;
        }
    }
    assert!(taken >= 2_000, "{taken}");
}

#[test]
fn nothing_ends_before_everything_was_judged_and_nobody_speaks_but_the_holder() {
    let mut replica = with_alerts(1);
    replica.note(0, None, at(5));
    let Replica { book, receivers, .. } = &mut replica;
    let receiver = &mut receivers[0];
    assert!(receiver.next(book, May { audit: false, end: true }, at(6)).is_none());
    assert!(receiver.next(book, May { audit: true, end: false }, at(6)).is_none());
    let ended = book.audit()[0];
    receiver.touch(ended, Class::Audit, at(7));
    let message = receiver.next(book, ALL, at(7)).unwrap();
    let alert: Value = serde_json::from_str::<Vec<Value>>(&message.body).unwrap().remove(0);
    assert_eq!(
        (&alert["startsAt"], &alert["endsAt"]),
        (&at(0).wall.to_string().into(), &at(5).wall.to_string().into())
    );
    receiver.settle(Outcome::Taken, book, at(7));
    // The end is repeated for a while, and always the same.
    let mut repeated = 0;
    for second in 8..2_000 {
        book.prune(at(second)).into_iter().for_each(|(id, class)| _ = receiver.forget(id, class));
        while let Some(again) = receiver.next(book, ALL, at(second)) {
            assert_eq!(again.body, message.body);
            receiver.settle(Outcome::Taken, book, at(second));
            repeated += 1;
        }
    }
    assert_eq!(repeated, 14);
}

#[test]
fn a_term_that_is_too_short_to_send_anything_is_waited_out() {
    let Replica { book, mut receivers, .. } = with_alerts(1);
    let receiver = &mut receivers[0];
    let mut tries = 0;
    for second in 0..10 {
        while receiver.next(&book, ALL, at(second)).is_some() {
            receiver.settle(Outcome::NotSent, &book, at(second));
            tries += 1;
        }
    }
    assert_eq!(tries, 10);
    assert_eq!(receiver.next(&book, ALL, at(10)).map(|message| message.alerts), Some(1));
}

#[test]
fn what_there_is_no_room_for_is_counted_and_told_when_there_is() {
    let rule = alerting("privileged", "alert: Privileged");
    let mut book = Book::new(INSTANCE, 4 << 10);
    let offender = |id: u64| pod("shop", &format!("web-{id}"), vec![finding(&rule, None, "m", at(0).wall)]);
    for id in 0..40 {
        book.note(id, Some(&offender(id)), at(0));
    }
    let fits = book.firing(Class::Audit);
    assert!((5..20).contains(&fits), "{fits}");
    assert_eq!(book.take_refused(), 40 - fits);
    assert!(!book.take_has_room_again());
    // What has ended makes room for what fires.
    for id in 0..10 {
        book.note(id, None, at(1));
    }
    assert!(book.take_has_room_again() || book.firing(Class::Audit) == 0 || fits < 10);
    for id in 10..30 {
        book.note(id, Some(&offender(id)), at(2));
    }
    assert_eq!(book.firing(Class::Audit), fits);
}

#[test]
fn a_controller_that_tries_again_and_again_is_one_alert() {
    let mut replica = Replica::new(&mut Rng::with_seed(1), 1);
    let rule = alerting("privileged", "alert: Privileged");
    let deny = |replica: &mut Replica, second: u64| {
        let subject = Subject {
            rule: &rule,
            namespace: Some("shop"),
            kind: "Pod",
            name: "web",
            container: None,
            message: "m",
            saw: None,
            since: at(second).wall,
        };
        let alert = of_subject(subject, Front::Admission, INSTANCE).remove(0);
        let id = replica.book.deny(&alert, at(second)).unwrap();
        replica.receivers[0].touch_in_time(id, Class::Denial, at(second));
    };
    let mut sent = Vec::new();
    for second in 0..900 {
        if second < 300 {
            deny(&mut replica, second);
        }
        let Replica { book, receivers, .. } = &mut replica;
        book.prune(at(second)).into_iter().for_each(|(id, class)| _ = receivers[0].forget(id, class));
        while let Some(message) = receivers[0].next(book, May { audit: false, end: true }, at(second)) {
            let alerts: Vec<Value> = serde_json::from_str(&message.body).unwrap();
            let time = |name: &str| alerts[0][name].as_str().unwrap().parse::<Timestamp>().unwrap().as_second() - BEGIN;
            sent.push((second, alerts.len(), time("startsAt"), time("endsAt")));
            receivers[0].settle(Outcome::Taken, book, at(second));
        }
    }
    let expected: Vec<_> = (0..5).map(|minute| minute * 60).map(|second| (second, 1, 0, second as i64 + 300)).collect();
    assert_eq!(sent[..5], expected);
    assert_eq!(sent[5..], [(300, 1, 0, 599)]);
}
