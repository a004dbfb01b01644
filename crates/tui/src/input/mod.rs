//! What the user types.

pub mod complete;
pub mod composer;
pub mod editor;
pub mod history;
