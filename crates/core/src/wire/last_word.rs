//! The last word on a block, for protocols that know only growth: what it adds
//! to what was said grows; what it takes back cannot be taken back.

use crate::event::{BlockId, Event, Part, Sink};

/// What was said of every block, as lengths and hashes.
#[derive(Debug, Default)]
pub(super) struct LastWord {
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    /// Each part with its text so far; text without an item is the whole.
    parts: Vec<(Part, Said)>,
    current: Option<Part>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Said {
    bytes: usize,
    hash: u64,
}

impl Said {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        // FNV-1a: it does not depend on how the text is cut.
        self.hash = text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl LastWord {
    /// Hands an event on, with last words as growth.
    pub(super) fn take(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        match event {
            Event::Grew { block, text } => {
                self.grew(block, text);
                sink.take(event);
            }
            Event::Restated { block, part, text } => self.restated(block, part, &text.to_owned_text(), sink),
            Event::Opened { .. } => {
                self.blocks.push(Block::default());
                sink.take(event);
            }
            Event::Item { block, index } => {
                if let Some(block) = self.blocks.get_mut(block.0 as usize) {
                    block.enter(Part::Item(index));
                }
                sink.take(event);
            }
            Event::Started { .. }
            | Event::Sealed { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Kept { .. }
            | Event::Closed { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => sink.take(event),
        }
    }

    fn grew(&mut self, block: BlockId, text: &str) {
        if let Some(block) = self.blocks.get_mut(block.0 as usize) {
            let part = block.current.unwrap_or(Part::Whole);
            block.enter(part);
            if let Some(said) = block.said(part) {
                said.add(text);
            }
        }
    }

    fn restated(&mut self, block: BlockId, part: Part, text: &str, sink: &mut dyn Sink) {
        let Some(known) = self.blocks.get_mut(block.0 as usize) else { return };
        let is_last = known.parts.last().is_none_or(|(last, _)| *last == part);
        let is_new = !known.parts.iter().any(|(of, _)| *of == part);
        if !is_last && !is_new {
            return;
        }
        if let (Part::Item(index), true) = (part, is_new) {
            sink.take(Event::Item { block, index });
        }
        known.enter(part);
        let Some(said) = known.said(part) else { return };
        if let Some((before, after)) = text.split_at_checked(said.bytes) {
            let mut beginning = Said::default();
            beginning.add(before);
            if beginning == *said && !after.is_empty() {
                said.add(after);
                sink.take(Event::Grew { block, text: after });
            }
        }
    }
}

impl Block {
    /// What comes next belongs to this part.
    fn enter(&mut self, part: Part) {
        self.current = Some(part);
        if !self.parts.iter().any(|(of, _)| *of == part) {
            self.parts.push((part, Said::default()));
        }
    }

    fn said(&mut self, part: Part) -> Option<&mut Said> {
        self.parts.iter_mut().rfind(|(of, _)| *of == part).map(|(_, said)| said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Opening;
    use crate::text::JsonText;

    #[test]
    fn only_what_a_last_word_adds_grows() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], &str, &str); 5] = [
            ("nothing was said",  &[],           "all of it", "all of it"),
            ("it says the same",  &["so", " far"], "so far",  "so far"),
            ("it says more",      &["so"],       "so far",    "so far"),
            ("it says other",     &["so"],       "or far",    "so"),
            ("it says less",      &["so far"],   "so",        "so far"),
        ];
        for (name, said, last, expected) in cases {
            let (mut words, mut heard, block) = (LastWord::default(), String::new(), BlockId(0));
            let mut sink = |event: Event<'_>| {
                if let Event::Grew { text, .. } = event {
                    heard.push_str(text);
                }
            };
            words.take(Event::Opened { block, opening: Opening::Text }, &mut sink);
            for text in said {
                words.take(Event::Grew { block, text }, &mut sink);
            }
            let event = Event::Restated { block, part: Part::Whole, text: JsonText::plain(last) };
            words.take(event, &mut sink);
            words.take(event, &mut sink);
            assert_eq!(heard, expected, "{name}");
        }
    }
}
