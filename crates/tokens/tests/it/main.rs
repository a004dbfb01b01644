//! One binary for all integration tests: link time counts on two cores.

#![allow(clippy::unwrap_used, reason = "a test that fails should fail loudly")]

mod counts;
