//! What a report says of an object.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use portal_core::rule::Rule;
use portal_crds::{EnforcementAction, Severity};

use super::model::{RESULT_ID, Reference, ReportResult, ResultId, Time, Word};
use crate::{
    findings::{Finding, Offender, Pass},
    outcomes::{Found, Order, Outcome, RuleOutcome},
};

/// Who says so.
pub(super) const SOURCE: &str = "portal";

/// The properties of what only admission can tell: that it has, and by which version of the rule.
const MODE: &str = "mode";
const ADMISSION: &str = "admission";
const RULE_VERSION: &str = "ruleVersion";

/// How long a message may be, and what the rule saw. Of a longer one this much is told.
const MESSAGE_LENGTH: usize = 2048;
const SAW_LENGTH: usize = 1024;

/// The message of an object that meets a rule.
const MET: &str = "The rule is met.";

/// How long the name of a container may be that is told as it is. The API server allows 63 in a pod; of custom kinds nobody knows.
const CONTAINER_LENGTH: usize = 253;

/// What is said of an object that meets a rule.
pub(super) const PASS: &str = "pass";

/// The results of an object, always in the same order: replicas may have their rules in another one.
pub(super) fn results(offender: &Offender, instance: &str) -> Vec<ReportResult> {
    let mut findings: Vec<&Finding> = offender.findings.iter().collect();
    let key = |finding: &&Finding| (finding.rule.id.clone(), finding.container.clone(), finding.is_failure);
    findings.sort_by_cached_key(key);
    // Two of one identity could not be told apart by anybody.
    findings.dedup_by_key(|finding| key(finding));
    let mut passes: Vec<&Pass> = offender.passes.iter().collect();
    passes.sort_by(|one, other| one.rule.id.cmp(&other.rule.id));
    let passes = passes.into_iter().map(|pass| met(offender, pass, instance));
    findings.into_iter().map(|finding| result(offender, finding, instance)).chain(passes).collect()
}

fn result(offender: &Offender, finding: &Finding, instance: &str) -> ReportResult {
    let Finding { rule, container, is_failure, message, saw, since } = finding;
    let outcome = match (is_failure, rule.enforcement) {
        (true, _) => "error",
        (false, EnforcementAction::Deny | EnforcementAction::Dryrun) => "fail",
        (false, EnforcementAction::Warn) => "warn",
    };
    let mut told = of_rule(offender, rule, instance, id(instance, offender, finding), outcome, *since);
    told.message = short(message, MESSAGE_LENGTH);
    let mut property = |name: &'static str, value: String| _ = told.properties.insert(Word::Borrowed(name), value);
    if let Some(container) = container {
        property("container", short(container, CONTAINER_LENGTH));
    }
    if let Some(saw) = saw {
        property("saw", short(saw, SAW_LENGTH));
    }
    if rule.awaits_outcomes() {
        property(MODE, ADMISSION.to_owned());
        property(RULE_VERSION, rule.version.clone());
    }
    told
}

/// That an object meets a rule, with all its containers.
fn met(offender: &Offender, Pass { rule, since }: &Pass, instance: &str) -> ReportResult {
    let id = id_of(instance, offender, rule, None, PASS);
    ReportResult { message: MET.to_owned(), ..of_rule(offender, rule, instance, id, PASS, *since) }
}

/// What does not depend on what was found.
fn of_rule(
    offender: &Offender,
    rule: &Rule,
    instance: &str,
    id: ResultId,
    outcome: &'static str,
    since: Timestamp,
) -> ReportResult {
    let is_dryrun = rule.enforcement == EnforcementAction::Dryrun;
    let severity = match rule.severity {
        Severity::Critical => "critical",
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
        Severity::Info => "info",
    };
    let mut properties = BTreeMap::new();
    let mut property = |name: &'static str, value: String| _ = properties.insert(Word::Borrowed(name), value);
    property(RESULT_ID, format!("{id:032x}"));
    property("instance", instance.to_owned());
    if is_dryrun {
        property("enforcementAction", "dryrun".to_owned());
    }
    ReportResult {
        source: SOURCE.into(),
        policy: rule.id.to_string(),
        category: rule.category.as_deref().map(str::to_owned),
        severity: severity.into(),
        timestamp: Time { seconds: since.as_second(), nanos: since.subsec_nanosecond() },
        result: outcome.into(),
        scored: !is_dryrun,
        resources: vec![Reference {
            api_version: offender.api_version.clone(),
            kind: offender.kind.clone(),
            namespace: offender.namespace.clone(),
            name: offender.name.clone(),
            uid: offender.uid.clone(),
        }],
        message: String::new(),
        properties,
    }
}

/// What results say that only admission can tell: whoever writes reports next takes it from there.
pub(super) fn outcomes(results: &[ReportResult]) -> Vec<Outcome> {
    let mut outcomes: BTreeMap<(&str, &str), Outcome> = BTreeMap::new();
    for result in results {
        let property = |name: &str| result.properties.get(name);
        let (Some(version), [object]) = (property(RULE_VERSION), &*result.resources) else { continue };
        if property(MODE).is_none_or(|mode| mode != ADMISSION) || object.uid.is_empty() {
            continue;
        }
        let found = Found {
            container: property("container").cloned(),
            failed: result.result == "error",
            message: result.message.clone(),
            saw: property("saw").cloned(),
        };
        let Time { seconds, nanos } = result.timestamp;
        let time = seconds.saturating_mul(1000).saturating_add(i64::from(nanos / 1_000_000));
        let outcome = outcomes.entry((&object.uid, &result.policy)).or_insert_with(|| Outcome {
            uid: object.uid.clone(),
            order: Order { changed: 0, time },
            rules: vec![RuleOutcome { rule: result.policy.clone(), version: version.clone(), findings: Vec::new() }],
        });
        outcome.rules.iter_mut().for_each(|said| said.findings.push(found.clone()));
    }
    outcomes.into_values().collect()
}

/// What tells the result of a finding from others, in every process and every release. That a rule could not say is another result
/// than that it is violated.
fn id(instance: &str, offender: &Offender, finding: &Finding) -> ResultId {
    let what = if finding.is_failure { "error" } else { "violation" };
    id_of(instance, offender, &finding.rule, finding.container.as_deref(), what)
}

fn id_of(instance: &str, offender: &Offender, rule: &Rule, container: Option<&str>, what: &str) -> ResultId {
    let mut hash = Fnv::default();
    hash.text(instance);
    hash.text(&rule.id.to_string());
    hash.text(&offender.uid);
    hash.text(container.unwrap_or_default());
    hash.text(if container.is_some() { "container" } else { "object" });
    hash.text(what);
    hash.0
}

/// The ids of the results of an object.
pub(super) fn ids(offender: &Offender, instance: &str) -> impl Iterator<Item = ResultId> {
    let passes = offender.passes.iter().map(move |pass| id_of(instance, offender, &pass.rule, None, PASS));
    offender.findings.iter().map(move |finding| id(instance, offender, finding)).chain(passes)
}

/// The slot that an object has for ever: all that is told of it is in the report of this slot. Reports that hold more slots hold
/// neighbours.
pub(super) fn slot(uid: &str) -> u8 {
    let mut hash = Fnv::default();
    hash.text(uid);
    // The last bytes of a text change the upper bits of this hash least.
    let folded = (hash.0 >> 64) as u64 ^ hash.0 as u64;
    (folded ^ folded >> 32 ^ folded >> 16 ^ folded >> 8) as u8
}

/// FNV-1a with 128 bits, which is the same everywhere and for ever.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    /// A text and its end.
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

/// A text, or as much of it as may be told.
fn short(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let ellipsis = '…';
    let end = text.floor_char_boundary(length - ellipsis.len_utf8());
    format!("{}{ellipsis}", &text[..end])
}

/// How long something is in JSON.
pub(super) fn length(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and neither can writing what reports are made of.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use expect_test::expect;

    use super::super::testing::{offender, rules, rules_with};
    use super::*;

    #[test]
    fn a_result_says_what_is_wrong_with_which_object() {
        let rules = rules(&[("deny", "deny"), ("warn", "warn"), ("dry", "dryrun")]);
        let mut offender = offender("u1", Some("shop"), &[(&rules["deny"], "is privileged"), (&rules["warn"], "w")]);
        offender.findings[0].container = Some("app".to_owned());
        offender.findings[0].saw = Some("privileged is true".to_owned());
        let mut more =
            super::super::testing::offender("u1", Some("shop"), &[(&rules["dry"], "d"), (&rules["deny"], "e")]);
        more.findings[1].is_failure = true;
        offender.findings.extend(more.findings);
        let told = results(&offender, "stable");
        let outcomes: Vec<_> = told.iter().map(|result| (&*result.policy, &*result.result, result.scored)).collect();
        let expected =
            [("deny", "error", true), ("deny", "fail", true), ("dry", "fail", false), ("warn", "warn", true)];
        assert_eq!(outcomes, expected);
        expect![[r#"
            {
              "source": "portal",
              "policy": "deny",
              "category": "Pod Security",
              "severity": "high",
              "timestamp": {
                "seconds": 1700000000,
                "nanos": 0
              },
              "result": "fail",
              "scored": true,
              "resources": [
                {
                  "apiVersion": "v1",
                  "kind": "Pod",
                  "namespace": "shop",
                  "name": "u1",
                  "uid": "u1"
                }
              ],
              "message": "is privileged",
              "properties": {
                "container": "app",
                "instance": "stable",
                "resultID": "cf82e59dcbfcff3f9afe3f9e766508a5",
                "saw": "privileged is true"
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&told[1]).unwrap());
        assert_eq!(told[2].properties["enforcementAction"], "dryrun");
    }

    #[test]
    fn an_object_that_meets_a_rule_has_a_result_of_its_own() {
        let rules = rules(&[("deny", "deny"), ("dry", "dryrun")]);
        let mut offender = offender("u1", Some("shop"), &[(&rules["deny"], "is privileged")]);
        let since = offender.findings[0].since;
        offender.passes = vec![Pass { rule: Arc::clone(&rules["dry"]), since }];
        let told = results(&offender, "stable");
        let outcomes: Vec<_> = told.iter().map(|result| (&*result.policy, &*result.result, result.scored)).collect();
        assert_eq!(outcomes, [("deny", "fail", true), ("dry", "pass", false)]);
        let (told_ids, ids): (Vec<_>, Vec<_>) =
            (told.iter().filter_map(ReportResult::id).collect(), ids(&offender, "stable").collect());
        assert_eq!(told_ids, ids);
        // It is another result than that it is violated.
        let mut violated = offender.clone();
        violated.findings[0].rule = Arc::clone(&rules["dry"]);
        assert_ne!(results(&violated, "stable")[0].id(), told[1].id());
        expect![[r#"
            {
              "source": "portal",
              "policy": "dry",
              "category": "Pod Security",
              "severity": "high",
              "timestamp": {
                "seconds": 1700000000,
                "nanos": 0
              },
              "result": "pass",
              "scored": false,
              "resources": [
                {
                  "apiVersion": "v1",
                  "kind": "Pod",
                  "namespace": "shop",
                  "name": "u1",
                  "uid": "u1"
                }
              ],
              "message": "The rule is met.",
              "properties": {
                "enforcementAction": "dryrun",
                "instance": "stable",
                "resultID": "102d76367acdcdff07d9354df096dd57"
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&told[1]).unwrap());
    }

    #[test]
    fn what_only_admission_can_tell_is_read_from_reports_as_it_was_written() {
        let rules = rules_with(&[("warns", "warn"), ("audited", "warn")], "mode: [admission]");
        let audited = super::super::testing::rules(&[("audited", "warn")]);
        let warns = &rules["warns"];
        let mut offender = offender("u1", Some("shop"), &[(warns, "one"), (warns, "two"), (&audited["audited"], "x")]);
        offender.findings[0].container = Some("app".to_owned());
        offender.findings[0].saw = Some("tty is true".to_owned());
        offender.findings[1].container = Some("side".to_owned());
        offender.findings[1].is_failure = true;
        let told = results(&offender, "stable");
        let modes = told.iter().filter(|result| result.properties.contains_key(MODE)).count();
        assert_eq!((told.len(), modes), (3, 2));
        let found = |container: &str, failed, message: &str, saw: Option<&str>| Found {
            container: Some(container.to_owned()),
            failed,
            message: message.to_owned(),
            saw: saw.map(str::to_owned),
        };
        let findings = vec![found("app", false, "one", Some("tty is true")), found("side", true, "two", None)];
        let said = RuleOutcome { rule: "warns".to_owned(), version: warns.version.clone(), findings };
        let order = Order { changed: 0, time: 1_700_000_000_000 };
        assert_eq!(outcomes(&told), [Outcome { uid: "u1".to_owned(), order, rules: vec![said] }]);
    }

    #[test]
    fn a_result_keeps_its_id_whatever_else_changes() {
        let rules = rules(&[("a", "deny"), ("b", "deny")]);
        let one = offender("u1", Some("shop"), &[(&rules["a"], "one")]);
        let mut all = HashSet::new();
        let mut id_of = |offender: &Offender, instance: &str| {
            let id = results(offender, instance)[0].id().unwrap();
            assert_eq!(ids(offender, instance).collect::<Vec<_>>(), [id]);
            (id, all.insert(id))
        };
        let (id, _) = id_of(&one, "stable");
        let mut other = one.clone();
        other.findings[0].message = "two".to_owned();
        other.findings[0].since = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(id_of(&other, "stable"), (id, false));
        let with = |change: fn(&mut Offender)| {
            let mut other = one.clone();
            change(&mut other);
            other
        };
        assert!(id_of(&one, "canary").1);
        assert!(id_of(&with(|offender| offender.uid.push('x')), "stable").1);
        assert!(id_of(&with(|offender| offender.findings[0].container = Some(String::new())), "stable").1);
        assert!(id_of(&with(|offender| offender.findings[0].container = Some("a".to_owned())), "stable").1);
        assert!(id_of(&with(|offender| offender.findings[0].is_failure = true), "stable").1);
        assert!(id_of(&offender("u1", Some("shop"), &[(&rules["b"], "one")]), "stable").1);
    }

    #[test]
    fn texts_of_any_length_are_told_in_part() {
        let rules = rules(&[("a", "deny")]);
        let long = "ä".repeat(1 << 20);
        let mut offender = offender("u1", None, &[(&rules["a"], &long)]);
        (offender.findings[0].container, offender.findings[0].saw) = (Some(long.clone()), Some(long));
        let result = &results(&offender, "stable")[0];
        assert!(result.message.len() <= MESSAGE_LENGTH && result.message.ends_with("ä…"));
        assert!(length(result) < 5_000, "{}", length(result));
    }

    #[test]
    fn objects_are_spread_evenly() {
        let mut counts = [0_u32; 256];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..256 * 100 {
            let uid = format!(
                "{:08x}-{:04x}-4{:03x}-8000-{:012x}",
                random.u32(..),
                random.u16(..),
                random.u16(..4096),
                random.u32(..)
            );
            counts[usize::from(slot(&uid))] += 1;
        }
        // Of 25,600 that are thrown at random, no slot gets twice its share.
        assert!(counts.iter().all(|count| (40..200).contains(count)), "{counts:?}");
    }
}
