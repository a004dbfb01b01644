//! The JSON of updates and commands: stable names, and every value survives it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails loudly")]

mod json_round_trip;
mod wording;
