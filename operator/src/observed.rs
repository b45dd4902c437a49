//! What is known of the cluster when a plan is made. All of it: a plan asks nobody.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::compare::{Form, form_of};
use crate::instance::Instance;
use crate::names::configuration_name;
use crate::object::{Key, Kind, Object};
use crate::plan::Step;

/// What is known when a plan is made for an instance.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The time.
    pub now: Timestamp,
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
    /// Since when the webhook configuration is known to be gone.
    pub gone_since: Option<Timestamp>,
    /// When each object was last written, and how often it had to be set right.
    pub repairs: BTreeMap<Key, Repairs>,
    /// In which form the API server keeps what we wanted otherwise.
    pub forms: BTreeMap<Key, Form>,
}

/// An attempt to reach the engine through the API server.
#[derive(Clone, Debug)]
pub struct Probe {
    /// When.
    pub at: Timestamp,
    /// The UID of the webhook configuration at that time.
    pub configuration: String,
    /// Whether the engine answered, and what was in the way if not.
    pub answer: Result<(), String>,
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

/// Repairs of one object.
#[derive(Clone, Copy, Debug)]
pub struct Repairs {
    /// What was wanted, as a hash. Who wants something else is not in a fight.
    pub wanted: u64,
    /// How often in a row, without a quiet time in between.
    pub times: u32,
    /// When the last one was.
    pub at: Timestamp,
}

/// A repair counts as one of a row if it comes within this time of the one before.
const ROW: SignedDuration = SignedDuration::from_mins(10);

/// So many repairs are done at once. Whoever goes on to undo them is in a fight with us, which nobody wins by being faster.
const PATIENCE: u32 = 5;

impl Observed {
    /// An object.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key).map(|object| &**object)
    }

    /// The objects of a kind in a namespace.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind).map(|(_, object)| &**object)
    }

    /// Whether an object may be set right now, or when.
    pub fn may_repair(&self, key: &Key) -> Result<(), Timestamp> {
        let Some(repairs) = self.memory.repairs.get(key) else { return Ok(()) };
        let next = repairs.at + pause(repairs.times);
        if next <= self.now { Ok(()) } else { Err(next) }
    }

    /// Whether somebody undoes what we do to an object.
    pub fn is_fought_over(&self, key: &Key) -> bool {
        let repairs = self.memory.repairs.get(key);
        repairs.is_some_and(|repairs| repairs.times > PATIENCE && self.now.duration_since(repairs.at) < ROW)
    }
}

impl Memory {
    /// Notes what came of a step that was done: the object as the API server has it, if it has told.
    pub fn done(&mut self, step: &Step, answer: Option<&Object>, now: Timestamp) {
        if let (Step::Apply(wanted), Some(answer)) = (step, answer) {
            match form_of(answer, wanted) {
                Some(form) => drop(self.forms.insert(wanted.key.clone(), form)),
                None => drop(self.forms.remove(&wanted.key)),
            }
        }
        if let Step::Apply(wanted) | Step::Replace(wanted) | Step::Create(wanted) = step {
            self.written(wanted, now);
        }
    }

    /// Notes whether the engine answered through the API server.
    pub fn probed(&mut self, instance: &Instance, observed: &Observed, answer: Result<(), String>, now: Timestamp) {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        let before = self.probe.as_ref().and_then(|probe| probe.answered_at);
        self.probe = Some(Probe {
            at: now,
            configuration: observed.get(&key).map(|found| found.uid().to_owned()).unwrap_or_default(),
            answered_at: if answer.is_ok() { Some(now) } else { before },
            answer,
        });
    }

    /// Notes whether there is a webhook configuration.
    pub fn saw(&mut self, is_there: bool, now: Timestamp) {
        self.gone_since = (!is_there).then(|| self.gone_since.unwrap_or(now));
    }

    /// Notes that an object was written. It is a repair if the same was written before.
    fn written(&mut self, wanted: &Object, now: Timestamp) {
        let hash = hash_of(wanted);
        let before = self.repairs.get(&wanted.key);
        let in_a_row = before.filter(|before| before.wanted == hash && now.duration_since(before.at) < ROW);
        let times = in_a_row.map_or(0, |before| before.times + 1);
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
