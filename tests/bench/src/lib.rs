//! What `make bench` measures with: the bench set, the objects, and how a time becomes a row of the table.

#[cfg(feature = "race")]
pub mod cel;
pub mod counting;
pub mod go;
pub mod library;
pub mod measure;
pub mod objects;
pub mod portal;
pub mod process;
pub mod row;
pub mod rules;
