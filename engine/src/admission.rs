//! The layer that the API server asks. It holds the server of the webhook, which is given the router that answers: TLS with a
//! certificate that is followed, limits that hold for whatever the router does, and an end that loses no request.

pub mod authors;
pub mod guard;
pub mod judge;
pub mod limits;
pub mod namespaces;
pub mod preview;
pub mod probe;
pub mod routes;
pub mod server;
pub mod tls;

mod answer;
mod body;
mod connection;
mod connections;
mod refusal;

#[cfg(test)]
mod tests;
