//! What the pods of an engine are told on their command line. Every flag of the engine is here, with the field of the instance that says it
//! or the reason why none does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portal_core::layers::Layers;
use portal_crds::{AuthorCheck, DecisionLog, EnforcementAction, ExistingViolations, WatchedKind};

use self::Origin::{Field, Fixed};
use crate::children::pods::{ALERTMANAGER, CLIENTS, RULES, TLS, TOKEN, authority_file};
use crate::instance::{Engine, Instance, report_group};
use crate::names::{METRICS_PORT, account, pods_service};

/// A flag of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Where its value comes from.
    pub origin: Origin,
    /// What the engine takes if it is not given. Then nothing is said: an engine of another version may not know the flag yet.
    pub default: Option<&'static str>,
    /// What it says for the pods of an engine.
    value: fn(&Instance, &Engine) -> Said,
}

/// Where the value of a flag comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// From this field of the instance's spec.
    Field(&'static str),
    /// From no field, and why.
    Fixed(&'static str),
}

/// What a flag says.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Said {
    /// It is not given.
    Nothing,
    /// It is given.
    Yes,
    /// It is given with a value.
    As(String),
}

/// How much of the time that the API server waits the engine may take, in percent: the way there and back, and the answer itself, need the
/// rest. An engine that is late answers which rules did not come to their turn; one that does not answer says nothing.
const DEADLINE: u32 = 60;

/// Every flag of the engine, in the order of its help.
pub const FLAGS: &[Flag] = &[
    flag(
        "config",
        Fixed("every setting is an argument: a file would be one more object that can differ from the instance"),
        None,
        nothing,
    ),
    flag("rules-from-cluster", Fixed("an instance is there to serve the rules of the cluster"), None, |_, _| Said::Yes),
    flag("rule-selector", Field("ruleSelector"), Some(""), |instance, _| {
        selector(instance.spec.rule_selector.as_ref())
    }),
    flag("rules-per-namespace", Field("rulesPerNamespace"), Some("100"), |instance, _| {
        number(instance.spec.rules_per_namespace)
    }),
    flag("rules-folder", Field("bootstrapRules.configMaps"), None, |instance, _| {
        given(!instance.spec.bootstrap_rules.config_maps.is_empty(), RULES)
    }),
    flag("watched-kinds", Field("watchedGvks"), None, |instance, _| list(instance.spec.watched_gvks.iter().map(kind))),
    flag("instance", Fixed("it is the name of the instance"), Some("default"), |instance, _| {
        Said::As(instance.name.clone())
    }),
    flag("instance-uid", Fixed("it is the UID of the instance, with which the Lease goes"), None, |instance, _| {
        Said::As(instance.uid.clone())
    }),
    flag("namespace", Field("namespace"), Some("portal-system"), |instance, _| {
        Said::As(instance.namespace().to_owned())
    }),
    flag("identity", Fixed("it is the name of the pod, which its environment has"), None, nothing),
    flag(
        "listen",
        Fixed("the port is the same for all, so that it can be found; pods have addresses of both families"),
        Some("0.0.0.0:8080"),
        |_, _| Said::As(everywhere(METRICS_PORT.1)),
    ),
    flag("address", Fixed("it is the address of the pod, which its environment has"), None, nothing),
    flag("kubeconfig", Fixed("pods reach the API server as their account"), None, nothing),
    flag("log", Field("log"), None, |instance, _| Said::of(instance.spec.log.clone())),
    flag(
        "lease-duration",
        Fixed("the three times have to fit each other, and nothing in a cluster asks for others"),
        Some("15"),
        nothing,
    ),
    flag("lease-renew-deadline", Fixed("see lease-duration"), Some("10"), nothing),
    flag("lease-retry", Fixed("see lease-duration"), Some("2"), nothing),
    flag("admission", Field("admission.enabled"), None, |_, engine| given_alone(engine.layers.admission)),
    flag("tls-cert", Fixed("it is where the Secret of `certificates` is mounted"), None, |_, engine| {
        in_admission(engine, Said::As(format!("{TLS}/tls.crt")))
    }),
    flag("tls-key", Fixed("it is where the Secret of `certificates` is mounted"), None, |_, engine| {
        in_admission(engine, Said::As(format!("{TLS}/tls.key")))
    }),
    flag("client-ca", Field("admission.clients.configMap"), None, |instance, engine| {
        in_admission(engine, given(instance.spec.admission.clients.is_some(), &format!("{CLIENTS}/ca.crt")))
    }),
    flag("client-name", Field("admission.clients.name"), Some("kube-apiserver"), |instance, engine| {
        in_admission(engine, Said::of(instance.spec.admission.clients.as_ref().map(|clients| clients.name.clone())))
    }),
    flag("admission-listen", Field("admission.port"), Some("0.0.0.0:8443"), |instance, engine| {
        in_admission(engine, Said::As(everywhere(instance.spec.admission.port)))
    }),
    flag("fail-open", Field("admission.failClosed"), None, |instance, engine| {
        in_admission(engine, given_alone(!instance.spec.admission.fail_closed))
    }),
    flag("max-enforcement", Field("admission.maxEnforcement"), Some("deny"), |instance, engine| {
        in_admission(engine, Said::As(enforcement(instance.spec.admission.max_enforcement).to_owned()))
    }),
    flag("existing-violations", Field("admission.existingViolations"), Some("admit"), |instance, engine| {
        let answer = match instance.spec.admission.existing_violations {
            ExistingViolations::Admit => "admit",
            ExistingViolations::Deny => "deny",
        };
        in_admission(engine, Said::As(answer.to_owned()))
    }),
    flag("namespace-selector", Field("namespaceSelector"), Some(""), |instance, engine| {
        in_admission(engine, selector(instance.spec.namespace_selector.as_ref()))
    }),
    flag("exclude-namespaces", Field("admission.excludeNamespaces"), None, |instance, engine| {
        in_admission(engine, list(instance.spec.admission.exclude_namespaces.iter().cloned()))
    }),
    flag("admission-deadline", Field("admission.timeoutSeconds"), Some("3000"), |instance, engine| {
        in_admission(engine, number(instance.spec.admission.timeout_seconds * 1000 * DEADLINE / 100))
    }),
    flag("rule-steps", Field("admission.ruleSteps"), Some("1000000"), |instance, engine| {
        in_admission(engine, number(instance.spec.admission.rule_steps))
    }),
    flag("admission-connections", Field("admission.connections"), Some("1024"), |instance, engine| {
        in_admission(engine, number(instance.spec.admission.connections))
    }),
    flag("admission-memory", Field("admission.memoryMib"), Some("64"), |instance, engine| {
        in_admission(engine, number(instance.spec.admission.memory_mib))
    }),
    flag("admission-drain", Field("admission.drainSeconds"), Some("5"), |instance, engine| {
        in_admission(engine, number(instance.spec.admission.drain_seconds))
    }),
    flag("author-check", Field("rbac.authorCheck"), Some("warn"), |instance, engine| {
        let answer = match instance.spec.rbac.author_check {
            AuthorCheck::Warn => "warn",
            AuthorCheck::Enforce => "enforce",
            AuthorCheck::Off => "off",
        };
        in_admission(engine, Said::As(answer.to_owned()))
    }),
    flag("granter", Fixed("it is the account of the operator, which the environment of pods has"), None, nothing),
    flag("decision-log", Field("sinks.stdout"), Some("rules"), |instance, engine| {
        let which = match instance.spec.sinks.stdout {
            DecisionLog::Off => "off",
            DecisionLog::Rules => "rules",
            DecisionLog::All => "all",
        };
        in_admission(engine, Said::As(which.to_owned()))
    }),
    flag("peers-service", Fixed("it is the Service over all pods of the instance"), None, |instance, _| {
        Said::As(pods_service(&instance.name))
    }),
    flag("peers", Fixed("it is for engines outside of a cluster, which have no Service"), None, nothing),
    flag("peer-name", Fixed("the default is the name that every certificate of the webhook has"), None, nothing),
    flag("peer-ca", Fixed("it comes with the certificate, or from `certificates.caBundle`"), None, |instance, _| {
        Said::As(authority_file(instance))
    }),
    flag("peer-token", Fixed("it is where the token for other replicas is mounted"), None, |_, _| {
        Said::As(format!("{TOKEN}/token"))
    }),
    flag(
        "peer-accounts",
        Fixed("the accounts of the instance's own pods may ask, and no others"),
        None,
        |instance, engine| {
            let engines = instance.engines();
            in_admission(engine, list(engines.iter().map(|engine| account(instance.namespace(), &engine.name))))
        },
    ),
    flag("other-layers", Fixed("it follows from the layers of the instance and its mode"), None, |instance, engine| {
        let others = instance.engines().into_iter().filter(|other| other.name != engine.name);
        let layers = others.flat_map(|other| {
            let Layers { admission, audit, network, actions } = other.layers;
            let names = [("admission", admission), ("audit", audit), ("network", network), ("actions", actions)];
            names.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned())
        });
        list(layers)
    }),
    flag(
        "no-lease",
        Fixed("in split mode the pods of audit stand for the Lease, if there are any"),
        None,
        |instance, engine| given_alone(instance.layers().audit && !engine.layers.audit),
    ),
    flag("audit", Field("audit.enabled"), None, |_, engine| given_alone(engine.layers.audit)),
    flag("audit-workers", Field("audit.workers"), Some("2"), |instance, _| number(instance.spec.audit.workers)),
    flag("audit-resync", Field("audit.resync"), Some("600"), |instance, _| {
        number(seconds(&instance.spec.audit.resync).unwrap_or(600))
    }),
    flag("lookup-dependencies", Field("lookups.maxDependencies"), Some("500000"), |instance, _| {
        number(instance.spec.lookups.max_dependencies)
    }),
    flag("lookup-reevaluations", Field("lookups.reevaluations"), Some("3"), |instance, _| {
        number(instance.spec.lookups.reevaluations)
    }),
    flag("lookup-window", Field("lookups.windowSeconds"), Some("10"), |instance, _| {
        number(instance.spec.lookups.window_seconds)
    }),
    flag("policy-reports", Field("sinks.policyReport.api"), Some("wgpolicyk8s.io"), |instance, _| {
        Said::As(report_group(instance.spec.sinks.policy_report.api).unwrap_or("none").to_owned())
    }),
    flag("policy-report-passes", Field("sinks.policyReport.passes"), None, |instance, _| {
        given_alone(instance.spec.sinks.policy_report.passes)
    }),
    flag("alertmanager-urls", Field("sinks.alertmanager.urls"), None, |instance, _| {
        list(instance.spec.sinks.alertmanager.iter().flat_map(|sink| sink.urls.iter().cloned()))
    }),
    flag("alertmanager-credentials", Field("sinks.alertmanager.secretRef"), None, |instance, _| {
        let secret = instance.spec.sinks.alertmanager.as_ref().and_then(|sink| sink.secret_ref.as_ref());
        given(secret.is_some(), ALERTMANAGER)
    }),
    flag("network", Field("network.enabled"), None, |_, engine| given_alone(engine.layers.network)),
    flag("actions", Field("actions.enabled"), None, |_, engine| given_alone(engine.layers.actions)),
];

/// The arguments of the program in the pods of an engine.
pub(super) fn arguments(instance: &Instance, engine: &Engine) -> Vec<String> {
    let flags = FLAGS.iter().filter_map(|flag| flag.argument(instance, engine));
    ["engine".to_owned()].into_iter().chain(flags).collect()
}

const fn flag(
    name: &'static str,
    origin: Origin,
    default: Option<&'static str>,
    value: fn(&Instance, &Engine) -> Said,
) -> Flag {
    Flag { name, origin, default, value }
}

impl Flag {
    /// How it is written for the pods of an engine, if it is.
    fn argument(&self, instance: &Instance, engine: &Engine) -> Option<String> {
        match (self.value)(instance, engine) {
            Said::Nothing => None,
            Said::Yes => Some(format!("--{}", self.name)),
            Said::As(value) if self.default == Some(&value) => None,
            // The kubelet would put variables of the environment in the place of `$(NAME)`.
            Said::As(value) => Some(format!("--{}={}", self.name, value.replace('$', "$$"))),
        }
    }
}

impl Said {
    fn of(value: Option<String>) -> Said {
        value.map_or(Said::Nothing, Said::As)
    }
}

fn nothing(_: &Instance, _: &Engine) -> Said {
    Said::Nothing
}

fn given(is_given: bool, value: &str) -> Said {
    if is_given { Said::As(value.to_owned()) } else { Said::Nothing }
}

fn given_alone(is_given: bool) -> Said {
    if is_given { Said::Yes } else { Said::Nothing }
}

/// What only pods that judge requests are told.
fn in_admission(engine: &Engine, said: Said) -> Said {
    if engine.layers.admission { said } else { Said::Nothing }
}

fn number(number: impl ToString) -> Said {
    Said::As(number.to_string())
}

/// The seconds of a duration such as `1h30m`.
fn seconds(duration: &str) -> Option<u64> {
    let mut rest = duration;
    let mut seconds = 0_u64;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (amount, unit) = (rest[..end].parse::<u64>().ok()?, &rest[end..=end]);
        seconds += amount
            * match unit {
                "h" => 3600,
                "m" => 60,
                "s" => 1,
                _ => return None,
            };
        rest = &rest[end + 1..];
    }
    Some(seconds)
}

fn list(items: impl Iterator<Item = String>) -> Said {
    let items: Vec<String> = items.collect();
    if items.is_empty() { Said::Nothing } else { Said::As(items.join(",")) }
}

/// All addresses of a pod, of both families.
fn everywhere(port: u16) -> String {
    format!("[::]:{port}")
}

/// A kind as the engine takes it: `Pod`, `Deployment.apps`.
fn kind(watched: &WatchedKind) -> String {
    match watched.group.as_str() {
        "" => watched.kind.clone(),
        group => format!("{}.{group}", watched.kind),
    }
}

fn enforcement(action: EnforcementAction) -> &'static str {
    match action {
        EnforcementAction::Deny => "deny",
        EnforcementAction::Warn => "warn",
        EnforcementAction::Dryrun => "dryrun",
    }
}

/// A selector as kubectl takes it.
fn selector(selector: Option<&LabelSelector>) -> Said {
    let Some(selector) = selector else { return Said::Nothing };
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let (key, values) = (&expression.key, expression.values.as_deref().unwrap_or_default().join(","));
        match expression.operator.as_str() {
            "Exists" => key.clone(),
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({values})"),
            _ => format!("{key} in ({values})"),
        }
    });
    list(labels.chain(expressions))
}
