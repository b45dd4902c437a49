//! A cluster without machines, and operators that work on it: every write is checked as it is done.
//!
//! [`World`](world::World) is an API server with its controllers: objects with versions and owners, server-side apply, garbage collection,
//! Deployments, pods, kubelets. A [`Process`](process::Process) is an operator with its watches, its memory and the real executor.
//! What must never happen is in `invariants.rs`, and is looked for after every write and after everything that anybody does.

mod apply;
mod certificates;
mod controllers;
mod fault_points;
mod fights;
mod gitops;
mod histories;
mod invariants;
mod leaving;
mod names;
mod process;
mod rights;
mod rules;
mod scene;
mod spec_fields;
mod trust;
mod versions;
mod world;
