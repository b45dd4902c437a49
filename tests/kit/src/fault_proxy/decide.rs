//! Which faults happen to which request, as a function of the seed and of what came before. No I/O.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use sha2::{Digest as _, Sha256};

use super::fault::{Fault, Injection};
use super::log::Log;
use super::request::{Requests, Subject, Verb};
use super::storm::Storm;

/// Everything that is injected into a proxy, and what it did.
#[derive(Debug)]
pub(super) struct Decisions {
    pub(super) log: Log,
    seed: u64,
    /// The revision of the cluster at the start, which stale reads of a storm are answered with.
    first_revision: u64,
    started: Instant,
    /// In the order of their injection.
    active: Vec<Active>,
    /// How many were ever injected by the test.
    injected: u64,
    /// How many requests or events of each key came, by the hash of the key: a few bytes for each name that a test uses.
    ordinals: HashMap<u64, u32>,
}

/// What was decided for one request or event.
#[derive(Debug)]
pub(super) struct Decision {
    /// What happens to it, in order.
    pub(super) faults: Vec<Fault>,
    /// Its number in the log, if it is there.
    pub(super) entry: Option<u64>,
    /// Requests that a partition has begun to refuse.
    pub(super) refused: Option<Requests>,
}

/// A partition that holds.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) fault: Fault,
    /// When it ends, if that is known.
    pub(super) until: Option<Instant>,
}

#[derive(Debug)]
struct Active {
    /// Its place among all that the test injected; for a partition of a storm that of the storm.
    number: u64,
    source: Source,
    /// How many requests or events it was drawn for, those that it lets pass at first included.
    seen: u32,
    /// How many it happened to.
    hits: u32,
    until: Option<Instant>,
}

#[derive(Debug)]
enum Source {
    Injection(Injection),
    Storm(Storm),
}

impl Decisions {
    pub(super) fn new(seed: u64, first_revision: u64, started: Instant) -> Self {
        Self {
            log: Log::default(),
            seed,
            first_revision,
            started,
            active: Vec::new(),
            injected: 0,
            ordinals: HashMap::new(),
        }
    }

    pub(super) fn inject(&mut self, injection: Injection) -> u64 {
        self.push(Source::Injection(injection))
    }

    pub(super) fn storm(&mut self, storm: Storm) -> u64 {
        self.push(Source::Storm(storm))
    }

    /// Ends what was injected under this number.
    pub(super) fn remove(&mut self, number: u64) {
        self.active.retain(|active| active.number != number);
    }

    /// How often it happened.
    pub(super) fn hits(&self, number: u64) -> u32 {
        self.active.iter().filter(|active| active.number == number).map(|active| active.hits).sum()
    }

    /// Decides what happens to a request or an event, and writes it down. An event that nothing happens to is not
    /// written down.
    pub(super) fn decide(&mut self, subject: &Subject, now: Instant) -> Decision {
        self.active.retain(|active| active.until.is_none_or(|until| now < until));
        let key = subject.key();
        let ordinal = self.ordinals.entry(hash(&[key.as_bytes()])).or_default();
        let this = *ordinal;
        *ordinal += 1;

        let mut faults = self.met_partitions(subject);
        let mut refused = None;
        // Nothing else happens to what is refused. In a storm a client that tries again at once would never get out.
        if !faults.contains(&Fault::Refuse) {
            let begun = self.draw(subject, &key, this, &mut faults);
            if let Some((number, fault, length)) = begun {
                let requests = Requests::all().from(&subject.client);
                refused = (fault == Fault::Refuse).then(|| requests.clone());
                let source = Source::Injection(fault.on(requests));
                self.active.push(Active { number, source, seen: 0, hits: 0, until: Some(now + length) });
            }
        }
        let is_noted = subject.event.is_none() || !faults.is_empty();
        let entry = is_noted.then(|| self.log.add(now - self.started, subject, this, faults.clone()));
        Decision { faults, entry, refused }
    }

    /// The partitions that a request is in. Events wait where their stream does.
    fn met_partitions(&mut self, subject: &Subject) -> Vec<Fault> {
        let mut faults = Vec::new();
        for active in &mut self.active {
            if let Source::Injection(Injection { fault, requests, .. }) = &active.source
                && fault.is_partition()
                && subject.event.is_none()
                && requests.include(subject)
            {
                active.hits += 1;
                faults.push(fault.clone());
            }
        }
        faults
    }

    /// Draws the other faults. Returns the partition that a storm begins, with the number of the storm.
    fn draw(
        &mut self,
        subject: &Subject,
        key: &str,
        ordinal: u32,
        faults: &mut Vec<Fault>,
    ) -> Option<(u64, Fault, Duration)> {
        let (seed, first_revision) = (self.seed, self.first_revision);
        for active in &mut self.active {
            let number = active.number;
            let numbers = [seed.to_le_bytes(), number.to_le_bytes(), u64::from(ordinal).to_le_bytes()].concat();
            // Of its own for each, so that what comes between does not change what this draws.
            let mut random = Rng::with_seed(hash(&[&numbers, key.as_bytes()]));
            let (fault, length) = match &active.source {
                Source::Injection(injection) => {
                    if !injection.happens(subject, &mut active.seen, random.f64()) {
                        continue;
                    }
                    (injection.fault.clone(), Duration::ZERO)
                }
                Source::Storm(storm) => match storm.pick(subject, first_revision, &mut random) {
                    Some(picked) => picked,
                    None => continue,
                },
            };
            active.hits += 1;
            faults.push(fault.clone());
            if fault.is_partition() {
                return Some((number, fault, length));
            }
            if fault.is_final() {
                return None;
            }
        }
        None
    }

    /// The partition that a request or a stream is in.
    pub(super) fn partition(&self, subject: &Subject, now: Instant) -> Option<Partition> {
        self.active.iter().find_map(|active| match &active.source {
            Source::Injection(Injection { fault, requests, .. })
                if fault.is_partition()
                    && requests.include(subject)
                    && active.until.is_none_or(|until| now < until) =>
            {
                Some(Partition { fault: fault.clone(), until: active.until })
            }
            _ => None,
        })
    }

    fn push(&mut self, source: Source) -> u64 {
        let number = self.injected;
        self.injected += 1;
        self.active.push(Active { number, source, seen: 0, hits: 0, until: None });
        number
    }
}

impl Injection {
    fn happens(&self, subject: &Subject, seen: &mut u32, drawn: f64) -> bool {
        let fits = match self.fault {
            Fault::Stale(_) => matches!(subject.verb, Verb::Get | Verb::List),
            Fault::Expire => subject.verb == Verb::Watch,
            // Those hold for a time.
            Fault::Refuse | Fault::Silence => false,
            _ => true,
        };
        let is_meant = self.fault.is_for_events() == subject.event.is_some() && self.requests.include(subject);
        if !fits || !is_meant || drawn >= self.chance {
            return false;
        }
        let before = *seen;
        *seen = before.saturating_add(1);
        before >= self.skip && self.limit.is_none_or(|limit| before - self.skip < limit)
    }
}

/// The same number for the same parts on every machine.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
        hasher.update([0xff]);
    }
    let digest = hasher.finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::fault::Answer;
    use super::*;

    fn update(client: &str, name: &str) -> Subject {
        Subject::of_request(client.into(), &Method::PUT, &format!("/api/v1/namespaces/x/configmaps/{name}"), "")
    }

    fn event(name: &str) -> Subject {
        let mut subject = Subject::of_request("a".into(), &Method::GET, "/api/v1/configmaps", "watch=true");
        subject.object.name = name.to_owned();
        subject.event = Some("ADDED".to_owned());
        subject
    }

    /// What each of these meets, in their order.
    fn faults(decisions: &mut Decisions, subjects: &[Subject]) -> Vec<Vec<Fault>> {
        let now = Instant::now();
        subjects.iter().map(|subject| decisions.decide(subject, now).faults).collect()
    }

    #[test]
    fn a_fault_happens_to_its_requests_after_some_and_so_many_times() {
        let mut decisions = Decisions::new(1, 1, Instant::now());
        let number = decisions.inject(Fault::CutBefore.on(Requests::of("configmaps").from("a")).after(1).next(2));
        let subjects = [update("a", "x"), update("b", "x"), update("a", "x"), update("a", "y"), update("a", "x")];
        let cut = vec![Fault::CutBefore];
        assert_eq!(faults(&mut decisions, &subjects), [vec![], vec![], cut.clone(), cut, vec![]]);
        assert_eq!(decisions.hits(number), 2);
        decisions.remove(number);
        assert_eq!(decisions.hits(number), 0);
    }

    #[test]
    fn faults_add_up_until_one_that_is_final() {
        let mut decisions = Decisions::new(1, 1, Instant::now());
        let delay = Fault::Delay(Duration::from_millis(1));
        let answer = Fault::Answer(Answer::CONFLICT);
        decisions.inject(delay.clone().on(Requests::all()));
        decisions.inject(answer.clone().on(Requests::all()).next(1));
        let behind = decisions.inject(Fault::CutAfter.on(Requests::all()).next(1));
        decisions.inject(Fault::DropEvent.on(Requests::all()));
        let subjects = [update("a", "x"), update("a", "x"), event("x")];
        let expected = [vec![delay.clone(), answer], vec![delay, Fault::CutAfter], vec![Fault::DropEvent]];
        assert_eq!(faults(&mut decisions, &subjects), expected);
        assert_eq!(decisions.hits(behind), 1);
    }

    #[test]
    fn chance_is_the_seed_s_and_does_not_depend_on_the_order_of_other_requests() {
        let draw = |seed, interleaved: bool| {
            let mut decisions = Decisions::new(seed, 1, Instant::now());
            decisions.inject(Fault::CutBefore.on(Requests::all().from("a")).chance(0.5));
            let mut met = Vec::new();
            for _ in 0..64 {
                if interleaved {
                    faults(&mut decisions, &[update("b", "x"), event("x")]);
                }
                met.extend(faults(&mut decisions, &[update("a", "x")]));
            }
            met
        };
        assert_eq!(draw(7, false), draw(7, true));
        assert_ne!(draw(7, false), draw(8, false));
        let hits = draw(7, false).iter().filter(|faults| !faults.is_empty()).count();
        assert!((16..48).contains(&hits), "{hits} of 64 at a chance of a half");
    }

    #[test]
    fn a_storm_does_only_what_kubernetes_may_do() {
        let mut decisions = Decisions::new(3, 1, Instant::now());
        decisions.storm(Storm { requests: 1.0, events: 1.0, ..Storm::default() });
        for ordinal in 0..500 {
            let now = Instant::now() + Duration::from_secs(ordinal);
            for subject in [update("a", "x"), event("x")] {
                let faults = decisions.decide(&subject, now).faults;
                assert!(!faults.is_empty());
                assert!(!faults.contains(&Fault::DropEvent), "a watch that goes on has every event");
                assert!(!faults.iter().any(|fault| matches!(fault, Fault::Stale(_))), "only reads are stale");
            }
            let read = Subject::of_request("a".into(), &Method::GET, "/api/v1/configmaps", "");
            let faults = decisions.decide(&read, now).faults;
            assert!(!faults.iter().any(|fault| matches!(fault, Fault::Stale(_))), "it asked for the newest");
        }
    }

    #[test]
    fn a_partition_of_a_storm_ends_by_itself_or_with_the_storm() {
        let begin = |decisions: &mut Decisions| {
            let now = Instant::now();
            let mut refused = (0..1000).filter_map(|_| decisions.decide(&update("a", "x"), now).refused);
            assert!(refused.next().is_some(), "a thousand requests at random meet every fault");
            assert!(decisions.partition(&update("a", "y"), now).is_some());
            assert!(decisions.partition(&update("b", "y"), now).is_none());
            now
        };
        let mut decisions = Decisions::new(3, 1, Instant::now());
        let storm = decisions.storm(Storm { requests: 1.0, ..Storm::default() });
        let now = begin(&mut decisions);
        assert!(decisions.partition(&update("a", "y"), now + Duration::from_secs(60)).is_none());
        decisions.remove(storm);
        assert!(decisions.partition(&update("a", "y"), now).is_none());
    }
}
