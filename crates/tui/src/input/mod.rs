//! The input line.

mod change_history;
pub mod completion;
pub mod composer;
pub mod editor;
pub mod history;
