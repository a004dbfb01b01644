//! Real commands behind real barriers.

mod commands;
mod support;
