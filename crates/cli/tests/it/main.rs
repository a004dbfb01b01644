//! Tests of the binary: arguments in, output and exit code out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails should fail loudly"
)]

#[cfg(target_os = "linux")]
mod acp;
mod ask;
mod ask_outcome;
mod bombs;
mod completions;
mod config;
mod connection_hints;
mod decode;
mod doctor;
#[cfg(target_os = "linux")]
mod editor;
mod encode;
#[path = "../../../confine/tests/it/folder_outside.rs"]
mod folder_outside;
#[cfg(target_os = "linux")]
mod gateway_faults;
mod gateway_process;
mod hostile_text;
mod import_by_program;
mod key;
mod log;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(unix)]
mod memory_limits;
mod models;
#[cfg(target_os = "linux")]
mod permission_questions;
#[cfg(target_os = "linux")]
mod plain;
#[cfg(target_os = "linux")]
#[path = "../../../memory/tests/it/postgres_server.rs"]
mod postgres_server;
mod profile;
mod prompt_caching;
#[cfg(target_os = "linux")]
mod protected_paths;
mod providers;
#[cfg(target_os = "linux")]
mod pty;
mod recording_server;
#[cfg(target_os = "linux")]
mod replicas;
mod sandbox;
mod serve;
mod sessions;
#[cfg(target_os = "linux")]
mod signals;
mod sim;
mod support;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod unwritable_data_folder;
mod vertex;
#[cfg(unix)]
mod web;
#[cfg(target_os = "linux")]
mod what_is_sent;
