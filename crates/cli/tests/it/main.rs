//! Whether the binary is wired: what goes in, what comes out, with which code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails should fail loudly"
)]

mod ask;
mod config;
mod decode;
mod doctor;
mod encode;
mod key;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod pages;
mod profile;
mod providers;
mod sessions;
mod sim;
mod support;
mod terminal;
