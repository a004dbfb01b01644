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
#[cfg(unix)]
mod bounds;
mod config;
mod decode;
mod doctor;
#[cfg(target_os = "linux")]
mod editor;
mod encode;
#[cfg(unix)]
mod faults;
mod hostile;
mod key;
#[cfg(target_os = "linux")]
mod leaves;
mod log;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod pages;
#[cfg(target_os = "linux")]
mod plain;
mod profile;
#[cfg(target_os = "linux")]
mod protected;
mod providers;
#[cfg(target_os = "linux")]
mod pty;
#[cfg(target_os = "linux")]
mod questions;
mod sandbox;
mod sessions;
#[cfg(target_os = "linux")]
mod signals;
mod sim;
mod support;
#[cfg(unix)]
mod terminal;
