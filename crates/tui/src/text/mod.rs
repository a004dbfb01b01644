//! From text to rows: styled spans, wrapping, and Markdown that grows.
//!
//! [`doc`] holds a text; `blocks` splits it into blocks line by line, `layout` lays them out,
//! `markdown` parses the inside of a paragraph, and [`highlight`] stores the colours of code.

pub mod base_style;
mod blocks;
pub(crate) mod code;
pub mod doc;
pub mod grapheme;
pub mod highlight;
mod layout;
mod markdown;
mod markdown_markers;
pub mod row;
pub mod sectioned;
mod table;
pub mod wrap;

pub use base_style::BaseStyle;
pub use doc::Doc;
pub use highlight::HighlightedRows;
pub use row::{
    CodePosition, FontStyle, Row, RowBackground, RowMark, RowStart, Saturation, Span, SyntaxToken, TextRole,
};
pub use sectioned::{SectionRows, SectionedText};
pub use wrap::{Break, Margin, width_of, wrap};
