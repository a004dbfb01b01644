//! Sessions as a front end uses them, against the built-in simulator.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod handle;
mod line_front_end;
mod next_request;
mod support;
mod undo;
mod view_preference;
