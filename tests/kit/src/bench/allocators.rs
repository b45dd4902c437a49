//! Which allocator the program that users get should have: the same churn with each, as the static program and, to compare, as
//! one that uses this machine's C library.

use std::process::Command;

use anyhow::{Context as _, bail};

use super::Measuring;
use super::table::Row;

const RUNS: usize = 5;

/// A build of the churn.
struct Variant {
    name: &'static str,
    /// Whether it is for the target that is shipped.
    shipped: bool,
    feature: Option<&'static str>,
}

const VARIANTS: [Variant; 6] = [
    Variant { name: "musl", shipped: true, feature: None },
    Variant { name: "musl with mimalloc", shipped: true, feature: Some("mimalloc") },
    Variant { name: "musl with jemalloc", shipped: true, feature: Some("jemalloc") },
    Variant { name: "glibc", shipped: false, feature: None },
    Variant { name: "glibc with mimalloc", shipped: false, feature: Some("mimalloc") },
    Variant { name: "glibc with jemalloc", shipped: false, feature: Some("jemalloc") },
];

pub(super) fn measure(measuring: &Measuring<'_>) -> anyhow::Result<Vec<Row>> {
    let folder = measuring.cache.folder("bench")?;
    let mut programs = Vec::new();
    for (index, variant) in VARIANTS.iter().enumerate() {
        let target =
            format!("{}-unknown-linux-{}", std::env::consts::ARCH, if variant.shipped { "musl" } else { "gnu" });
        let mut arguments = vec!["--no-default-features", "--target", &target];
        arguments.extend(variant.feature.map(|feature| ["--features", feature]).into_iter().flatten());
        let built = measuring.programs.build("churn", &arguments)?;
        // The next variant takes its place in the folder of built programs.
        let program = folder.join(format!("churn-{index}"));
        std::fs::copy(built, &program)?;
        programs.push(program);
    }
    let mut samples = vec![(Vec::new(), Vec::new()); VARIANTS.len()];
    for _ in 0..RUNS {
        for (program, (speeds, memories)) in programs.iter().zip(&mut samples) {
            let output = Command::new(program).output()?;
            if !output.status.success() {
                bail!("{} failed ({})", program.display(), output.status);
            }
            let text = String::from_utf8(output.stdout)?;
            let (speed, memory) = text.trim().split_once(' ').context("the churn prints two numbers")?;
            speeds.push(speed.parse::<f64>()? / 1000.0);
            memories.push(memory.parse::<f64>()? / 1e6);
        }
    }
    let rows = VARIANTS.iter().zip(samples).flat_map(|(variant, (speeds, memories))| {
        [
            row("parse and judge pods, 2 threads", variant, speeds, "k/s"),
            row("memory left in use by it", variant, memories, "MB"),
        ]
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|a, b| b.what.cmp(&a.what));
    Ok(rows)
}

fn row(what: &str, variant: &Variant, mut samples: Vec<f64>, unit: &str) -> Row {
    samples.sort_by(f64::total_cmp);
    Row {
        what: what.to_owned(),
        against: variant.name.to_owned(),
        value: samples[samples.len() / 2],
        unit: unit.to_owned(),
        spread: Some((samples[0], samples[samples.len() - 1])),
        ..Row::default()
    }
}
