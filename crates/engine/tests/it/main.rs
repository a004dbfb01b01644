//! The engine against the real world: processes, folders, links.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails loudly")]

mod files;
mod permissions;
mod search;
mod shell;
mod support;
