//! Tests of the memory as a whole.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod never_wrong;
mod recorded;
mod restoring;
mod support;
