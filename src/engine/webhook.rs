//! The flags of the layer that judges requests.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portal_cluster::{names::is_name, rules::selector};
use portal_core::{decide::Policy, selector::Selector};
use portal_crds::EnforcementAction;
use portal_engine::{
    admission::{
        authors::AuthorCheck,
        judge::JudgeSettings,
        limits::ServerLimits,
        tls::{Clients, Files},
    },
    run::AdmissionSettings,
    sinks::DecisionLog,
};
use portal_expr::Limits;

#[derive(Debug, Args)]
pub(crate) struct WebhookArguments {
    /// The certificate of the webhook, in PEM, with those that lead to its authority. The file is followed
    #[arg(long, value_name = "FILE", env = "PORTAL_TLS_CERT")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM. The file is followed
    #[arg(long, value_name = "FILE", env = "PORTAL_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// Answer only clients that show a certificate of these authorities, in PEM: an API server that was told to show one
    #[arg(long, value_name = "FILE", env = "PORTAL_CLIENT_CA")]
    client_ca: Option<PathBuf>,

    /// The common name or a DNS name that the certificate of a client must have
    #[arg(long, value_name = "NAME", env = "PORTAL_CLIENT_NAME", default_value = "kube-apiserver")]
    client_name: String,

    /// Where the API server reaches the webhook
    #[arg(long, value_name = "ADDRESS", env = "PORTAL_ADMISSION_LISTEN", default_value = "0.0.0.0:8443")]
    admission_listen: SocketAddr,

    /// Let a request in, with a warning, if a rule that would refuse it cannot be evaluated
    #[arg(long, env = "PORTAL_FAIL_OPEN")]
    fail_open: bool,

    /// The strictest that any rule may be
    #[arg(long, value_name = "ACTION", env = "PORTAL_MAX_ENFORCEMENT", default_value = "deny")]
    max_enforcement: Enforcement,

    /// What happens to a change of an object that violated a rule before, if nothing changes that the rule reads
    #[arg(long, value_name = "ANSWER", env = "PORTAL_EXISTING_VIOLATIONS", default_value = "admit")]
    existing_violations: Existing,

    /// Judge only what is in namespaces whose labels fit this selector, such as `team=payments`, and what is in no namespace
    #[arg(long, value_name = "SELECTOR", env = "PORTAL_NAMESPACE_SELECTOR", default_value = "")]
    namespace_selector: String,

    /// Leave these namespaces alone, beside kube-system, kube-public, kube-node-lease and the engine's own. Names with commas between
    #[arg(long, value_name = "NAMES", env = "PORTAL_EXCLUDE_NAMESPACES", value_delimiter = ',')]
    exclude_namespaces: Vec<String>,

    /// How many milliseconds a request may take. Rules whose turn comes later fail. Has to be less than the timeout
    /// of the webhook configuration
    #[arg(long, value_name = "MILLISECONDS", env = "PORTAL_ADMISSION_DEADLINE", default_value_t = 3000)]
    admission_deadline: u64,

    /// How many steps one rule may take for one object
    #[arg(long, value_name = "STEPS", env = "PORTAL_RULE_STEPS", default_value_t = Limits::default().fuel)]
    rule_steps: u64,

    /// How many connections the webhook has at a time
    #[arg(long, value_name = "NUMBER", env = "PORTAL_ADMISSION_CONNECTIONS", default_value_t = ServerLimits::default().connections)]
    admission_connections: usize,

    /// How many MiB the bodies of all requests may hold together
    #[arg(long, value_name = "MIB", env = "PORTAL_ADMISSION_MEMORY", default_value_t = ServerLimits::default().bytes_in_flight >> 20)]
    admission_memory: usize,

    /// For how many seconds requests are still answered after SIGTERM: only then do others learn that this replica goes
    #[arg(long, value_name = "SECONDS", env = "PORTAL_ADMISSION_DRAIN", default_value_t = ServerLimits::default().drain.as_secs())]
    admission_drain: u64,

    /// What happens if whoever writes a rule may not read what the rule reads, or do what it does
    #[arg(long, value_name = "ANSWER", env = "PORTAL_AUTHOR_CHECK", default_value = "warn")]
    author_check: Authors,

    /// The account that grants what rules need, such as `system:serviceaccount:portal-operator:portal-operator`, or `nobody` if somebody has
    /// to grant it by hand. Whoever writes a rule is told if neither the engine nor this account may do what the rule needs
    #[arg(long, value_name = "ACCOUNT", env = "PORTAL_GRANTER")]
    granter: Option<String>,

    /// Which decisions of admission are printed on standard output, as lines of JSON. What `--audit` finds is printed too, unless this is
    /// `off`
    #[arg(long, value_name = "WHICH", env = "PORTAL_DECISION_LOG", default_value = "rules")]
    decision_log: Which,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Enforcement {
    /// Rules refuse what they say
    Deny,
    /// Rules that would refuse warn
    Warn,
    /// Rules only record
    Dryrun,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Existing {
    /// It is let in with a warning
    Admit,
    /// It is refused as if it were new
    Deny,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Authors {
    /// They are warned
    Warn,
    /// The rule is refused, and so is one that cannot be checked
    Enforce,
    /// Nobody checks
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// None
    Off,
    /// Those in which a rule had something to say, or was passed by
    Rules,
    /// All
    All,
}

impl From<Enforcement> for EnforcementAction {
    fn from(enforcement: Enforcement) -> EnforcementAction {
        match enforcement {
            Enforcement::Deny => EnforcementAction::Deny,
            Enforcement::Warn => EnforcementAction::Warn,
            Enforcement::Dryrun => EnforcementAction::Dryrun,
        }
    }
}

/// The selector that a flag says, as Kubernetes writes them.
pub(crate) fn labels(flag: &str, text: &str) -> anyhow::Result<LabelSelector> {
    let selector = selector::parse(text);
    selector
        .map(Into::into)
        .map_err(|error| anyhow!("--{flag} `{text}` cannot be read: {error}; write it as for kubectl"))
}

/// The namespaces that a flag names.
pub(crate) fn namespaces(flag: &str, names: &[String]) -> anyhow::Result<BTreeSet<String>> {
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => {
            bail!("--{flag}: `{name}` is no name of a namespace, and patterns are for `match.namespaces` of a rule")
        }
        None => Ok(names.iter().cloned().collect()),
    }
}

impl WebhookArguments {
    /// Whether what audit finds is printed.
    pub(crate) fn logs_findings(&self) -> bool {
        !matches!(self.decision_log, Which::Off)
    }

    /// What a rule may take for one object, whoever asks it.
    pub(crate) fn evaluation_limits(&self) -> Limits {
        Limits { fuel: self.rule_steps, ..Limits::default() }
    }

    /// The namespaces that the instance serves, by their labels.
    pub(crate) fn namespaces(&self) -> anyhow::Result<Selector> {
        let selector = labels("namespace-selector", &self.namespace_selector)?;
        Selector::of(&selector).map_err(anyhow::Error::msg)
    }

    /// How requests are judged by an engine in this namespace.
    pub(crate) fn settings(
        &self,
        own_namespace: &str,
        peer_accounts: Vec<String>,
    ) -> anyhow::Result<AdmissionSettings> {
        let (Some(certificate), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else {
            bail!("--admission needs a certificate: give --tls-cert FILE and --tls-key FILE");
        };
        let namespace_selector = self.namespaces()?;
        let exclude_namespaces = namespaces("exclude-namespaces", &self.exclude_namespaces)?;
        let clients = self.client_ca.clone().map(|authority| Clients { authority, name: self.client_name.clone() });
        let limits = ServerLimits::default();
        let policy = Policy {
            fail_open: self.fail_open,
            max_enforcement: self.max_enforcement.into(),
            admit_existing: matches!(self.existing_violations, Existing::Admit),
        };
        Ok(AdmissionSettings {
            listen: self.admission_listen,
            files: Files { certificate, key, clients },
            limits: ServerLimits {
                connections: self.admission_connections.max(1),
                bytes_in_flight: (self.admission_memory << 20).max(limits.body_bytes),
                drain: Duration::from_secs(self.admission_drain),
                ..limits
            },
            judge: JudgeSettings {
                policy,
                limits: self.evaluation_limits(),
                deadline: Duration::from_millis(self.admission_deadline),
                namespace_selector,
                exclude_namespaces: exclude_namespaces.into_iter().chain([own_namespace.to_owned()]).collect(),
            },
            author_check: match self.author_check {
                Authors::Warn => AuthorCheck::Warn,
                Authors::Enforce => AuthorCheck::Enforce,
                Authors::Off => AuthorCheck::Off,
            },
            granter: self.granter.clone(),
            peer_accounts,
            decision_log: match self.decision_log {
                Which::Off => DecisionLog::Off,
                Which::Rules => DecisionLog::Rules,
                Which::All => DecisionLog::All,
            },
        })
    }
}
