//! Turns `Restated` events into `Grew` events, for protocols that can only
//! append. Text that the restatement adds is appended; text that it changes
//! cannot be taken back.

use crate::event::{BlockId, Event, RestatedPart, Sink};

/// The text of every block so far, as lengths and hashes.
#[derive(Debug, Default)]
pub(super) struct RestatedToGrowth {
    blocks: Vec<BlockDigests>,
}

#[derive(Debug, Default)]
struct BlockDigests {
    /// Each part and the digest of its text; text outside an item belongs to the
    /// whole.
    parts: Vec<(RestatedPart, TextDigest)>,
    current: Option<RestatedPart>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct TextDigest {
    bytes: usize,
    hash: u64,
}

impl TextDigest {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        // FNV-1a: the result does not depend on how the text is chunked.
        self.hash = text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl RestatedToGrowth {
    /// Passes an event on, with restatements as growth.
    pub(super) fn take(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        match event {
            Event::Grew { block, text } => {
                self.record_growth(block, text);
                sink.take(event);
            }
            Event::Restated { block, part, text } => self.grow_by_restated(block, part, &text.to_owned_text(), sink),
            Event::Opened { .. } => {
                self.blocks.push(BlockDigests::default());
                sink.take(event);
            }
            Event::Item { block, index } => {
                if let Some(block) = self.blocks.get_mut(block.0 as usize) {
                    block.enter(RestatedPart::Item(index));
                }
                sink.take(event);
            }
            Event::Started { .. }
            | Event::Sealed { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::NativeItem { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => sink.take(event),
        }
    }

    fn record_growth(&mut self, block: BlockId, text: &str) {
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            let part = block.current.unwrap_or(RestatedPart::Whole);
            block.enter(part);
            if let Some(digest) = block.digest(part) {
                digest.add(text);
            }
        }
    }

    fn grow_by_restated(&mut self, block: BlockId, part: RestatedPart, text: &str, sink: &mut dyn Sink) {
        let Some(known) = self.blocks.get_mut(block.0 as usize) else { return };
        let is_last = known.parts.last().is_none_or(|(last, _)| *last == part);
        let is_new = !known.parts.iter().any(|(of, _)| *of == part);
        if !is_last && !is_new {
            return;
        }
        if let (RestatedPart::Item(index), true) = (part, is_new) {
            sink.take(Event::Item { block, index });
        }
        known.enter(part);
        let Some(digest) = known.digest(part) else { return };
        if let Some((before, after)) = text.split_at_checked(digest.bytes) {
            let mut beginning = TextDigest::default();
            beginning.add(before);
            if beginning == *digest && !after.is_empty() {
                digest.add(after);
                sink.take(Event::Grew { block, text: after });
            }
        }
    }
}

impl BlockDigests {
    /// Makes this the part that later text belongs to.
    fn enter(&mut self, part: RestatedPart) {
        self.current = Some(part);
        if !self.parts.iter().any(|(of, _)| *of == part) {
            self.parts.push((part, TextDigest::default()));
        }
    }

    fn digest(&mut self, part: RestatedPart) -> Option<&mut TextDigest> {
        self.parts.iter_mut().rfind(|(of, _)| *of == part).map(|(_, digest)| digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::BlockOpening;
    use crate::json_text::JsonText;

    #[test]
    fn only_text_that_a_restatement_adds_is_emitted() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], &str, &str); 5] = [
            ("no earlier text",   &[],           "all of it", "all of it"),
            ("the same text",  &["so", " far"], "so far",  "so far"),
            ("more text",         &["so"],       "so far",    "so far"),
            ("other text",        &["so"],       "or far",    "so"),
            ("less text",         &["so far"],   "so",        "so far"),
        ];
        for (name, deltas, restated, expected) in cases {
            let (mut filter, mut written, block) = (RestatedToGrowth::default(), String::new(), BlockId(0));
            let mut sink = |event: Event<'_>| {
                if let Event::Grew { text, .. } = event {
                    written.push_str(text);
                }
            };
            filter.take(Event::Opened { block, opening: BlockOpening::Text }, &mut sink);
            for text in deltas {
                filter.take(Event::Grew { block, text }, &mut sink);
            }
            let event = Event::Restated { block, part: RestatedPart::Whole, text: JsonText::plain(restated) };
            filter.take(event, &mut sink);
            filter.take(event, &mut sink);
            assert_eq!(written, expected, "{name}");
        }
    }
}
