//! What the status of a rule should be, from what it is and what has become of the rule. Pure.
//!
//! Works on JSON and touches its own fields alone: what an operator, another instance or a newer engine wrote stays.

use jiff::Timestamp;
use portal_core::rule::diagnostic::Diagnostic;
use portal_crds::ConditionType;
use serde_json::{Map, Value, json};

use portal_cluster::rules::{Outcome, Report};

use super::standing::Standing;

/// Longer messages are cut: a status is read by people, and stored with every rule.
const MAX_MESSAGE: usize = 1024;

/// The conditions of a rule as a whole.
const SUMMARY: [ConditionType; 3] = [ConditionType::Ready, ConditionType::Reconciling, ConditionType::Stalled];

/// What was counted of a rule.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counters {
    /// Evaluations that the status does not say yet.
    pub(super) evaluations: u64,
    /// Objects that violate the rule. Nothing as long as nobody has counted them: then what the status says stays.
    pub(super) violations: Option<i64>,
}

/// What a status is made from.
pub(super) struct Wanted<'a> {
    /// The name of this instance.
    pub(super) instance: &'a str,
    /// Where its Lease is.
    pub(super) namespace: &'a str,
    pub(super) report: &'a Report,
    /// Whether the rule judges what it should, if it is in force here.
    pub(super) standing: &'a Standing,
    /// Whether this instance counts violations. If not, their number is not known.
    pub(super) counts_violations: bool,
    /// What was counted. Nothing as long as nobody has told: then what the status says stays.
    pub(super) counters: Option<Counters>,
    pub(super) now: Timestamp,
}

/// The status as it should be. The same as `current` if nothing has to be written. `is_alive` says of an entry whether its
/// instance lives.
pub(super) fn desired(current: &Value, wanted: &Wanted<'_>, is_alive: &dyn Fn(&Value) -> bool) -> Value {
    let (mut status, mut instances) = parts(current);
    let is_own = |entry: &Value| entry["instance"] == wanted.instance;
    // What an instance that is gone left behind.
    instances.retain(|entry| is_own(entry) || is_alive(entry));
    let own = instances.iter().position(is_own).unwrap_or_else(|| {
        instances.push(json!({ "instance": wanted.instance }));
        instances.len() - 1
    });
    wanted.entry(&mut instances[own]);
    // Of the instances that serve a rule, the first one by name writes the summary, so that only one does.
    let is_first = instances.iter().all(|entry| entry["instance"].as_str() >= Some(wanted.instance));
    if is_first {
        wanted.summary(&mut status, &instances);
    }
    status.insert("instances".to_owned(), Value::Array(instances));
    Value::Object(status)
}

/// The status of a rule that this instance does not serve, or not any more. The first instance that serves it sums up.
pub(super) fn without(current: &Value, instance: &str) -> Value {
    let (mut status, mut instances) = parts(current);
    instances.retain(|entry| entry["instance"] != instance);
    if instances.is_empty() {
        let seen_by_nobody = portal_crds::RuleStatus::default().observed_generation;
        status.insert("observedGeneration".to_owned(), json!(seen_by_nobody));
        status.remove("mode");
        status.remove("violationCount");
        if let Some(Value::Array(mut conditions)) = status.remove("conditions") {
            conditions.retain(|condition| !SUMMARY.iter().any(|kind| condition["type"] == kind.to_string()));
            if !conditions.is_empty() {
                status.insert("conditions".to_owned(), Value::Array(conditions));
            }
        }
    } else {
        status.insert("instances".to_owned(), Value::Array(instances));
    }
    Value::Object(status)
}

/// The fields of a status, and the entries of its instances.
fn parts(status: &Value) -> (Map<String, Value>, Vec<Value>) {
    let mut status = status.as_object().cloned().unwrap_or_default();
    let instances = match status.remove("instances") {
        Some(Value::Array(instances)) => instances,
        _ => Vec::new(),
    };
    (status, instances)
}

/// The change that makes one status of another, as a merge patch: what is not there any more has to be named. Nothing if they are
/// the same.
pub(super) fn patch(current: &Value, desired: &Value) -> Option<Value> {
    let mut patch = Map::new();
    let empty = Map::new();
    let (before, after) = (current.as_object().unwrap_or(&empty), desired.as_object().unwrap_or(&empty));
    for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(value)) {
        patch.insert(key.clone(), value.clone());
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

impl Wanted<'_> {
    /// What this instance says.
    fn entry(&self, entry: &mut Value) {
        let report = self.report;
        entry["namespace"] = json!(self.namespace);
        let was_active = condition(&entry["conditions"], ConditionType::Active).cloned();
        let mut conditions = match entry["conditions"].take() {
            Value::Array(conditions) => conditions,
            _ => Vec::new(),
        };
        let (accepted, mut active) = verdicts(report);
        if let (Outcome::Active, Standing::Lacks { reason, text, is_certain }) = (&report.outcome, self.standing) {
            let was_true = was_active
                .as_ref()
                .is_some_and(|before| before["status"] == "True" && before["observedGeneration"] == report.generation);
            if *is_certain || !was_true {
                active = Verdict("False", reason, text.clone());
            }
        }
        let is_true = active.0 == "True";
        self.set(&mut conditions, ConditionType::Accepted, accepted);
        self.set(&mut conditions, ConditionType::Active, active);
        if condition_of(&conditions, ConditionType::PermissionGranted).is_none() {
            let message = "no operator has decided yet".to_owned();
            self.set(&mut conditions, ConditionType::PermissionGranted, Verdict("Unknown", "NotDecided", message));
        }
        let is_active = condition_of(&conditions, ConditionType::Active);
        let is_as_before = was_active.as_ref().zip(is_active).is_some_and(|(before, now)| {
            before["status"] == now["status"] && before["observedGeneration"] == now["observedGeneration"]
        });
        if !is_as_before || entry["lastApplied"].is_null() {
            entry["lastApplied"] = Value::String(self.time());
        }
        entry["conditions"] = Value::Array(conditions);
        set_or_remove(entry, "parseError", parse_error(&report.outcome));
        let active_on = (is_true && !report.active_on.is_empty()).then(|| json!(report.active_on));
        set_or_remove(entry, "activeOn", active_on);
        let more = self.counters.map_or(0, |counters| counters.evaluations);
        entry["evalCount"] = json!(entry["evalCount"].as_i64().unwrap_or_default().saturating_add_unsigned(more));
        let counted = self.counters.and_then(|counters| counters.violations);
        let violations = counted.or(entry["violationCount"].as_i64());
        set_or_remove(entry, "violationCount", violations.filter(|_| self.counts_violations).map(Value::from));
    }

    /// What all instances say together.
    fn summary(&self, status: &mut Map<String, Value>, instances: &[Value]) {
        let mut conditions = match status.remove("conditions") {
            Some(Value::Array(conditions)) => conditions,
            _ => Vec::new(),
        };
        let sum = self.sum(instances);
        let (ready, under_way, in_the_way) = match sum {
            Sum::Runs => (Verdict("True", "Active", "every instance runs the rule".to_owned()), None, None),
            Sum::Off => (Verdict("True", "Disabled", "the rule is switched off".to_owned()), None, None),
            Sum::Waits(reason, message) => {
                (Verdict("False", reason, message.clone()), Some(Verdict("True", reason, message)), None)
            }
            Sum::Stuck(reason, message) => {
                (Verdict("False", reason, message.clone()), None, Some(Verdict("True", reason, message)))
            }
        };
        self.set(&mut conditions, ConditionType::Ready, ready);
        for (kind, verdict) in [(ConditionType::Reconciling, under_way), (ConditionType::Stalled, in_the_way)] {
            match verdict {
                Some(verdict) => self.set(&mut conditions, kind, verdict),
                None => conditions.retain(|condition| condition["type"] != kind.to_string()),
            }
        }
        status.insert("observedGeneration".to_owned(), json!(self.report.generation));
        status.insert("conditions".to_owned(), Value::Array(conditions));
        let mode: Vec<String> = self.report.mode.iter().map(ToString::to_string).collect();
        let known = instances.iter().filter_map(|entry| entry["violationCount"].as_i64());
        let violations = known.reduce(|sum, violations| sum + violations);
        for (key, value) in [
            ("mode", (!mode.is_empty()).then(|| Value::String(mode.join(",")))),
            ("violationCount", violations.map(Value::from)),
        ] {
            match value {
                Some(value) => status.insert(key.to_owned(), value),
                None => status.remove(key),
            };
        }
    }

    fn sum(&self, instances: &[Value]) -> Sum {
        let mut all_off = true;
        let mut waits = None;
        for entry in instances {
            let name = entry["instance"].as_str().unwrap_or_default();
            let told = |kind| condition(&entry["conditions"], kind);
            let (accepted, active) = (told(ConditionType::Accepted), told(ConditionType::Active));
            let is_current = |found: Option<&Value>| {
                found.is_some_and(|found| found["observedGeneration"] == self.report.generation)
            };
            if !is_current(accepted) || !is_current(active) {
                all_off = false;
                waits = Some(("Progressing", format!("instance {name} has not taken this version of the rule yet")));
                continue;
            }
            let say = |found: Option<&Value>| {
                let message = found.and_then(|found| found["message"].as_str()).unwrap_or_default();
                if instances.len() > 1 { format!("instance {name}: {message}") } else { message.to_owned() }
            };
            if accepted.is_some_and(|found| found["status"] == "False") {
                let is_shadowed = accepted.is_some_and(|found| found["reason"] == "NameClash");
                return Sum::Stuck(if is_shadowed { "NameClash" } else { "Refused" }, say(accepted));
            }
            let is_active = active.is_some_and(|found| found["status"] == "True");
            match active.and_then(|found| found["reason"].as_str()) {
                Some("Disabled") => continue,
                Some("KindNotServed") => waits = Some(("KindNotServed", say(active))),
                Some("NotRouted") => waits = Some(("NotRouted", say(active))),
                Some("NotEverywhere") => waits = Some(("NotEverywhere", say(active))),
                Some("LookupsNotSupported") => return Sum::Stuck("LookupsNotSupported", say(active)),
                Some("OverQuota") => return Sum::Stuck("OverQuota", say(active)),
                Some("LayerDisabled") => return Sum::Stuck("LayerDisabled", say(active)),
                // For a reason that this release does not know.
                _ if !is_active => waits = Some(("NotActive", say(active))),
                _ => {}
            }
            all_off = false;
        }
        match waits {
            Some((reason, message)) => Sum::Waits(reason, message),
            None if all_off => Sum::Off,
            None => Sum::Runs,
        }
    }

    /// Sets a condition. Its time is that of the last change of its status.
    fn set(&self, conditions: &mut Vec<Value>, kind: ConditionType, verdict: Verdict) {
        let Verdict(status, reason, message) = verdict;
        let before = condition_of(conditions, kind).filter(|before| before["status"] == status);
        let since = before.map_or_else(|| Value::String(self.time()), |before| before["lastTransitionTime"].clone());
        let condition = json!({
            "type": kind.to_string(),
            "status": status,
            "reason": reason,
            "message": shortened(message),
            "observedGeneration": self.report.generation,
            "lastTransitionTime": since,
        });
        match conditions.iter_mut().find(|found| found["type"] == kind.to_string()) {
            Some(found) => *found = condition,
            None => conditions.push(condition),
        }
    }

    fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// Status, reason and message of a condition.
struct Verdict(&'static str, &'static str, String);

/// What all instances say together.
enum Sum {
    Runs,
    Off,
    Waits(&'static str, String),
    Stuck(&'static str, String),
}

/// Whether a rule is accepted, and whether it is active.
fn verdicts(report: &Report) -> (Verdict, Verdict) {
    let accepted = || Verdict("True", "Accepted", "the rule can be used".to_owned());
    match &report.outcome {
        Outcome::Active => {
            let message = "the rule is in the set of rules";
            let message = match report.warnings.is_empty() {
                true => message.to_owned(),
                false => format!("{message}; warning: {}", first_message(&report.warnings)),
            };
            (accepted(), Verdict("True", "Active", message))
        }
        Outcome::Disabled => (accepted(), Verdict("False", "Disabled", "the rule is switched off".to_owned())),
        Outcome::Waiting(found) => (accepted(), Verdict("False", "KindNotServed", first_message(found))),
        Outcome::LooksUp => {
            let message = "the rule looks other objects up, which this release judges in files alone";
            (accepted(), Verdict("False", "LookupsNotSupported", message.to_owned()))
        }
        Outcome::OverQuota(most) => {
            let message = format!(
                "the namespace has more than {most} rules, and older ones come first: delete one, or raise \
                 --rules-per-namespace of the engine"
            );
            (accepted(), Verdict("False", "OverQuota", message))
        }
        Outcome::Refused(found) => {
            let message = first_message(found);
            (Verdict("False", "Refused", message), Verdict("False", "Refused", "the rule cannot be used".to_owned()))
        }
        Outcome::Shadowed(path) => {
            let message =
                format!("a rule of this name is in the file {}, and files come first: rename one", path.display());
            (Verdict("False", "NameClash", message.clone()), Verdict("False", "NameClash", message))
        }
    }
}

/// What is wrong first, and how much there is besides.
fn first_message(found: &[Diagnostic]) -> String {
    let Some(first) = found.first() else { return String::new() };
    let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
    format!("{}: {}{more}", first.field_name(), first.message)
}

fn parse_error(outcome: &Outcome) -> Option<Value> {
    let Outcome::Refused(found) = outcome else { return None };
    let (diagnostic, excerpt) = found.iter().find_map(|found| Some((found, found.excerpt.as_ref()?)))?;
    // The text begins with the place and the message, which have fields of their own.
    let caret = excerpt.text.split_once('\n').map_or("", |(_, caret)| caret);
    Some(json!({
        "line": excerpt.line,
        "column": excerpt.column,
        "message": shortened(diagnostic.message.clone()),
        "caret": caret,
    }))
}

fn set_or_remove(entry: &mut Value, key: &str, value: Option<Value>) {
    match (value, entry.as_object_mut()) {
        (Some(value), Some(entry)) => drop(entry.insert(key.to_owned(), value)),
        (None, Some(entry)) => drop(entry.remove(key)),
        (_, None) => {}
    }
}

fn condition(conditions: &Value, kind: ConditionType) -> Option<&Value> {
    condition_of(conditions.as_array()?, kind)
}

fn condition_of(conditions: &[Value], kind: ConditionType) -> Option<&Value> {
    conditions.iter().find(|condition| condition["type"] == kind.to_string())
}

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use portal_core::rule::{
        diagnostic::{Excerpt, Level, Step},
        source::Origin,
    };
    use portal_crds::Front;

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
}
