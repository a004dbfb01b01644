//! Tests of the memory as a whole.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a property prints how often it restored something")]

mod contract;
mod durability;
mod faulty_store;
mod killed;
mod never_wrong;
mod postgres_server;
mod recorded;
mod restoring;
mod support;
