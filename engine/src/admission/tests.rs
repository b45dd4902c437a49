//! The server, with real sockets and certificates. What waits has limits that are short, and waits for all of its clients at once.
//! Behind it those who judge, with rules in force and an API server that says what a test wants.

mod authors;
mod bodies;
mod certificates;
mod clients;
mod crowd;
mod ending;
mod exemptions;
mod kit;
mod protocol;
mod requests;
mod slow;
mod swaps;
