//! Go's side of the race: the real expr-lang in a process of its own, which waits between its rounds.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::measure::MEASUREMENT;
use crate::rules::Rule;

/// The process. It ends when its input does.
pub struct Go {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

#[derive(Serialize)]
struct Race<'a> {
    rules: Vec<Entry<'a>>,
    /// How long each rule is measured in a round.
    nanoseconds: u128,
}

#[derive(Serialize)]
struct Entry<'a> {
    expr: &'a str,
    envs: Vec<&'a Json>,
}

#[derive(Deserialize)]
struct Verdicts {
    verdicts: Vec<Vec<bool>>,
}

#[derive(Deserialize)]
struct Round {
    nanoseconds: Vec<f64>,
}

impl Go {
    /// Starts it with rules and the environments of each. The answers are the verdicts, in the same order.
    pub fn start<'a>(
        oracle: &Path,
        rules: impl Iterator<Item = (&'a Rule, Vec<&'a Json>)>,
    ) -> std::io::Result<(Self, Vec<Vec<bool>>)> {
        let mut process = Command::new(oracle).arg("bench").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take().expect("it was asked to be piped");
        let output = BufReader::new(process.stdout.take().expect("it was asked to be piped"));
        let mut go = Self { process, input, output };
        let rules = rules.map(|(rule, envs)| Entry { expr: rule.go, envs }).collect();
        let race = serde_json::to_string(&Race { rules, nanoseconds: MEASUREMENT.as_nanos() })?;
        let verdicts: Verdicts = go.ask(&race)?;
        Ok((go, verdicts.verdicts))
    }

    /// Nanoseconds per evaluation of each rule.
    pub fn round(&mut self) -> std::io::Result<Vec<f64>> {
        self.ask("round").map(|round: Round| round.nanoseconds)
    }

    fn ask<T: for<'de> Deserialize<'de>>(&mut self, question: &str) -> std::io::Result<T> {
        writeln!(self.input, "{question}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
