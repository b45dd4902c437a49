//! `portal check`: rules against objects in files, with the compiler and the evaluator that a cluster has.

mod cluster;
mod files;
mod judge;
mod notes;
mod progress;
mod queue;
mod report;
pub(crate) mod rules;
mod skipped;
mod unknown;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

pub(crate) use self::judge::{Failed, Found, Judgement, Location};
pub(crate) use self::report::action_name;

/// Judge objects in files by rules, without a cluster
///
/// Objects are judged as if they were created; one without a namespace is in `default`. What a rule looks up is answered
/// from the files themselves, and from those of `--cluster`. A file or a folder without any object is an error. Files of a
/// folder that hold none are counted and told: values and templates of a chart, what kustomize reads.
///
/// The kinds are those of Kubernetes, and those that CustomResourceDefinitions among the rules, the files and `--cluster` define. A kind
/// that only a rule names is judged by what the rule's `match` says. Objects of any other kind are counted and told.
///
/// Exit code 0: no violation. 1: a violation of a rule that denies. 2: something could not be read or judged.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  portal check -r rules/ manifests/\n  helm template ./chart | portal check -r rules/ -\n  \
                  portal check -r rules/ --cluster live.yaml deployment.yaml -o json\n  portal check -r rules/ --request review.json"
)]
pub(crate) struct Arguments {
    /// A file or a folder with rules; may be given several times
    #[arg(short, long, required = true, value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// Files and folders with objects; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<PathBuf>,
    /// A file or a folder with objects that lookups find and nobody judges; may be given several times
    #[arg(long, value_name = "PATH")]
    cluster: Vec<PathBuf>,
    /// The files hold AdmissionReviews, which are judged as the webhook would
    #[arg(long)]
    request: bool,
    /// How to show the result
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Fail also for violations of rules that only warn
    #[arg(long)]
    warn_as_error: bool,
    /// Fail also for objects of kinds that are not known, which no rule can judge, and for files of folders that hold no object
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Output {
    /// For people: grouped by object
    Text,
    /// For programs: one JSON object
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let judgement = arguments.judge();
    let printed = match arguments.output {
        Output::Text => report::print_text(&judgement),
        Output::Json => report::print_json(&judgement),
    };
    match printed {
        Err(unwritten) if !unwritten.is_closed() => Err(unwritten.into()),
        _ => Ok(judgement.exit_code(arguments.warn_as_error)),
    }
}

impl Arguments {
    /// What `portal test` asks: the files of a case.
    pub(crate) fn of_case(rules: PathBuf, input: PathBuf, cluster: Option<PathBuf>) -> Arguments {
        Arguments {
            rules: vec![rules],
            files: vec![input],
            cluster: cluster.into_iter().collect(),
            request: false,
            output: Output::Text,
            warn_as_error: false,
            strict: false,
        }
    }

    pub(crate) fn judge(&self) -> Judgement {
        let loaded = rules::load(&self.rules, &self.files, &self.cluster);
        judge::judge(&loaded, self)
    }
}
