//! The instruments that a table can have.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, core::Collector};

use super::{Instrument, Label, MetricKind, Word};

/// Counts what only grows.
pub type Counter = IntCounter;

/// Says how much there is.
pub type Gauge = IntGauge;

/// How long something took, from a tenth of a millisecond to the longest time after which an API server gives up.
pub type Seconds = Histogram;

/// The bounds of what is counted together, in seconds. Of an answer that takes less than the first nobody notices anything.
const SECONDS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 5.0, 10.0, 30.0];

/// Counters that a label tells apart.
pub type Counters<L> = Family<IntCounterVec, L>;

/// Gauges that a label tells apart.
pub type Gauges<L> = Family<IntGaugeVec, L>;

/// Series that a label tells apart. A clone counts into the same series.
pub struct Family<V, L> {
    series: V,
    /// The names of an open label that have series of their own. Whoever counts one for the first time adds it.
    names: Arc<Mutex<HashSet<String>>>,
    label: PhantomData<fn(L)>,
}

/// What counters and gauges of the prometheus crate have in common. The crate has no trait for it.
pub trait Vector: Collector + Clone {
    /// One of the series.
    type Series;
    /// How its values are to be read.
    const KIND: MetricKind;

    /// No series yet.
    fn new(name: &str, help: &str, label: &str) -> Self;

    /// The series of a word.
    fn at(&self, word: &str) -> Self::Series;

    /// What a name counts into that has no series of its own.
    fn shared(&self) -> Self::Series;

    /// Forgets the series of a word.
    fn forget(&self, word: &str);
}

/// The most names of an open label that have series of their own at a time: Prometheus keeps each for weeks.
const MAX_NAMES: usize = 256;

/// What the counters of all names above that share.
const OTHERS: &str = "other";

impl<V: Vector, L: Label> Family<V, L> {
    /// The series of a label.
    pub fn at(&self, label: &L) -> V::Series {
        let word = label.word();
        let has_own = !L::IS_OPEN || is_listed::<L>(word) || {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.contains(word) || (names.len() < MAX_NAMES && names.insert(word.to_owned()))
        };
        if has_own { self.series.at(word) } else { self.series.shared() }
    }

    /// Forgets the series of a name that has come and gone.
    pub fn forget(&self, label: &L) {
        let word = label.word();
        if self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(word) {
            self.series.forget(word);
        }
    }
}

fn is_listed<L: Label>(word: &str) -> bool {
    L::WORDS.iter().any(|Word(listed, _)| *listed == word)
}

impl<V: Clone, L> Clone for Family<V, L> {
    fn clone(&self) -> Self {
        Family { series: self.series.clone(), names: Arc::clone(&self.names), label: PhantomData }
    }
}

impl<V, L: Label> fmt::Debug for Family<V, L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Family").field("label", &L::NAME).finish_non_exhaustive()
    }
}

impl<V: Vector + 'static, L: Label> Instrument for Family<V, L> {
    const KIND: MetricKind = V::KIND;
    const LABELS: &'static [(&'static str, &'static [Word])] = &[(L::NAME, L::WORDS)];

    fn new(name: &str, help: &str) -> Self {
        let series = V::new(name, help, L::NAME);
        // Prometheus does not see the first growth of a series that begins with it.
        for Word(word, _) in L::WORDS.iter().filter(|_| !L::IS_OPEN) {
            series.at(word);
        }
        Family { series, names: Arc::default(), label: PhantomData }
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(self.series.clone())
    }
}

impl Instrument for Counter {
    const KIND: MetricKind = MetricKind::Counter;
    const LABELS: &'static [(&'static str, &'static [Word])] = &[];

    fn new(name: &str, help: &str) -> Self {
        IntCounter::new(name, help).expect("the names of a table are valid")
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(self.clone())
    }
}

impl Instrument for Gauge {
    const KIND: MetricKind = MetricKind::Gauge;
    const LABELS: &'static [(&'static str, &'static [Word])] = &[];

    fn new(name: &str, help: &str) -> Self {
        IntGauge::new(name, help).expect("the names of a table are valid")
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(self.clone())
    }
}

impl Instrument for Seconds {
    const KIND: MetricKind = MetricKind::Histogram;
    const LABELS: &'static [(&'static str, &'static [Word])] = &[];

    fn new(name: &str, help: &str) -> Self {
        let options = HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        Histogram::with_opts(options).expect("the names of a table are valid")
    }

    fn collector(&self) -> Box<dyn Collector> {
        Box::new(self.clone())
    }
}

impl Vector for IntCounterVec {
    type Series = IntCounter;
    const KIND: MetricKind = MetricKind::Counter;

    fn new(name: &str, help: &str, label: &str) -> Self {
        IntCounterVec::new(Opts::new(name, help), &[label]).expect("the names of a table are valid")
    }

    fn at(&self, word: &str) -> IntCounter {
        self.with_label_values(&[word])
    }

    fn shared(&self) -> IntCounter {
        self.at(OTHERS)
    }

    fn forget(&self, word: &str) {
        // It fails if there is no such series, which is what was asked for.
        let _ = self.remove_label_values(&[word]);
    }
}

impl Vector for IntGaugeVec {
    type Series = IntGauge;
    const KIND: MetricKind = MetricKind::Gauge;

    fn new(name: &str, help: &str, label: &str) -> Self {
        IntGaugeVec::new(Opts::new(name, help), &[label]).expect("the names of a table are valid")
    }

    fn at(&self, word: &str) -> IntGauge {
        self.with_label_values(&[word])
    }

    /// A gauge that nobody reads: of several names that set one gauge, the last would be told for all.
    fn shared(&self) -> IntGauge {
        IntGauge::new(OTHERS, OTHERS).expect("the name is valid")
    }

    fn forget(&self, word: &str) {
        // It fails if there is no such series, which is what was asked for.
        let _ = self.remove_label_values(&[word]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{health::Part, metrics::RuleState};

    fn count(errors: &Counters<Part>) -> usize {
        errors.series.collect()[0].get_metric().len()
    }

    #[test]
    fn names_that_come_and_go_have_a_bounded_number_of_series() {
        let errors: Counters<Part> = Instrument::new("portal_errors_total", "Errors.");
        let watch = |number: usize| Part::Watch(format!("kind-{number}").into());
        for number in 0..2 * MAX_NAMES {
            errors.at(&watch(number)).inc();
        }
        errors.at(&Part::Rules).inc();
        // The names, what the others share, and a word that is always there.
        assert_eq!(count(&errors), MAX_NAMES + 2);
        assert_eq!(errors.series.at(OTHERS).get(), MAX_NAMES as u64);
        for number in 0..2 * MAX_NAMES {
            errors.forget(&watch(number));
        }
        assert_eq!(count(&errors), 2);
        errors.at(&watch(2 * MAX_NAMES)).inc();
        assert_eq!(errors.series.at("kind-512").get(), 1);
    }

    #[test]
    fn every_word_of_a_label_has_a_series_before_anything_is_counted() {
        let states: Counters<RuleState> = Instrument::new("portal_states_total", "States.");
        assert_eq!(states.series.collect()[0].get_metric().len(), RuleState::WORDS.len());
    }

    #[test]
    fn no_gauge_tells_the_value_of_one_name_for_another() {
        let objects: Gauges<Part> = Instrument::new("portal_objects", "Objects.");
        for number in 0..=MAX_NAMES {
            objects.at(&Part::Watch(format!("kind-{number}").into())).set(number as i64);
        }
        assert_eq!(objects.series.collect()[0].get_metric().len(), MAX_NAMES);
        assert_eq!(objects.series.at("kind-255").get(), 255);
    }
}
