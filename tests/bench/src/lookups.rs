//! What caches of a whole cluster are measured with: 100,000 pods that an API double tells, and those who listen to it.

mod changes;
mod double;
mod events;
mod questions;
mod requests;
pub mod sides;

use std::error::Error;
use std::path::Path;

use portal_cluster::client::connect;
use portal_core::kinds::{Kind, Kinds};

pub use double::{Double, Offer};

use crate::measure::Samples;
use crate::row::{self, Goal, Row};

/// How many pods the caches have.
pub const PODS: usize = 100_000;

/// How many pods kube's store is measured with. It takes 1.1 GB for them, and its pods share nothing, so that more of them are no smaller.
pub const FEW: usize = 10_000;

/// How many pods are changed after the list.
pub const UPDATES: usize = 20_000;

/// Measures what the pods of a cluster are asked and told once they are cached, and prints rows of it.
pub fn ask(kubeconfig: &Path) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut store = runtime.block_on(async { events::fill(&connect(Some(kubeconfig)).await?).await })?;
    let moment = store.shown().moment().ok_or("the pods were listed")?;
    let chosen = questions::Chosen::among(&moment);
    drop(moment);
    questions::measure(&store.shown(), &chosen)?;
    requests::measure(&store.shown(), &chosen)?;
    changes::measure(&mut store)
}

fn pods() -> &'static Kind {
    builtin("Pod")
}

fn builtin(kind: &str) -> &'static Kind {
    Kinds::builtin().get("", kind).expect("the table of Kubernetes has it")
}

/// Prints the times of something, in microseconds.
fn print(what: &str, against: &str, times: Vec<f64>, must: f64, aim: Option<f64>) {
    let samples = Samples::new(times);
    row::print(&Row {
        what: what.to_owned(),
        against: against.to_owned(),
        value: samples.median(),
        unit: "µs",
        spread: Some(samples.spread()),
        must: Some(Goal::AtMost(must)),
        aim: aim.map(Goal::AtMost),
        ..Row::default()
    });
}
