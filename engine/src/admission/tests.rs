//! The server, with real sockets and certificates. What waits has limits that are short, and waits for all of its clients at once.

mod bodies;
mod certificates;
mod clients;
mod crowd;
mod ending;
mod kit;
mod protocol;
mod slow;
mod swaps;
