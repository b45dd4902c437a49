//! The metrics of a process, as tables: what is registered, what the reference page says, and what the code counts are one
//! list. This one has what every process counts; a crate above has a table of its own, made by the same macro.

mod family;
mod label;

use prometheus::{Encoder as _, TextEncoder, core::Collector};

use crate::{health::Part, metrics_label};

pub use prometheus::Registry;

pub use self::family::{Counter, Counters, Gauge, Gauges, Seconds};
pub use self::label::{Label, Word};

/// A row of a table, for the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// How its values are to be read.
    pub kind: MetricKind,
    /// What it counts.
    pub help: &'static str,
    /// Its labels, and the words that each can be.
    pub labels: &'static [(&'static str, &'static [Word])],
}

/// How the values of a metric are to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It says how much there is.
    Gauge,
    /// It counts how often something was how large.
    Histogram,
}

/// What a row of a table is made into.
pub trait Instrument: Sized {
    /// How its values are to be read.
    const KIND: MetricKind;
    /// Its labels, and the words that each can be.
    const LABELS: &'static [(&'static str, &'static [Word])];

    /// An instrument that has counted nothing yet.
    fn new(name: &str, help: &str) -> Self;

    /// What the registry asks for its values.
    fn collector(&self) -> Box<dyn Collector>;
}

/// A table of metrics: a struct with a field for each row, and the rows as a constant for the reference page. Whoever counts
/// something new adds a row.
#[macro_export]
macro_rules! metrics_table {
    ($(#[$about:meta])* $table:ident, $rows:ident { $($field:ident: $instrument:ty = $name:literal, $help:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $table {
            $(#[doc = $help] pub $field: $instrument,)+
        }

        /// The rows of the table, in the order of the page.
        pub const $rows: &[$crate::metrics::Metric] = &[$($crate::metrics::Metric {
            name: $name,
            kind: <$instrument as $crate::metrics::Instrument>::KIND,
            help: $help,
            labels: <$instrument as $crate::metrics::Instrument>::LABELS,
        }),+];

        impl $table {
            /// Registers the table.
            pub fn register(registry: &$crate::metrics::Registry) -> $table {
                $table { $($field: $crate::metrics::register(registry, $name, $help)),+ }
            }
        }
    };
}

metrics_table! {
    /// What every process counts.
    Metrics, METRICS {
        rules: Gauges<RuleState> = "portal_rules", "Rules that this replica knows, by what has become of them.";
        rule_sets: Counter = "portal_rule_sets_total", "Times that another set of rules was put in place.";
        rule_set_time: Counter =
            "portal_rule_set_microseconds_total", "Time between news about rules and the set that takes them into account.";
        rule_updates: Counters<RuleOrigin> =
            "portal_rule_updates_total", "News about rules: a file or an object that was read, changed or removed.";
        files_with_problems: Gauge =
            "portal_rule_files_with_problems", "Files of the rules folder whose newest version cannot be used.";
        kinds: Gauge = "portal_kinds", "Kinds that the API server serves.";
        discoveries: Counters<Discovery> =
            "portal_kinds_discoveries_total", "Times that the API server was asked what it serves.";
        watch_errors: Counters<Part> = "portal_watch_errors_total", "Errors of watches, which are tried again.";
        lease_held: Gauge = "portal_lease_held", "1 while this replica holds the Lease of its instance.";
        tasks: Gauge =
            "portal_tasks", "Tasks that are alive: parts of the process, connections, and requests under way.";
    }
}

metrics_label! {
    /// What has become of a rule.
    pub enum RuleState in "state" {
        Active = "active", "";
        Refused = "refused", "";
        Waiting = "waiting", "for a kind";
        Syncing = "syncing", "the objects that they look up are not at hand yet";
        Disabled = "disabled", "";
        OverQuota = "over-quota", "their namespace has too many";
        Shadowed = "shadowed", "by a file's rule of the same name";
    }
}

metrics_label! {
    /// Where a rule comes from.
    pub enum RuleOrigin in "source" {
        File = "file", "";
        Object = "object", "";
    }
}

metrics_label! {
    /// What came of asking which kinds are served.
    pub enum Discovery in "result" {
        Changed = "changed", "";
        Same = "same", "";
        Failed = "failed", "";
    }
}

/// Makes the instrument of a row, and registers it.
pub fn register<I: Instrument>(registry: &Registry, name: &str, help: &str) -> I {
    let instrument = I::new(name, help);
    registry.register(instrument.collector()).expect("each name is in one table once");
    instrument
}

/// What Prometheus reads.
pub fn text(registry: &Registry) -> String {
    let mut bytes = Vec::new();
    // Writing to memory fails for a metric without values alone, which the encoder leaves out.
    let _ = TextEncoder::new().encode(&registry.gather(), &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_prometheus_reads() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry);
        metrics.rules.at(&RuleState::Waiting).set(3);
        metrics.rule_sets.inc();
        metrics.watch_errors.at(&Part::Watch("pods".into())).inc();
        metrics.watch_errors.at(&Part::Rules).inc();
        let text = text(&registry);
        for line in [
            "# HELP portal_rules Rules that this replica knows, by what has become of them.",
            "# TYPE portal_rules gauge",
            "portal_rules{state=\"waiting\"} 3",
            "portal_rule_sets_total 1",
            "portal_watch_errors_total{watch=\"pods\"} 1",
            "portal_watch_errors_total{watch=\"rules\"} 1",
            // What has no label is there from the start.
            "portal_kinds 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
