//! The terminal screen: state in, frame out.
//!
//! [`seam`] says what comes in from the engine and what goes back to it.

pub mod seam;
pub mod text;
