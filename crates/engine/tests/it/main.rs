//! The engine over real sockets, against a server that does what it is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "a test that fails should fail loudly"
)]

mod probe;
mod server;
mod support;
mod turns;
