//! Tests the simulator over real sockets with a plain HTTP client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::type_complexity,
    reason = "a test that fails should fail loudly"
)]

mod as_the_provider;
mod behaviours;
mod bounds;
mod damaged_requests;
mod faults;
mod replies;
mod support;
mod tool_loops;
