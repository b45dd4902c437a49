//! What comes of a change is cut after one of its writes: the program is killed when the write is done and before it hears of it, or the
//! answer is lost. The end is that of an instance whose change was not cut.

use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use portal_operator::names::{BUNDLE_SINCE, configuration_name};
use portal_operator::object::Kind;
use portal_test_kit::fault_proxy::{Fault, Injected, ProxyClient, Requests, Verb};
use portal_test_kit::share;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::{Kinds, LONG, Operator, Stage, State};

/// What is changed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Change {
    /// An instance is made.
    Creation,
    /// Its spec is changed: a row of [`SPECS`].
    Spec(usize),
    /// It asks for other certificates: another leaf.
    Leaf,
    /// The same: another authority.
    Authority,
    /// It is deleted, in the foreground or not.
    Deletion(bool),
}

/// What happens at a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cut {
    /// It is done, and the program is killed.
    Dies,
    /// It is done, and the program never hears of it.
    LosesAnswer,
}

/// An instance, what is changed about it, and where that is cut: after so many writes.
#[derive(Clone, Debug)]
struct Run {
    name: String,
    change: Change,
    cut: Option<(u32, Cut)>,
}

/// What came of a run.
struct End {
    state: State,
    writes: Vec<String>,
}

/// An operator that is started anew whenever it has to die.
struct Running<'a> {
    stage: &'a Stage,
    client: ProxyClient,
    operator: Option<Operator>,
    starts: u32,
}

const CUTS: [Cut; 2] = [Cut::Dies, Cut::LosesAnswer];

/// Other specs.
const SPECS: [&str; 6] = [
    r#"{ "mode": "split" }"#,
    r#"{ "image": "registry.example/portal:v2", "pods": { "labels": { "tier": "policy" } } }"#,
    r#"{ "admission": { "replicas": 2, "failClosed": true } }"#,
    r#"{ "admission": { "port": 9443, "maxEnforcement": "warn" }, "networkPolicy": true }"#,
    r#"{ "admission": { "replicas": 3, "excludeNamespaces": ["legacy"] } }"#,
    r#"{ "scheduling": { "spread": "Required" }, "watchedGvks": [{ "kind": "ConfigMap" }] }"#,
];

/// How many instances there are at a time.
const AT_ONCE: usize = 16;

/// How long nothing must be written before all is done: longer than a step waits that failed once.
const QUIET: Duration = Duration::from_secs(4);

fn changes() -> Vec<Change> {
    let specs = (0..SPECS.len()).map(Change::Spec);
    let others = [Change::Leaf, Change::Authority, Change::Deletion(false), Change::Deletion(true)];
    [Change::Creation].into_iter().chain(specs).chain(others).collect()
}

impl Change {
    fn expected(self) -> &'static str {
        if matches!(self, Change::Deletion(_)) { "gone" } else { "True Ready" }
    }

    async fn make(self, stage: &Stage, name: &str) {
        match self {
            Change::Creation => stage.apply_instance(name, &json!({})).await,
            Change::Spec(row) => stage.apply_instance(name, &usual(serde_json::from_str(SPECS[row]).unwrap())).await,
            Change::Leaf => {
                age(stage, name).await;
                stage.apply_instance(name, &usual(json!({ "certificates": { "leafDays": 20 } }))).await;
            }
            Change::Authority => {
                age(stage, name).await;
                stage.apply_instance(name, &usual(json!({ "certificates": { "authorityDays": 200 } }))).await;
            }
            Change::Deletion(is_foreground) => stage.delete_instance(name, is_foreground).await,
        }
    }
}

/// The spec from which changes begin, with these fields beside it or in its place. It has one pod, because there are many instances.
fn usual(fields: Value) -> Value {
    let mut spec = json!({ "admission": { "replicas": 1, "failClosed": false } });
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

/// Lets what API servers are told to trust be as old as it has to be before anything relies on it.
async fn age(stage: &Stage, name: &str) {
    let api = Kinds(Kind::ValidatingWebhookConfiguration).api(&stage.client);
    let Ok(Some(found)) = api.get_opt(&configuration_name(name)).await else { return };
    let since = found.metadata.annotations.as_ref().and_then(|all| all.get(BUNDLE_SINCE)?.parse::<Timestamp>().ok());
    let (now, long) = (Timestamp::now(), SignedDuration::from_mins(5));
    if since.is_some_and(|since| since + long > now) {
        let patch = json!({ "metadata": { "annotations": { BUNDLE_SINCE: (now - long * 2).to_string() } } });
        let _ = api.patch(&configuration_name(name), &PatchParams::default(), &Patch::Merge(patch)).await;
    }
}

impl Running<'_> {
    async fn start(&mut self) {
        self.stage.release().await;
        self.starts += 1;
        self.operator = Some(Operator::start(&self.client, &format!("operator-{}", self.starts)));
    }

    async fn die(&mut self) {
        self.operator.take().into_iter().for_each(Operator::kill);
        self.start().await;
    }

    /// Instances from which changes begin.
    async fn begin(&mut self, runs: &[Run]) {
        let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
        self.stage.prepare(&names);
        let runs: Vec<&Run> = runs.iter().filter(|run| run.change != Change::Creation).collect();
        let spec = usual(json!({}));
        join_all(runs.iter().map(|run| self.stage.apply_instance(&run.name, &spec))).await;
        let expected: Vec<(&str, &str)> = runs.iter().map(|run| (run.name.as_str(), "True Ready")).collect();
        self.supervise(&expected, &[]).await;
    }

    /// Makes changes, and cuts what comes of them.
    async fn carry_out(&mut self, runs: &[Run]) -> Vec<End> {
        let before: Vec<usize> = runs.iter().map(|run| self.stage.writes(Some(&run.name)).len()).collect();
        let injected: Vec<Option<Injected>> = runs.iter().map(|run| self.inject(run)).collect();
        join_all(runs.iter().map(|run| run.change.make(self.stage, &run.name))).await;
        let expected: Vec<(&str, &str)> = runs.iter().map(|run| (run.name.as_str(), run.change.expected())).collect();
        let aged: Vec<&str> =
            runs.iter().filter(|run| run.change == Change::Authority).map(|run| run.name.as_str()).collect();
        self.supervise(&expected, &aged).await;
        let mut ends = Vec::new();
        for ((run, before), injected) in runs.iter().zip(before).zip(injected) {
            let writes = self.stage.writes(Some(&run.name)).split_off(before);
            if let (Some((number, _)), Some(injected)) = (run.cut, injected) {
                let is_cut = injected.hits() == 1;
                assert!(is_cut || writes.len() < number as usize, "{run:?} was not cut: {writes:#?}");
            }
            ends.push(End { state: self.stage.state(&run.name).await, writes });
        }
        ends
    }

    /// Takes instances away that are not needed any more.
    async fn finish(&mut self, runs: &[Run]) {
        join_all(runs.iter().map(|run| self.stage.delete_instance(&run.name, false))).await;
        let expected: Vec<(&str, &str)> = runs.iter().map(|run| (run.name.as_str(), "gone")).collect();
        self.supervise(&expected, &[]).await;
    }

    fn inject(&self, run: &Run) -> Option<Injected> {
        let (number, cut) = run.cut?;
        let fault = match cut {
            Cut::Dies => Fault::Hold,
            Cut::LosesAnswer => Fault::CutAfter,
        };
        // The Lease and the probe are no writes of the instance, and Events are told to people.
        let writes = Requests::all().from("operator").verbs(&Verb::WRITES).but(&["leases", "events"]).about(&run.name);
        Some(self.stage.proxy.inject(fault.on(writes).after(number - 1).next(1)))
    }

    /// Lets the operator die when it has to, until instances are what is expected of them and nothing more is written.
    async fn supervise(&mut self, expected: &[(&str, &str)], aged: &[&str]) {
        let deadline = Instant::now() + LONG;
        let mut held = self.stage.proxy.held();
        let (mut writes, mut quiet_since) = (0, Instant::now());
        while quiet_since.elapsed() < QUIET {
            if self.stage.proxy.held() > held {
                held = self.stage.proxy.held();
                self.die().await;
            }
            join_all(aged.iter().map(|name| age(self.stage, name))).await;
            let ready = join_all(expected.iter().map(|(name, _)| self.stage.ready(name))).await;
            let waits_for: Vec<_> =
                expected.iter().zip(ready).filter(|((_, expected), ready)| expected != ready).collect();
            let written = self.stage.writes(None).len();
            if !waits_for.is_empty() || written != writes || self.stage.is_draining().await {
                (writes, quiet_since) = (written, Instant::now());
            }
            if Instant::now() > deadline {
                let log = self.operator.as_ref().map(|operator| operator.log(100)).unwrap_or_default();
                panic!("this does not come to an end: {waits_for:?}\n{log}");
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Asserts that the end of a run is that of the one that was not cut.
#[track_caller]
fn assert_same(run: &Run, end: &End, uncut: &End) {
    for key in end.state.keys().chain(uncut.state.keys()) {
        let (found, expected) = (end.state.get(key), uncut.state.get(key));
        assert_eq!(found, expected, "{key} after {run:?} with the writes {:#?}", end.writes);
    }
}

fn name(number: usize) -> String {
    format!("f{number:03}")
}

/// Which changes are cut. Where is drawn when it is known how many writes there are.
fn draw(random: &mut Rng, count: usize) -> Vec<Change> {
    let half = SPECS.len() / 2;
    let specs = [random.usize(..half), half + random.usize(..half)].map(Change::Spec);
    let deletion = Change::Deletion(random.bool());
    let often = [Change::Creation, specs[0], deletion, Change::Authority, Change::Leaf, specs[1]];
    let mut changes: Vec<Change> = often.into_iter().cycle().take(count).collect();
    changes.sort_unstable();
    changes
}

/// A point of each change of a list, or all of them.
fn points(changes: &[Change], writes: impl Fn(Change) -> u32, is_whole: bool, random: &mut Rng) -> Vec<Run> {
    let mut points = Vec::new();
    for change in changes {
        let all: Vec<(u32, Cut)> = (1..=writes(*change)).flat_map(|number| CUTS.map(|cut| (number, cut))).collect();
        match is_whole {
            true => points.extend(all.into_iter().map(|cut| (*change, cut))),
            false => points.push((*change, all[random.usize(..all.len())])),
        }
    }
    let run = |(place, (change, cut))| Run { name: name(100 + place), change, cut: Some(cut) };
    points.into_iter().enumerate().map(run).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_cut_ends_as_one_that_is_not() {
    let (share, all) = (10, 1000);
    let seeds = share::seeds(share, all);
    let (seed, count) = (seeds.start, (seeds.end - seeds.start) as usize);
    let is_whole = count as u64 == all;
    let mut random = Rng::with_seed(seed);
    let stage = Stage::new(seed).await;
    let client = stage.operator_client("operator");
    let mut running = Running { stage: &stage, client, operator: None, starts: 0 };
    running.start().await;

    let drawn = if is_whole { changes() } else { draw(&mut random, count) };
    let mut kinds = drawn.clone();
    kinds.dedup();
    let run = |(place, change): (usize, &Change)| Run { name: name(place), change: *change, cut: None };
    let uncut: Vec<Run> = kinds.iter().enumerate().map(run).collect();
    // A few begin together with those that are not cut, and wait for their turn.
    let begun: Vec<Run> = drawn.iter().enumerate().map(|(place, change)| run((100 + place, change))).collect();
    let is_begun = count <= AT_ONCE;
    running.begin(&[&uncut[..], if is_begun { &begun[..] } else { &[] }].concat()).await;
    let ends: Vec<End> = running.carry_out(&uncut).await;
    let end_of = |change: Change| &ends[kinds.iter().position(|kind| *kind == change).unwrap()];
    for (run, end) in uncut.iter().zip(&ends) {
        println!("{:?}: {} writes", run.change, end.writes.len());
        assert!(!end.writes.is_empty(), "{run:?} writes nothing");
    }
    if !is_begun {
        running.finish(&uncut).await;
    }
    let cut = points(&drawn, |change| end_of(change).writes.len() as u32, is_whole, &mut random);
    println!("{} points", cut.len());
    for runs in cut.chunks(AT_ONCE) {
        if !is_begun {
            running.begin(runs).await;
        }
        let found = running.carry_out(runs).await;
        for (run, end) in runs.iter().zip(&found) {
            println!("{run:?}: {} writes", end.writes.len());
            assert_same(run, end, end_of(run.change));
        }
        if !is_begun {
            running.finish(runs).await;
        }
    }
    println!("the operator was started {} times", running.starts);
    assert!(running.starts > 1, "it never died");
    stage.assert_quiet(&running.operator.iter().collect::<Vec<_>>()).await;
}
