//! The terminal front end: state in, frames out.
//!
//! [`aside_front`] defines the updates that come in and the commands that go out. [`app`]
//! handles messages, [`transcript`] holds the conversation and lays out the visible part, [`view`]
//! paints. [`text`] breaks text into rows, [`syntax`] highlights code, [`theme`] defines the
//! colours. [`plain`] is a second front end that prints lines of text. Only [`run()`] touches a
//! terminal.

pub mod app;
pub mod bindings;
pub mod help;
pub mod highlighter;
pub mod input;
pub mod paint;
pub mod plain;
mod run;
pub mod text;
pub mod theme;
pub mod token_estimate;
pub mod transcript;
pub mod view;

use std::time::Duration;

pub use run::{detect_theme, draw_frame, edit, is_editor_running, restore_terminal, run, suspend_with_editor};

/// How soon after the warning a second Ctrl+C leaves, on the screen and in `--plain`.
const QUIT_WINDOW: Duration = Duration::from_secs(3);
