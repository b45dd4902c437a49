//! Statuses as they should be.

use expect_test::{Expect, expect};
use portal_core::rule::{
    diagnostic::{Excerpt, Level, Step},
    source::Origin,
};
use portal_crds::Front;

use portal_cluster::rules::status::{patch, without};

use super::*;

fn report(generation: i64, outcome: Outcome) -> Report {
    let is_active = outcome == Outcome::Active;
    Report {
        uid: "uid".to_owned(),
        generation,
        outcome,
        mode: if is_active { vec![Front::Admission, Front::Audit] } else { Vec::new() },
        active_on: if is_active { vec!["v1/Pod".to_owned()] } else { Vec::new() },
        warnings: Vec::new(),
    }
}

fn refused() -> Outcome {
    let text = "1:6: no such field\n | spec.x\n |      ^".to_owned();
    let excerpt = Excerpt { line: 1, column: 6, text, ends_early: false };
    Outcome::Refused(vec![Diagnostic {
        rule: None,
        origin: Origin::Cluster { uid: "uid".to_owned() },
        level: Level::Error,
        field: vec![Step::Field("spec".to_owned()), Step::Field("rule".to_owned())],
        message: "no such field".to_owned(),
        excerpt: Some(excerpt),
        awaits_kind: false,
    }])
}

fn status_of(current: &Value, instance: &str, report: &Report, second: i64) -> Value {
    let now = Timestamp::from_second(second).unwrap();
    let (counts_violations, counters) = (true, None);
    let (namespace, standing) = ("portal-system", &Standing::Runs);
    let wanted = Wanted { instance, namespace, report, standing, counts_violations, counters, now };
    desired(current, &wanted, &|entry| entry["instance"] != "gone")
}

#[test]
fn a_rule_that_audit_does_not_ask_says_so_and_is_active_where_admission_asks_it() {
    let standing = Standing::NotAudited("audit sees it otherwise".to_owned());
    let (report, now) = (report(1, Outcome::Active), Timestamp::UNIX_EPOCH);
    let wanted = Wanted {
        instance: "stable",
        namespace: "portal-system",
        report: &report,
        standing: &standing,
        counts_violations: false,
        counters: None,
        now,
    };
    let status = desired(&Value::Null, &wanted, &|_| true);
    let active = condition(&status["instances"][0]["conditions"], ConditionType::Active).unwrap();
    let told = ["status", "reason", "message"].map(|field| active[field].as_str().unwrap());
    assert_eq!(told, ["True", "NotAudited", "the rule is in the set of rules; audit sees it otherwise"]);
    assert_eq!(condition(&status["conditions"], ConditionType::Ready).unwrap()["status"], "True");
    let status = lacking(&Value::Null, &report, "NotAudited", true);
    let stalled = condition(&status["conditions"], ConditionType::Stalled).unwrap();
    assert_eq!((&stalled["status"], &stalled["reason"]), (&json!("True"), &json!("NotAudited")));
}

/// The same for a rule that lacks something.
fn lacking(current: &Value, report: &Report, reason: &'static str, is_certain: bool) -> Value {
    let standing = Standing::Lacks { reason, text: format!("because of {reason}"), is_certain };
    let wanted = Wanted {
        instance: "stable",
        namespace: "portal-system",
        report,
        standing: &standing,
        counts_violations: false,
        counters: None,
        now: Timestamp::UNIX_EPOCH,
    };
    desired(current, &wanted, &|_| true)
}

/// A line for each condition and field that people read.
fn show(status: &Value) -> String {
    let mut text = format!("generation {} mode {}\n", status["observedGeneration"], status["mode"]);
    let line = |condition: &Value| {
        let field = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} {} {}\n", field("type"), field("status"), field("reason"), field("lastTransitionTime"))
    };
    let conditions = |value: &Value| value.as_array().into_iter().flatten().map(line).collect::<String>();
    text += &conditions(&status["conditions"]);
    for entry in status["instances"].as_array().into_iter().flatten() {
        text += &format!("{} {} {}\n", entry["instance"], entry["parseError"], entry["activeOn"]);
        text += &conditions(&entry["conditions"]);
    }
    text
}

#[track_caller]
fn check(status: &Value, expected: Expect) {
    expected.assert_eq(&show(status));
}

#[test]
fn a_new_rule_that_is_active() {
    let status = status_of(&json!({"observedGeneration": -1}), "stable", &report(1, Outcome::Active), 0);
    check(
        &status,
        expect![[r#"
        generation 1 mode "admission,audit"
        Ready=True Active 1970-01-01T00:00:00Z
        "stable" null ["v1/Pod"]
        Accepted=True Accepted 1970-01-01T00:00:00Z
        Active=True Active 1970-01-01T00:00:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:00:00Z
    "#]],
    );
    assert_eq!(status_of(&status, "stable", &report(1, Outcome::Active), 100), status, "nothing has to be written");
}

#[test]
fn a_mistake_comes_and_goes_without_a_trace() {
    let good = status_of(&Value::Null, "stable", &report(1, Outcome::Active), 0);
    let bad = status_of(&good, "stable", &report(2, refused()), 60);
    check(
        &bad,
        expect![[r#"
        generation 2 mode null
        Ready=False Refused 1970-01-01T00:01:00Z
        Stalled=True Refused 1970-01-01T00:01:00Z
        "stable" {"caret":" | spec.x\n |      ^","column":6,"line":1,"message":"no such field"} null
        Accepted=False Refused 1970-01-01T00:01:00Z
        Active=False Refused 1970-01-01T00:01:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:00:00Z
    "#]],
    );
    let patch = patch(&good, &bad).unwrap();
    assert_eq!(patch["mode"], Value::Null);
    assert!(patch.as_object().unwrap().contains_key("mode"), "what is not there any more is named");
    let again = status_of(&bad, "stable", &report(3, Outcome::Active), 120);
    check(
        &again,
        expect![[r#"
        generation 3 mode "admission,audit"
        Ready=True Active 1970-01-01T00:02:00Z
        "stable" null ["v1/Pod"]
        Accepted=True Accepted 1970-01-01T00:02:00Z
        Active=True Active 1970-01-01T00:02:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:00:00Z
    "#]],
    );
}

#[test]
fn what_others_wrote_stays() {
    let mut status = status_of(&Value::Null, "stable", &report(1, Outcome::Active), 0);
    status["instances"][0]["conditions"][2] =
        json!({"type": "PermissionGranted", "status": "True", "reason": "Granted"});
    status["instances"][0]["future"] = json!({"field": 1});
    status["future"] = json!(2);
    let next = status_of(&status, "stable", &report(2, Outcome::Disabled), 60);
    assert_eq!(next["future"], 2);
    assert_eq!(next["instances"][0]["future"]["field"], 1);
    assert_eq!(next["instances"][0]["conditions"][2]["reason"], "Granted");
    assert_eq!(next["conditions"][0]["reason"], "Disabled");
}

#[test]
fn the_first_instance_sums_up_and_the_others_leave_that_alone() {
    let canary = status_of(&Value::Null, "canary", &report(1, Outcome::Active), 0);
    let both = status_of(&canary, "stable", &report(1, refused()), 60);
    assert_eq!(both["conditions"], canary["conditions"], "stable is not the first");
    let summed = status_of(&both, "canary", &report(1, Outcome::Active), 90);
    check(
        &summed,
        expect![[r#"
        generation 1 mode "admission,audit"
        Ready=False Refused 1970-01-01T00:01:30Z
        Stalled=True Refused 1970-01-01T00:01:30Z
        "canary" null ["v1/Pod"]
        Accepted=True Accepted 1970-01-01T00:00:00Z
        Active=True Active 1970-01-01T00:00:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:00:00Z
        "stable" {"caret":" | spec.x\n |      ^","column":6,"line":1,"message":"no such field"} null
        Accepted=False Refused 1970-01-01T00:01:00Z
        Active=False Refused 1970-01-01T00:01:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:01:00Z
    "#]],
    );
    assert_eq!(summed["conditions"][0]["message"], "instance stable: spec.rule: no such field");
    let next = status_of(&summed, "canary", &report(2, Outcome::Active), 99);
    assert_eq!(next["conditions"][0]["reason"], "Progressing", "stable has seen an older version");
}

#[test]
fn an_instance_that_is_gone_leaves_nothing() {
    let gone = status_of(&Value::Null, "gone", &report(1, refused()), 0);
    let status = status_of(&gone, "stable", &report(1, Outcome::Active), 60);
    assert_eq!(status["instances"].as_array().unwrap().len(), 1);
    assert_eq!(status["conditions"][0]["status"], "True");
}

#[test]
fn an_instance_that_does_not_serve_a_rule_leaves_nothing() {
    let both = status_of(&Value::Null, "canary", &report(1, Outcome::Active), 0);
    let mut both = status_of(&both, "stable", &report(1, Outcome::Active), 0);
    let left = without(&both, "canary");
    assert_eq!(left["instances"].as_array().unwrap().len(), 1);
    assert_eq!(left["conditions"], both["conditions"], "stable is the first now, and sums up");
    both["conditions"].as_array_mut().unwrap().push(json!({"type": "Theirs"}));
    let none = without(&without(&both, "canary"), "stable");
    assert_eq!(none, json!({"observedGeneration": -1, "conditions": [{"type": "Theirs"}]}));
    assert_eq!(patch(&none, &without(&none, "stable")), None);
}

#[test]
fn a_rule_with_a_warning_is_active_and_says_so() {
    let Outcome::Refused(warnings) = refused() else { unreachable!() };
    let report = Report { warnings, ..report(1, Outcome::Active) };
    let status = status_of(&Value::Null, "stable", &report, 0);
    let active = condition(&status["instances"][0]["conditions"], ConditionType::Active).unwrap();
    assert_eq!(active["status"], "True");
    assert_eq!(active["message"], "the rule is in the set of rules; warning: spec.rule: no such field");
}

#[test]
fn a_reason_that_is_not_known_is_no_readiness() {
    let status = status_of(&Value::Null, "canary", &report(1, Outcome::Active), 0);
    let mut status = status_of(&status, "stable", &report(1, Outcome::Active), 0);
    status["instances"][1]["conditions"][1]["status"] = json!("False");
    status["instances"][1]["conditions"][1]["reason"] = json!("OfTomorrow");
    let status = status_of(&status, "canary", &report(1, Outcome::Active), 60);
    let ready = condition(&status["conditions"], ConditionType::Ready).unwrap();
    assert_eq!((ready["status"].as_str(), ready["reason"].as_str()), (Some("False"), Some("NotActive")));
}

#[test]
fn a_rule_that_waits_is_under_way() {
    let Outcome::Refused(found) = refused() else { unreachable!() };
    let status = status_of(&Value::Null, "stable", &report(1, Outcome::Waiting(found)), 0);
    check(
        &status,
        expect![[r#"
        generation 1 mode null
        Ready=False KindNotServed 1970-01-01T00:00:00Z
        Reconciling=True KindNotServed 1970-01-01T00:00:00Z
        "stable" null null
        Accepted=True Accepted 1970-01-01T00:00:00Z
        Active=False KindNotServed 1970-01-01T00:00:00Z
        PermissionGranted=Unknown NotDecided 1970-01-01T00:00:00Z
    "#]],
    );
}

#[test]
fn a_rule_that_waits_for_a_right_is_stalled_once_the_operator_has_refused_it() {
    let lack = Lack { plurals: vec!["secrets".to_owned()], refusal: Some("forbidden".to_owned()) };
    let report = report(1, Outcome::Syncing(lack));
    let mut status = status_of(&Value::Null, "stable", &report, 0);
    let ready = |status: &Value| condition(&status["conditions"], ConditionType::Ready).unwrap()["reason"].clone();
    assert_eq!(ready(&status), "PermissionPending");
    assert!(condition(&status["conditions"], ConditionType::Stalled).is_none());
    for (said, generation, expected) in
        [("False", 1, "PermissionRefused"), ("False", 0, "PermissionPending"), ("True", 1, "PermissionPending")]
    {
        let granted = &mut status["instances"][0]["conditions"][2];
        granted["status"] = said.into();
        granted["observedGeneration"] = generation.into();
        granted["message"] = "apply this role".into();
        let next = status_of(&status, "stable", &report, 60);
        assert_eq!(ready(&next), expected);
        let stalled =
            condition(&next["conditions"], ConditionType::Stalled).and_then(|found| found["message"].as_str());
        assert_eq!(stalled, (expected == "PermissionRefused").then_some("apply this role"));
    }
    // In split mode it is another replica that waits.
    let report = self::report(1, Outcome::Active);
    let mut status = lacking(&Value::Null, &report, "PermissionPending", true);
    assert_eq!(ready(&status), "PermissionPending");
    status["instances"][0]["conditions"][2]["status"] = "False".into();
    let next = lacking(&status, &report, "PermissionPending", true);
    assert_eq!(ready(&next), "PermissionRefused");
    assert!(condition(&next["conditions"], ConditionType::Stalled).is_some());
}

#[test]
fn gitops_tools_are_told_the_truth_in_every_phase_of_a_rule() {
    let Outcome::Refused(found) = refused() else { unreachable!() };
    let active = |generation| report(generation, Outcome::Active);
    let of = |outcome| status_of(&Value::Null, "stable", &report(1, outcome), 0);
    let lack = |refusal: Option<&str>| Lack { plurals: Vec::new(), refusal: refusal.map(str::to_owned) };
    let is_active = of(Outcome::Active);
    let both = status_of(&status_of(&Value::Null, "canary", &active(1), 0), "stable", &report(1, refused()), 0);
    let both = status_of(&both, "canary", &active(1), 0);
    let path = std::path::PathBuf::from("rules/a.yaml");
    let phases = [
        ("new", 1, json!({ "observedGeneration": -1 }), "InProgress", "Progressing"),
        ("active", 1, is_active.clone(), "Current", "Healthy"),
        ("changed, and not seen", 2, is_active.clone(), "InProgress", "Progressing"),
        ("with a mistake", 2, status_of(&is_active, "stable", &report(2, refused()), 0), "Failed", "Degraded"),
        ("switched off", 1, of(Outcome::Disabled), "Current", "Healthy"),
        ("kind not served", 1, of(Outcome::Waiting(found)), "InProgress", "Progressing"),
        ("caches are filled", 1, of(Outcome::Syncing(lack(None))), "InProgress", "Progressing"),
        ("right not decided", 1, of(Outcome::Syncing(lack(Some("no")))), "InProgress", "Progressing"),
        ("over the quota", 1, of(Outcome::OverQuota(1)), "Failed", "Degraded"),
        ("hidden by a file", 1, of(Outcome::Shadowed(path)), "Failed", "Degraded"),
        ("not everywhere", 1, lacking(&Value::Null, &active(1), "NotEverywhere", true), "InProgress", "Progressing"),
        ("not sent", 1, lacking(&Value::Null, &active(1), "NotRouted", true), "InProgress", "Progressing"),
        ("layer is off", 1, lacking(&Value::Null, &active(1), "LayerDisabled", true), "Failed", "Degraded"),
        ("one of two refuses it", 1, both, "Failed", "Degraded"),
    ];
    let kinds = ["PortalClusterRule", "PortalRule"];
    let objects: Vec<Value> = phases
        .iter()
        .flat_map(|(_, generation, status, ..)| {
            let metadata = json!({ "name": "a", "generation": generation });
            let object = |kind| json!({ "apiVersion": "portal.io/v1alpha1", "kind": kind, "metadata": metadata, "status": status });
            kinds.map(object)
        })
        .collect();
    let seen = portal_test_kit::gitops::see(&objects).unwrap();
    for (number, seen) in seen.iter().enumerate() {
        let (phase, .., kstatus, argocd) = &phases[number / kinds.len()];
        assert_eq!((&*seen.kstatus, seen.argocd.as_deref()), (*kstatus, Some(*argocd)), "{phase}");
    }
}

#[test]
fn a_rule_that_does_not_judge_what_it_should_is_not_active() {
    let told = |status: &Value| {
        let active = condition(&status["instances"][0]["conditions"], ConditionType::Active).unwrap();
        let ready = condition(&status["conditions"], ConditionType::Ready).unwrap();
        let text = |condition: &Value| format!("{} {}", condition["status"], condition["reason"]).replace('"', "");
        (text(active), text(ready), status["instances"][0]["activeOn"].is_null())
    };
    let report = Report { active_on: vec!["v1/Pod".to_owned()], ..report(1, Outcome::Active) };
    let active = status_of(&Value::Null, "stable", &report, 0);
    assert_eq!(told(&active), ("True Active".to_owned(), "True Active".to_owned(), false));
    for reason in ["NotRouted", "NotEverywhere", "LayerDisabled"] {
        let expected = (format!("False {reason}"), format!("False {reason}"), true);
        assert_eq!(told(&lacking(&active, &report, reason, true)), expected);
        // What is not certain does not take back what was true of this version.
        assert_eq!(told(&lacking(&active, &report, reason, false)).0, "True Active");
        assert_eq!(told(&lacking(&Value::Null, &report, reason, false)), expected);
        let newer = Report { generation: 2, ..report.clone() };
        assert_eq!(told(&lacking(&active, &newer, reason, false)), expected);
    }
    let over = status_of(&Value::Null, "stable", &Report { outcome: Outcome::OverQuota(100), ..report }, 0);
    assert_eq!(told(&over).1, "False OverQuota");
    assert!(condition(&over["conditions"], ConditionType::Stalled).is_some());
}

#[test]
fn violations_are_summed_over_those_who_count_and_not_known_without_any() {
    let now = Timestamp::UNIX_EPOCH;
    let report = report(1, Outcome::Active);
    let count = |current: &Value, instance, counts_violations, counters| {
        let namespace = "portal-system";
        let standing = &Standing::Runs;
        let wanted = Wanted { instance, namespace, report: &report, standing, counts_violations, counters, now };
        desired(current, &wanted, &|_| true)
    };
    let counted = |evaluations, violations| Some(Counters { evaluations, violations });
    let shown = |status: &Value| {
        let entries = status["instances"].as_array().unwrap().iter();
        let entries = entries.map(|entry| [entry["evalCount"].clone(), entry["violationCount"].clone()]);
        (status.get("violationCount").cloned(), entries.collect::<Vec<_>>())
    };
    let (none, zero) = (Value::Null, json!(0));
    let first = count(&Value::Null, "a", true, None);
    assert_eq!(shown(&first), (None, vec![[zero.clone(), none.clone()]]));
    assert_eq!(first["instances"][0].get("violationCount"), None, "absent, and not null");
    let both = count(&count(&first, "b", true, counted(10, Some(3))), "a", true, counted(20, None));
    assert_eq!(shown(&both), (Some(json!(3)), vec![[json!(20), none.clone()], [json!(10), json!(3)]]));
    let both = count(&both, "a", true, counted(1, Some(0)));
    assert_eq!(shown(&both), (Some(json!(3)), vec![[json!(21), zero], [json!(10), json!(3)]]));
    // Who has not been told anything leaves what is there: a restart writes nothing.
    assert_eq!(count(&both, "a", true, None), both);
    let both = count(&count(&both, "b", false, None), "a", false, counted(1, Some(1)));
    assert_eq!(shown(&both), (None, vec![[json!(22), none.clone()], [json!(10), none]]));
}

#[test]
fn long_messages_are_cut_between_characters() {
    let cut = shortened("é".repeat(2000));
    assert!(cut.len() <= MAX_MESSAGE + '…'.len_utf8() && cut.ends_with("é…"));
}
