//! Prints a block while it streams, and the rest of it once it is complete.

use aside_core::block::{Block, ThinkingSpan};
use aside_core::event::{BlockId, ProseKind};
use aside_core::repetition::RepetitionGuard;
use aside_core::settings::ThinkingDisplay;
use aside_front::OpenedBlock;

use super::output::OutputSection;
use super::{PlainSession, ThinkingShown, wording};
use crate::text::LazyText;
use crate::transcript::thinking::ThinkingBlock;

/// A block that is still streaming.
#[derive(Debug)]
pub(super) struct StreamingBlock {
    kind: StreamKind,
    text: String,
    /// How many bytes of the text were printed.
    written: usize,
    /// Detects repetition in thinking, until it is reported once.
    guard: Option<Box<RepetitionGuard>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Text,
    Thinking,
    Other,
}

impl PlainSession {
    pub(super) fn opened(&mut self, block: BlockId, opening: &OpenedBlock) {
        let kind = match opening {
            OpenedBlock::Text => StreamKind::Text,
            OpenedBlock::Thinking => StreamKind::Thinking,
            OpenedBlock::ToolCall { .. } | OpenedBlock::Unmodelled => StreamKind::Other,
        };
        let guard = (kind == StreamKind::Thinking).then(Box::default);
        self.blocks.insert(block, StreamingBlock { kind, text: String::new(), written: 0, guard });
    }

    /// Each item but the first begins after a blank line.
    pub(super) fn item(&mut self, block: BlockId) {
        if self.blocks.get(&block).is_some_and(|streaming| !streaming.text.is_empty()) {
            self.grew(block, "\n\n");
        }
    }

    pub(super) fn grew(&mut self, block: BlockId, text: &str) {
        let view = self.status.view;
        let Some(streaming) = self.blocks.get_mut(&block) else { return };
        streaming.text.push_str(text);
        let is_printed =
            streaming.kind == StreamKind::Text || streaming.kind == StreamKind::Thinking && streams_thinking(view);
        // A block whose start was not printed is printed once it is complete.
        if is_printed && streaming.written + text.len() == streaming.text.len() {
            streaming.written = streaming.text.len();
            let section =
                if streaming.kind == StreamKind::Text { OutputSection::Answer } else { OutputSection::Thinking };
            self.output.write_section(section, text);
        }
        let found = streaming.guard.as_mut().and_then(|guard| {
            guard.push(text);
            guard.found().map(wording::loop_notice)
        });
        if let Some(line) = found {
            streaming.guard = None;
            self.output.line(&line);
        }
    }

    /// Text turned out to be thinking, or the other way round.
    pub(super) fn refiled(&mut self, block: BlockId, to: ProseKind) {
        let Some(streaming) = self.blocks.get_mut(&block) else { return };
        let (kind, was_printed) = (streaming.kind, streaming.written > 0);
        streaming.kind = match to {
            ProseKind::Text => StreamKind::Text,
            ProseKind::Thinking => StreamKind::Thinking,
        };
        match (kind, to, was_printed) {
            (StreamKind::Text, ProseKind::Thinking, true) => {
                self.note("what was just said was thinking, not the answer");
            }
            (StreamKind::Thinking, ProseKind::Text, true) => {
                self.note("what was just said is the answer, not thinking");
            }
            (StreamKind::Text | StreamKind::Thinking | StreamKind::Other, ProseKind::Text | ProseKind::Thinking, _) => {
            }
        }
    }

    /// Prints the rest of a finished block, whose text is what its deltas said.
    pub(super) fn closed_as_streamed(&mut self, block: BlockId, span: Option<ThinkingSpan>, sealed_bytes: usize) {
        let Some(StreamingBlock { kind, text, written, .. }) = self.blocks.remove(&block) else { return };
        let written = text.get(..written).unwrap_or("");
        match kind {
            StreamKind::Text => self.write_rest(OutputSection::Answer, written, &text),
            StreamKind::Thinking => {
                let thinking = ThinkingBlock::finished(LazyText::new(&text), span, sealed_bytes);
                self.close_thinking(written, &text, &thinking);
            }
            StreamKind::Other => (),
        }
    }

    /// Prints the rest of a finished block.
    pub(super) fn closed(&mut self, block: BlockId, value: &Block) {
        let streaming = self.blocks.remove(&block);
        let written = streaming.as_ref().map_or("", |streaming| streaming.text.get(..streaming.written).unwrap_or(""));
        match value {
            Block::Text(text) => self.write_rest(OutputSection::Answer, written, &text.text),
            Block::Thinking(thinking) => {
                let text = thinking.text();
                self.close_thinking(written, text, &ThinkingBlock::restored(thinking, LazyText::new(text)));
            }
            Block::Unmodelled(_) => self.note("the provider sent something aside does not know; it is kept"),
            Block::Media(image) => self.note(&image.describe()),
            // Printed when the call runs.
            Block::ToolCall(_) | Block::ToolResult(_) => (),
        }
    }

    fn write_rest(&mut self, section: OutputSection, written: &str, whole: &str) {
        match whole.strip_prefix(written) {
            Some(rest) => self.output.write_section(section, rest),
            None => {
                self.note("the provider took that back; it is");
                self.output.write_section(section, whole);
            }
        }
    }

    fn close_thinking(&mut self, written: &str, text: &str, block: &ThinkingBlock) {
        let in_full = streams_thinking(self.status.view) || !written.is_empty();
        match self.status.view {
            ThinkingDisplay::Off => (),
            ThinkingDisplay::Collapsed if !in_full => {
                if let Some(line) = block.plain_summary() {
                    self.output.line(&line);
                }
            }
            ThinkingDisplay::Full | ThinkingDisplay::Live | ThinkingDisplay::Collapsed => {
                let readable = !text.trim().is_empty();
                if readable {
                    self.write_rest(OutputSection::Thinking, written, text);
                }
                match (readable, block.plain_summary()) {
                    (true, _) => self.output.line(block.plain_duration().as_deref().unwrap_or("Thought done")),
                    (false, Some(line)) => self.output.line(&line),
                    (false, None) => (),
                }
            }
        }
        self.output.end();
        let written = if in_full { ThinkingShown::InFull } else { ThinkingShown::No };
        self.last_thinking = Some((text.to_owned(), written));
    }
}

/// Printed lines stay, so `live` is the same as `full`.
fn streams_thinking(view: ThinkingDisplay) -> bool {
    match view {
        ThinkingDisplay::Full | ThinkingDisplay::Live => true,
        ThinkingDisplay::Collapsed | ThinkingDisplay::Off => false,
    }
}
