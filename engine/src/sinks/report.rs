//! What is wrong in the cluster, as reports that are objects of it: PolicyReports, or reports of OpenReports.
//!
//! [`results`] says what is told of an object, [`layout`] in which report, [`pace`] when, and [`writer`] does it while the Lease is held.

mod layout;
mod model;
mod pace;
mod requests;
mod results;
#[cfg(test)]
mod testing;
mod writer;

#[cfg(test)]
pub(crate) use self::layout::tests::reporter::{Reporter, Reports};
pub use self::model::Api;
pub use self::writer::{LOOK, ReportSettings, Reporting, Writer};
