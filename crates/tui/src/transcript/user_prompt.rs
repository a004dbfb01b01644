//! The user's prompt. A large paste shows only its first lines.

use super::HintKeys;
use super::plain_text::{Extent, PlainText, PlainTextKind};
use crate::text::HighlightedRows;

#[derive(Debug)]
pub struct UserPrompt {
    text: PlainText,
    extent: Extent,
}

impl UserPrompt {
    pub fn new(text: &str) -> UserPrompt {
        UserPrompt { text: PlainText::new(text, PlainTextKind::User), extent: Extent::Part }
    }

    pub fn source(&self) -> &str {
        self.text.source()
    }

    pub fn is_long(&self) -> bool {
        self.text.is_long()
    }

    /// Whether only the first lines are shown.
    pub fn is_partial(&self) -> bool {
        self.is_long() && self.extent == Extent::Part
    }

    pub fn toggle(&mut self) {
        self.extent = match self.extent {
            Extent::Part => Extent::All,
            Extent::All => Extent::Part,
        };
    }

    pub fn open(&mut self) {
        self.extent = Extent::All;
    }

    /// Shows this much of it, and returns how much was shown.
    pub(crate) fn set_extent(&mut self, extent: Extent) -> Extent {
        std::mem::replace(&mut self.extent, extent)
    }

    pub fn body(&mut self, width: usize, keys: HintKeys) -> HighlightedRows<'_> {
        let extent = if self.is_partial() { Extent::Part } else { Extent::All };
        self.text.body(width, extent, keys)
    }

    pub fn forget_rows(&mut self) {
        self.text.forget_rows();
    }
}
