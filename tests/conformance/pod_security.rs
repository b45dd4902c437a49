//! The rules for the Pod Security Standards say the same as Kubernetes does.

mod judges;
pub(crate) mod pods;

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::chance::Random;
use judges::{Oracle, Violated, check, check_files, library};

const LEVELS: [&str; 2] = ["baseline", "restricted"];

/// How many pods are made up.
const PODS: usize = 10_000;

/// How many of them are judged in a Deployment too.
const DEPLOYMENTS: usize = 500;

/// The text of a rule of the library.
fn rule(level: &str, control: &str) -> String {
    fs::read_to_string(library().join(level).join(format!("{control}.yaml"))).unwrap()
}

/// The controls of a level, by the names of the files.
fn controls(level: &str) -> BTreeSet<String> {
    let files = fs::read_dir(library().join(level)).unwrap();
    files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The controls whose rule is the same at both levels.
fn shared_controls() -> BTreeSet<String> {
    let is_shared = |control: &String| {
        rule("baseline", control).replace("pss-baseline-", "pss-restricted-") == rule("restricted", control)
    };
    controls("baseline").intersection(&controls("restricted")).filter(|control| is_shared(control)).cloned().collect()
}

#[test]
fn each_level_has_a_rule_for_each_check_of_kubernetes_and_no_other() {
    let oracle = Oracle::find();
    for level in LEVELS {
        let rules: Violated = controls(level).iter().map(|control| format!("pss-{level}-{control}")).collect();
        assert_eq!(rules, oracle.rules(level));
        for control in controls(level) {
            let rule = rule(level, &control);
            assert!(rule.contains(&format!("metadata: {{name: pss-{level}-{control}}}\n")), "{rule}");
            assert!(rule.lines().count() <= 12, "{level}/{control} is long");
        }
    }
}

#[test]
fn a_rule_that_both_levels_have_is_the_same_unless_restricted_asks_for_more() {
    let differ: BTreeSet<String> = controls("baseline").difference(&shared_controls()).cloned().collect();
    assert_eq!(
        differ.into_iter().collect::<Vec<_>>(),
        ["capabilities", "host-path-volumes", "proc-mount", "seccomp-profile"]
    );
}

#[test]
fn the_page_lists_every_rule() {
    let page = fs::read_to_string(library().join("index.md")).unwrap();
    for level in LEVELS {
        for control in controls(level) {
            let link = format!("({level}/{control}.yaml)");
            assert!(page.contains(&link), "the page has no link to {link}");
        }
    }
    let links = page.matches(".yaml)").count();
    assert_eq!(links, LEVELS.iter().map(|level| controls(level).len()).sum::<usize>());
}

#[test]
fn the_cases_of_each_rule_pass_and_fail_as_they_should() {
    for level in LEVELS {
        for control in controls(level) {
            // What both levels ask alike has cases that suit both.
            let home = if shared_controls().contains(&control) { "baseline" } else { level };
            let folder = library().join("cases").join(home).join(&control);
            assert_eq!(check_files(level, &folder.join("pass.yaml")), [].into(), "{level}/{control}");
            let failing = folder.join("fail.yaml");
            let violated = check_files(level, &failing);
            let text = fs::read_to_string(failing).unwrap();
            let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("metadata: {name: ")).collect();
            let names: Vec<&str> = names.iter().map(|name| name.split(['}', ',']).next().unwrap()).collect();
            assert!(names.len() > 1 && text.contains("\nkind: Pod\n") && text.contains("\nkind: Deployment\n"));
            let expected = Violated::from([format!("pss-{level}-{control}")]);
            let expected = names.into_iter().map(|name| (name.to_owned(), expected.clone())).collect();
            assert_eq!(violated, expected, "{level}/{control}");
        }
    }
}

#[test]
fn the_pods_that_come_with_kubernetes_pass_and_fail_as_they_should() {
    let oracle = Oracle::find();
    let fixtures = oracle.fixtures();
    for level in LEVELS {
        let fixtures: Vec<_> = fixtures.iter().filter(|fixture| fixture.level == level).collect();
        let pods: Vec<Value> = fixtures.iter().map(|fixture| fixture.pod.clone()).collect();
        let failing = fixtures.iter().filter(|fixture| !fixture.passes).count();
        println!("{level}: {} pods pass, {failing} fail", fixtures.len() - failing);
        assert!(failing > 20 && fixtures.len() - failing > 10, "{level} has {} fixtures", fixtures.len());
        for ((fixture, ours), [theirs]) in fixtures.iter().zip(check(level, &pods)).zip(oracle.judge([level], &pods)) {
            assert_eq!(ours.is_empty(), fixture.passes, "{level} {}: {ours:?}", fixture.name);
            assert_eq!(ours, theirs, "{level} {}", fixture.name);
        }
    }
}

#[test]
fn ten_thousand_pods_violate_what_kubernetes_says_they_violate() {
    let oracle = Oracle::find();
    let (generator, mut random) = (pods::Pods::new(), Random::new(0));
    let pods: Vec<Value> = (0..PODS).map(|_| generator.pod(&mut random)).collect();
    let deployments: Vec<Value> = pods.iter().take(DEPLOYMENTS).map(deployment).collect();
    let theirs = oracle.judge(LEVELS, &pods);
    for (number, level) in LEVELS.into_iter().enumerate() {
        let theirs: Vec<&Violated> = theirs.iter().map(|levels| &levels[number]).collect();
        for (objects, what) in [(&pods, "pods"), (&deployments, "deployments")] {
            let ours = check(level, objects);
            for ((object, ours), theirs) in objects.iter().zip(&ours).zip(&theirs) {
                assert_eq!(ours, *theirs, "{level} (left ours, right Kubernetes'): {object:#}");
            }
            let allowed = ours.iter().filter(|violated| violated.is_empty()).count();
            println!("{level}: {allowed} of {} {what} are allowed, by both", objects.len());
            assert!((objects.len() / 10..objects.len() * 9 / 10).contains(&allowed), "{allowed} are allowed");
        }
        // Each rule must have been the only one that decided, or a pod would not tell whether it is right.
        let alone: Violated =
            theirs.iter().filter(|violated| violated.len() == 1).map(|one| one.first().unwrap().clone()).collect();
        assert_eq!(alone, oracle.rules(level));
    }
}

/// A Deployment that makes pods like this one.
fn deployment(pod: &Value) -> Value {
    let template = json!({"metadata": pod["metadata"], "spec": pod["spec"]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": template}})
}
