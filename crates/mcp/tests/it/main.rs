//! Real servers: processes and sockets.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails should fail loudly; the server of the tests speaks on standard output"
)]

mod plays;
mod process;
mod session;
mod support;
mod web;

/// No test: where a process that a test starts begins.
#[test]
fn server() {
    plays::play_if_asked();
}
