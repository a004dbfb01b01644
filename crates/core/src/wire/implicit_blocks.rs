//! Blocks for protocols that send thinking and answer text as bare deltas,
//! without start and stop events: a block ends where another begins.

use crate::block::SealKind;
use crate::dialect::ReadRules;
use crate::event::{BlockId, BlockOpening, Event, ProseKind, Sink};
use crate::tags::{TagParser, TagPiece, TagStart};

/// Creates block ids.
#[derive(Debug, Default)]
pub(super) struct BlockIds(u32);

impl BlockIds {
    pub(super) fn next(&mut self) -> BlockId {
        let id = BlockId(self.0);
        self.0 += 1;
        id
    }

    /// The newest block.
    pub(super) fn last(&self) -> Option<BlockId> {
        self.0.checked_sub(1).map(BlockId)
    }
}

/// Emits a complete block of unknown shape.
pub(super) fn emit_unmodelled(ids: &mut BlockIds, json: &str, sink: &mut dyn Sink) {
    let block = ids.next();
    sink.take(Event::Opened { block, opening: BlockOpening::Unmodelled });
    sink.take(Event::NativeItem { block, json, text_member: None });
    sink.take(Event::Closed { block });
}

/// The block that text is added to. The id is part of the state, so text that
/// resumes always opens a new block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    None,
    Text(BlockId),
    Thinking(BlockId),
}

#[derive(Debug)]
pub(super) struct ImplicitBlocks {
    pub(super) ids: BlockIds,
    open: OpenBlock,
    /// The field or tag that the open thinking block comes from.
    source: String,
    /// The tag of the thinking block that the tag parser is in.
    tag: String,
    /// Whitespace before thinking text: the block opens with the first visible
    /// character.
    leading_whitespace: String,
    /// Whitespace in the answer while a thinking block is open. It does not end
    /// that block, and it is not lost.
    deferred_whitespace: String,
    /// None once no more tags can come.
    tags: Option<Box<TagParser>>,
    /// The tag that the chat template wrote, if any.
    template_tag: String,
    /// Blocks that are thinking only because of the template's tag, until a close
    /// tag confirms it.
    unconfirmed: Vec<BlockId>,
    tag_confirmed: bool,
    /// A thinking field that was present, perhaps empty.
    seen_field: Option<String>,
    any_thinking: bool,
}

impl ImplicitBlocks {
    pub(super) fn new(rules: &ReadRules) -> ImplicitBlocks {
        let tags = Box::new(TagParser::new(rules.tags.clone()));
        let template_tag = rules.tags.pairs.first().and_then(|pair| pair.open.first()).cloned().unwrap_or_default();
        ImplicitBlocks {
            ids: BlockIds::default(),
            open: OpenBlock::None,
            source: String::new(),
            tag: template_tag.clone(),
            leading_whitespace: String::new(),
            deferred_whitespace: String::new(),
            tags: (!tags.is_done()).then_some(tags),
            template_tag,
            unconfirmed: Vec::new(),
            tag_confirmed: rules.tags.start != TagStart::Prefilled,
            seen_field: None,
            any_thinking: false,
        }
    }

    /// Adds thinking text from a dedicated field. Tags are literal text from here
    /// on.
    pub(super) fn thinking_text(&mut self, source: &str, text: &str, sink: &mut dyn Sink) {
        self.disable_tags(sink);
        self.grow_thinking(source, text, sink);
    }

    /// Stops parsing tags, because thinking has a dedicated field.
    pub(super) fn disable_tags(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.disable(&mut |piece| self.tag_piece(piece, sink));
        }
    }

    /// Remembers that a thinking field was present, even if empty.
    pub(super) fn saw_field(&mut self, field: &str) {
        if self.seen_field.is_none() {
            self.seen_field = Some(field.to_owned());
        }
    }

    /// The caller emitted a thinking block itself.
    pub(super) fn mark_thinking_emitted(&mut self) {
        self.any_thinking = true;
    }

    /// Adds answer text, which may contain thinking in tags.
    pub(super) fn content_text(&mut self, text: &str, sink: &mut dyn Sink) {
        let Some(mut tags) = self.tags.take() else {
            self.grow_text(text, sink);
            return;
        };
        tags.push(text, &mut |piece| self.tag_piece(piece, sink));
        if !tags.is_done() {
            self.tags = Some(tags);
        }
    }

    /// Flushes and closes the open block: something other than text comes next.
    pub(super) fn interrupt(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.flush(&mut |piece| self.tag_piece(piece, sink));
            self.tags = Some(tags);
        }
        self.close(sink);
    }

    /// Closes the open block, because the caller emits a thinking block itself.
    pub(super) fn close_block(&mut self, sink: &mut dyn Sink) {
        self.close(sink);
    }

    /// Keeps whitespace of the answer until the caller's thinking block is
    /// closed.
    pub(super) fn defer_whitespace(&mut self, text: &str, sink: &mut dyn Sink) {
        self.deferred_whitespace.push_str(text);
        sink.buffered(text.len());
    }

    /// Seals the open thinking block, or emits one without text.
    pub(super) fn seal_thinking(&mut self, source: &str, kind: SealKind, payload: &str, sink: &mut dyn Sink) {
        if let OpenBlock::Thinking(block) = self.open {
            sink.take(Event::Sealed { block, kind, payload });
            return;
        }
        self.close(sink);
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source, id: None } });
        sink.take(Event::Sealed { block, kind, payload });
        sink.take(Event::Closed { block });
        self.any_thinking = true;
    }

    /// Ends the open thinking block; answer text may continue.
    pub(super) fn end_thinking(&mut self, sink: &mut dyn Sink) {
        self.leading_whitespace.clear();
        if let OpenBlock::Thinking(_) = self.open {
            self.close(sink);
        }
    }

    /// The provider ended the reply, and with it all thinking.
    pub(super) fn end_reply(&mut self, sink: &mut dyn Sink) {
        self.finish_tags(sink);
        self.end_thinking(sink);
    }

    fn finish_tags(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.finish(&mut |piece| self.tag_piece(piece, sink));
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        self.finish_tags(sink);
        self.close(sink);
        if let Some(field) = self.seen_field.take().filter(|_| !self.any_thinking) {
            sink.take(Event::EmptyThinkingField { field: &field });
        }
    }

    fn tag_piece(&mut self, piece: TagPiece<'_>, sink: &mut dyn Sink) {
        match piece {
            TagPiece::Text(text) => self.grow_text(text, sink),
            TagPiece::Thinking(text) => {
                let tag = std::mem::take(&mut self.tag);
                self.grow_thinking(&tag, text, sink);
                self.tag = tag;
                if let OpenBlock::Thinking(block) = self.open
                    && !self.tag_confirmed
                    && self.unconfirmed.last() != Some(&block)
                {
                    self.unconfirmed.push(block);
                }
            }
            TagPiece::Open { tag } => {
                self.tag_confirmed = true;
                self.close(sink);
                tag.clone_into(&mut self.tag);
                self.saw_field(tag);
            }
            TagPiece::Close => {
                self.tag_confirmed = true;
                self.end_thinking(sink);
            }
            TagPiece::Refile(kind) => self.refile(kind, sink),
        }
    }

    fn grow_thinking(&mut self, source: &str, text: &str, sink: &mut dyn Sink) {
        if let OpenBlock::Thinking(block) = self.open
            && self.source == source
        {
            sink.take(Event::Grew { block, text });
            return;
        }
        if text.trim().is_empty() {
            self.leading_whitespace.push_str(text);
            sink.buffered(text.len());
            return;
        }
        self.close_open(sink);
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source, id: None } });
        self.open = OpenBlock::Thinking(block);
        source.clone_into(&mut self.source);
        self.any_thinking = true;
        if !self.leading_whitespace.is_empty() {
            let leading_whitespace = std::mem::take(&mut self.leading_whitespace);
            sink.take(Event::Grew { block, text: &leading_whitespace });
        }
        sink.take(Event::Grew { block, text });
    }

    /// Adds answer text without looking for tags.
    pub(super) fn grow_text(&mut self, text: &str, sink: &mut dyn Sink) {
        match self.open {
            _ if text.is_empty() => (),
            OpenBlock::Text(block) => {
                self.leading_whitespace.clear();
                sink.take(Event::Grew { block, text });
            }
            OpenBlock::Thinking(_) if text.trim().is_empty() => self.defer_whitespace(text, sink),
            OpenBlock::Thinking(_) | OpenBlock::None => {
                let deferred_whitespace = std::mem::take(&mut self.deferred_whitespace);
                self.leading_whitespace.clear();
                self.close_open(sink);
                let block = self.ids.next();
                sink.take(Event::Opened { block, opening: BlockOpening::Text });
                self.open = OpenBlock::Text(block);
                if !deferred_whitespace.is_empty() {
                    sink.take(Event::Grew { block, text: &deferred_whitespace });
                }
                sink.take(Event::Grew { block, text });
            }
        }
    }

    /// Closes the open block; deferred whitespace becomes a text block.
    fn close(&mut self, sink: &mut dyn Sink) {
        self.leading_whitespace.clear();
        self.close_open(sink);
        if !self.deferred_whitespace.is_empty() {
            let deferred_whitespace = std::mem::take(&mut self.deferred_whitespace);
            self.grow_text(&deferred_whitespace, sink);
            self.close_open(sink);
        }
    }

    fn close_open(&mut self, sink: &mut dyn Sink) {
        match std::mem::replace(&mut self.open, OpenBlock::None) {
            OpenBlock::None => (),
            OpenBlock::Text(block) | OpenBlock::Thinking(block) => sink.take(Event::Closed { block }),
        }
    }

    fn refile(&mut self, kind: ProseKind, sink: &mut dyn Sink) {
        match (kind, self.open) {
            (ProseKind::Text, open) => {
                for block in std::mem::take(&mut self.unconfirmed) {
                    sink.take(Event::Refiled { block, to: ProseKind::Text });
                    self.any_thinking = false;
                    if open == OpenBlock::Thinking(block) {
                        self.open = OpenBlock::Text(block);
                    }
                }
                let leading_whitespace = std::mem::take(&mut self.leading_whitespace);
                self.grow_text(&leading_whitespace, sink);
            }
            (ProseKind::Thinking, OpenBlock::Text(block)) => {
                sink.take(Event::Refiled { block, to: ProseKind::Thinking });
                self.open = OpenBlock::Thinking(block);
                self.source.clone_from(&self.template_tag);
                self.any_thinking = true;
            }
            (ProseKind::Thinking, OpenBlock::Thinking(_) | OpenBlock::None) => (),
        }
    }
}
