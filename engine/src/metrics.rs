//! The metrics, as a table: what is registered, what the reference page says, and what the code counts are one list.

use prometheus::{Encoder as _, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// What it counts.
    pub help: &'static str,
    /// Its labels. Each has a fixed set of values, never a name of a user's.
    pub labels: &'static [(&'static str, &'static str)],
}

/// All metrics, in the order of the page.
pub const METRICS: [Metric; 11] = [
    RULES,
    RULE_SETS,
    RULE_SET_TIME,
    UPDATES,
    FILES_WITH_PROBLEMS,
    KINDS,
    DISCOVERIES,
    WATCH_ERRORS,
    LEASE_HELD,
    STATUS_WRITES,
    TASKS,
];

const RULES: Metric = Metric {
    name: "portal_rules",
    is_counter: false,
    help: "Rules that this replica knows, by what has become of them.",
    labels: &[(
        "state",
        "`active`, `refused`, `waiting` (for a kind), `disabled`, `shadowed` (by a file's rule of the same name)",
    )],
};
const RULE_SETS: Metric = Metric {
    name: "portal_rule_sets_total",
    is_counter: true,
    help: "Times that another set of rules was put in place.",
    labels: &[],
};
const RULE_SET_TIME: Metric = Metric {
    name: "portal_rule_set_microseconds_total",
    is_counter: true,
    help: "Time between news about rules and the set that takes them into account.",
    labels: &[],
};
const UPDATES: Metric = Metric {
    name: "portal_rule_updates_total",
    is_counter: true,
    help: "News about rules: a file or an object that was read, changed or removed.",
    labels: &[("source", "`file`, `object`")],
};
const FILES_WITH_PROBLEMS: Metric = Metric {
    name: "portal_rule_files_with_problems",
    is_counter: false,
    help: "Files of the rules folder whose newest version cannot be used.",
    labels: &[],
};
const KINDS: Metric =
    Metric { name: "portal_kinds", is_counter: false, help: "Kinds that the API server serves.", labels: &[] };
const DISCOVERIES: Metric = Metric {
    name: "portal_kinds_discoveries_total",
    is_counter: true,
    help: "Times that the API server was asked what it serves.",
    labels: &[("result", "`changed`, `same`, `failed`")],
};
const WATCH_ERRORS: Metric = Metric {
    name: "portal_watch_errors_total",
    is_counter: true,
    help: "Errors of watches, which are tried again.",
    labels: &[("watch", "`cluster-rules`, `rules`, `definitions`, `api-services`")],
};
const LEASE_HELD: Metric = Metric {
    name: "portal_lease_held",
    is_counter: false,
    help: "1 while this replica holds the Lease of its instance.",
    labels: &[],
};
const STATUS_WRITES: Metric = Metric {
    name: "portal_status_writes_total",
    is_counter: true,
    help: "Writes of rule status.",
    labels: &[("result", "`written`, `conflict` (somebody wrote in between; tried again), `failed`")],
};
const TASKS: Metric = Metric {
    name: "portal_tasks",
    is_counter: false,
    help: "Tasks that are alive: parts of the engine, connections, and requests under way.",
    labels: &[],
};

/// The metrics of this process.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) rules: IntGaugeVec,
    pub(crate) rule_sets: IntCounterVec,
    pub(crate) rule_set_time: IntCounterVec,
    pub(crate) updates: IntCounterVec,
    pub(crate) files_with_problems: IntGaugeVec,
    pub(crate) kinds: IntGaugeVec,
    pub(crate) discoveries: IntCounterVec,
    pub(crate) watch_errors: IntCounterVec,
    pub(crate) lease_held: IntGaugeVec,
    pub(crate) status_writes: IntCounterVec,
    pub(crate) tasks: IntGaugeVec,
}

impl Metrics {
    /// Registers the table.
    pub fn new() -> Metrics {
        let registry = Registry::new();
        let gauge = |metric: &Metric| {
            let gauge = IntGaugeVec::new(Opts::new(metric.name, metric.help), &metric.label_names());
            let gauge = gauge.expect("the table's own names are valid");
            registry.register(Box::new(gauge.clone())).expect("each name is in the table once");
            gauge
        };
        let counter = |metric: &Metric| {
            let counter = IntCounterVec::new(Opts::new(metric.name, metric.help), &metric.label_names());
            let counter = counter.expect("the table's own names are valid");
            registry.register(Box::new(counter.clone())).expect("each name is in the table once");
            counter
        };
        Metrics {
            rules: gauge(&RULES),
            rule_sets: counter(&RULE_SETS),
            rule_set_time: counter(&RULE_SET_TIME),
            updates: counter(&UPDATES),
            files_with_problems: gauge(&FILES_WITH_PROBLEMS),
            kinds: gauge(&KINDS),
            discoveries: counter(&DISCOVERIES),
            watch_errors: counter(&WATCH_ERRORS),
            lease_held: gauge(&LEASE_HELD),
            status_writes: counter(&STATUS_WRITES),
            tasks: gauge(&TASKS),
            registry,
        }
    }

    /// What Prometheus reads.
    pub(crate) fn text(&self) -> String {
        let mut bytes = Vec::new();
        // Writing to memory fails for a metric without values alone, which the encoder leaves out.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut bytes);
        String::from_utf8(bytes).unwrap_or_default()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metric {
    fn label_names(&self) -> Vec<&'static str> {
        self.labels.iter().map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are() {
        for metric in METRICS {
            assert!(metric.name.starts_with("portal_"), "{}", metric.name);
            assert_eq!(metric.is_counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn every_row_of_the_table_is_registered() {
        let metrics = Metrics::new();
        for gauge in [&metrics.rules, &metrics.files_with_problems, &metrics.kinds, &metrics.lease_held, &metrics.tasks]
        {
            let labels: Vec<&str> = gauge.desc_labels();
            gauge.with_label_values(&labels).set(1);
        }
        for counter in [
            &metrics.rule_sets,
            &metrics.rule_set_time,
            &metrics.updates,
            &metrics.discoveries,
            &metrics.watch_errors,
            &metrics.status_writes,
        ] {
            let labels: Vec<&str> = counter.desc_labels();
            counter.with_label_values(&labels).inc();
        }
        let text = metrics.text();
        for metric in METRICS {
            assert!(text.contains(&format!("# HELP {} {}", metric.name, metric.help)), "{}\n{text}", metric.name);
        }
    }

    trait Labels {
        fn desc_labels(&self) -> Vec<&str>;
    }

    impl<T: prometheus::core::Collector> Labels for T {
        fn desc_labels(&self) -> Vec<&str> {
            self.desc()[0].variable_labels.iter().map(String::as_str).collect()
        }
    }
}
