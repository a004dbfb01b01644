//! Text that sections of the screen share with each other, and with the session's history, instead of copying it.

use std::ops::Range;
use std::sync::Arc;

use aside_core::block::Block;
use aside_core::message::Message;

/// A text that several owners refer to.
#[derive(Debug, Clone)]
pub struct SharedText(SharedOrigin);

#[derive(Debug, Clone)]
enum SharedOrigin {
    /// The text of one block of a recorded message.
    Recorded { message: Arc<Message>, block: usize },
    /// The texts of several sections.
    Gathered(Arc<String>),
}

impl SharedText {
    pub fn new(message: &Arc<Message>, block: usize) -> SharedText {
        SharedText(SharedOrigin::Recorded { message: Arc::clone(message), block })
    }

    pub(super) fn gathered(text: String) -> SharedText {
        SharedText(SharedOrigin::Gathered(Arc::new(text)))
    }

    /// Empty for a block that is neither text nor thinking.
    pub fn as_str(&self) -> &str {
        let (message, block) = match &self.0 {
            SharedOrigin::Recorded { message, block } => (message, block),
            SharedOrigin::Gathered(text) => return text,
        };
        match message.blocks.get(*block) {
            Some(Block::Text(text)) => &text.text,
            Some(Block::Thinking(thinking)) => thinking.text(),
            Some(Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_)) | None => "",
        }
    }
}

/// A text of its own, which can grow, or a part of a shared one.
#[derive(Debug)]
pub(super) enum TextSource {
    Own(String),
    Shared(SharedText, Range<usize>),
}

impl Default for TextSource {
    fn default() -> TextSource {
        TextSource::Own(String::new())
    }
}

impl TextSource {
    pub(super) fn as_str(&self) -> &str {
        match self {
            TextSource::Own(text) => text,
            TextSource::Shared(shared, range) => shared.as_str().get(range.clone()).unwrap_or(""),
        }
    }

    /// Changes the text; a shared one is copied first.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut String)) {
        let mut text = match std::mem::take(self) {
            TextSource::Own(text) => text,
            shared @ TextSource::Shared(..) => shared.as_str().to_owned(),
        };
        change(&mut text);
        *self = TextSource::Own(text);
    }
}
