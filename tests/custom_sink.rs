//! The sinks that `docs/plugin-author/custom-sink.md` shows: they are compiled and do what the page says.

#![allow(unreachable_pub, reason = "they are written as in the crate that they are copied to")]

mod denials;
mod worst;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portal_cluster::metrics::{Registry, text};
use portal_core::kinds::Kinds;
use portal_core::language::ExprEngine;
use portal_core::manifest::Manifest;
use portal_core::rule::{Rule, compile::compile, file};
use portal_engine::findings::{Board, Finding, Offender};
use portal_engine::metrics::EngineMetrics;
use portal_engine::sinks::{About, Outputs, Record};
use portal_test_kit::repository;

use self::denials::DenialFile;
use self::worst::Worst;

#[test]
fn the_page_shows_what_is_compiled() {
    let page = std::fs::read_to_string(repository().join("docs/plugin-author/custom-sink.md")).unwrap();
    for example in [include_str!("custom_sink/denials.rs"), include_str!("custom_sink/worst.rs")] {
        assert!(page.contains(&format!("```rust\n{example}```\n")), "the page has to show this as it is:\n{example}");
    }
}

fn record(decision: &'static str, name: &str) -> Record {
    let about = About {
        operation: "CREATE".to_owned(),
        resource: "pods".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        ..About::default()
    };
    let rules = BTreeMap::from([("denied-by", "no-privileged".to_owned())]);
    Record { time: 0.0, decision, about, rules, milliseconds: 0.1 }
}

/// Waits for the thread of a sink.
#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

#[test]
fn a_sink_for_decisions_is_told_what_it_wants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("denials");
    let metrics = EngineMetrics::register(&Registry::new());
    let outputs = Outputs::start(vec![Box::new(DenialFile::open(&path).unwrap())], &metrics.sink_records_lost);
    for (decision, name) in [("allowed", "good"), ("denied", "web"), ("warned", "old"), ("denied", "api")] {
        outputs.send(decision, true, || record(decision, name));
    }
    let expected = "CREATE pods shop/web no-privileged\nCREATE pods shop/api no-privileged\n";
    eventually("the file has both lines", || std::fs::read_to_string(&path).unwrap() == expected);
    assert!(DenialFile::open(folder.path()).is_err(), "a folder is no file");
}

#[test]
fn what_a_sink_cannot_write_is_counted_under_its_name() {
    let registry = Registry::new();
    let metrics = EngineMetrics::register(&registry);
    let sink = DenialFile::open("/dev/full".as_ref()).unwrap();
    let outputs = Outputs::start(vec![Box::new(sink)], &metrics.sink_records_lost);
    let lost = |number: u64| {
        text(&registry).contains(&format!("portal_sink_records_lost_total{{sink=\"denial-file\"}} {number}\n"))
    };
    assert!(lost(0), "it has a series before anything is lost");
    outputs.send("denied", true, || record("denied", "web"));
    eventually("it is counted", || lost(1));
}

fn rules() -> BTreeMap<String, Arc<Rule>> {
    let rule = |name: &str, severity: &str| {
        format!("name: {name}\nseverity: {severity}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n---\n")
    };
    let text = [rule("bad", "critical"), rule("poor", "low")].concat();
    let file = file::read(&Manifest::new("rules.yaml", text.as_bytes()));
    let (rules, diagnostics) = compile(&file.sources, Kinds::builtin(), &ExprEngine);
    assert!(file.problems.is_empty() && diagnostics.is_empty());
    rules.rules().iter().map(|rule| (rule.id.name.clone(), Arc::clone(rule))).collect()
}

/// A pod that violates these rules.
fn pod(name: &str, violated: &[&str]) -> Option<Offender> {
    let rules = rules();
    let finding = |name: &&str| Finding {
        rule: Arc::clone(&rules[*name]),
        container: None,
        is_failure: false,
        message: "it shares the processes of its node".to_owned(),
        saw: None,
        since: jiff::Timestamp::UNIX_EPOCH,
    };
    Some(Offender {
        uid: format!("uid-of-{name}"),
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        findings: violated.iter().map(finding).collect(),
        passes: Vec::new(),
    })
}

#[tokio::test]
async fn a_sink_for_findings_sees_what_has_changed_since_it_last_asked() {
    let board = Board::default();
    let (web, api) = (board.number(), board.number());
    board.put(web, pod("web", &["poor"]));
    let mut sink = Worst::new(board.outlet());
    // What was there before it came.
    assert_eq!(sink.next().await, ["Pod web is low"]);
    board.put(web, pod("web", &["bad", "poor"]));
    board.put(api, pod("api", &["poor"]));
    assert_eq!(sink.next().await, ["Pod web is critical", "Pod api is low"]);
    // Between two looks an object may come and go, or change twice: what it is then is what counts.
    board.put(api, None);
    board.put(api, pod("api", &["bad"]));
    board.put(web, pod("web", &["poor"]));
    board.put(web, None);
    assert_eq!(sink.next().await, ["Pod web is right", "Pod api is critical"]);
}
