//! The simulator over real sockets, with a client that is nobody's library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    clippy::type_complexity,
    reason = "a test that fails should fail loudly"
)]

mod behaviours;
mod bounds;
mod faults;
mod loops;
mod replies;
mod robust;
mod support;
