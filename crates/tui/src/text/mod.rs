//! Text on its way to cells: rows of inked spans, how they are broken to a
//! width, and Markdown that grows.
//!
//! [`doc`] holds a text; `blocks` takes it apart line by line, `page` lays
//! out what that gives, `markdown` reads inside a paragraph, and [`light`]
//! keeps the colours of code.

pub mod base;
mod blocks;
pub mod cluster;
pub(crate) mod code;
pub mod doc;
pub mod light;
pub mod long;
mod markdown;
mod marks;
mod page;
pub mod row;
mod table;
pub mod wrap;

pub use base::Base;
pub use doc::Doc;
pub use light::Body;
pub use long::{Long, Shown};
pub use row::{CodeAt, Face, Ink, Join, Mark, Row, Shade, Span, Token, Tone};
pub use wrap::{Break, Margin, width_of, wrap};
