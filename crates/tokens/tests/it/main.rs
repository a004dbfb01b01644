//! All integration tests in one binary, to save link time.

#![allow(clippy::unwrap_used, reason = "a test that fails should fail loudly")]

mod counts;
