//! What one receiver was told, and what it has to be told next. A receiver that is down holds up no other.
//!
//! Pure: times and chance are passed in, and what came of a message is told by whoever sends it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::book::{AlertId, Book, Class, Now};

/// A receiver of alerts.
pub(super) struct Receiver {
    denials: Lane,
    audit: Lane,
    places: HashMap<AlertId, Place>,
    /// The alerts that it refuses, and how often it has.
    bad: HashMap<AlertId, u32>,
    /// The message that is on its way.
    sent: Option<Sent>,
    /// How many messages have failed in a row.
    failures: u32,
    /// How many single alerts it has refused since it took something.
    refusals: u32,
    /// Nothing is sent before.
    pause: Duration,
    chance: fastrand::Rng,
}

/// What is to be sent of a class.
#[derive(Default)]
struct Lane {
    /// When each alert is sent.
    due: BTreeSet<(Duration, AlertId)>,
    /// Parts of messages that were refused. Somewhere in them is an alert that is.
    doubted: VecDeque<Vec<AlertId>>,
}

/// Where an alert is in its lane.
#[derive(Clone, Copy, Default)]
struct Place {
    due: Option<Duration>,
    /// When it was last taken.
    taken: Option<Duration>,
}

struct Sent {
    class: Class,
    ids: Vec<AlertId>,
    is_doubted: bool,
}

/// A message to be sent.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) class: Class,
    pub(super) body: String,
    pub(super) alerts: usize,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// All of it was taken.
    Taken,
    /// Something in it is wrong.
    Refused,
    /// Nobody knows whether any of it was taken. It asks to be left alone for so long, if it does.
    Failed(Option<Duration>),
    /// It was not sent, because this process does not hold the Lease any more.
    NotSent,
}

/// What there is to say about an outcome.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Told {
    /// How many alerts were taken.
    pub(super) taken: usize,
    /// An alert that was refused by itself, for the first time.
    pub(super) refused: Option<AlertId>,
    /// Whether this is the first message that failed, after one that did not.
    pub(super) begins_to_fail: bool,
    /// Whether this is the first message that was taken, after some that failed.
    pub(super) works_again: bool,
}

/// What may be sent at this moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct May {
    /// Whether this process speaks for audit.
    pub(super) audit: bool,
    /// Whether everything was judged once, so that what is gone has ended.
    pub(super) end: bool,
}

/// How often an alert is sent that fires.
const AGAIN: Duration = Duration::from_secs(60);

/// How often an alert is tried again at last that was refused: another version of Alertmanager may take it.
const REFUSED_AGAIN: Duration = Duration::from_mins(10);

/// So many times in a row it is tried as often as others, in case that it was somebody on the way who refused it: until then an alert that
/// was taken before still fires.
const REFUSED_LIKE_OTHERS: u32 = 3;

/// The most of a message. A message that is too large for somebody on the way is taken apart like one that is refused.
const MOST_ALERTS: usize = 256;
const MOST_BYTES: usize = 512 << 10;

/// Who refuses so many single alerts in a row, and takes none, refuses something else: it is let alone like one that does not answer.
const REFUSALS: u32 = 8;

/// The pauses after messages that failed: each twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Receiver {
    /// A receiver that was told nothing.
    pub(super) fn new(seed: u64) -> Receiver {
        Receiver {
            denials: Lane::default(),
            audit: Lane::default(),
            places: HashMap::new(),
            bad: HashMap::new(),
            sent: None,
            failures: 0,
            refusals: 0,
            pause: Duration::ZERO,
            chance: fastrand::Rng::with_seed(seed),
        }
    }

    /// There is news of an alert.
    pub(super) fn touch(&mut self, id: AlertId, class: Class, now: Now) {
        self.place(id, class, now.since);
    }

    /// There is news of an alert that need not be told before its time.
    pub(super) fn touch_in_time(&mut self, id: AlertId, class: Class, now: Now) {
        let place = self.places.get(&id).copied().unwrap_or_default();
        if place.due.is_none() {
            let next = place.taken.map_or(now.since, |taken| now.since.max(taken + AGAIN));
            self.place(id, class, next);
        }
    }

    /// An alert is not known any more. Returns whether it was never taken.
    pub(super) fn forget(&mut self, id: AlertId, class: Class) -> bool {
        self.bad.remove(&id);
        let Some(place) = self.places.remove(&id) else { return true };
        if let Some(due) = place.due {
            self.lane(class).due.remove(&(due, id));
        }
        place.taken.is_none()
    }

    /// A term begins: whatever it was told before, it is told everything.
    pub(super) fn begin(&mut self, audit: &[AlertId], now: Now) {
        self.audit = Lane::default();
        for id in audit {
            self.places.remove(id);
            self.place(*id, Class::Audit, now.since);
        }
    }

    /// The next message, if there is one. It is on its way until [`Receiver::settle`] says what came of it.
    pub(super) fn next(&mut self, book: &Book, may: May, now: Now) -> Option<Message> {
        if self.sent.is_some() || now.since < self.pause {
            return None;
        }
        let classes = [(Class::Denial, true), (Class::Audit, may.audit)];
        classes.into_iter().filter(|(_, may)| *may).find_map(|(class, _)| self.next_of(class, book, may, now))
    }

    fn next_of(&mut self, class: Class, book: &Book, may: May, now: Now) -> Option<Message> {
        let may_tell = |id: &AlertId| book.class(*id) == Some(class) && (may.end || !book.has_ended(*id));
        let is_known = |ids: &mut Vec<AlertId>| {
            ids.retain(may_tell);
            !ids.is_empty()
        };
        while let Some(mut ids) = self.lane(class).doubted.pop_front() {
            if is_known(&mut ids) {
                return Some(self.send(class, ids, true, book, now));
            }
        }
        let (mut ids, mut bytes) = (Vec::new(), 0);
        while let Some((due, id)) = self.lane(class).due.first().copied().filter(|(due, _)| *due <= now.since) {
            let is_bad = self.bad.contains_key(&id);
            let is_full = ids.len() == MOST_ALERTS || bytes + book.size(id) > MOST_BYTES || is_bad;
            if is_full && !ids.is_empty() {
                break;
            }
            self.lane(class).due.remove(&(due, id));
            self.places.entry(id).or_default().due = None;
            if may_tell(&id) {
                bytes += book.size(id);
                ids.push(id);
            }
            if is_bad && !ids.is_empty() {
                break;
            }
        }
        (!ids.is_empty()).then(|| self.send(class, ids, false, book, now))
    }

    fn send(&mut self, class: Class, ids: Vec<AlertId>, is_doubted: bool, book: &Book, now: Now) -> Message {
        let message = Message { class, body: book.message(&ids, now), alerts: ids.len() };
        self.sent = Some(Sent { class, ids, is_doubted });
        message
    }

    /// Notes what came of the message that was on its way.
    pub(super) fn settle(&mut self, outcome: Outcome, book: &Book, now: Now) -> Told {
        let Some(Sent { class, ids, is_doubted }) = self.sent.take() else { return Told::default() };
        let mut told = Told::default();
        match outcome {
            Outcome::Taken => {
                told.taken = ids.len();
                told.works_again = std::mem::take(&mut self.failures) > 0;
                self.refusals = 0;
                for id in ids.into_iter().filter(|id| book.class(*id) == Some(class)) {
                    self.bad.remove(&id);
                    self.places.entry(id).or_default().taken = Some(now.since);
                    if book.is_repeated(id) {
                        self.place_unless_due(id, class, now.since + AGAIN);
                    }
                }
            }
            Outcome::Refused if ids.len() > 1 => {
                let (first, second) = ids.split_at(ids.len() / 2);
                self.lane(class).doubted.push_front(second.to_vec());
                self.lane(class).doubted.push_front(first.to_vec());
            }
            Outcome::Refused => {
                self.refusals += 1;
                for id in ids.into_iter().filter(|id| book.class(*id) == Some(class)) {
                    let times = self.bad.entry(id).or_default();
                    *times += 1;
                    told.refused = (*times == 1).then_some(id);
                    let more = times.saturating_sub(REFUSED_LIKE_OTHERS).min(10);
                    let again = AGAIN.saturating_mul(1 << more).min(REFUSED_AGAIN);
                    if !book.has_ended(id) {
                        self.place_unless_due(id, class, now.since + again);
                    }
                }
                if self.refusals >= REFUSALS {
                    told.begins_to_fail = self.fail(None, now);
                }
            }
            Outcome::Failed(asked) => {
                told.begins_to_fail = self.fail(asked, now);
                self.put_back(class, ids, is_doubted, now);
            }
            Outcome::NotSent => {
                // The term may be too short to send anything, and not over yet.
                self.pause = self.pause.max(now.since + FIRST_PAUSE / 2);
                self.put_back(class, ids, is_doubted, now);
            }
        }
        told
    }

    fn put_back(&mut self, class: Class, ids: Vec<AlertId>, is_doubted: bool, now: Now) {
        if is_doubted {
            return self.lane(class).doubted.push_front(ids);
        }
        for id in ids {
            self.place_unless_due(id, class, now.since);
        }
    }

    /// Makes a pause, so that those who are told by several processes are not told by all at once.
    fn fail(&mut self, asked: Option<Duration>, now: Now) -> bool {
        self.failures += 1;
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST_PAUSE);
        let pause = pause.mul_f64(0.5 + self.chance.f64() / 2.0);
        self.pause = now.since + asked.map_or(pause, |asked| asked.min(2 * LONGEST_PAUSE).max(pause));
        self.failures == 1
    }

    /// When there is something to be sent, if nothing else happens.
    pub(super) fn wakes(&self, may: May) -> Option<Duration> {
        if self.sent.is_some() {
            return None;
        }
        let of_lane = |lane: &Lane| match lane.doubted.is_empty() {
            true => lane.due.first().map(|(due, _)| *due),
            false => Some(Duration::ZERO),
        };
        let audit = may.audit.then(|| of_lane(&self.audit)).flatten();
        let first = [of_lane(&self.denials), audit].into_iter().flatten().min()?;
        Some(first.max(self.pause))
    }

    /// How many alerts wait because it did not take them.
    pub(super) fn waiting(&self, may: May, now: Now) -> usize {
        let of_lane = |lane: &Lane| {
            let doubted: usize = lane.doubted.iter().map(Vec::len).sum();
            lane.due.range(..=(now.since, AlertId::MAX)).count() + doubted
        };
        let sent = self.sent.as_ref().map_or(0, |sent| sent.ids.len());
        of_lane(&self.denials) + if may.audit { of_lane(&self.audit) } else { 0 } + sent
    }

    fn place_unless_due(&mut self, id: AlertId, class: Class, due: Duration) {
        if self.places.get(&id).is_none_or(|place| place.due.is_none()) {
            self.place(id, class, due);
        }
    }

    fn place(&mut self, id: AlertId, class: Class, due: Duration) {
        let place = self.places.entry(id).or_default();
        let before = place.due.replace(due);
        let lane = self.lane(class);
        if let Some(before) = before {
            lane.due.remove(&(before, id));
        }
        lane.due.insert((due, id));
    }

    fn lane(&mut self, class: Class) -> &mut Lane {
        match class {
            Class::Denial => &mut self.denials,
            Class::Audit => &mut self.audit,
        }
    }
}
