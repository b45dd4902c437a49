//! What there is to tell: which alerts fire, and which have ended lately. The same for every receiver.
//!
//! Pure: times are passed in. [`super::receiver`] knows what each receiver was told.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::alert::{Alert, of_offender, unknown};
use crate::findings::{Offender, OffenderId};

/// The number of an alert. It is never given to another one.
pub(super) type AlertId = u64;

/// A moment, by the clock that never goes back and by the one on the wall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time since a moment before the first, which is one for the whole process.
    pub(super) since: Duration,
    pub(super) wall: Timestamp,
}

/// What there is to tell.
pub(super) struct Book {
    instance: String,
    entries: HashMap<AlertId, Entry>,
    ids: HashMap<Arc<str>, AlertId>,
    /// The alerts of each object.
    offenders: HashMap<OffenderId, Vec<AlertId>>,
    /// When alerts that do not fire are forgotten.
    forgotten: BTreeSet<(Duration, AlertId)>,
    last_id: AlertId,
    bytes: usize,
    room: usize,
    /// How many alerts were not taken for want of room since it was last asked.
    refused: usize,
    /// Whether something that fires was not taken.
    is_short: bool,
    /// How many alerts of audit fire.
    firing: usize,
    denials: usize,
}

/// An alert, and what has become of it.
struct Entry {
    alert: Alert,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// So many objects have it.
    Firing(usize),
    /// It has ended.
    Ended { wall: Timestamp, forgotten: Duration },
    /// Something was refused, for the last time then. It ends by itself.
    Denied { ends: Timestamp, forgotten: Duration },
}

/// Whose alerts are meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Those of what was refused. Whoever refused sends them.
    Denial,
    /// Those of audit. The holder of the Lease sends them.
    Audit,
}

/// How long after it was sent an alert that fires ends by itself. Longer than three times the time between two sendings, so that one that is
/// lost ends nothing; shorter than the five minutes that people expect of an alert nobody sends any more.
pub(super) const KEPT_ALIVE: SignedDuration = SignedDuration::from_mins(4);

/// For how long the end of an alert is repeated: an Alertmanager that restarts may get what fires from another one.
pub(super) const REPEATED: Duration = Duration::from_mins(15);

/// How long the alert of a denial goes on after the last.
const DENIED: Duration = Duration::from_mins(5);

impl Book {
    /// An empty one, which takes up to so many bytes.
    pub(super) fn new(instance: &str, room: usize) -> Book {
        Book {
            instance: instance.to_owned(),
            entries: HashMap::new(),
            ids: HashMap::new(),
            offenders: HashMap::new(),
            forgotten: BTreeSet::new(),
            last_id: 0,
            bytes: 0,
            room,
            refused: 0,
            is_short: false,
            firing: 0,
            denials: 0,
        }
    }

    /// Notes what has become of an object. Returns the alerts that have begun or ended.
    pub(super) fn note(&mut self, id: OffenderId, offender: Option<&Offender>, now: Now) -> Vec<AlertId> {
        let before = self.offenders.remove(&id).unwrap_or_default();
        let (mut after, mut kept, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for alert in offender.map(|offender| of_offender(offender, &self.instance)).unwrap_or_default() {
            let Some(id) = self.find_or_add(&alert, State::Firing(0)) else { continue };
            let entry = self.entries.get_mut(&id).expect("it was found or added");
            // What people are told may have changed. They are told with what is sent next.
            let starts = match entry.state {
                State::Firing(1..) => entry.alert.starts.min(alert.starts),
                _ => alert.starts,
            };
            self.bytes = (self.bytes + alert.size()).saturating_sub(entry.alert.size());
            entry.alert = Alert { starts, labels: Arc::clone(&entry.alert.labels), ..alert };
            match &mut entry.state {
                State::Firing(_) if before.contains(&id) => {}
                State::Firing(objects) => {
                    *objects += 1;
                    if *objects == 1 {
                        self.firing += 1;
                        changed.push(id);
                    }
                }
                State::Ended { forgotten, .. } | State::Denied { forgotten, .. } => {
                    self.forgotten.remove(&(*forgotten, id));
                    entry.state = State::Firing(1);
                    self.firing += 1;
                    changed.push(id);
                }
            }
            after.push(id);
        }
        let unknown = offender.map(unknown).unwrap_or_default();
        for id in before.into_iter().filter(|id| !after.contains(id)) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            if unknown.iter().any(|rule| entry.alert.labels.contains(rule.as_str())) {
                // That nobody can tell does not mean that it is mended.
                kept.push(id);
                continue;
            }
            match &mut entry.state {
                State::Firing(objects) if *objects > 1 => *objects -= 1,
                state => {
                    let forgotten = now.since + REPEATED;
                    *state = State::Ended { wall: now.wall, forgotten };
                    self.forgotten.insert((forgotten, id));
                    self.firing -= 1;
                    changed.push(id);
                }
            }
        }
        after.extend(kept);
        if !after.is_empty() {
            self.offenders.insert(id, after);
        }
        changed
    }

    /// Notes a denial. Returns its alert, if there is room for it.
    pub(super) fn deny(&mut self, alert: &Alert, now: Now) -> Option<AlertId> {
        let last = self.last_id;
        let forgotten = now.since + DENIED;
        let state = State::Denied { ends: later(now.wall, DENIED), forgotten };
        let id = self.find_or_add(alert, state)?;
        let entry = self.entries.get_mut(&id)?;
        if let State::Denied { forgotten, .. } = entry.state {
            self.forgotten.remove(&(forgotten, id));
        }
        entry.state = state;
        self.forgotten.insert((forgotten, id));
        self.denials += usize::from(id > last);
        Some(id)
    }

    fn find_or_add(&mut self, alert: &Alert, state: State) -> Option<AlertId> {
        if let Some(id) = self.ids.get(&alert.labels) {
            return Some(*id);
        }
        while self.bytes + alert.size() > self.room {
            // What has ended does so by itself as well.
            let ended = self.forgotten.iter().find(|(_, id)| self.class(*id) == Some(Class::Audit)).copied();
            let Some((_, ended)) = ended else {
                self.refused += 1;
                self.is_short |= matches!(state, State::Firing(_));
                return None;
            };
            self.forget(ended);
        }
        self.last_id += 1;
        self.bytes += alert.size();
        self.ids.insert(Arc::clone(&alert.labels), self.last_id);
        self.entries.insert(self.last_id, Entry { alert: alert.clone(), state });
        Some(self.last_id)
    }

    /// Forgets what nobody has to be told of any more, and returns it.
    pub(super) fn prune(&mut self, now: Now) -> Vec<(AlertId, Class)> {
        let mut pruned = Vec::new();
        while let Some((_, id)) = self.forgotten.first().copied().filter(|(when, _)| *when <= now.since) {
            pruned.extend(self.class(id).map(|class| (id, class)));
            self.forget(id);
        }
        pruned
    }

    fn forget(&mut self, id: AlertId) {
        let Some(Entry { alert, state }) = self.entries.remove(&id) else { return };
        self.bytes -= alert.size();
        self.ids.remove(&alert.labels);
        if let State::Ended { forgotten, .. } | State::Denied { forgotten, .. } = state {
            self.forgotten.remove(&(forgotten, id));
        }
        self.denials -= usize::from(matches!(state, State::Denied { .. }));
    }

    /// How many alerts were not taken since this was last asked.
    pub(super) fn take_refused(&mut self) -> usize {
        std::mem::take(&mut self.refused)
    }

    /// Whether alerts that were not taken could be. Whoever is told so notes all objects again.
    pub(super) fn take_has_room_again(&mut self) -> bool {
        let has_room = self.is_short && self.bytes < self.room / 4 * 3;
        self.is_short &= !has_room;
        has_room
    }

    /// Every alert of audit.
    pub(super) fn audit(&self) -> Vec<AlertId> {
        let mut ids: Vec<_> = self.entries.keys().copied().filter(|id| self.class(*id) == Some(Class::Audit)).collect();
        ids.sort_unstable();
        ids
    }

    /// How many alerts of a class fire.
    pub(super) fn firing(&self, class: Class) -> usize {
        match class {
            Class::Audit => self.firing,
            Class::Denial => self.denials,
        }
    }

    /// Whose alert it is, if it is still known.
    pub(super) fn class(&self, id: AlertId) -> Option<Class> {
        self.entries.get(&id).map(|entry| match entry.state {
            State::Firing(_) | State::Ended { .. } => Class::Audit,
            State::Denied { .. } => Class::Denial,
        })
    }

    /// Whether an alert of audit is known that has ended.
    pub(super) fn has_ended(&self, id: AlertId) -> bool {
        self.entries.get(&id).is_some_and(|entry| matches!(entry.state, State::Ended { .. }))
    }

    /// Whether an alert is to be sent again and again without news of it.
    pub(super) fn is_repeated(&self, id: AlertId) -> bool {
        self.class(id) == Some(Class::Audit)
    }

    /// The labels of an alert, for the log.
    pub(super) fn labels(&self, id: AlertId) -> Option<Arc<str>> {
        self.entries.get(&id).map(|entry| Arc::clone(&entry.alert.labels))
    }

    /// The message that tells of these alerts.
    pub(super) fn message(&self, ids: &[AlertId], now: Now) -> String {
        let mut body = "[".to_owned();
        for Entry { alert, state } in ids.iter().filter_map(|id| self.entries.get(id)) {
            if body.len() > 1 {
                body.push(',');
            }
            let ends = match state {
                State::Firing(_) => now.wall.saturating_add(KEPT_ALIVE).unwrap_or(now.wall),
                State::Ended { wall, .. } => *wall,
                State::Denied { ends, .. } => *ends,
            };
            alert.write(ends, &mut body);
        }
        body.push(']');
        body
    }

    /// The size of an alert in a message, nearly.
    pub(super) fn size(&self, id: AlertId) -> usize {
        self.entries.get(&id).map_or(0, |entry| entry.alert.size())
    }
}

fn later(moment: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| moment.checked_add(by).ok()).unwrap_or(moment)
}
