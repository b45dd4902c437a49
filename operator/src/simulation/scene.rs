//! A cluster with operators, and time that goes by.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::{
    process::{Cut, Process},
    world::{Time, World},
};
use crate::{
    names::{BUNDLE_SINCE, INSTANCE_LABEL, MANAGED_BY},
    object::{Key, Kind, Object},
};

/// A cluster with operators.
pub(super) struct Scene {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) processes: Vec<Process>,
    /// Which process holds the Lease, and until when.
    lease: (usize, Time),
    /// Processes that cannot renew it.
    pub(super) cut_off: Vec<usize>,
    /// One in so many requests goes wrong.
    pub(super) fails_one_in: Option<u32>,
}

/// The times of the Lease: how long a process thinks that it holds it, and how long the others wait.
const HOLDS: Time = 10;
const LEASE: Time = 15;

/// How long nothing must be written before all is done: longer than a right stays that nobody needs any more.
const QUIET: Time = 100;

/// How long it may take until all is done.
const PATIENCE: Time = 3 * 3600;

/// Children of an instance, without what differs between two that are the same.
pub(super) type Children = BTreeMap<String, Value>;

impl Scene {
    /// A cluster with one operator.
    pub(super) fn new(world: World) -> Scene {
        let world = Rc::new(RefCell::new(world));
        let process = Process::new(&world);
        Scene { world, processes: vec![process], lease: (0, 0), cut_off: Vec::new(), fails_one_in: None }
    }

    pub(super) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    /// Another operator starts.
    pub(super) fn add_process(&mut self) {
        self.processes.push(Process::new(&self.world));
    }

    /// Somebody applies an instance.
    pub(super) fn apply(&self, name: &str, spec: Value) {
        self.world().apply_instance(name, spec);
    }

    /// Everybody who can acts once. Returns how many seconds nobody has anything to do for.
    pub(super) fn turn(&mut self) -> Time {
        for number in 0..self.processes.len() {
            if self.processes[number].desk.way.borrow().is_dead {
                self.world().tell("an operator starts anew");
                self.processes[number] = Process::new(&self.world);
                if self.lease.0 == number {
                    let elapsed = self.world().elapsed;
                    self.lease.1 = self.lease.1.min(elapsed);
                }
            }
        }
        let mut next = self.world().elapsed + 30;
        for number in 0..self.processes.len() {
            let elapsed = self.world().elapsed;
            let is_free = self.lease.0 == number || self.lease.1 <= elapsed;
            if is_free && !self.cut_off.contains(&number) {
                self.lease = (number, elapsed + LEASE);
                self.processes[number].desk.way.borrow_mut().holds_until = elapsed + HOLDS;
            }
            self.processes[number].desk.way.borrow_mut().fails_one_in = self.fails_one_in;
            if let Some(moment) = self.processes[number].look() {
                let world = self.world();
                next = next.min(world.elapsed + moment.duration_since(world.now()).as_secs());
            }
        }
        let world = self.world();
        (next.min(world.next_moment().unwrap_or(next)) - world.elapsed).max(1)
    }

    /// Time goes by until somebody has something to do. What happens meanwhile is heard of.
    pub(super) fn wait(&mut self, pause: Time) {
        let mut world = self.world();
        let known = world.log.len();
        world.advance(1);
        if world.log.len() == known && pause > 1 {
            world.advance(pause - 1);
        }
    }

    /// Everybody hears of everything, and acts once.
    pub(super) fn step(&mut self) -> Time {
        for process in &mut self.processes {
            process.catch_up();
        }
        self.turn()
    }

    /// Time goes by.
    pub(super) fn run(&mut self, seconds: Time) {
        let end = self.world().elapsed + seconds;
        while self.world().elapsed < end {
            let pause = self.step();
            let left = end - self.world().elapsed;
            self.wait(pause.min(left));
        }
    }

    /// Time goes by until nobody has written anything for a while.
    #[track_caller]
    pub(super) fn settle(&mut self) {
        self.settle_for(QUIET);
    }

    #[track_caller]
    pub(super) fn settle_for(&mut self, quiet: Time) {
        let start = self.world().elapsed;
        let mut quiet_since = start;
        loop {
            let writes = self.world().writes;
            let pause = self.step();
            let is_written = self.world().writes > writes;
            let elapsed = self.world().elapsed;
            if is_written || self.world().next_moment().is_some() {
                quiet_since = elapsed;
            }
            if elapsed - quiet_since >= quiet {
                break;
            }
            if elapsed - start > PATIENCE {
                self.world().fail("this does not come to an end");
            }
            self.wait(pause);
        }
        self.world().forgive();
        self.world().check();
    }

    /// The condition `Ready` of an instance: its status and its reason.
    pub(super) fn ready(&self, name: &str) -> (String, String) {
        let instance = self.world().get(&Key::cluster(Kind::PortalInstance, name));
        let Some(instance) = instance else { return ("gone".to_owned(), String::new()) };
        let conditions = instance.value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|found| found["type"] == "Ready").unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&ready["status"]), text(&ready["reason"]))
    }

    #[track_caller]
    pub(super) fn assert_ready(&self, name: &str, status: &str, reason: &str) {
        let ready = self.ready(name);
        if ready != (status.to_owned(), reason.to_owned()) {
            let instance = self.world().get(&Key::cluster(Kind::PortalInstance, name));
            let status = instance.map(|found| found.value["status"].to_string()).unwrap_or_default();
            self.world().fail(&format!("{name} is {ready:?}: {status}"));
        }
    }

    /// The children of an instance.
    pub(super) fn children(&self, name: &str) -> Children {
        let world = self.world();
        let is_child = |object: &&std::sync::Arc<Object>| {
            object.key.kind != Kind::Pod
                && object.label(INSTANCE_LABEL) == Some(name)
                && object.label(MANAGED_BY.0) == Some(MANAGED_BY.1)
        };
        let children = world.objects.values().filter(is_child);
        children.map(|object| (object.key.to_string(), essence(&object.value))).collect()
    }
}

impl World {
    /// Somebody applies an instance.
    pub(super) fn apply_instance(&mut self, name: &str, spec: Value) {
        let key = Key::cluster(Kind::PortalInstance, name);
        self.tell(format!("user: {key} is {spec}"));
        if !self.edit(&key, |value| value["spec"] = spec.clone()) {
            self.abandoned.remove(name);
            let labels = json!({ "team": "platform", "argocd.argoproj.io/instance": "portal" });
            self.make(Kind::PortalInstance, json!({ "metadata": { "name": name, "labels": labels }, "spec": spec }));
        }
    }

    /// A cluster like this one, in which nothing has happened yet.
    pub(super) fn again(&self) -> World {
        let mut world = self.clone();
        world.story = vec!["…".to_owned()];
        world.writes = 0;
        world
    }
}

/// An object without what differs between two that are the same.
fn essence(value: &Value) -> Value {
    let mut text = value.to_string();
    for owner in value["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        // As a value, and at the end of an argument.
        let uid = owner["uid"].as_str().expect("an owner has a UID");
        text = text.replace(&format!("{uid}\""), "…\"");
    }
    let mut value: Value = serde_json::from_str(&text).expect("only texts were replaced");
    // What is in its Secrets is cert-manager's.
    let is_issued = value["metadata"]["annotations"]["cert-manager.io/certificate-name"].is_string();
    let fields = value.as_object_mut().expect("an object");
    fields.remove("status");
    fields.retain(|name, _| name != "data" || !is_issued);
    if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
        data.values_mut().for_each(|value| *value = "…".into());
    }
    for entry in fields.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        entry["clientConfig"]["caBundle"] = "…".into();
    }
    let metadata = fields["metadata"].as_object_mut().expect("an object has metadata");
    metadata
        .retain(|name, _| ["name", "namespace", "labels", "annotations", "ownerReferences"].contains(&name.as_str()));
    for part in ["labels", "annotations"] {
        if let Some(marks) = metadata.get_mut(part).and_then(Value::as_object_mut) {
            marks.retain(|key, _| !key.starts_with("foreign.example/") && key != BUNDLE_SINCE);
        }
    }
    value
}

/// Every way in which a write can be cut.
pub(super) const CUTS: [Cut; 2] = [Cut::Dies, Cut::LosesAnswer];
