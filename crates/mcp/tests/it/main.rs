//! Tests with real servers: processes and sockets.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails should fail loudly; the server of the tests speaks on standard output"
)]

#[path = "../../../confine/tests/it/folder_outside.rs"]
mod folder_outside;
mod http;
mod process;
mod session;
mod support;
mod test_server;

/// Not a test: the entry point of test servers, which run this binary again.
#[test]
fn server() {
    test_server::run_if_requested();
}
