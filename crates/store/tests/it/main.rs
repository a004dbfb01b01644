//! The contract of every store, and the failure handling of this one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    reason = "a test that fails should fail loudly"
)]

mod arbitrary;
mod conformance;
mod failures;
mod foreign_databases;
mod kill;
mod recorder;
mod search;
mod support;
mod usage;
mod versions;
