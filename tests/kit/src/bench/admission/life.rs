//! How long an engine takes until it is ready, and how long to end when nobody asks it anything.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::stage::Stage;
use super::{Samples, row};
use crate::bench::table::{Goal, Row};

const LIVES: usize = 7;

/// How long it goes on answering, in seconds, which is not what is measured.
const DRAIN: f64 = 1.0;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..LIVES {
        let begin = Instant::now();
        let webhook = stage.start_webhook(None, &[&format!("--admission-drain={DRAIN}")])?;
        while !webhook.engine.is_ready() {
            if begin.elapsed() > Duration::from_secs(20) {
                bail!("the engine is not ready");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        starts.push(begin.elapsed().as_secs_f64() * 1000.0);
        stage.ask(&webhook.address, "review.json", &["--requests", "1"])?.all_allowed()?;
        let end = Instant::now();
        webhook.engine.process.stop()?;
        ends.push(end.elapsed().as_secs_f64() - DRAIN);
    }
    let (starts, ends) = (Samples::new(starts), Samples::new(ends));
    Ok(vec![
        Row {
            must: Some(Goal::AtMost(200.0)),
            aim: Some(Goal::AtMost(50.0)),
            ..row("start an engine with 15 rules until it is ready", "", &starts, "ms")
        },
        Row { must: Some(Goal::AtMost(1.0)), ..row("SIGTERM to the end, after the drain", "", &ends, "s") },
    ])
}
