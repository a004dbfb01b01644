//! The terminal screen: state in, frame out.
//!
//! [`seam`] says what comes in from the engine and what goes back to it;
//! [`app`] takes messages, [`transcript`] holds what was said and lays out
//! what is in sight, [`view`] paints; [`text`] breaks text into rows, [`syntax`]
//! tells what code is, and [`theme`] knows the colours; [`plain`] is the same
//! session in lines of words. Only [`run()`] touches a terminal.

pub mod app;
pub mod bindings;
pub mod commands;
pub mod count;
pub mod input;
pub mod paint;
pub mod plain;
mod run;
pub mod seam;
pub mod syntax;
pub mod text;
pub mod theme;
pub mod transcript;
pub mod view;

pub use run::{draw_frame, edit, is_lent, restore, run, stop_with_the_editor, theme_of_terminal};
