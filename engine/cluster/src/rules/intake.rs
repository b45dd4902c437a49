//! The one task that takes news into the index, and puts what comes of it where it is needed.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portal_core::{layers::Layers, manifest::Problem, rule::source::RuleId};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    health::Health,
    metrics::{Metrics, RuleOrigin, RuleState},
    rules::{
        Loader, Outcome, Report, Update,
        feeds::Lack,
        index::{Index, Outcomes, Totals},
        snapshot::InForce,
    },
};

/// How many updates may wait. A loader that is faster than the index waits before it sends its next one.
pub const QUEUE: usize = 1024;

/// Where the results of updates go.
#[derive(Debug)]
pub struct Intake {
    /// The layers of the engine, which decide what its rules need.
    pub layers: Layers,
    /// The layers that other pods of the instance have.
    pub other_layers: Layers,
    /// How many rules a namespace may have in the cluster.
    pub rules_per_namespace: usize,
    /// The rules in force, for whoever evaluates.
    pub in_force: InForce,
    /// What has become of rules of the cluster, for whoever writes their status. Nothing for those that are gone. Nobody listens
    /// where the rules of the cluster are not loaded.
    pub reports: mpsc::Sender<(RuleId, Option<Report>)>,
    /// Whether a rule waits for a kind.
    pub waiting: watch::Sender<bool>,
    /// Where the intake says which loaders have loaded.
    pub health: Health,
    /// What is counted.
    pub metrics: Metrics,
}

/// What was logged and reported, so that it is not repeated.
#[derive(Default)]
struct Told {
    reports: HashMap<RuleId, Report>,
    problems: BTreeMap<PathBuf, Vec<Problem>>,
    starved: BTreeMap<RuleId, Lack>,
}

/// What came of a batch.
struct Applied {
    index: Index,
    /// How many rules are in force now, and how long that took, if something else is.
    swapped: Option<(usize, Duration)>,
    reports: Vec<(RuleId, Option<Report>)>,
    problems: BTreeMap<PathBuf, Vec<Problem>>,
    /// Rules of files that look objects up that are not at hand.
    starved: BTreeMap<RuleId, Lack>,
    totals: Totals,
}

impl Intake {
    /// Takes news until the end.
    pub async fn run(self, mut updates: mpsc::Receiver<Update>, shutdown: CancellationToken) {
        let mut index = Index::new(self.layers, self.rules_per_namespace).beside(self.other_layers);
        let mut told = Told::default();
        let mut loaded = Vec::new();
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                count = updates.recv_many(&mut batch, QUEUE) => if count == 0 { return },
                () = shutdown.cancelled() => return,
            }
            loaded.extend(batch.iter().filter_map(|update| self.note(update)));
            let applied = apply(index, batch, self.in_force.clone()).await;
            index = applied.index;
            if let Some((rules, duration)) = applied.swapped {
                info!(rules, "Another set of rules is in force");
                self.metrics.rule_sets.inc();
                self.metrics.rule_set_time.inc_by(duration.as_micros() as u64);
            }
            self.count(applied.totals);
            self.metrics.files_with_problems.set(applied.problems.len() as i64);
            log_problems(&applied.problems, &told.problems);
            told.problems = applied.problems;
            for (id, lack) in applied.starved.iter().filter(|(id, lack)| told.starved.get(*id) != Some(*lack)) {
                log_lack(&id.to_string(), lack);
            }
            told.starved = applied.starved;
            if index.has_kinds() {
                loaded.drain(..).for_each(|loader: Loader| self.health.loaded(&loader.part()));
            }
            self.report(applied.reports, &mut told).await;
        }
    }

    /// Counts an update. Returns the loader, if the update says that one has loaded.
    fn note(&self, update: &Update) -> Option<Loader> {
        match update {
            Update::Files(files) => self.metrics.rule_updates.at(&RuleOrigin::File).inc_by(files.len() as u64),
            Update::Object(..) => self.metrics.rule_updates.at(&RuleOrigin::Object).inc(),
            Update::Kinds(_) | Update::Feeds(_) => {}
            Update::Loaded(loader) => return Some(*loader),
        }
        None
    }

    fn count(&self, totals: Totals) {
        for (state, total) in [
            (RuleState::Active, totals.active),
            (RuleState::Refused, totals.refused),
            (RuleState::Waiting, totals.waiting),
            (RuleState::Syncing, totals.syncing),
            (RuleState::Disabled, totals.disabled),
            (RuleState::OverQuota, totals.over_quota),
            (RuleState::Shadowed, totals.shadowed),
        ] {
            self.metrics.rules.at(&state).set(total as i64);
        }
        let is_waiting = totals.waiting > 0;
        self.waiting.send_if_modified(|before| std::mem::replace(before, is_waiting) != is_waiting);
    }

    async fn report(&self, reports: Vec<(RuleId, Option<Report>)>, told: &mut Told) {
        for (id, report) in reports {
            let before = match &report {
                Some(report) => told.reports.insert(id.clone(), report.clone()),
                None => told.reports.remove(&id),
            };
            if before != report {
                log(&id.to_string(), report.as_ref());
                let _ = self.reports.send((id, report)).await;
            }
        }
    }
}

/// Takes a batch into the index, away from the workers that serve requests: ten thousand rules take half a second to compile.
async fn apply(mut index: Index, batch: Vec<Update>, in_force: InForce) -> Applied {
    let start = Instant::now();
    let applied = tokio::task::spawn_blocking(move || {
        let Outcomes { snapshot, reports } = index.apply(batch);
        // First of all: whatever else is told of the change may wait, requests do not.
        let swapped = snapshot.map(|snapshot| {
            let rules = snapshot.rules.rules().len();
            let before = in_force.swap(snapshot);
            let swapped = (rules, start.elapsed());
            drop(before);
            swapped
        });
        in_force.count(index.population());
        let (problems, starved, totals) = (index.problems(), index.starved_of_files(), index.totals());
        Applied { index, swapped, reports, problems, starved, totals }
    });
    match applied.await {
        Ok(applied) => applied,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Logs what is wrong with files, unless that was said before.
fn log_problems(problems: &BTreeMap<PathBuf, Vec<Problem>>, said: &BTreeMap<PathBuf, Vec<Problem>>) {
    for (path, problems) in problems.iter().filter(|(path, problems)| said.get(*path) != Some(problems)) {
        for Problem { line, column, message, .. } in problems {
            warn!(file = %path.display(), line, column, error = message, "File of rules cannot be used as it is");
        }
    }
}

fn log_lack(rule: &str, Lack { plurals, refusal }: &Lack) {
    match refusal {
        Some(reason) => warn!(rule, ?plurals, error = reason, "Rule waits for objects that the engine may not see"),
        None => info!(rule, ?plurals, "Rule waits for the objects that it looks up"),
    }
}

fn log(rule: &str, report: Option<&Report>) {
    match report.map(|report| &report.outcome) {
        Some(Outcome::Refused(found)) => {
            for diagnostic in found {
                warn!(rule, error = diagnostic.message, field = diagnostic.field_name(), "Rule cannot be used");
            }
        }
        Some(Outcome::Shadowed(path)) => {
            warn!(rule, file = %path.display(), "Rule has the name of a rule in a file, which comes first");
        }
        Some(Outcome::Waiting(_)) => info!(rule, "Rule waits for a kind"),
        Some(Outcome::OverQuota(most)) => warn!(rule, most, "Rule is one too many for its namespace"),
        Some(Outcome::Syncing(lack)) => log_lack(rule, lack),
        Some(Outcome::Active | Outcome::Disabled) | None => {}
    }
    for diagnostic in report.into_iter().flat_map(|report| &report.warnings) {
        warn!(rule, warning = diagnostic.message, field = diagnostic.field_name(), "Rule may be mistaken");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portal_core::{kinds::Kinds, manifest::Manifest, rule::file};

    use super::*;
    use crate::metrics::Registry;

    /// A file of so many rules.
    fn rules(count: usize) -> Update {
        let rule = |number| {
            format!(
                "name: rule-{number}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: container.image.tag == \"v{number}\"\n"
            )
        };
        let text = (0..count).map(rule).collect::<Vec<_>>().join("---\n");
        let read = file::read(&Manifest::new("rules.yaml", text.into_bytes()));
        Update::Files(vec![("rules.yaml".into(), Some(Ok(read.sources)))])
    }

    #[tokio::test]
    async fn the_worker_has_other_turns_while_rules_are_compiled() {
        let (updates, updates_in) = mpsc::channel(QUEUE);
        let (reports, _reports_in) = mpsc::channel(QUEUE);
        let (in_force, shutdown) = (InForce::default(), CancellationToken::new());
        let intake = Intake {
            layers: Layers::default(),
            other_layers: Layers::default(),
            rules_per_namespace: 1,
            in_force: in_force.clone(),
            reports,
            waiting: watch::Sender::new(false),
            health: Health::default(),
            metrics: Metrics::register(&Registry::new()),
        };
        updates.try_send(Update::Kinds(Arc::new(Kinds::builtin().clone()))).unwrap();
        updates.try_send(rules(1000)).unwrap();
        let running = tokio::spawn(intake.run(updates_in, shutdown.clone()));
        // The intake has the only thread of this test, or this loop has it.
        let mut turns = 0;
        while in_force.now().rules.rules().is_empty() {
            assert!(!running.is_finished());
            tokio::task::yield_now().await;
            turns += 1;
        }
        assert!(turns > 10, "{turns}");
        shutdown.cancel();
        running.await.unwrap();
    }
}
