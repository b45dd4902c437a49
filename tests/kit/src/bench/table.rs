//! The table, and what it said the last time.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use portal_test_kit::cache::Cache;
use serde::Deserialize;

/// One result.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) against: String,
    pub(super) worst: String,
    pub(super) spread: Option<(f64, f64)>,
    pub(super) must: Option<Goal>,
    pub(super) aim: Option<Goal>,
    /// Whether the same program always comes to the same result, so that every change is a real one.
    pub(super) exact: bool,
}

/// A bound on a result.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// All results of a run.
pub(super) struct Table {
    rows: Vec<Row>,
    /// What each row said before, by its name.
    last: BTreeMap<String, f64>,
    file: PathBuf,
}

/// How much an exact result may change before it is said: hash seeds and addresses differ from run to run.
const NOTHING: f64 = 0.02;

impl Table {
    /// A table without rows that knows the last results.
    pub(super) fn open(cache: &Cache) -> anyhow::Result<Self> {
        let file = cache.folder("bench")?.join("last.json");
        let last = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self { rows: Vec::new(), last, file })
    }

    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Keeps the results for the next run, and those of parts that were not measured.
    pub(super) fn save(&self) -> anyhow::Result<()> {
        let mut last = self.last.clone();
        last.extend(self.rows.iter().map(|row| (row.key(), row.value)));
        fs::write(&self.file, serde_json::to_string_pretty(&last)?)?;
        Ok(())
    }

    /// How many results are not what they must be.
    pub(super) fn misses(&self) -> usize {
        self.rows.iter().filter(|row| row.misses()).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "against", "value", "worst", "spread", "must", "aim", "change"].map(str::to_owned);
        let rows = self.rows.iter().map(|row| row.cells(self.last.get(&row.key()).copied()));
        let lines: Vec<[String; 8]> = [head].into_iter().chain(rows).collect();
        let widths: [usize; 8] =
            std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
        for line in &lines {
            let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(formatter, "{}", cells.join("  ").trim_end())?;
        }
        for row in self.rows.iter().filter(|row| row.misses()) {
            writeln!(formatter, "MISSED: {} {}", row.what, row.against)?;
        }
        Ok(())
    }
}

impl Row {
    fn key(&self) -> String {
        format!("{} / {}", self.what, self.against)
    }

    fn misses(&self) -> bool {
        self.must.is_some_and(|must| !must.met(self.value))
    }

    fn cells(&self, last: Option<f64>) -> [String; 8] {
        let goal = |goal: Option<Goal>| goal.map_or_else(String::new, |goal| goal.to_string());
        let met = |goal: Option<Goal>| goal.is_none_or(|goal| goal.met(self.value));
        let mark = |text: String, met: bool| if met { text } else { format!("{text} MISSED") };
        [
            self.what.clone(),
            self.against.clone(),
            format!("{} {}", number(self.value), self.unit),
            self.worst.clone(),
            self.spread.map_or_else(String::new, |(least, most)| format!("{}–{}", number(least), number(most))),
            mark(goal(self.must), met(self.must)),
            goal(self.aim),
            last.map_or_else(|| "first".to_owned(), |last| self.change(last)),
        ]
    }

    fn change(&self, last: f64) -> String {
        let change = self.value / last - 1.0;
        let percent = format!("{:+.1} %", change * 100.0);
        let within = |(least, most): (f64, f64)| (least..=most).contains(&last);
        match self.spread {
            _ if self.value == last => "=".to_owned(),
            _ if self.exact && change.abs() > NOTHING => format!("{percent} REAL"),
            _ if self.exact => percent,
            Some(spread) if within(spread) => format!("{percent} (noise)"),
            _ => percent,
        }
    }
}

impl Goal {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(formatter, "≥ {}", number(*bound)),
            Self::AtMost(bound) => write!(formatter, "≤ {}", number(*bound)),
        }
    }
}

/// Three digits that count.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size == size.trunc() || size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(rows: Vec<Row>, last: &[(&str, f64)], expected: Expect) {
        let last = last.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        expected.assert_eq(&Table { rows, last, file: PathBuf::new() }.to_string());
    }

    fn row(what: &str, value: f64) -> Row {
        Row { what: what.to_owned(), value, unit: "ns".to_owned(), ..Row::default() }
    }

    #[test]
    fn a_result_that_is_not_what_it_must_be_is_marked_and_named_again_at_the_end() {
        let row = Row { must: Some(Goal::AtLeast(5.0)), aim: Some(Goal::AtLeast(20.0)), ..row("race", 4.5) };
        check(
            vec![row],
            &[],
            expect![[r#"
                what  against  value    worst  spread  must        aim   change
                race           4.50 ns                 ≥ 5 MISSED  ≥ 20  first
                MISSED: race 
            "#]],
        );
    }

    #[test]
    fn a_change_is_called_noise_within_the_spread_and_real_when_the_result_is_exact() {
        let noisy = Row { spread: Some((90.0, 120.0)), ..row("noisy", 100.0) };
        let exact = Row { exact: true, ..row("exact", 103.0) };
        let slight = Row { exact: true, ..row("slight", 101.0) };
        let last = [("noisy / ", 110.0), ("exact / ", 100.0), ("slight / ", 100.0)];
        check(
            vec![noisy, exact, slight],
            &last,
            expect![[r#"
                what    against  value   worst  spread  must  aim  change
                noisy            100 ns         90–120             -9.1 % (noise)
                exact            103 ns                            +3.0 % REAL
                slight           101 ns                            +1.0 %
            "#]],
        );
    }
}
