//! Tests with real sockets, processes, folders and links.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod answer_now;
mod bounds;
mod confined;
mod connection_failures;
mod exact_tokens;
mod exchange;
mod exchange_back_pressure;
mod exchange_support;
mod files;
#[path = "../../../confine/tests/it/folder_outside.rs"]
mod folder_outside;
mod permissions;
mod probe;
mod protected;
mod race;
mod refusals;
mod rules_and_switches;
mod scripted_server;
mod search;
mod session_support;
mod shell;
mod simulated;
mod support;
mod turns;
mod unknown_endpoints;
mod update_order;
