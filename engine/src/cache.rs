//! Objects of the cluster, as they were told last: what rules look up, and what audit judges. One copy of each in the process.
//!
//! ```text
//! Snapshot (rules in force, and those that wait) → Keeper → a Feed for each kind → Store → Moment, swapped under those who read it
//!                                                    │                                       ↓
//!                                                    └→ Update::Feeds → index         Answers of a request
//! ```
//!
//! A program that judges and ends [lists](once::list_once) the same stores once.
//!
//! One task writes each store. Whoever reads takes a [`moment::Moment`] of it, which never changes.

pub mod answers;
pub mod changes;
pub mod feed;
pub mod fresh;
pub mod keeper;
pub mod moment;
pub mod once;
pub mod store;
pub mod thread;
mod tree;
