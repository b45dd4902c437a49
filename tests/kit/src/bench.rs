//! `make bench`: what the parts cost, in one table. A number is the middle of several runs, with the spread beside it.

use std::time::Instant;

use portal_test_kit::cache::Cache;
use portal_test_kit::{Cluster, Size, prepare};

const RUNS: usize = 5;

pub(crate) fn run(cache: &Cache) -> anyhow::Result<()> {
    println!("{:<34}{:>10}{:>10}{:>10}", "what", "median", "least", "most");
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
        print_row(&format!("start a {size} cluster, s"), starts);
        print_row(&format!("stop a {size} cluster, s"), stops);
    }
    let archive = prepare::portal_image(cache)?;
    println!("{:<34}{:>10.1}", "image of portal, MB", archive.metadata()?.len() as f64 / 1e6);
    Ok(())
}

fn print_row(what: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let (least, most) = (seconds[0], seconds[seconds.len() - 1]);
    println!("{what:<34}{:>10.2}{least:>10.2}{most:>10.2}", seconds[seconds.len() / 2]);
}
