//! Rules: compiled, matched and evaluated. Values in, values out: no I/O, no async runtime, no Kubernetes client.

pub mod engine;
