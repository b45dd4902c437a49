//! Rules: compiled, matched and evaluated. Values in, values out: no I/O, no async runtime, no Kubernetes client.

pub mod alert;
pub mod kinds;
pub mod manifest;
pub mod names;

pub mod language;

pub mod context;
pub mod rule;

pub mod layers;
pub mod requirements;
pub mod webhook;

pub mod permissions;

pub mod object;

pub mod event;
pub mod lookup;
pub mod review;
pub mod selector;

pub mod evaluate;

pub mod decide;

pub mod authoring;

#[cfg(test)]
mod testing;
