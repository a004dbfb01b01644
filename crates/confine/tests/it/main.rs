//! Tests with real commands and real confinement.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod commands;
mod escapes;
mod folder_outside;
mod machine_support;
mod support;
