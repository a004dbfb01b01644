//! Text on its way to cells: rows of inked spans, how they are broken to a
//! width, and Markdown that grows.

pub mod cluster;
pub mod doc;
pub mod long;
pub mod markdown;
pub mod row;
mod table;
pub mod wrap;

pub use doc::Doc;
pub use long::{Long, Shown};
pub use row::{Face, Ink, Row, Shade, Span};
pub use wrap::{Break, Margin, width_of, wrap};
