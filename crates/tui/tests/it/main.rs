//! The screen from the outside: what the engine tells and what is typed goes
//! in, frames come out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod anything;
mod code;
mod commands;
mod draws;
mod fixtures;
mod hostile;
mod input;
mod rules;
mod screens;
mod scrolling;
mod seed_000;
mod seed_003_004;
mod small;
mod states;
mod statusline;
mod stuck;
mod support;
mod thinking;
