//! Whether the binary is wired: what goes in, what comes out, with which code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails should fail loudly"
)]

mod ask;
mod config;
mod decode;
mod doctor;
mod encode;
mod models;
mod pages;
mod profile;
mod providers;
mod sim;
mod support;
