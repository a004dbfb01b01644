//! Prose without block borders: protocols that send thinking and answer text
//! as bare deltas, where a block ends because something else begins.

use super::json::compact;
use crate::block::SealKind;
use crate::dialect::ReadRules;
use crate::event::{BlockId, Event, Opening, Side, Sink};
use crate::tags::{Piece, Start, TagParser};

/// Mints block ids.
#[derive(Debug, Default)]
pub(super) struct Ids(u32);

impl Ids {
    pub(super) fn next(&mut self) -> BlockId {
        let id = BlockId(self.0);
        self.0 += 1;
        id
    }
}

/// One block of something we do not understand, told at once.
pub(super) fn unmodelled(ids: &mut Ids, json: &str, sink: &mut dyn Sink) {
    let block = ids.next();
    sink.take(Event::Opened { block, opening: Opening::Unmodelled });
    sink.take(Event::Kept { block, json: &compact(json), text_member: None });
    sink.take(Event::Closed { block });
}

/// Which block the prose is in. The id lives in the state, so prose that
/// resumes is a new block by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Closed,
    Text(BlockId),
    Thinking(BlockId),
}

#[derive(Debug)]
pub(super) struct Speech {
    pub(super) ids: Ids,
    prose: Prose,
    /// Which field or tag the open thought comes from.
    source: String,
    /// The tag that opened the thought the tag parser is in.
    tag: String,
    /// White space that a thought may begin with: no thought until a word comes.
    held: String,
    /// White space that came as answer while a thought is open. It does not
    /// end the thought, and it is not lost.
    deferred: String,
    /// None once no tag can come any more.
    tags: Option<Box<TagParser>>,
    /// The tag that the template wrote, where one does.
    template_tag: String,
    /// Thoughts that only the template's tag makes thoughts, until a close tag
    /// proves it.
    unproven: Vec<BlockId>,
    is_proven: bool,
    /// A thinking field that came without a word in it.
    seen: Option<String>,
    any_thought: bool,
}

impl Speech {
    pub(super) fn new(rules: &ReadRules) -> Speech {
        let tags = Box::new(TagParser::new(rules.tags.clone()));
        let template_tag = rules.tags.pairs.first().and_then(|pair| pair.open.first()).cloned().unwrap_or_default();
        Speech {
            ids: Ids::default(),
            prose: Prose::Closed,
            source: String::new(),
            tag: template_tag.clone(),
            held: String::new(),
            deferred: String::new(),
            tags: (!tags.is_through()).then_some(tags),
            template_tag,
            unproven: Vec::new(),
            is_proven: rules.tags.start != Start::Prefilled,
            seen: None,
            any_thought: false,
        }
    }

    /// Thinking text of a field of its own. From here on tags are literal.
    pub(super) fn thought(&mut self, source: &str, text: &str, sink: &mut dyn Sink) {
        self.stand_down(sink);
        self.thinking(source, text, sink);
    }

    /// A field of its own has the thoughts.
    pub(super) fn stand_down(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.stand_down(&mut |piece| self.piece(piece, sink));
        }
    }

    /// A thinking field was there, with or without a word in it.
    pub(super) fn saw(&mut self, field: &str) {
        if self.seen.is_none() {
            self.seen = Some(field.to_owned());
        }
    }

    /// A thought was told by other means than this speech.
    pub(super) fn told_thought(&mut self) {
        self.any_thought = true;
    }

    /// Answer text, with thinking in tags perhaps.
    pub(super) fn content(&mut self, text: &str, sink: &mut dyn Sink) {
        let Some(mut tags) = self.tags.take() else {
            self.answer(text, sink);
            return;
        };
        tags.push(text, &mut |piece| self.piece(piece, sink));
        if !tags.is_through() {
            self.tags = Some(tags);
        }
    }

    /// Something that is not prose comes next.
    pub(super) fn interrupt(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.flush(&mut |piece| self.piece(piece, sink));
            self.tags = Some(tags);
        }
        self.close(sink);
    }

    /// Prose ends: a thought told by other means begins.
    pub(super) fn end_prose(&mut self, sink: &mut dyn Sink) {
        self.close(sink);
    }

    /// White space that came as answer while a thought told by other means is open.
    pub(super) fn defer(&mut self, text: &str, sink: &mut dyn Sink) {
        self.deferred.push_str(text);
        sink.hold(text.len());
    }

    /// A payload for the thought that is open, or for one that has no text.
    pub(super) fn seal_thought(&mut self, source: &str, kind: SealKind, payload: &str, sink: &mut dyn Sink) {
        if let Prose::Thinking(block) = self.prose {
            sink.take(Event::Sealed { block, kind, payload });
            return;
        }
        self.close(sink);
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: Opening::Thinking { source, id: None } });
        sink.take(Event::Sealed { block, kind, payload });
        sink.take(Event::Closed { block });
        self.any_thought = true;
    }

    /// The thought that is open ends here, and answer text may go on.
    pub(super) fn end_thought(&mut self, sink: &mut dyn Sink) {
        self.held.clear();
        if let Prose::Thinking(_) = self.prose {
            self.close(sink);
        }
    }

    /// The provider says that the reply is over: so is every thought in it.
    pub(super) fn end_reply(&mut self, sink: &mut dyn Sink) {
        self.end_tags(sink);
        self.end_thought(sink);
    }

    fn end_tags(&mut self, sink: &mut dyn Sink) {
        if let Some(mut tags) = self.tags.take() {
            tags.finish(&mut |piece| self.piece(piece, sink));
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        self.end_tags(sink);
        self.close(sink);
        if let Some(field) = self.seen.take().filter(|_| !self.any_thought) {
            sink.take(Event::Seen { field: &field });
        }
    }

    fn piece(&mut self, piece: Piece<'_>, sink: &mut dyn Sink) {
        match piece {
            Piece::Text(text) => self.answer(text, sink),
            Piece::Thinking(text) => {
                let tag = std::mem::take(&mut self.tag);
                self.thinking(&tag, text, sink);
                self.tag = tag;
                if let Prose::Thinking(block) = self.prose
                    && !self.is_proven
                    && self.unproven.last() != Some(&block)
                {
                    self.unproven.push(block);
                }
            }
            Piece::Open { tag } => {
                self.is_proven = true;
                self.close(sink);
                tag.clone_into(&mut self.tag);
                self.saw(tag);
            }
            Piece::Close => {
                self.is_proven = true;
                self.end_thought(sink);
            }
            Piece::Refile(side) => self.refile(side, sink),
        }
    }

    fn thinking(&mut self, source: &str, text: &str, sink: &mut dyn Sink) {
        if let Prose::Thinking(block) = self.prose
            && self.source == source
        {
            sink.take(Event::Grew { block, text });
            return;
        }
        if text.trim().is_empty() {
            self.held.push_str(text);
            sink.hold(text.len());
            return;
        }
        self.close_open(sink);
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: Opening::Thinking { source, id: None } });
        self.prose = Prose::Thinking(block);
        source.clone_into(&mut self.source);
        self.any_thought = true;
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            sink.take(Event::Grew { block, text: &held });
        }
        sink.take(Event::Grew { block, text });
    }

    /// Answer text past the tags.
    pub(super) fn answer(&mut self, text: &str, sink: &mut dyn Sink) {
        match self.prose {
            _ if text.is_empty() => (),
            Prose::Text(block) => {
                self.held.clear();
                sink.take(Event::Grew { block, text });
            }
            Prose::Thinking(_) if text.trim().is_empty() => self.defer(text, sink),
            Prose::Thinking(_) | Prose::Closed => {
                let deferred = std::mem::take(&mut self.deferred);
                self.held.clear();
                self.close_open(sink);
                let block = self.ids.next();
                sink.take(Event::Opened { block, opening: Opening::Text });
                self.prose = Prose::Text(block);
                if !deferred.is_empty() {
                    sink.take(Event::Grew { block, text: &deferred });
                }
                sink.take(Event::Grew { block, text });
            }
        }
    }

    /// Closes what is open; deferred white space becomes text of its own.
    fn close(&mut self, sink: &mut dyn Sink) {
        self.held.clear();
        self.close_open(sink);
        if !self.deferred.is_empty() {
            let deferred = std::mem::take(&mut self.deferred);
            self.answer(&deferred, sink);
            self.close_open(sink);
        }
    }

    fn close_open(&mut self, sink: &mut dyn Sink) {
        match std::mem::replace(&mut self.prose, Prose::Closed) {
            Prose::Closed => (),
            Prose::Text(block) | Prose::Thinking(block) => sink.take(Event::Closed { block }),
        }
    }

    fn refile(&mut self, side: Side, sink: &mut dyn Sink) {
        match (side, self.prose) {
            (Side::Text, prose) => {
                for block in std::mem::take(&mut self.unproven) {
                    sink.take(Event::Refiled { block, to: Side::Text });
                    self.any_thought = false;
                    if prose == Prose::Thinking(block) {
                        self.prose = Prose::Text(block);
                    }
                }
                let held = std::mem::take(&mut self.held);
                self.answer(&held, sink);
            }
            (Side::Thinking, Prose::Text(block)) => {
                sink.take(Event::Refiled { block, to: Side::Thinking });
                self.prose = Prose::Thinking(block);
                self.source.clone_from(&self.template_tag);
                self.any_thought = true;
            }
            (Side::Thinking, Prose::Thinking(_) | Prose::Closed) => (),
        }
    }
}
