//! Portal's custom resources as Rust types. The YAML generated from them is committed beside this crate.
