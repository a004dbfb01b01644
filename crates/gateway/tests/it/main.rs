//! The gateway over real sockets, between clients and scripted providers.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test fails loudly"
)]

mod byte_equality;
mod matrix;
mod memory;
mod pass_through;
mod responses;
mod safety;
mod support;
mod system_messages;
