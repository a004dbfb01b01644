//! Tests the screen from the outside: updates and keys in, frames out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails loudly"
)]

mod attention;
mod code;
mod commands;
mod draws;
mod find;
mod fixtures;
mod hostile;
mod input;
mod loop_notice;
mod properties;
mod questions;
mod rules;
mod screens;
mod scrolling;
mod seed_000;
mod seed_003_004;
mod small_terminal;
mod states;
mod statusline;
mod support;
mod thinking;
