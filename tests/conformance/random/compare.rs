//! Comparison of answers: the same, different for a reason that has a name, or wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::thread;

use serde_json::{Value, json};

use super::super::oracle::{Oracle, ours};
use super::super::values::same;
use super::differences::reason;
use super::expressions::Question;

/// Both answers to a question.
pub(super) struct Answers {
    pub(super) real: Value,
    pub(super) ours: Value,
}

/// What comparing came to.
#[derive(Default)]
pub(super) struct Report {
    pub(super) asked: usize,
    /// How many have a value.
    pub(super) evaluated: usize,
    /// Functions and operators that came to a value.
    pub(super) heads: BTreeSet<String>,
    pub(super) different: BTreeMap<&'static str, usize>,
    /// The ones that are different without a reason.
    pub(super) wrong: Vec<Question>,
}

/// What is wrong with an answer of ours, in a word.
pub(super) fn wrong(question: &Question, answers: &Answers) -> Option<&'static str> {
    let Answers { real, ours } = answers;
    if same(real, ours) || reason(&question.expression.to_string(), real, ours).is_some() {
        return None;
    }
    let fields = [("ast", "print"), ("phase", "phase"), ("val", "value")];
    Some(fields.iter().find(|(field, _)| real[field] != ours[field]).map_or("place", |(_, what)| what))
}

/// Asks both.
pub(super) fn ask(oracle: &Oracle, questions: &[Question]) -> Vec<Answers> {
    let mut lines = String::new();
    for question in questions {
        let line = json!({"expr": question.expression.to_string(), "env": question.environment});
        writeln!(lines, "{line}").unwrap();
    }
    let (real, ours) = thread::scope(|scope| {
        let ours = scope.spawn(|| ours("-", lines.clone()));
        (oracle.answer_lines(lines.clone()), ours.join().unwrap())
    });
    assert_eq!((real.len(), ours.len()), (questions.len(), questions.len()), "every question has an answer");
    real.into_iter().zip(ours).map(|(real, ours)| Answers { real, ours }).collect()
}

impl Report {
    pub(super) fn add(&mut self, questions: Vec<Question>, answers: &[Answers]) {
        for (question, answers) in questions.into_iter().zip(answers) {
            let Answers { real, ours } = answers;
            self.asked += 1;
            if !real["val"].is_null() {
                self.evaluated += 1;
                self.heads.extend(question.head.clone());
            }
            if wrong(&question, answers).is_some() {
                self.wrong.push(question);
            } else if !same(real, ours)
                && let Some(reason) = reason(&question.expression.to_string(), real, ours)
            {
                *self.different.entry(reason).or_default() += 1;
            }
        }
    }

    /// The counts, for people and for comparing.
    pub(super) fn table(&self) -> String {
        let different: usize = self.different.values().sum();
        let same = self.asked - different - self.wrong.len();
        let mut table = format!("{} asked, {} with a value, {same} the same\n", self.asked, self.evaluated);
        for (reason, count) in &self.different {
            writeln!(table, "{count} differ: {reason}").unwrap();
        }
        table
    }
}
