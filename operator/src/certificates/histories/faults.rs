//! What goes wrong.

use fastrand::Rng;

use super::super::{Data, Given, SETTLING, Secret, Validity, perform};
use super::cluster::{Pod, Time, any_validity};
use super::{API_SERVER_HEARS, CLOCK_IS_SEEN, DAY, Event, HEALED, HOUR, History, MINUTE};

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Processes, pods and the operator come and go. Nobody may notice.
    PodRestarts,
    PodIsReplaced,
    PodIsSilent,
    KubeletIsStuck,
    OperatorSleeps,
    /// Somebody changes the instance. Nobody may notice.
    OtherNames,
    OtherValidity,
    /// Somebody deletes things. Pods go on with what they have; one that starts has to wait.
    AuthorityDeleted,
    LeafDeleted,
    BothDeleted,
    AllDeleted,
    ConfigDeleted,
    /// Somebody writes what nobody can use. The same.
    AuthorityGarbage,
    LeafGarbage,
    AuthorityFlipped,
    /// Somebody writes what pods use, and API servers do not trust.
    LeafFlipped,
    LeafForeign,
    LeafRestored,
    BundleEdited,
    /// The clock is set, or the cluster was off.
    ClockForward,
    ClockBack,
    LongPause,
}

impl Fault {
    pub(super) fn any(random: &mut Rng) -> Fault {
        use Fault::*;
        let all = [
            PodRestarts,
            PodIsReplaced,
            PodIsReplaced,
            PodIsSilent,
            KubeletIsStuck,
            OperatorSleeps,
            OtherNames,
            OtherValidity,
            OtherValidity,
            AuthorityDeleted,
            LeafDeleted,
            BothDeleted,
            AllDeleted,
            ConfigDeleted,
            AuthorityGarbage,
            LeafGarbage,
            AuthorityFlipped,
            LeafFlipped,
            LeafForeign,
            LeafRestored,
            BundleEdited,
            ClockForward,
            ClockBack,
            LongPause,
        ];
        random.choice(all).unwrap()
    }
}

impl History {
    pub(super) fn suffer(&mut self, fault: Fault) {
        let now = self.cluster.time;
        let clock = self.cluster.clock();
        let index = self.random.usize(..self.cluster.pods.len());
        let (was_untrusted, was_silent) = (self.untrusted_until > now, self.silent_until > now);
        let (mut breaks_trust, mut lasts) = (false, 0);
        match fault {
            Fault::PodRestarts => self.cluster.pods[index].restart(clock),
            Fault::PodIsReplaced => {
                let name = self.cluster.pods.iter().map(|pod| pod.name).max().unwrap() + 1;
                self.cluster.pods[index] = Pod::new(name);
                let soon = now + self.random.i64(1..MINUTE);
                self.schedule(soon, Event::Start { pod: name });
            }
            Fault::PodIsSilent => {
                lasts = self.any_while();
                self.cluster.pods[index].silent_until = now + lasts;
            }
            Fault::KubeletIsStuck => {
                lasts = self.any_while();
                self.cluster.pods[index].stuck_until = now + lasts;
            }
            Fault::OperatorSleeps => {
                lasts = self.random.i64(0..DAY);
                self.operator_sleeps_until = self.operator_sleeps_until.max(now + lasts);
            }
            Fault::OtherNames => {
                let name = format!("portal.portal-system.svc.cluster-{}", self.random.u64(..3));
                self.cluster.names.truncate(1);
                self.cluster.names.push(name);
                self.tell_operator();
            }
            Fault::OtherValidity => {
                self.cluster.validity = any_validity(&mut self.random);
                self.tell_operator();
            }
            Fault::AuthorityDeleted => self.store(Secret::Authority, None),
            Fault::LeafDeleted => self.store(Secret::Leaf, None),
            Fault::BothDeleted => {
                self.store(Secret::Authority, None);
                self.store(Secret::Leaf, None);
            }
            Fault::AllDeleted => {
                self.all_lost_until = now + SETTLING.as_secs();
                // What nobody holds any more, and a pod does not tell, cannot be known.
                breaks_trust = self.cluster.pods.iter().any(|pod| pod.silent_until.max(pod.stuck_until) > now);
                self.store(Secret::Authority, None);
                self.store(Secret::Leaf, None);
                self.delete_config();
            }
            Fault::ConfigDeleted => self.delete_config(),
            Fault::AuthorityGarbage => self.change(Secret::Authority, |random, text| {
                *text = text[..random.usize(..text.len())].to_vec();
            }),
            Fault::LeafGarbage => self.change(Secret::Leaf, |random, text| {
                *text = text[..random.usize(..text.len() / 2)].to_vec();
            }),
            Fault::AuthorityFlipped => self.change(Secret::Authority, |random, text| flip(random, text)),
            Fault::LeafFlipped => {
                self.change(Secret::Leaf, |random, text| flip(random, text));
                breaks_trust = true;
            }
            Fault::LeafForeign => {
                let mut foreign = self.foreign();
                if self.random.bool() {
                    foreign.remove("ca.crt");
                }
                self.store(Secret::Leaf, Some(foreign));
                breaks_trust = true;
            }
            Fault::LeafRestored => {
                let (_, before) = self.cluster.leaf.at(now - self.random.i64(0..30 * DAY));
                self.store(Secret::Leaf, before.as_deref().cloned());
                breaks_trust = true;
            }
            Fault::BundleEdited => {
                let foreign = self.foreign().remove("ca.crt").unwrap();
                if let (_, Some(config)) = self.cluster.config.at(now) {
                    let mut config = (*config).clone();
                    match self.random.u64(..3) {
                        0 => config.bundle.clear(),
                        1 => config.bundle = foreign,
                        _ => config.bundle.extend(foreign),
                    }
                    self.store_config(Some(config));
                    breaks_trust = true;
                }
            }
            Fault::ClockForward => self.set_clock(40 * DAY),
            Fault::ClockBack => self.set_clock(-40 * DAY),
            Fault::LongPause => {
                self.set_clock(400 * DAY);
                breaks_trust = true;
            }
        }
        breaks_trust |= matches!(fault, Fault::ClockForward | Fault::ClockBack | Fault::LongPause);
        let breaks_pods =
            !matches!(fault, Fault::PodIsSilent | Fault::KubeletIsStuck | Fault::OtherNames | Fault::OtherValidity);
        let stuck_until = self.cluster.pods.iter().map(|pod| pod.stuck_until).max().unwrap_or(now);
        let healed = now.max(self.operator_sleeps_until).max(stuck_until) + HEALED;
        if breaks_trust || was_untrusted {
            self.untrusted_until = healed;
        }
        if breaks_pods || was_silent {
            self.silent_until = healed;
        }
        self.troubled_until = self.troubled_until.max(healed).max(now + lasts + HEALED);
    }

    fn delete_config(&mut self) {
        self.store_config(None);
        // Who has not heard of it yet asks on, while nobody has to wait for anybody any more.
        self.untrusted_until = self.untrusted_until.max(self.cluster.time + API_SERVER_HEARS + 1);
    }

    /// A while: minutes usually, hours sometimes.
    fn any_while(&mut self) -> Time {
        if self.random.u64(..4) == 0 { self.random.i64(0..DAY) } else { self.random.i64(0..HOUR) }
    }

    fn set_clock(&mut self, by: Time) {
        self.cluster.clock_is_off += by;
        let seen = self.cluster.time + self.random.i64(1..CLOCK_IS_SEEN);
        self.wake_at(seen.max(self.operator_sleeps_until));
    }

    /// Changes an entry of a Secret.
    fn change(&mut self, secret: Secret, change: impl FnOnce(&mut Rng, &mut Vec<u8>)) {
        let (_, data) = self.cluster.secret(secret).at(self.cluster.time);
        let Some(mut data) = data.as_deref().cloned().filter(|data| !data.is_empty()) else { return };
        let key = self.random.choice(data.keys().cloned().collect::<Vec<_>>()).unwrap();
        let text = data.get_mut(&key).unwrap();
        if !text.is_empty() {
            change(&mut self.random, text);
        }
        self.store(secret, Some(data));
    }

    /// The Secret of a leaf of somebody else.
    fn foreign(&self) -> Data {
        let nothing = Given {
            now: self.cluster.clock(),
            names: &self.cluster.names,
            authority: None,
            leaf: None,
            published: None,
            served: &[],
            validity: Validity::default(),
        };
        let authority = perform(super::super::Action::FoundAuthority, &nothing).unwrap().data;
        let given = Given { authority: Some(&authority), ..nothing };
        perform(super::super::Action::Issue, &given).unwrap().data
    }
}

fn flip(random: &mut Rng, text: &mut [u8]) {
    let position = random.usize(..text.len());
    text[position] = random.choice(*b"ABCDwxyz0189+/").unwrap();
}
