//! What is known of the cluster when a plan is made. All of it: a plan asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::compare::{Form, form_of};
use crate::instance::Instance;
use crate::names::{configuration_name, engine};
use crate::needs::Needs;
use crate::object::{Key, Kind, Object};
use crate::permissions::{GRACE, Held, Lately, Need, beside_base};
use crate::plan::Step;
use crate::probe::Answer;

/// What is known when a plan is made for an instance.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The time.
    pub now: Timestamp,
    /// The time since some moment, by a clock that nobody sets.
    pub uptime: Duration,
    /// The objects that the operator watches: children, namespaces, pods.
    pub objects: BTreeMap<Key, Arc<Object>>,
    /// All instances but this one.
    pub others: Vec<Instance>,
    /// Why the operator may not see what is in the engine's namespace, if so.
    pub refused: Option<String>,
    /// Kinds that other operators bring, and that are served.
    pub served: Vec<Kind>,
    /// The certificate that each pod was last seen to serve, by the UID of the pod. Nothing for one that could not be asked.
    pub shown: BTreeMap<String, Option<String>>,
    /// What the API server has told of rights.
    pub held: Held,
    /// Whether the operator may do something by a star, and so could hand on anything.
    pub is_ceiling_unbounded: bool,
    /// What this process remembers of the instance.
    pub memory: Memory,
}

/// What a process remembers of an instance. It begins with nothing, and whatever is lost costs time and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The last time that the API server was asked whether it reaches the engine.
    pub probe: Option<Probe>,
    /// The step that failed last, until one works.
    pub failure: Option<Failure>,
    /// The UID of the webhook configuration that was seen last, and since when it is there if another one was before it. By the clock that
    /// nobody sets.
    pub configuration: Option<(String, Option<Duration>)>,
    /// Since when the webhook configuration is known to be gone: the API server itself has said so. By the clock that nobody sets.
    pub gone_since: Option<Duration>,
    /// The objects of which the API server itself has said that they are not there.
    pub missing: BTreeSet<Key>,
    /// When each object was last written, and how often it had to be set right.
    pub repairs: BTreeMap<Key, Repairs>,
    /// When what rules need was last needed, in each set of pods.
    pub needed: Lately,
    /// Whether it has seen what was in the roles when it began.
    pub has_seen_roles: bool,
    /// In which form the API server keeps what we wanted otherwise.
    pub forms: BTreeMap<Key, Form>,
}

/// An attempt to reach the engine through the API server.
#[derive(Clone, Debug)]
pub struct Probe {
    /// When.
    pub at: Timestamp,
    /// The UID of the webhook configuration that the API server asked by. Empty if it may have been another one.
    pub configuration: String,
    /// The version that the engine answered with, or what was in the way.
    pub answer: Answer,
    /// When the engine last answered.
    pub answered_at: Option<Timestamp>,
}

/// A step that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the step was about.
    pub subject: String,
    /// A word for the condition.
    pub reason: &'static str,
    /// What went wrong, for people.
    pub message: String,
    /// How often in a row.
    pub times: u32,
    /// When it may be tried again.
    pub until: Timestamp,
}

/// The word for a step that the API server does not allow.
pub const NOT_ALLOWED: &str = "NotAllowed";

/// Repairs of one object.
#[derive(Clone, Copy, Debug)]
pub struct Repairs {
    /// What was wanted, as a hash. Who wants something else is in no further fight.
    pub wanted: u64,
    /// How often it was set right, without a quiet time in between.
    pub times: u32,
    /// When the last one was.
    pub at: Timestamp,
}

/// How long API servers may act on a webhook configuration that is gone: they hear of it later.
pub const LINGER: Duration = Duration::from_secs(5);

/// A repair counts as one of a row if it comes within this time of the one before.
const ROW: SignedDuration = SignedDuration::from_mins(10);

/// So many repairs are done at once. Whoever goes on to undo them is in a fight with us, which nobody wins by being faster.
const PATIENCE: u32 = 5;

impl Observed {
    /// Nothing is known but the time.
    pub fn nothing(now: Timestamp, uptime: Duration) -> Observed {
        let (objects, others, refused, served, shown, held, memory) = Default::default();
        Observed { now, uptime, objects, others, refused, served, shown, held, is_ceiling_unbounded: false, memory }
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key).map(|object| &**object)
    }

    /// The objects of a kind in a namespace.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind).map(|(_, object)| &**object)
    }

    /// Whether an object may be set right now, or when. What was never wanted before may.
    pub fn may_repair(&self, wanted: &Object) -> Result<(), Timestamp> {
        let Some(repairs) = self.memory.repairs.get(&wanted.key) else { return Ok(()) };
        let is_another_wish = repairs.wanted != hash_of(wanted) && self.get(&wanted.key).is_some();
        let next = repairs.at + pause(repairs.times);
        if is_another_wish || next <= self.now || !is_recent(repairs, self.now) { Ok(()) } else { Err(next) }
    }

    /// Whether somebody undoes what we do to an object.
    pub fn is_fought_over(&self, key: &Key) -> bool {
        let repairs = self.memory.repairs.get(key);
        repairs.is_some_and(|repairs| repairs.times > PATIENCE && is_recent(repairs, self.now))
    }
}

impl Memory {
    /// Notes what came of a step that was done: the object as the API server has it, if it has told.
    pub fn done(&mut self, step: &Step, answer: Option<&Object>, observed: &Observed) {
        if let (Step::Apply(wanted), Some(answer)) = (step, answer) {
            match form_of(answer, wanted) {
                Some(form) => drop(self.forms.insert(wanted.key.clone(), form)),
                None => drop(self.forms.remove(&wanted.key)),
            }
        }
        match step {
            Step::Apply(wanted) | Step::Replace(wanted) | Step::Create(wanted) => {
                self.written(wanted, observed.get(&wanted.key).is_none(), observed.now);
            }
            // Whoever makes anew what they have deleted themselves is in no fight.
            Step::Delete(key, _) => drop(self.repairs.remove(key)),
            Step::Status(_) | Step::Keep(_) | Step::Look(_) | Step::Certificate(_) | Step::Probe => {}
        }
    }

    /// Notes what rules need. What nobody needs any more is forgotten after a while, also if the clock was set back. Of what is in the roles
    /// when a process begins to act, nobody knows whether it was needed a moment ago: the rules that it knows may be older than those that
    /// the one before knew.
    pub fn needs(&mut self, needs: &Needs, instance: &Instance, observed: &Observed) {
        let now = observed.now;
        if !std::mem::replace(&mut self.has_seen_roles, true) {
            let found = needs.engines.keys().flat_map(|layer| {
                let given = given_by_roles(&engine(&instance.name, layer), instance.namespace(), observed);
                given.into_iter().map(|need| ((*layer, need), now))
            });
            self.needed.extend(found);
        }
        let is_recent = |at: &Timestamp| (SignedDuration::ZERO..GRACE).contains(&now.duration_since(*at));
        self.needed.retain(|_, at| is_recent(at));
        for (layer, grants) in &needs.engines {
            self.needed.extend(grants.keys().map(|need| ((*layer, need.clone()), now)));
        }
    }

    /// Notes whether the engine answered through the API server. An answer says nothing of a configuration that is so new that API servers
    /// may have asked by the one before.
    pub fn probed(&mut self, instance: &Instance, observed: &Observed, answer: Answer, now: Timestamp) {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        let before = self.probe.as_ref().and_then(|probe| probe.answered_at);
        let seen = observed.memory.configuration.as_ref().and_then(|(_, since)| *since);
        let is_new = seen.is_some_and(|since| observed.uptime.saturating_sub(since) < LINGER);
        let found = observed.get(&key).filter(|_| !is_new);
        self.probe = Some(Probe {
            at: now,
            configuration: found.map(|found| found.uid().to_owned()).unwrap_or_default(),
            answered_at: if answer.is_ok() { Some(now) } else { before },
            answer,
        });
    }

    /// Notes that watches show this webhook configuration, or none.
    pub fn saw(&mut self, configuration: Option<&Object>, uptime: Duration) {
        let Some(found) = configuration else { return };
        self.gone_since = None;
        if self.configuration.as_ref().is_none_or(|(uid, _)| uid != found.uid()) {
            let since = self.configuration.is_some().then_some(uptime);
            self.configuration = Some((found.uid().to_owned(), since));
        }
    }

    /// Notes that the API server has no such object.
    pub fn is_gone(&mut self, key: &Key, uptime: Duration) {
        if key.kind == Kind::ValidatingWebhookConfiguration {
            self.gone_since.get_or_insert(uptime);
        } else {
            self.missing.insert(key.clone());
        }
    }

    /// Notes that an object was written. It is a repair if the same was written before, or if it was there before.
    fn written(&mut self, wanted: &Object, is_new: bool, now: Timestamp) {
        let hash = hash_of(wanted);
        let before = self.repairs.get(&wanted.key).filter(|before| is_recent(before, now));
        let times = before.map_or(0, |before| before.times + u32::from(is_new || before.wanted == hash));
        self.repairs.insert(wanted.key.clone(), Repairs { wanted: hash, times, at: now });
    }

    /// Notes that a step failed. The same one is tried again after a pause that grows.
    pub fn failed(&mut self, subject: String, reason: &'static str, message: String, now: Timestamp) {
        let before = self.failure.take().filter(|failure| failure.subject == subject);
        let times = before.map_or(1, |failure| failure.times.saturating_add(1));
        let pause = SignedDuration::from_secs(1 << times.min(5)).min(MOST);
        self.failure = Some(Failure { subject, reason, message, times, until: now + pause });
    }
}

impl Failure {
    /// Whether it is too early to try again. A clock that was set back makes no pause longer.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.until > now && self.until.duration_since(now) <= MOST
    }
}

/// What the roles of an account give beside what every engine has.
fn given_by_roles(account: &str, own: &str, observed: &Observed) -> BTreeSet<Need> {
    let roles = observed.of_kind(Kind::ClusterRole).chain(observed.of_kind(Kind::Role));
    let mut given = BTreeSet::new();
    for role in roles.filter(|role| role.key.name == account) {
        // Somebody else may have written what no role can have.
        let rules: Vec<PolicyRule> = serde_json::from_value(role.value["rules"].clone()).unwrap_or_default();
        given.extend(rules.iter().flat_map(|rule| beside_base(rule, role.key.namespace.as_deref(), own)));
    }
    given
}

/// Whether a repair counts still. One that has yet to come is no repair: the clock was set back.
fn is_recent(repairs: &Repairs, now: Timestamp) -> bool {
    (SignedDuration::ZERO..ROW).contains(&now.duration_since(repairs.at))
}

/// What an object says, without who it is.
fn hash_of(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, part) in object.value.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata") {
        (name, part.to_string()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The longest pause before a step that failed is tried again.
const MOST: SignedDuration = SignedDuration::from_secs(30);

/// How long after so many repairs the next one may come.
fn pause(times: u32) -> SignedDuration {
    match times {
        0..=PATIENCE => SignedDuration::ZERO,
        more => SignedDuration::from_secs(10 << (more - PATIENCE).min(5)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_that_failed_waits_and_a_clock_that_is_set_back_makes_that_no_longer() {
        let now: Timestamp = "2027-01-02T00:00:00Z".parse().unwrap();
        let mut memory = Memory::default();
        for _ in 0..10 {
            memory.failed("a role".to_owned(), NOT_ALLOWED, "no".to_owned(), now);
        }
        let failure = memory.failure.unwrap();
        assert_eq!((failure.times, failure.until), (10, now + MOST));
        assert!(failure.is_waiting(now) && !failure.is_waiting(now + MOST));
        assert!(!failure.is_waiting(now - SignedDuration::from_hours(30)));
    }

    #[test]
    fn an_answer_counts_for_a_configuration_when_no_api_server_can_have_asked_by_the_one_before() {
        let instance = crate::children::tests::instance(json!({}));
        let mut memory = Memory::default();
        let mut counts = |uid: &str, seconds: u64| {
            let value = json!({ "metadata": { "name": configuration_name(&instance.name), "uid": uid } });
            let found = Object::from_value(Kind::ValidatingWebhookConfiguration, value);
            let uptime = Duration::from_secs(seconds);
            memory.saw(Some(&found), uptime);
            let mut observed = Observed::nothing(Timestamp::UNIX_EPOCH, uptime);
            observed.memory = memory.clone();
            observed.objects.insert(found.key.clone(), Arc::new(found));
            memory.probed(&instance, &observed, Ok("0.1.0".to_owned()), observed.now);
            memory.probe.as_ref().unwrap().configuration == uid
        };
        // Of the first one an answer is an answer.
        assert!(counts("first", 10) && counts("first", 11));
        assert!(!counts("second", 12) && !counts("second", 16));
        assert!(counts("second", 17));
    }
}
