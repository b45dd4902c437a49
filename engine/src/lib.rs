//! The engine: everything around `portal-core` that does I/O. Watches and caches, the webhook server, audit, network
//! analysis, sinks and actions. The layers `admission`, `audit`, `network` and `actions` never import each other.

pub mod client;
pub mod health;
pub mod holder;
pub mod kinds;
pub mod metrics;
pub mod rules;
pub mod run;
mod server;
mod watch;
