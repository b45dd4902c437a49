//! `make bench`: what the parts cost, in one table. A number is the middle of several runs, with the spread beside it; what
//! the last run came to is kept in the cache, and the change is shown.

mod admission;
mod allocators;
mod audit;
mod clusters;
mod engine;
mod instructions;
mod lookups;
mod operator;
mod process;
mod programs;
mod samples;
mod table;

use anyhow::bail;
use portal_test_kit::cache::Cache;

use self::programs::Programs;
use self::table::{Row, Table};

/// A part of the table that can be asked for by its name.
struct Part {
    name: &'static str,
    measure: fn(&Measuring<'_>) -> anyhow::Result<Vec<Row>>,
}

/// What a part measures with.
struct Measuring<'a> {
    cache: &'a Cache,
    programs: Programs,
}

fn builtin() -> Vec<Part> {
    vec![
        Part { name: "language", measure: programs::language },
        Part { name: "documents", measure: programs::documents },
        Part { name: "rules", measure: programs::rules },
        Part { name: "gator", measure: programs::gator },
        Part { name: "lookups", measure: lookups::measure },
        Part { name: "instructions", measure: instructions::measure },
        Part { name: "allocators", measure: allocators::measure },
        Part { name: "engine", measure: engine::measure },
        Part { name: "admission", measure: admission::measure },
        Part { name: "audit", measure: audit::measure },
        Part { name: "operator", measure: operator::measure },
        Part { name: "clusters", measure: clusters::measure },
    ]
}

/// Measures the parts of this name, or all of them. Fails when a result is not what it must be.
pub(crate) fn run(cache: &Cache, only: Option<&str>) -> anyhow::Result<()> {
    let parts: Vec<Part> = builtin().into_iter().filter(|part| only.is_none_or(|only| part.name == only)).collect();
    if parts.is_empty() {
        let names: Vec<&str> = builtin().iter().map(|part| part.name).collect();
        bail!("no part is called {:?}: there are {}", only.unwrap_or_default(), names.join(", "));
    }
    // Two runs at once would measure each other.
    let _lock = cache.lock("bench")?;
    if only.is_none() {
        programs::check()?;
    }
    // Whoever measures a part wants to see into it; whoever measures all wants the table.
    let measuring = Measuring { cache, programs: Programs { details: only.is_some() } };
    let mut table = Table::open(cache)?;
    for part in parts {
        println!("measuring: {}", part.name);
        for row in (part.measure)(&measuring)? {
            table.add(row);
        }
    }
    println!("\n{table}");
    table.save()?;
    match table.misses() {
        0 => Ok(()),
        misses => bail!("{misses} of the results are not what they must be"),
    }
}
