//! What every store must do, and what this one does when something breaks.

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
mod faults;
mod kill;
mod ledger;
mod recorder;
mod searching;
mod support;
mod versions;
