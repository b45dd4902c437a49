//! What the largest bodies take of the engine's memory, each made of something small as often as it fits.

use std::fs;

use super::stage::Stage;
use crate::bench::table::{Goal, Row, number};

/// A body, and what it cost.
struct Cost {
    name: String,
    /// Memory at the most, less what there was before, for each byte of the body.
    rise: f64,
    megabytes: f64,
    seconds: f64,
}

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut costs = Vec::new();
    for entry in fs::read_dir(stage.path("hostile"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // One process each: what an allocator keeps would hide the next rise.
        let webhook = stage.webhook(None)?;
        stage.ask(&webhook.address, "review.json", &["--requests", "100"])?.all_allowed()?;
        let before = webhook.engine.process.memory()?;
        let outcome = stage.ask(&webhook.address, &format!("hostile/{name}.json"), &["--requests", "1"])?;
        let megabytes = webhook.engine.process.most_memory()? - before;
        let rise = megabytes * 1e6 / fs::metadata(&path)?.len() as f64;
        let seconds = outcome.milliseconds.max / 1000.0;
        if stage.details {
            let answer: String = outcome.first.chars().take(100).collect();
            eprintln!("{name:<44}{megabytes:>7.1} MB{rise:>7.2} ×{seconds:>8.3} s  {answer}");
        }
        webhook.engine.process.stop()?;
        costs.push(Cost { name, rise, megabytes, seconds });
    }
    costs.sort_by(|one, other| other.rise.total_cmp(&one.rise));
    let worst = &costs[0];
    let slowest = costs.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds)).unwrap_or(worst);
    Ok(vec![
        Row {
            what: "memory for the worst body of 7 MB".to_owned(),
            against: "its size".to_owned(),
            value: worst.rise,
            unit: "×".to_owned(),
            worst: format!("{} MB: {}", number(worst.megabytes), worst.name),
            must: Some(Goal::AtMost(8.0)),
            aim: Some(Goal::AtMost(4.0)),
            ..Row::default()
        },
        Row {
            what: "time for the slowest body of 7 MB".to_owned(),
            value: slowest.seconds,
            unit: "s".to_owned(),
            worst: slowest.name.clone(),
            // The API server waits no longer.
            must: Some(Goal::AtMost(5.0)),
            ..Row::default()
        },
    ])
}
