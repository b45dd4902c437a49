//! `portal generate webhook`: the webhook configuration that rules need, for those who run an engine without the operator.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use portal_core::{
    layers::Layers,
    requirements::Requirements,
    webhook::{OwnRules, Target, WebhookSettings, configuration},
};

use crate::{
    check::rules::load,
    engine::webhook::{Authors, Enforcement, labels, namespaces},
};

/// Print the webhook configuration that rules need, as YAML for `kubectl apply -f -`
///
/// The API server sends to the engine what the rules name and nothing else. Print it again when rules of other kinds, operations or
/// namespaces come or go.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  portal generate webhook -r rules/ --url https://engine.example:8443 --ca ca.crt | kubectl apply -f -\n  \
                  portal generate webhook -r rules/ --service portal-system/portal --ca ca.crt"
)]
pub(crate) struct Arguments {
    /// A file or a folder with rules; may be given several times
    #[arg(short, long, required = true, value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// A file or a folder with the definitions of custom kinds that rules name; may be given several times
    #[arg(long, value_name = "PATH")]
    definitions: Vec<PathBuf>,
    /// Where the API server reaches the engine: `https://` and a host, with a port if it is not 443
    #[arg(long, required_unless_present = "service", conflicts_with = "service")]
    url: Option<String>,
    /// The Service in front of the engine: `NAMESPACE/NAME`, with `:PORT` if it is not 443
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    /// The authority of the engine's certificate, in PEM. Unset: those that the API server's machine trusts
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The name of the instance
    #[arg(long, value_name = "NAME", default_value = "default")]
    instance: String,
    /// How many seconds the API server waits for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(i32).range(1..=30))]
    timeout_seconds: i32,
    /// Let requests in that the engine does not answer
    #[arg(long)]
    fail_open: bool,
    /// The strictest that any rule may be, as the engine is told
    #[arg(long, value_name = "ACTION", default_value = "deny")]
    max_enforcement: Enforcement,
    /// Send only what is in namespaces whose labels fit this selector, and what is in no namespace
    #[arg(long, value_name = "SELECTOR", default_value = "")]
    namespace_selector: String,
    /// Leave these namespaces alone, beside kube-system, kube-public, kube-node-lease and the engine's own. Names with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    exclude_namespaces: Vec<String>,
    /// The namespace of the engine, which is left alone
    #[arg(long, value_name = "NAMESPACE", default_value = "portal-system")]
    namespace: String,
    /// Send only rules whose labels fit this selector when they are written, as the engine is told
    #[arg(long, value_name = "SELECTOR", default_value = "")]
    rule_selector: String,
    /// What happens if whoever writes a rule may not read what it reads, as the engine is told. With `enforce` rules cannot be
    /// written while no engine answers
    #[arg(long, value_name = "ANSWER", default_value = "warn")]
    author_check: Authors,
    /// The namespace of the Lease by which the way from the API server to the engine is tried. Unset: it is not tried
    #[arg(long, value_name = "NAMESPACE")]
    probe_namespace: Option<String>,
    /// The accounts of Portal, which are let through: `system:serviceaccount:NAMESPACE:NAME`, with commas between
    #[arg(long, value_name = "ACCOUNTS", value_delimiter = ',')]
    own_accounts: Vec<String>,
}

/// The configuration, as YAML.
pub(crate) fn yaml(arguments: &Arguments) -> anyhow::Result<String> {
    let loaded = load(&arguments.rules, &arguments.definitions, &[], None);
    if !loaded.errors.is_empty() {
        let problems: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
        bail!("the rules cannot be used as they are:\n{}", problems.join("\n"));
    }
    if let Some(assumed) = loaded.assumed.first() {
        bail!(
            "nothing defines `{}` of group `{}`, so that its resource is not known: give its definition with --definitions FILE",
            assumed.kind,
            assumed.group
        );
    }
    let requirements = Requirements::of(&loaded.rules, Layers { admission: true, ..Layers::default() });
    Ok(serde_saphyr::to_string(&configuration(&requirements, &settings(arguments)?))?)
}

fn settings(arguments: &Arguments) -> anyhow::Result<WebhookSettings> {
    let ca_bundle = match &arguments.ca {
        Some(path) => {
            let pem = std::fs::read(path).with_context(|| format!("--ca {} cannot be read", path.display()))?;
            if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
                bail!("--ca {} holds no certificate in PEM", path.display());
            }
            pem
        }
        None => Vec::new(),
    };
    Ok(WebhookSettings {
        instance: arguments.instance.clone(),
        target: target(arguments)?,
        ca_bundle,
        timeout_seconds: arguments.timeout_seconds,
        fail_closed: !arguments.fail_open,
        max_enforcement: arguments.max_enforcement.into(),
        namespace_selector: labels("namespace-selector", &arguments.namespace_selector)?,
        exclude_namespaces: namespaces("exclude-namespaces", &arguments.exclude_namespaces)?,
        own_namespaces: BTreeSet::from([arguments.namespace.clone()]),
        own_accounts: arguments.own_accounts.iter().cloned().collect(),
        own_rules: Some(OwnRules {
            selector: labels("rule-selector", &arguments.rule_selector)?,
            enforces_author_check: arguments.author_check == Authors::Enforce,
        }),
        probe_namespace: arguments.probe_namespace.clone(),
        owner: None,
    })
}

fn target(arguments: &Arguments) -> anyhow::Result<Target> {
    if let Some(url) = &arguments.url {
        let host =
            url.strip_prefix("https://").with_context(|| format!("--url `{url}` does not begin with https://"))?;
        if host.is_empty() || host.trim_end_matches('/').contains(['/', '?', '#', '@']) {
            bail!("--url `{url}` is `https://` and a host, with a port if it is not 443: the paths are added to it");
        }
        return Ok(Target::Url(url.clone()));
    }
    let service = arguments.service.as_deref().unwrap_or_default();
    let (path, port) = service.split_once(':').unwrap_or((service, "443"));
    let port = port.parse::<u16>().with_context(|| format!("--service `{service}`: `{port}` is no port"))?;
    let parts = path.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    let (namespace, name) =
        parts.with_context(|| format!("--service `{service}` is NAMESPACE/NAME, or NAMESPACE/NAME:PORT"))?;
    Ok(Target::Service { namespace: namespace.to_owned(), name: name.to_owned(), port: port.into() })
}
