//! Conversations that leave and come back: as JSON lines, as Markdown, and
//! from the files of other programs. Text in, text out; nobody here opens a
//! file.

mod lines;

pub use lines::{Opaque, without_opaque, write_lines};
