//! Random histories: several processes, one API server, and everything that can go wrong between them. Never do two processes
//! hold at the same time, and once nothing goes wrong any more somebody does.

mod process;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use fastrand::Rng;
use portal_test_kit::share;

use self::process::Process;
use super::{Answer, Step};
use crate::holder::record::Record;
use crate::holder::timing::Timing;

/// Microseconds of the time that nobody in the simulation can see.
type Time = u64;

const MILLISECOND: Time = 1_000;
const SECOND: Time = 1_000_000;

/// From here on nothing goes wrong.
const QUIET: Time = 45 * SECOND;
/// By here somebody holds.
const BOUND: Time = QUIET + 20 * SECOND;

/// How a history ended well.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// No two processes held at the same time.
    Good,
    /// A Lease was deleted, its holder could not write it again or had not heard yet that it holds, and a process that never saw
    /// it made a new one.
    Hole,
}

struct History {
    now: Time,
    random: Rng,
    timing: Timing,
    /// By time, and among those of the same time in the order they were made.
    events: BTreeMap<(Time, u64), Event>,
    processes: Vec<Process>,
    lease: Option<Stored>,
    /// Counts events, versions and uids.
    count: u64,
    is_deleted: bool,
    /// The highest term so far.
    term: Option<i32>,
    has_deletes: bool,
    log: Option<String>,
}

struct Stored {
    uid: Arc<str>,
    version: u64,
    record: Record,
}

enum Event {
    Start(usize),
    Wake(Waiting),
    Arrive(Request),
    Reply(Waiting, Reply),
    Fault,
}

/// Who waits for an event: a request of a process in one of its lives. An event for an earlier life or request is ignored.
#[derive(Clone, Copy)]
struct Waiting {
    process: usize,
    life: u64,
    request: u64,
}

struct Request {
    waiting: Waiting,
    step: Step,
    /// What a PUT expects to find.
    base: Option<(Arc<str>, u64)>,
    fate: Fate,
    /// When the answer is back, if it comes in time.
    reply: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Served,
    Refused,
    /// A client that tries again by itself hears of the conflict with its own write.
    ServedTwice,
}

struct Reply {
    answer: Answer,
    base: Option<(Arc<str>, u64)>,
}

impl History {
    fn new(seed: u64, has_deletes: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let timing = Timing::default();
        let processes = (0..2 + random.usize(..3)).map(|name| Process::new(name, &mut random, timing)).collect();
        let mut history = Self {
            now: 0,
            random,
            timing,
            events: BTreeMap::new(),
            processes,
            lease: None,
            count: 0,
            is_deleted: false,
            term: None,
            has_deletes,
            log: None,
        };
        for process in 0..history.processes.len() {
            history.within(4 * SECOND, Event::Start(process));
        }
        for _ in 0..3 + history.random.u64(..10) {
            history.within(QUIET, Event::Fault);
        }
        history
    }

    fn run(&mut self) -> Result<End, String> {
        while let Some(((time, _), event)) = self.events.pop_first().filter(|((time, _), _)| *time <= BOUND) {
            self.now = time;
            match event {
                Event::Start(process) => {
                    self.processes[process].start(time, &mut self.random, self.timing);
                    self.go_on(process);
                }
                Event::Wake(waiting) | Event::Reply(waiting, _) if self.is_frozen(waiting) => {
                    self.schedule(self.processes[waiting.process].frozen_until, event);
                }
                Event::Wake(waiting) if self.is_waiting(waiting) => self.go_on(waiting.process),
                Event::Reply(waiting, reply) if self.is_waiting(waiting) => {
                    if let Some(end) = self.answer(waiting.process, reply)? {
                        return Ok(end);
                    }
                    self.go_on(waiting.process);
                }
                Event::Arrive(request) => self.serve(request),
                Event::Fault => self.fault(),
                Event::Wake(_) | Event::Reply(..) => {}
            }
        }
        match self.processes.iter().filter(|process| process.holds(BOUND)).count() {
            1 => Ok(End::Good),
            holding => Err(format!("{holding} hold after 20 quiet seconds")),
        }
    }

    fn go_on(&mut self, index: usize) {
        let now = self.now;
        let process = &mut self.processes[index];
        process.request += 1;
        let waiting = Waiting { process: index, life: process.life, request: process.request };
        let clock = process.clock(now);
        let step = process.election.next(clock, process.wall(now));
        match step {
            Step::Wait(until) => {
                let time = process.time_of(until, now);
                self.schedule(time, Event::Wake(waiting));
            }
            Step::End => {
                process.is_alive = false;
                self.within(5 * SECOND, Event::Start(index));
            }
            step => self.send(waiting, step),
        }
    }

    /// Sends a request: it may be late or never arrive, and so may its answer.
    fn send(&mut self, waiting: Waiting, step: Step) {
        let process = &self.processes[waiting.process];
        let (clock, base) = (process.clock(self.now), process.base.clone());
        let limit = clock + self.timing.request_timeout();
        let limit = process.election.held().map_or(limit, |held| limit.min(held.until));
        let timeout = process.time_of(limit, self.now);
        let is_cut = process.cut_until > self.now;
        let is_refused = process.refused_until > self.now;
        let arrives = self.travel(self.now).filter(|_| !is_cut || self.random.u64(..4) == 0);
        let reply = arrives.and_then(|time| self.travel(time)).filter(|time| *time < timeout && !is_cut);
        if reply.is_none() {
            self.schedule(timeout, Event::Reply(waiting, Reply { answer: Answer::Lost, base: None }));
        }
        let fate = match self.random.u64(..50) {
            _ if is_refused => Fate::Refused,
            0 if self.now < QUIET => Fate::ServedTwice,
            _ => Fate::Served,
        };
        if let Some(arrives) = arrives {
            self.schedule(arrives, Event::Arrive(Request { waiting, step, base, fate, reply }));
        }
    }

    /// When what is sent arrives. Much later, sometimes: the process was stopped before it sent, or the network holds it back.
    fn travel(&mut self, sent: Time) -> Option<Time> {
        let usual = MILLISECOND + self.random.u64(..50 * MILLISECOND);
        if sent >= QUIET {
            return Some(sent + usual);
        }
        match self.random.u64(..20) {
            0 => None,
            1 => Some((sent + self.random.u64(..30 * SECOND)).min(QUIET)),
            _ => Some(sent + usual),
        }
    }

    fn serve(&mut self, request: Request) {
        let (answer, base) = match request.fate {
            Fate::Refused => (Answer::Refused, None),
            Fate::Served => self.stored(request.step, request.base),
            Fate::ServedTwice => match self.stored(request.step, request.base) {
                (Answer::Written(_), _) => (Answer::Conflict, None),
                other => other,
            },
        };
        if let Some(time) = request.reply {
            self.schedule(time, Event::Reply(request.waiting, Reply { answer, base }));
        }
    }

    /// What the API server does.
    fn stored(&mut self, step: Step, base: Option<(Arc<str>, u64)>) -> (Answer, Option<(Arc<str>, u64)>) {
        let current = self.lease.as_ref().map(|lease| (lease.uid.clone(), lease.version));
        match step {
            Step::Get => match &self.lease {
                Some(lease) => (Answer::Found(lease.uid.clone(), lease.record.clone()), current),
                None => (Answer::Missing, None),
            },
            Step::Create(record) if current.is_none() => {
                let uid: Arc<str> = format!("uid-{}", self.count).into();
                let version = self.store(uid.clone(), record);
                (Answer::Written(uid.clone()), Some((uid, version)))
            }
            Step::Put(record) if current.is_some() && current == base => {
                let (uid, _) = base.expect("it is some");
                let version = self.store(uid.clone(), record);
                (Answer::Written(uid.clone()), Some((uid, version)))
            }
            _ => (Answer::Conflict, None),
        }
    }

    fn store(&mut self, uid: Arc<str>, record: Record) -> u64 {
        self.count += 1;
        self.note(|| format!("stored: {} for {:?}", record.holder, record.duration_seconds));
        self.lease = Some(Stored { uid, version: self.count, record });
        self.count
    }

    fn answer(&mut self, index: usize, reply: Reply) -> Result<Option<End>, String> {
        let now = self.now;
        let process = &mut self.processes[index];
        let held_before = process.election.held();
        process.election.answered(process.clock(now), reply.answer);
        if let Some((uid, version)) = reply.base {
            if !process.uids.contains(&uid) {
                process.uids.push(uid.clone());
            }
            process.base = Some((uid, version));
        }
        if !process.holds(now) {
            return Ok(None);
        }
        let Some(held) = process.election.held() else { return Ok(None) };
        if held_before.is_none_or(|before| before.term != held.term) {
            self.note(|| format!("process {index} begins term {}", held.term));
        }
        let mut others = self.processes.iter().enumerate();
        if let Some((other, _)) = others.find(|(other, process)| *other != index && process.holds(now)) {
            if self.is_deleted_unseen(other, index) || self.is_deleted_unseen(index, other) {
                return Ok(Some(End::Hole));
            }
            return Err(format!("{now}: {index} and {other} hold at the same time"));
        }
        // Only a process that never saw the Lease counts anew, after somebody deleted it.
        if self.term.is_some_and(|term| held.term < term) && !self.is_deleted {
            return Err(format!("{now}: {index} holds a term below {:?}", self.term));
        }
        self.term = Some(held.term);
        Ok(None)
    }

    /// Whether the Lease that a process holds is deleted, and another process never saw it.
    fn is_deleted_unseen(&self, holder: usize, other: usize) -> bool {
        let (uid, _) = self.processes[holder].base.as_ref().expect("it holds a Lease");
        let is_deleted = self.lease.as_ref().is_none_or(|lease| lease.uid != *uid);
        is_deleted && !self.processes[other].uids.contains(uid)
    }

    /// Something goes wrong, or somebody meddles.
    fn fault(&mut self) {
        let index = self.random.usize(..self.processes.len());
        let until = (self.now + self.random.u64(..30 * SECOND)).min(QUIET);
        let kind = self.random.u64(..12);
        self.note(|| format!("fault {kind} for process {index} until {until}"));
        let now = self.now;
        let process = &mut self.processes[index];
        match kind {
            0 | 1 => process.cut_until = until,
            2 | 3 => process.frozen_until = until,
            4 => process.refused_until = until,
            5 | 6 => {
                process.is_alive = false;
                let again = until.min(now + 5 * SECOND);
                self.schedule(again, Event::Start(index));
            }
            7 if process.is_alive && process.frozen_until <= now => {
                process.election.answered(process.clock(now), Answer::Lost);
                process.election.stop(process.clock(now));
                self.go_on(index);
            }
            8 | 9 if self.has_deletes => {
                self.lease = None;
                self.is_deleted = true;
            }
            _ => self.edit(index),
        }
    }

    fn edit(&mut self, index: usize) {
        let Some(Stored { uid, mut record, .. }) = self.lease.take() else { return };
        match self.random.u64(..5) {
            0 => record.holder = "".into(),
            1 => record.holder = "somebody".into(),
            2 => record.holder = self.processes[index].identity(),
            3 => record.duration_seconds = Some(1).filter(|_| !record.holder.is_empty()),
            _ => {
                record = Record {
                    holder: "".into(),
                    duration_seconds: None,
                    acquired: None,
                    renewed: None,
                    transitions: record.transitions,
                }
            }
        }
        // To write by hand what a release writes is to say that nobody acts.
        if record.is_released() {
            record.duration_seconds = Some(15);
        }
        self.store(uid, record);
    }

    fn is_frozen(&self, waiting: Waiting) -> bool {
        self.processes[waiting.process].frozen_until > self.now
    }

    fn is_waiting(&self, waiting: Waiting) -> bool {
        let process = &self.processes[waiting.process];
        process.is_alive && process.life == waiting.life && process.request == waiting.request
    }

    fn within(&mut self, limit: Time, event: Event) {
        let time = self.now + self.random.u64(..limit);
        self.schedule(time.min(QUIET.max(self.now)), event);
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{}: {}", self.now, what());
        }
    }
}

/// How many of these histories ended in the hole.
#[track_caller]
fn check(seeds: std::ops::Range<u64>, has_deletes: bool) -> usize {
    let mut holes = 0;
    for seed in seeds {
        match History::new(seed, has_deletes).run() {
            Ok(End::Good) => {}
            Ok(End::Hole) => holes += 1,
            Err(wrong) => {
                let mut again = History::new(seed, has_deletes);
                again.log = Some(String::new());
                let _ = again.run();
                panic!("seed {seed}: {wrong}\n{}", again.log.unwrap_or_default());
            }
        }
    }
    holes
}

#[test]
fn never_do_two_hold_and_soon_somebody_does() {
    assert_eq!(check(share::seeds(3_000, 100_000), false), 0);
}

#[test]
fn a_deleted_lease_makes_two_holders_only_where_the_docs_say_so() {
    let seeds = share::seeds(3_000, 100_000);
    let count = seeds.end - seeds.start;
    let holes = check(seeds, true);
    // The docs describe the hole, so that some history must end in it. A few seeds, tried again by hand, may hold none or be one.
    assert!(count < 3_000 || (1..=count / 20).contains(&(holes as u64)), "{holes} of {count} histories");
}
