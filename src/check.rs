//! `portal check`: rules against objects in files, with the compiler and the evaluator that a cluster has.

mod cluster;
mod existing;
mod files;
mod judge;
pub(crate) mod live;
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
use portal_core::manifest::Problem;

pub(crate) use self::judge::{Failed, Found, Judgement, Location};
use self::live::{Connection, FLAG};
pub(crate) use self::report::action_name;

/// Judge objects in files by rules, without a cluster or against one
///
/// Objects are judged as if they were created; one without a namespace is in `default`. What a rule looks up is answered
/// from the files themselves, and from those of `--cluster` or, with `--live`, from a cluster. No cluster is asked otherwise. A file or a folder without any object is an error. Files of a
/// folder that hold none are counted and told: values and templates of a chart, what kustomize reads.
///
/// The kinds are those of Kubernetes, and those that CustomResourceDefinitions among the rules, the files and `--cluster` define. A kind
/// that only a rule names is judged by what the rule's `match` says. Objects of any other kind are counted and told. With `--live` the kinds are those that the cluster serves.
///
/// With `--live` and without files, what is in the cluster is judged, as audit would: every object of the kinds that the rules are about, and
/// a violation of a Deployment once, and not of its pods too.
///
/// Exit code 0: no violation. 1: a violation of a rule that denies. 2: something could not be read or judged.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  portal check -r rules/ manifests/\n  helm template ./chart | portal check -r rules/ -\n  \
                  portal check -r rules/ --cluster others.yaml deployment.yaml -o json\n  \
                  portal check -r rules/ --live manifests/\n  portal check -r rules/ --live\n  portal check -r rules/ --request review.json"
)]
pub(crate) struct Arguments {
    /// A file or a folder with rules; may be given several times
    #[arg(short, long, required = true, value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// Files and folders with objects; `-` for standard input. Without any, standard input, or with `--live` what is in the cluster
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file or a folder with objects that lookups find and nobody judges; may be given several times
    #[arg(long, value_name = "PATH")]
    cluster: Vec<PathBuf>,
    /// Let lookups find what is in the cluster of the kubeconfig, with the files laid over it. What the rules look up is listed once, which
    /// needs the verb `list`, and for fresh reads `get`. Without files its own objects are judged. Objects without a namespace are in that of the kubeconfig. Not with `--cluster`
    #[arg(long)]
    live: bool,
    /// The kubeconfig for `--live`. Unset: KUBECONFIG, ~/.kube/config or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", requires = "live")]
    kubeconfig: Option<PathBuf>,
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
            live: false,
            kubeconfig: None,
            request: false,
            output: Output::Text,
            warn_as_error: false,
            strict: false,
        }
    }

    pub(crate) fn judge(&self) -> Judgement {
        let connection = match self.connect().transpose() {
            Ok(connection) => connection,
            Err(problem) => return Judgement::failed(problem),
        };
        let served = connection.as_ref().map(Connection::kinds);
        let loaded = rules::load(&self.rules, &self.paths(), &self.cluster, served);
        judge::judge(&loaded, self, connection.as_ref())
    }

    /// The files with objects.
    fn paths(&self) -> Vec<PathBuf> {
        match self.files.is_empty() && !self.judges_cluster() {
            true => vec![PathBuf::from("-")],
            false => self.files.clone(),
        }
    }

    /// Whether what is in the cluster is judged. Reviews are in files, whatever else is there.
    fn judges_cluster(&self) -> bool {
        self.live && self.files.is_empty() && !self.request
    }

    /// The way to the cluster, if one is to be asked.
    fn connect(&self) -> Option<Result<Connection, Problem>> {
        if self.live && !self.cluster.is_empty() {
            let message = "both --live and --cluster say what is in the cluster: give --live for what is there now, or --cluster for files \
                           that stand for it. What is about to be applied belongs to the files to check";
            return Some(Err(Problem::of_file(FLAG, message)));
        }
        self.live.then(|| Connection::open(self.kubeconfig.as_deref()))
    }
}
