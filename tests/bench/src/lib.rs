//! What `make bench` measures with: the bench set, the objects, and how a time becomes a row of the table.

#[cfg(target_env = "musl")]
use portal_memory as _;

#[cfg(feature = "race")]
pub mod cel;
#[cfg(feature = "web")]
pub mod client;
pub mod counting;
pub mod go;
pub mod library;
#[cfg(feature = "web")]
pub mod load;
#[cfg(feature = "lookups")]
pub mod lookups;
pub mod measure;
pub mod objects;
pub mod portal;
pub mod process;
pub mod reviews;
pub mod row;
pub mod rules;
