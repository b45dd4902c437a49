//! The flags of the layer that judges what is in the cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum, value_parser};
use portal_core::selector::Selector;
use portal_engine::{
    audit::{Allowance, AuditSettings},
    sinks::{
        alertmanager::{Address, AlertmanagerSettings},
        report,
    },
};
use portal_expr::Limits;

/// How what is in the cluster is judged.
#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Judge what is in the cluster, whenever it changes
    #[arg(long, env = "PORTAL_AUDIT")]
    pub(super) audit: bool,

    /// How many objects audit judges at a time
    #[arg(long, value_name = "NUMBER", env = "PORTAL_AUDIT_WORKERS", default_value_t = 2, value_parser = value_parser!(u16).range(1..=64))]
    audit_workers: u16,

    /// After how many seconds audit judges every object again although nothing has changed
    #[arg(long, value_name = "SECONDS", env = "PORTAL_AUDIT_RESYNC", default_value_t = 600, value_parser = value_parser!(u64).range(1..=31_536_000))]
    audit_resync: u64,

    /// How many lookups of rules audit remembers, to judge an object again when what a rule found for it changes. A change of what
    /// was forgotten is noticed at `--audit-resync`
    #[arg(long, value_name = "NUMBER", env = "PORTAL_LOOKUP_DEPENDENCIES", default_value_t = 500_000)]
    lookup_dependencies: usize,

    /// How often a rule may judge an object again within `--lookup-window` because what it looks up has changed. What is beyond that waits for
    /// the end of the window
    #[arg(long, value_name = "NUMBER", env = "PORTAL_LOOKUP_REEVALUATIONS", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    lookup_reevaluations: u32,

    /// How many seconds the window of `--lookup-reevaluations` has
    #[arg(long, value_name = "SECONDS", env = "PORTAL_LOOKUP_WINDOW", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    lookup_window: u64,

    /// Which kind of report says what audit finds, by its API group
    #[arg(long, value_name = "GROUP", env = "PORTAL_POLICY_REPORTS", default_value = "wgpolicyk8s.io")]
    policy_reports: Group,

    /// Say in reports also which rules objects meet. There is a result for each object and rule
    #[arg(long, env = "PORTAL_POLICY_REPORT_PASSES")]
    policy_report_passes: bool,

    /// Send the alerts of rules to these Alertmanagers, such as `http://alertmanager.monitoring:9093`, with commas between. Each of them
    /// is sent every alert
    #[arg(long, value_name = "URLS", env = "PORTAL_ALERTMANAGER_URLS", value_delimiter = ',')]
    alertmanager_urls: Vec<String>,

    /// A folder with `username` and `password`, or `token`, and `ca.crt`, for all of these Alertmanagers. The files are followed
    #[arg(long, value_name = "DIR", env = "PORTAL_ALERTMANAGER_CREDENTIALS")]
    alertmanager_credentials: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Group {
    #[value(name = "wgpolicyk8s.io")]
    PolicyReport,
    #[value(name = "openreports.io")]
    OpenReports,
    None,
}

impl AuditArguments {
    /// Which reports audit writes.
    pub(super) fn reports(&self) -> Option<report::Api> {
        match self.policy_reports {
            Group::PolicyReport => Some(report::Api::PolicyReport),
            Group::OpenReports => Some(report::Api::OpenReports),
            Group::None => None,
        }
    }

    /// Where alerts are sent.
    pub(super) fn alerts(&self, instance: &str) -> anyhow::Result<Option<AlertmanagerSettings>> {
        let addresses = self.alertmanager_urls.iter().filter(|url| !url.is_empty());
        let addresses: Vec<Address> = addresses
            .map(|url| Address::parse(url).map_err(|error| anyhow!("--alertmanager-urls: {error}")))
            .collect::<anyhow::Result<_>>()?;
        if addresses.is_empty() {
            if self.alertmanager_credentials.is_some() {
                bail!("--alertmanager-credentials is for nobody: give --alertmanager-urls too, or leave it out");
            }
            return Ok(None);
        }
        let credentials = self.alertmanager_credentials.clone();
        Ok(Some(AlertmanagerSettings { addresses, credentials, instance: instance.to_owned() }))
    }

    /// How audit works, in the namespaces that the instance serves.
    pub(super) fn settings(&self, namespaces: Selector, limits: Limits) -> AuditSettings {
        AuditSettings {
            workers: self.audit_workers.into(),
            resync: Duration::from_secs(self.audit_resync),
            dependencies: self.lookup_dependencies,
            allowance: Allowance { times: self.lookup_reevaluations, window: Duration::from_secs(self.lookup_window) },
            namespaces,
            passes: self.policy_report_passes && self.reports().is_some(),
            limits,
        }
    }
}
