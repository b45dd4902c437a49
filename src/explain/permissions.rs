//! `portal explain permissions`: what an engine would be granted because of rules, why, and what not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use portal_core::{kinds::Kinds, rule::Rule, rule::RuleSet};
use portal_crds::RbacMode;
use portal_document::{Document, Options, from_yaml};
use portal_operator::{
    instance::{Engine, Instance},
    needs::Needs,
    permissions::{Granted, Held, Need, Permissions, Refusal, has_everybody, some_of},
    rights::in_ceiling,
};
use serde_json::{Value, json};

use super::live;
use crate::{check::rules::load, output};

/// Say what an engine would be granted, because of which rules, and what rules need that it would not be granted
///
/// The operator grants nothing that it may not do itself: that is the ceiling. Without a cluster it is the one that
/// `portal generate install` prints. With `--live` it is what the operator of the cluster may do, the rules are those that the instance
/// serves with the files laid over them, and what would change is marked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  portal explain permissions -r rules/\n  \
                        portal explain permissions -r rules/ --instance instance.yaml\n  \
                        portal explain permissions --live default\n  \
                        portal explain permissions --live default -r new-rule.yaml")]
pub(crate) struct Arguments {
    /// A file or a folder with rules; may be given several times
    #[arg(short, long, required_unless_present = "live", value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// A file or a folder with the definitions of custom kinds that rules name; may be given several times
    #[arg(long, value_name = "PATH")]
    definitions: Vec<PathBuf>,
    /// The manifest of the PortalInstance that would serve the rules. Unset: one with all defaults
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    instance: Option<PathBuf>,
    /// The PortalInstance in the cluster of the kubeconfig that would serve the rules, beside those that it serves
    #[arg(long, value_name = "NAME")]
    live: Option<String>,
    /// The kubeconfig for `--live`. Unset: KUBECONFIG, ~/.kube/config or the pod's ServiceAccount
    #[arg(long, value_name = "FILE", requires = "live")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of the operator, for `--live`
    #[arg(long, value_name = "NAMESPACE", default_value = "portal-operator")]
    operator_namespace: String,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Output {
    /// A table for people
    #[default]
    Text,
    /// One JSON object for programs
    Json,
}

/// Everything that is explained.
struct Explained {
    instance: Instance,
    rules: usize,
    permissions: Permissions,
    /// The sets of pods, by the names of their accounts and roles.
    engines: Vec<Engine>,
    /// What the roles of the cluster allow beside what every engine has, by their names. Nothing without a cluster.
    present: Option<Present>,
}

/// What roles allow, by their names.
pub(super) type Present = BTreeMap<String, BTreeSet<Need>>;

/// A line of the table: what is granted, or would be, or is and would go.
struct Line<'a> {
    mark: char,
    verbs: Vec<&'a str>,
    resource: String,
    because: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let explained = match &arguments.live {
        Some(name) => {
            let cluster = live::Cluster::open(arguments.kubeconfig.as_deref())?;
            let instance = cluster.instance(name)?;
            let files = rules(arguments, Some(cluster.kinds()))?;
            let served = cluster.rules(&instance)?;
            // A rule of a file takes the place of the one of its name.
            let by_name = served.into_iter().chain(files).map(|rule| (rule.id.clone(), rule));
            let all = BTreeMap::from_iter(by_name).into_values().collect();
            let needs = Needs::of(&RuleSet::new(all), &instance, &instance.engines(), cluster.kinds());
            let held = cluster.held(&instance, &needs, &arguments.operator_namespace)?;
            let present = Some(cluster.present(&instance)?);
            explain(instance, &needs, &held, present)
        }
        None => {
            let instance = instance(arguments.instance.as_deref())?;
            let mut rules = rules(arguments, None)?;
            rules.sort_by(|one, other| one.id.cmp(&other.id));
            let needs = Needs::of(&RuleSet::new(rules), &instance, &instance.engines(), Kinds::builtin());
            let is_auto = instance.spec.rbac.mode == RbacMode::Auto;
            let held = needs.grants.keys().map(|need| (need.clone(), is_auto && in_ceiling(&need.0))).collect();
            explain(instance, &needs, &held, None)
        }
    };
    Ok(output::print(match arguments.output {
        Output::Text => explained.text(),
        Output::Json => format!("{}\n", explained.json()),
    })?)
}

fn explain(instance: Instance, needs: &Needs, held: &Held, present: Option<Present>) -> Explained {
    let permissions = Permissions::decide(&instance, needs, held, &Default::default());
    let engines = instance.engines();
    Explained { instance, rules: needs.rules.len(), permissions, engines, present }
}

/// The rules of the files.
fn rules(arguments: &Arguments, served: Option<&Kinds>) -> anyhow::Result<Vec<Arc<Rule>>> {
    if arguments.rules.is_empty() {
        return Ok(Vec::new());
    }
    let loaded = load(&arguments.rules, &arguments.definitions, &[], served);
    if !loaded.errors.is_empty() {
        let problems: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
        bail!("the rules cannot be used as they are:\n{}", problems.join("\n"));
    }
    Ok(loaded.rules.rules().to_vec())
}

/// The instance of a file, or one with all defaults.
fn instance(path: Option<&Path>) -> anyhow::Result<Instance> {
    let Some(path) = path else {
        let default = json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": { "name": "default" }, "spec": {},
        });
        return Instance::read(&default).map_err(anyhow::Error::msg);
    };
    let place = || format!("--instance {}", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", place()))?;
    let documents = from_yaml(&text, &Options::default()).with_context(place)?;
    let is_instance =
        |document: &Document| document.root().get_str("kind").and_then(|kind| kind.as_str()) == Some("PortalInstance");
    let found = documents.into_iter().map(|found| found.document).find(is_instance);
    let found = found.with_context(|| format!("{} holds no PortalInstance", place()))?;
    let value: Value = serde_json::from_str(&found.root().to_json())?;
    Instance::read(&value).map_err(|error| anyhow::anyhow!("{}: {error}", place()))
}

impl Explained {
    fn text(&self) -> String {
        let (name, rules) = (&self.instance.name, self.rules);
        let s = if rules == 1 { "" } else { "s" };
        let mut text = format!("instance {name}: what its engine is granted because of {rules} rule{s}\n");
        let mut is_empty = true;
        for role in self.roles() {
            for namespace in self.places(&role) {
                let lines = self.lines(&role, namespace.as_deref());
                if lines.is_empty() {
                    continue;
                }
                is_empty = false;
                // Writing to a text cannot fail.
                let _ = match &namespace {
                    Some(namespace) => writeln!(text, "\nin namespace {namespace} (Role {role})"),
                    None => writeln!(text, "\nin the whole cluster (ClusterRole {role})"),
                };
                for Line { mark, verbs, resource, because } in lines {
                    let _ = writeln!(text, "{mark} {:<18} {resource:<40} {because}", verbs.join(", "));
                }
            }
        }
        if is_empty {
            text.push_str(
                "\nnothing: no rule asks for other objects than the one that it judges, or none of it can be granted\n",
            );
        }
        if !self.permissions.refused.is_empty() {
            text.push_str("\nnot granted\n");
            let mut refused: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
            for ((permission, namespace), (refusal, rules)) in &self.permissions.refused {
                let place = namespace.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
                let why = format!("{}: {}", some_of(rules.iter().map(|rule| &**rule)), self.reason(*refusal));
                refused.entry((format!("{}{place}", permission.name()), why)).or_default().insert(permission.verb);
            }
            for ((resource, why), verbs) in refused {
                let _ = writeln!(text, "  {:<18} {resource:<40} {why}", Vec::from_iter(verbs).join(", "));
            }
        }
        if self.present.is_some() {
            text.push_str("\n+ would be granted, - would be taken away; everything else is there\n");
        }
        text.push_str("\nwhat every engine may do, whatever its rules say: portal generate roles --account ACCOUNT\n");
        text
    }

    /// The names of the roles: those that there should be, and those that are there.
    fn roles(&self) -> BTreeSet<String> {
        let present = self.present.iter().flat_map(BTreeMap::keys);
        self.engines.iter().map(|engine| &engine.name).chain(present).cloned().collect()
    }

    /// What is granted by the roles of a name.
    fn granted(&self, role: &str) -> &Granted {
        let engine = self.engines.iter().find(|engine| engine.name == role);
        self.permissions.of(engine.map_or("", |engine| engine.layer))
    }

    /// What the roles of a name allow in the cluster.
    fn present(&self, role: &str) -> impl Iterator<Item = &Need> {
        self.present.iter().filter_map(move |present| present.get(role)).flatten()
    }

    /// The whole cluster, and the namespaces that something is granted in.
    fn places(&self, role: &str) -> BTreeSet<Option<String>> {
        let granted = self.granted(role).namespaces().into_iter().map(|name| Some(name.to_owned()));
        let present = self.present(role).map(|(_, namespace)| namespace.clone());
        [None].into_iter().chain(granted).chain(present).collect()
    }

    fn lines(&self, role: &str, namespace: Option<&str>) -> Vec<Line<'_>> {
        let granted = self.granted(role);
        let wanted = granted.by_resource(namespace);
        let mut lines = Vec::new();
        let is_there = |group: &str, resource: &str, verb: &str| {
            self.present(role).any(|(permission, place)| {
                (&*permission.group, &*permission.resource, permission.verb) == (group, resource, verb)
                    && place.as_deref() == namespace
            })
        };
        for ((group, resource), (verbs, rules)) in &wanted {
            let is_new = self.present.is_some() && verbs.iter().any(|verb| !is_there(group, resource, verb));
            let resource = if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") };
            let (mark, verbs) = (if is_new { '+' } else { ' ' }, verbs.iter().copied().collect());
            lines.push(Line { mark, verbs, resource, because: some_of(rules.iter().copied()) });
        }
        for need @ (permission, place) in self.present(role) {
            let is_wanted = granted.0.contains_key(need) || has_everybody(need);
            if place.as_deref() == namespace && !is_wanted {
                let because = "no rule".to_owned();
                lines.push(Line { mark: '-', verbs: vec![permission.verb], resource: permission.name(), because });
            }
        }
        lines
    }

    fn reason(&self, refusal: Refusal) -> String {
        match refusal {
            Refusal::ByInstance => "`rbac.deniedResources` of the instance names it".to_owned(),
            Refusal::ByDefault => {
                "refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling"
                    .to_owned()
            }
            Refusal::AboveCeiling => {
                "above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true"
                    .to_owned()
            }
            Refusal::NoNamespace => "there is no such namespace".to_owned(),
            Refusal::NamespacedAction => "`actions.namespaced` of the instance is not set".to_owned(),
            Refusal::ByHand(mode) => format!("`rbac.mode` of the instance is {mode:?}: somebody else grants it"),
        }
    }

    fn json(&self) -> Value {
        let all = |rules: &BTreeSet<Arc<portal_core::rule::source::RuleId>>| -> Vec<String> {
            rules.iter().map(ToString::to_string).collect()
        };
        let of = |(permission, namespace): &Need| {
            json!({
                "group": permission.group, "resource": permission.resource, "verb": permission.verb, "namespace": namespace,
            })
        };
        let granted = self.engines.iter().flat_map(|engine| {
            let granted = self.granted(&engine.name).0.iter();
            granted.map(|(need, rules)| {
                let mut line = of(need);
                line["account"] = json!(engine.name);
                line["rules"] = json!(all(rules));
                if self.present.is_some() {
                    line["isThere"] = json!(self.present(&engine.name).any(|present| present == need));
                }
                line
            })
        });
        let refused = self.permissions.refused.iter().map(|(need, (refusal, rules))| {
            let mut line = of(need);
            line["rules"] = json!(all(rules));
            line["reason"] = json!(self.reason(*refusal));
            line
        });
        let mut whole = json!({
            "instance": self.instance.name,
            "granted": granted.collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
        });
        if let Some(present) = &self.present {
            let surplus = present.iter().flat_map(|(role, needs)| {
                let is_surplus = |need: &&Need| !self.granted(role).0.contains_key(*need) && !has_everybody(need);
                needs.iter().filter(is_surplus).map(move |need| {
                    let mut line = of(need);
                    line["account"] = json!(role);
                    line
                })
            });
            whole["surplus"] = json!(surplus.collect::<Vec<_>>());
        }
        whole
    }
}
