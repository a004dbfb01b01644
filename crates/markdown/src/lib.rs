//! Markdown as models write it, for every front end.
//!
//! [`blocks`] splits a text that grows into blocks, line by line. The terminal lays these out as
//! rows; [`tree`] and [`stream`] make typed nodes of them, for a front end that builds its own.

pub mod blocks;
pub mod markers;
pub mod stream;
pub mod tree;

pub use stream::{MarkdownChange, MarkdownStream};
pub use tree::{Inline, Node, last_code, parse};
