//! Real commands behind real barriers.
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
mod machine;
mod support;
