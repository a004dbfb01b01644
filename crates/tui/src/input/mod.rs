//! The input line.

pub mod completion;
pub mod composer;
pub mod editor;
pub mod history;
