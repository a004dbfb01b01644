//! One binary for all integration tests: link time counts on two cores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    clippy::type_complexity,
    reason = "a test that fails should fail loudly, and it reads files"
)]

mod bounded;
mod checks;
mod compacted;
mod conversation;
mod corpus;
mod counted;
mod decisions;
mod demands;
mod dialects;
mod encode;
mod exchange;
mod fixtures;
mod incoming;
mod invented;
mod judged;
mod loop_guard;
mod mutated;
mod properties;
mod recorded;
mod repairs;
mod replay;
mod requests;
mod requirements;
mod roundtrip;
mod seeds;
mod sent;
mod settings;
mod support;
mod written;
