//! How long clusters take to start and to stop, and how large the image is.

use std::time::Instant;

use portal_test_kit::{Cluster, Size, prepare};

use super::Measuring;
use super::table::Row;

const RUNS: usize = 5;

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for size in [Size::Core, Size::Control, Size::Full] {
        let (mut starts, mut stops) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let begin = Instant::now();
            let cluster = Cluster::start(size)?;
            starts.push(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            cluster.stop()?;
            stops.push(begin.elapsed().as_secs_f64());
        }
        rows.push(row(format!("start a {size} cluster"), starts));
        rows.push(row(format!("stop a {size} cluster"), stops));
    }
    let archive = prepare::portal_image(measuring.cache)?;
    let megabytes = archive.metadata()?.len() as f64 / 1e6;
    rows.push(Row { what: "image of portal".to_owned(), value: megabytes, unit: "MB".to_owned(), ..Row::default() });
    Ok(rows)
}

fn row(what: String, mut seconds: Vec<f64>) -> Row {
    seconds.sort_by(f64::total_cmp);
    let spread = Some((seconds[0], seconds[seconds.len() - 1]));
    Row { what, value: seconds[seconds.len() / 2], unit: "s".to_owned(), spread, ..Row::default() }
}
