//! The engine against the real world: sockets, processes, folders, links.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod bounds;
mod confined;
mod files;
mod hurried;
mod listed;
mod permissions;
mod probe;
mod protected;
mod race;
mod search;
mod server;
mod shell;
mod simulated;
mod support;
mod talk;
mod turns;
