//! The oracle: a program that holds the real expr-lang. It is asked in batches, for each start of it costs more than a
//! thousand answers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use portal_test_kit::cache::Cache;
use portal_test_kit::expr_oracle;
use serde_json::Value;

pub(super) struct Oracle {
    program: PathBuf,
    /// Where the source of the real expr-lang lies, with the expressions that come with it.
    modules: PathBuf,
}

/// What the real parser makes of an expression.
pub(super) enum Parsed {
    Tree { printed: String, places: Vec<usize> },
    Refused { message: String, line: u64, column: u64 },
}

impl Oracle {
    pub(super) fn find() -> Self {
        let cache = Cache::open().unwrap();
        Self { program: expr_oracle().find(&cache).unwrap(), modules: cache.folder("go/mod").unwrap() }
    }

    /// The expressions of a corpus that comes with the real expr-lang.
    pub(super) fn corpus(&self, name: &str) -> Vec<String> {
        let lines = self.run(&["corpus", name], String::new());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn parse(&self, expressions: &[String]) -> Vec<Parsed> {
        let questions: String =
            expressions.iter().map(|expression| format!("{}\n", Value::from(&**expression))).collect();
        let answers: Vec<Parsed> =
            self.run(&["parse"], questions).lines().map(|line| parsed(&serde_json::from_str(line).unwrap())).collect();
        assert_eq!(answers.len(), expressions.len(), "the oracle answers every question");
        answers
    }

    /// What the real expr-lang makes of expressions, each on one line, with the names of this file.
    pub(super) fn answer(&self, environment: &Path, expressions: &[String]) -> Vec<Value> {
        let environment = environment.to_str().unwrap();
        let answers = self.run(&["answer", environment], expressions.join("\n") + "\n");
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the real expr-lang makes of lines with an expression and an environment each.
    pub(super) fn answer_lines(&self, questions: String) -> Vec<Value> {
        self.run(&["answer", "-"], questions).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn run(&self, arguments: &[&str], input: String) -> String {
        // What has no timezone is in UTC here, wherever the test runs.
        ask(Command::new(&self.program).args(arguments).env("GOMODCACHE", &self.modules).env("TZ", "UTC"), input)
    }
}

/// What `portal eval` makes of lines in strict mode, in the oracle's form. The environment is as `--env` takes it.
pub(super) fn ours(environment: &str, lines: String) -> Vec<Value> {
    let arguments = ["eval", "--strict", "--lines", "--env", environment];
    let output = ask(Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments), lines);
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Gives a program its questions, a line each, and returns its answers.
pub(super) fn ask(command: &mut Command, input: String) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It answers while it is asked, and would wait for somebody to read.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?} failed: {}", output.status);
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn parsed(answer: &Value) -> Parsed {
    if let Some(printed) = answer["ast"].as_str() {
        let places =
            answer["places"].as_array().unwrap().iter().map(|place| place.as_u64().unwrap() as usize).collect();
        return Parsed::Tree { printed: printed.to_owned(), places };
    }
    Parsed::Refused {
        message: answer["err"].as_str().unwrap().to_owned(),
        line: answer["line"].as_u64().unwrap_or_default(),
        column: answer["col"].as_u64().unwrap_or_default(),
    }
}
