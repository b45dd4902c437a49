//! What a measurement says: a line of JSON for whoever makes the table.

use serde::Serialize;

/// One row of the table.
#[derive(Debug, Default, Serialize)]
pub struct Row {
    /// What was measured. A row is found again by it in the next run.
    pub what: String,
    /// The result.
    pub value: f64,
    /// What the result counts: `ns`, `×`, `B`.
    pub unit: &'static str,
    /// What it was measured against, or over.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub against: String,
    /// The worst single case.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub worst: String,
    /// The range of the result over the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
    /// What is promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must: Option<Goal>,
    /// What is hoped for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<Goal>,
    /// Whether the result is the same on each run of the same program, so that every change of it is a real one.
    pub exact: bool,
}

/// A bound on a result.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Goal {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
}

/// Prints a row.
pub fn print(row: &Row) {
    println!("{}", serde_json::to_string(row).expect("a row has nothing that JSON cannot say"));
}
