//! What the user types.

pub mod complete;
pub mod editor;
pub mod history;
