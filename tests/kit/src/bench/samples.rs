//! Several measurements of the same thing.

/// Measurements, of which there is at least one.
#[derive(Clone, Debug)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    pub(super) fn new(samples: impl IntoIterator<Item = f64>) -> Samples {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        Samples(samples)
    }

    /// The one in the middle.
    pub(super) fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// The least and the most.
    pub(super) fn spread(&self) -> (f64, f64) {
        (self.0[0], self.0[self.0.len() - 1])
    }
}
