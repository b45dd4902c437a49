//! Whether a rule that this replica has taken judges what it should: in every replica, and everything that it names.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api,
    runtime::watcher::{self, Event},
};
use portal_cluster::{
    health::Part,
    rules::{Outcome, Report, snapshot::InForce},
    runtime::Runtime,
    watch::Events,
};
use portal_core::{
    event::Front,
    layers::Layers,
    requirements::Requirements,
    rule::{
        RuleSet,
        source::{RuleId, is_version_of},
    },
    webhook::{configuration_name, first_gap},
};
use tokio::sync::watch;

use crate::{
    cache::{keeper::Caches, store::Seen},
    replicas::view::View,
};

/// Whether a rule judges what it should.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// It does.
    Runs,
    /// Admission asks it, and audit does not, for this reason.
    NotAudited(String),
    /// It does not, or is not known to.
    Lacks {
        /// The word for machines.
        reason: &'static str,
        /// The words for people.
        text: String,
        /// Whether that is certain. If it is not, a rule that was active counts as active.
        is_certain: bool,
    },
}

/// What is known of that.
pub(super) struct Standings {
    instance: String,
    layers: Layers,
    /// The layers of this replica.
    own_layers: Layers,
    in_force: InForce,
    /// Nothing before the others were asked for the first time in a term.
    view: watch::Receiver<Option<Arc<View>>>,
    /// The view that rules were last judged by.
    judged_by: Option<Arc<View>>,
    configuration: watch::Receiver<Configuration>,
    /// What audit sees.
    caches: Caches,
    feeds: watch::Receiver<u64>,
}

/// The webhook configuration of the instance.
#[derive(Clone, Debug, Default)]
pub(super) enum Configuration {
    /// Nobody has told yet.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// It is there.
    Found(Arc<ValidatingWebhookConfiguration>),
}

impl Standings {
    pub(super) fn new(
        instance: &str,
        (layers, own_layers): (Layers, Layers),
        in_force: InForce,
        view: watch::Receiver<Option<Arc<View>>>,
        caches: Caches,
    ) -> Standings {
        // Nobody tells of a configuration until somebody follows it.
        let (_, configuration) = watch::channel(Configuration::Unknown);
        let feeds = caches.states();
        let instance = instance.to_owned();
        Standings { instance, layers, own_layers, in_force, view, judged_by: None, configuration, caches, feeds }
    }

    /// Goes by this configuration.
    pub(super) fn follow(&mut self, configuration: watch::Receiver<Configuration>) {
        self.configuration = configuration;
    }

    /// Whether the other replicas have been asked, so that something can be said.
    pub(super) fn is_known(&self) -> bool {
        self.view.borrow().is_some()
    }

    /// Waits until there is something else to say. Returns the rules that it is about, or none if that may be all.
    pub(super) async fn changed(&mut self) -> Option<BTreeSet<RuleId>> {
        tokio::select! {
            Ok(()) = self.view.changed() => {
                let view = self.view.borrow_and_update().clone();
                let before = std::mem::replace(&mut self.judged_by, view.clone());
                match (before, view) {
                    (Some(before), Some(view)) => before.changed(&view),
                    _ => None,
                }
            }
            Ok(()) = self.configuration.changed() => {
                self.configuration.borrow_and_update();
                None
            }
            Ok(()) = self.feeds.changed(), if self.layers.audit => None,
            else => std::future::pending().await,
        }
    }

    /// How a rule stands that this replica has taken.
    pub(super) fn of(&self, rule: &RuleId, report: &Report) -> Standing {
        if report.outcome != Outcome::Active {
            return Standing::Runs;
        }
        let Layers { admission, audit, .. } = self.layers;
        // An engine without layers judges nothing, and says which rules it could.
        if (admission || audit) && !report.mode.iter().any(|front| self.layers.run(*front)) {
            let modes: Vec<String> = report.mode.iter().map(ToString::to_string).collect();
            let text = format!("this instance does not have what the rule runs in: {}", modes.join(", "));
            return Standing::Lacks { reason: "LayerDisabled", text, is_certain: true };
        }
        if admission
            && report.mode.contains(&Front::Admission)
            && let Some(lacks) = self.not_routed(rule)
        {
            return lacks;
        }
        // What admission enforces counts as active, even if audit may not see the objects: `PermissionGranted` tells of that.
        if audit
            && !(admission && report.mode.contains(&Front::Admission))
            && let Some(lacks) = self.not_seen(rule)
        {
            return lacks;
        }
        let version = self.version(rule, report);
        let gap = self.view.borrow().as_ref().and_then(|view| view.gap(rule, &version));
        if let Some(gap) = gap {
            return Standing::Lacks { reason: gap.reason, text: gap.text, is_certain: gap.is_certain };
        }
        let is_judged_elsewhere = admission && !self.own_layers.admission && report.mode.contains(&Front::Admission);
        if is_judged_elsewhere && self.view.borrow().as_ref().is_some_and(|view| view.is_empty()) {
            let text = "no replica that judges requests is ready, or known yet".to_owned();
            return Standing::Lacks { reason: "NotEverywhere", text, is_certain: false };
        }
        match self.not_asked(rule).filter(|_| audit && report.mode.contains(&Front::Audit)) {
            Some(text) if admission && report.mode.contains(&Front::Admission) => Standing::NotAudited(text),
            Some(text) => Standing::Lacks { reason: "NotAudited", text, is_certain: true },
            None => Standing::Runs,
        }
    }

    /// The version of a rule that this replica has taken, as other replicas name theirs.
    fn version(&self, rule: &RuleId, report: &Report) -> String {
        let snapshot = self.in_force.now();
        let in_force = snapshot.rule(rule).map(|rule| rule.version.clone());
        in_force
            .filter(|version| is_version_of(version, &report.uid, report.generation))
            .unwrap_or_else(|| format!("{}/{}", report.uid, report.generation))
    }

    /// Why audit does not ask the rule about some kind that it names, if that is so: to admission objects are sent in the version of the
    /// rule, and audit sees them in the one that the API server prefers.
    fn not_asked(&self, rule: &RuleId) -> Option<String> {
        let snapshot = self.in_force.now();
        snapshot.rule(rule)?.judged.iter().find_map(|judged| {
            let seen = judged.kind.versions.first()?;
            let is_named = judged.versions.is_empty() || judged.versions.contains(seen);
            (!is_named).then(|| {
                let (plural, named) = (judged.kind.qualified_plural(), judged.versions.join(", "));
                format!(
                    "audit sees {plural} in version {seen}, which the API server prefers, and the rule names {named} alone: name {seen} in \
                     match.gvk, or no version; with mode: [admission] the rule is not meant for audit"
                )
            })
        })
    }

    /// Why audit does not see all objects that the rule is about, if that is so.
    fn not_seen(&self, rule: &RuleId) -> Option<Standing> {
        let snapshot = self.in_force.now();
        let judged = &snapshot.rule(rule)?.judged;
        let own = rule.namespace.as_deref();
        judged.iter().find_map(|judged| {
            let plural = judged.kind.qualified_plural();
            let lacks = |reason, text| Some(Standing::Lacks { reason, text, is_certain: true });
            match self.caches.get(&judged.kind, own).map(|shown| shown.now()) {
                Some(Seen::Moment(_)) => None,
                Some(Seen::Refused(why)) => lacks("PermissionPending", format!("audit may not see {plural}: {why}")),
                Some(Seen::NotSynced) | None => lacks("CacheSyncing", format!("{plural} are being listed for audit")),
            }
        })
    }

    /// Why requests that the rule has to see are not sent to the engine, if that is so.
    fn not_routed(&self, rule: &RuleId) -> Option<Standing> {
        let name = configuration_name(&self.instance);
        let (text, is_certain) = match &*self.configuration.borrow() {
            Configuration::Unknown => (format!("the webhook configuration {name} has not been read yet"), false),
            Configuration::Absent => {
                (format!("there is no webhook configuration {name}: nothing is sent to the engine"), true)
            }
            Configuration::Found(configuration) => {
                let snapshot = self.in_force.now();
                let rules = RuleSet::new(vec![Arc::clone(snapshot.rule(rule)?)]);
                let needs = Requirements::of(&rules, Layers { admission: true, ..Layers::default() });
                let gap = first_gap(configuration, &needs)?;
                (format!("the webhook configuration {name} does not send {gap} to the engine"), true)
            }
        };
        Some(Standing::Lacks { reason: "NotRouted", text, is_certain })
    }
}

/// Starts to follow the webhook configuration of an instance. The task ends with the process.
pub(super) fn follow_configuration(
    instance: &str,
    runtime: Runtime,
) -> (watch::Receiver<Configuration>, impl Future<Output = ()> + Send + use<>) {
    let (configuration, configuration_in) = watch::channel(Configuration::Unknown);
    let name = configuration_name(instance);
    let task = async move {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(runtime.client.clone());
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let resource = "validatingwebhookconfigurations.admissionregistration.k8s.io".to_owned();
        let mut events = Events::with(runtime, Part::Configuration, resource, api, config);
        let mut listed = Configuration::Absent;
        while let Some(event) = events.next().await {
            let now = match event {
                Event::Init => {
                    listed = Configuration::Absent;
                    continue;
                }
                Event::InitApply(configuration) => {
                    listed = Configuration::Found(Arc::new(configuration));
                    continue;
                }
                Event::InitDone => listed.clone(),
                Event::Apply(configuration) => Configuration::Found(Arc::new(configuration)),
                Event::Delete(_) => Configuration::Absent,
            };
            // Whoever listened is gone at the end.
            let _ = configuration.send(now);
        }
    };
    (configuration_in, task)
}

#[cfg(test)]
mod tests {
    use portal_core::rule::source::RuleId;

    use super::*;

    #[test]
    fn a_rule_of_admission_is_nowhere_if_only_audit_is_there() {
        let (audit, both) =
            (Layers { audit: true, ..Layers::default() }, Layers { audit: true, admission: true, ..Layers::default() });
        let reason = |own_layers, mode: &[Front]| {
            let (_view, view) = watch::channel(Some(Arc::new(View::default())));
            let layers = (both, own_layers);
            let mut standings = Standings::new("default", layers, InForce::default(), view, Caches::default());
            let configuration = ValidatingWebhookConfiguration::default();
            standings.follow(watch::channel(Configuration::Found(Arc::new(configuration))).1);
            let report = Report {
                uid: "u".to_owned(),
                generation: 1,
                outcome: Outcome::Active,
                mode: mode.to_vec(),
                active_on: Vec::new(),
                warnings: Vec::new(),
            };
            match standings.of(&RuleId::parse("a"), &report) {
                Standing::Lacks { reason, is_certain: false, .. } => reason,
                Standing::Runs => "Runs",
                standing => panic!("{standing:?}"),
            }
        };
        assert_eq!(reason(audit, &[Front::Admission]), "NotEverywhere");
        assert_eq!(reason(audit, &[Front::Admission, Front::Audit]), "NotEverywhere");
        assert_eq!(reason(audit, &[Front::Audit]), "Runs");
        // Who judges requests runs it, and is the only one.
        assert_eq!(reason(both, &[Front::Admission]), "Runs");
    }
}
