//! What admission answers: from what violates rules to a decision, the words for people, and the names for machines.

mod existing;
pub mod response;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use portal_crds::{EnforcementAction, Severity};
use portal_expr::Limits;

use self::existing::Before;
use crate::{
    evaluate::{Evaluation, Failure, Means, Violation},
    event::{Event, Operation},
    lookup::{Lookup, Query},
    rule::{RuleSet, source::RuleId},
};

/// How an instance decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Policy {
    /// Whether a request is let in if a rule that would refuse it cannot be evaluated.
    pub fail_open: bool,
    /// The strictest that any rule may be.
    pub max_enforcement: EnforcementAction,
    /// Whether an object that violated a rule before may be changed in whatever the rule does not read.
    pub admit_existing: bool,
}

/// What admission answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decision {
    /// Why the request is refused, one for each reason. It is let in if there are none.
    pub denials: Vec<Reason>,
    /// What whoever asked is told beside the answer.
    pub warnings: Vec<Reason>,
    /// What is only recorded.
    pub records: Vec<Reason>,
    /// Fresh reads that were not at hand. Not empty: fetch them and decide again, because more may be excused.
    pub needs: Vec<Query>,
}

/// What a rule has to say about a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reason {
    /// The rule.
    pub rule: RuleId,
    /// How bad it is. None if the rule could not be evaluated.
    pub severity: Option<Severity>,
    /// What it is.
    pub finding: Finding,
    /// The container, for rules that run per container.
    pub container: Option<String>,
    /// In words.
    pub text: String,
}

/// What there is to say.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Finding {
    /// The object violates the rule.
    Violation,
    /// The object violates the rule as it did before, and the request changes nothing that the rule looks at.
    Existing,
    /// The rule could not be evaluated.
    Failure,
}

/// How many bytes the message of a denial may have. Clients show it whole, in a terminal.
const MAX_MESSAGE: usize = 8 << 10;

/// How many bytes the names of rules in an annotation may have. Each is a line of the audit log.
const MAX_NAMES: usize = 8 << 10;

/// How many bytes the causes of a denial may have. The API server hands them on to clients, which hardly ever look at them.
const MAX_CAUSES: usize = 32 << 10;

impl Decision {
    /// Decides about an event, by what came of evaluating these rules for it. Once the time for the request is over, nothing is excused
    /// any more because it was so before.
    pub fn of(
        evaluation: &Evaluation,
        rules: &RuleSet,
        lookup: &dyn Lookup,
        event: &Event<'_>,
        limits: &Limits,
        policy: Policy,
        is_over: &dyn Fn() -> bool,
    ) -> Decision {
        let mut decision = Decision::default();
        let mut before = Before::new(rules, Means { lookup, limits, is_over, in_words: false }, event);
        for violation in &evaluation.violations {
            let is_existing =
                policy.admit_existing && event.operation == Operation::Update && before.excuses(violation);
            let finding = if is_existing { Finding::Existing } else { Finding::Violation };
            let enforcement = match policy.capped(violation.enforcement) {
                EnforcementAction::Deny if is_existing => EnforcementAction::Warn,
                enforcement => enforcement,
            };
            decision.add(enforcement, Reason::violation(violation, finding));
        }
        for failure in &evaluation.failures {
            let enforcement = match policy.capped(failure.enforcement) {
                EnforcementAction::Deny if policy.fail_open => EnforcementAction::Warn,
                enforcement => enforcement,
            };
            decision.add(enforcement, Reason::failure(failure));
        }
        decision.needs = before.into_needs();
        decision
    }

    fn add(&mut self, enforcement: EnforcementAction, reason: Reason) {
        match enforcement {
            EnforcementAction::Deny => self.denials.push(reason),
            EnforcementAction::Warn => self.warnings.push(reason),
            EnforcementAction::Dryrun => self.records.push(reason),
        }
    }

    /// Whether the request is let in.
    pub fn is_allowed(&self) -> bool {
        self.denials.is_empty()
    }

    /// Whether no rule has anything to say.
    pub fn is_silent(&self) -> bool {
        self.denials.is_empty() && self.warnings.is_empty() && self.records.is_empty()
    }

    /// Why the request is refused, as whoever asked reads it.
    pub fn message(&self) -> String {
        if let [only] = &self.denials[..] {
            return within(&only.to_string(), MAX_MESSAGE);
        }
        let mut message = match count_rules(&self.denials) {
            1 => "a rule refuses this:".to_owned(),
            rules => format!("{rules} rules refuse this:"),
        };
        for (number, reason) in self.denials.iter().enumerate() {
            let line = format!("\n- {reason}");
            if message.len() + line.len() > MAX_MESSAGE {
                message.push_str(&format!("\n- and {} more", self.denials.len() - number));
                break;
            }
            message.push_str(&line);
        }
        message
    }

    /// The warnings, a line each.
    fn warning_lines(&self) -> Vec<String> {
        // A warning is a line in the header of an answer: the excerpt of a rule that failed has no place there.
        let first_line = |reason: &Reason| reason.to_string().lines().next().unwrap_or_default().to_owned();
        self.warnings.iter().map(first_line).collect()
    }

    /// The rules that had something to say, for the audit log of the API server: by what came of it.
    pub fn annotations(&self) -> BTreeMap<&'static str, String> {
        let existing = self.warnings.iter().filter(|reason| reason.finding == Finding::Existing);
        let all = self.denials.iter().chain(&self.warnings).chain(&self.records);
        [
            ("denied-by", named(&self.denials)),
            ("warned-by", named(&self.warnings)),
            ("recorded-by", named(&self.records)),
            ("violated-before", named(existing)),
            ("failed", named(all.filter(|reason| reason.finding == Finding::Failure))),
        ]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .collect()
    }
}

impl Policy {
    /// What is done about a violation of a rule that asks for this.
    pub fn capped(self, enforcement: EnforcementAction) -> EnforcementAction {
        let strictness = |enforcement| match enforcement {
            EnforcementAction::Dryrun => 0,
            EnforcementAction::Warn => 1,
            EnforcementAction::Deny => 2,
        };
        if strictness(enforcement) > strictness(self.max_enforcement) { self.max_enforcement } else { enforcement }
    }
}

impl Reason {
    fn violation(violation: &Violation, finding: Finding) -> Reason {
        let Violation { rule, severity, container, message, saw, .. } = violation;
        // Of a rule without a message what it saw is the message.
        let saw = saw.as_ref().filter(|saw| *saw != message);
        let text = match saw {
            Some(saw) => format!("{message} ({saw})"),
            None => message.clone(),
        };
        let (rule, container) = (rule.clone(), container.clone());
        Reason { rule, severity: Some(*severity), finding, container, text }
    }

    fn failure(failure: &Failure) -> Reason {
        Reason {
            rule: failure.rule.clone(),
            severity: None,
            finding: Finding::Failure,
            container: failure.container.clone(),
            text: failure.to_string(),
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Reason { rule, text, .. } = self;
        match self.finding {
            Finding::Violation => write!(formatter, "{rule}: {text}"),
            Finding::Existing => write!(formatter, "{rule}, as before this change: {text}"),
            Finding::Failure => write!(formatter, "{rule} could not be evaluated: {text}"),
        }
    }
}

/// A text within so many bytes, with a sign if something was cut off.
fn within(text: &str, bytes: usize) -> String {
    const SIGN: &str = "…";
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes - SIGN.len());
    format!("{}{SIGN}", &text[..end])
}

/// The names of the rules, each once, as far as an annotation holds them.
fn named<'r>(reasons: impl IntoIterator<Item = &'r Reason>) -> String {
    let mut known = BTreeSet::new();
    let rules = reasons.into_iter().map(|reason| &reason.rule).filter(|rule| known.insert(*rule));
    let rules: Vec<String> = rules.map(RuleId::to_string).collect();
    let mut bytes = 0;
    let fits = |name: &&String| {
        bytes += name.len() + 1;
        bytes <= MAX_NAMES
    };
    let count = rules.iter().take_while(fits).count();
    let mut names = rules[..count].join(",");
    if count < rules.len() {
        names.push_str(&format!(" and {} more", rules.len() - count));
    }
    names
}

fn count_rules(reasons: &[Reason]) -> usize {
    let mut rules: Vec<&RuleId> = reasons.iter().map(|reason| &reason.rule).collect();
    rules.sort();
    rules.dedup();
    rules.len()
}
