//! What a decision costs: for the engine beside a server that decides nothing, for the API server beside a policy in CEL, in memory,
//! and at the beginning and the end of an engine. The rules are the fifteen of the library that pods are held to most strictly.

mod creates;
mod hostile;
mod life;
mod serving;
mod stage;
mod verdicts;

use self::stage::Stage;
use super::Measuring;
use super::samples::Samples;
use super::table::Row;

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    // On a thread without a runtime: this one has its own.
    let measured = std::thread::scope(|scope| scope.spawn(|| rows(measuring)).join());
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn rows(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let stage = Stage::set(measuring)?;
    let mut rows = serving::measure(&stage)?;
    rows.extend(measuring.programs.run("judge", &[&stage.path("review.json")])?);
    rows.extend(creates::measure(&stage)?);
    rows.extend(hostile::measure(&stage)?);
    rows.extend(life::measure(&stage)?);
    Ok(rows)
}

/// A row with the middle of some samples, and their spread.
fn row(what: &str, against: &str, samples: &Samples, unit: &str) -> Row {
    Row {
        what: what.to_owned(),
        against: against.to_owned(),
        value: samples.median(),
        unit: unit.to_owned(),
        spread: Some(samples.spread()),
        ..Row::default()
    }
}
