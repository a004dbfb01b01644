//! All integration tests in one binary, to save link time.

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

mod client_requests;
mod compaction;
mod conversation;
mod decisions;
mod dialects;
mod encode;
mod fixtures;
mod fuzz_checks;
mod fuzz_regressions;
mod generated_replies;
mod interchange;
mod judge_accepts;
mod judge_recordings;
mod judge_refuses;
mod left_out;
mod model_table;
mod properties;
mod provider_demands;
mod recorded_round_trips;
mod recordings;
mod repairs;
mod repetition;
mod reply_round_trip;
mod reply_size_limit;
mod request_bodies;
mod request_media;
mod request_messages;
mod request_parameters;
mod requirements;
mod seed_rules;
mod settings;
mod support;
mod token_counts;
