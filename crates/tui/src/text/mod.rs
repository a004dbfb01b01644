//! From text to rows: styled spans, wrapping, and Markdown that grows.
//!
//! [`lazy_text`] splits a text of any length into sections, and [`markdown_view`] holds the text of one.
//! `aside_markdown` splits it into blocks line by line, `layout` lays them out, `markdown` parses the inside of a
//! paragraph, and [`highlight_jobs`] stores the colours of code.

pub mod base_style;
pub(crate) mod code;
pub mod grapheme;
pub mod highlight_jobs;
mod layout;
pub mod lazy_text;
mod markdown;
pub mod markdown_view;
pub mod row;
pub(crate) mod search;
mod section;
mod shared_text;
mod table;
pub mod wrap;

pub use base_style::BaseStyle;
pub use highlight_jobs::HighlightedRows;
pub use lazy_text::LazyText;
pub use markdown_view::MarkdownView;
pub use row::{
    CodePosition, FontStyle, Row, RowBackground, RowMark, RowStart, Saturation, Span, SyntaxToken, TextRole,
};
pub use section::SectionRows;
pub use shared_text::SharedText;
pub use wrap::{Break, Margin, width_of, wrap};
