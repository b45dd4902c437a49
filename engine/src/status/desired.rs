//! What the status of a rule should be, from what it is and what has become of the rule. Pure.
//!
//! Works on JSON and touches its own fields alone: what an operator, another instance or a newer engine wrote stays.

use jiff::Timestamp;
use portal_core::rule::diagnostic::Diagnostic;
use portal_crds::ConditionType;
use serde_json::{Map, Value, json};

use portal_cluster::rules::{
    Outcome, Report,
    feeds::Lack,
    status::{condition as condition_of, parts},
};

use super::standing::Standing;

#[cfg(test)]
mod tests;

/// Longer messages are cut: a status is read by people, and stored with every rule.
const MAX_MESSAGE: usize = 1024;

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
        if let (Outcome::Active, Standing::NotAudited(text)) = (&report.outcome, self.standing) {
            active = Verdict("True", "NotAudited", format!("{}; {text}", active.2));
        }
        let is_true = active.0 == "True";
        self.set(&mut conditions, ConditionType::Accepted, accepted);
        self.set(&mut conditions, ConditionType::Active, active);
        if condition_of(&conditions, ConditionType::PermissionGranted).is_none() {
            let message = "nobody has decided yet: the operator does when it can load the rule and its kinds are known"
                .to_owned();
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
                Some("CacheSyncing") => waits = Some(("CacheSyncing", say(active))),
                // What the operator has refused waits for somebody.
                Some("PermissionPending") => {
                    let granted = told(ConditionType::PermissionGranted).filter(|found| is_current(Some(found)));
                    match granted.filter(|found| found["status"] == "False") {
                        Some(refused) => return Sum::Stuck("PermissionRefused", say(Some(refused))),
                        None => waits = Some(("PermissionPending", say(active))),
                    }
                }
                Some("OverQuota") => return Sum::Stuck("OverQuota", say(active)),
                Some("LayerDisabled") => return Sum::Stuck("LayerDisabled", say(active)),
                Some("NotAudited") if !is_active => return Sum::Stuck("NotAudited", say(active)),
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
        Outcome::Syncing(Lack { plurals, refusal }) => {
            let until = "until then the version of the rule before this one is in force, if there was one";
            let plurals = plurals.join(", ");
            let (reason, message) = match refusal {
                Some(refusal) => ("PermissionPending", format!("the rule looks up {plurals}: {refusal}; {until}")),
                None => ("CacheSyncing", format!("the rule looks up {plurals}, which are being listed; {until}")),
            };
            (accepted(), Verdict("False", reason, message))
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

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
        message.push('…');
    }
    message
}
