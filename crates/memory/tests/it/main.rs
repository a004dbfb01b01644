//! Tests of the memory as a whole.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod restoring;
mod support;
