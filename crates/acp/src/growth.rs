//! Joins the deltas of a block, so that an editor gets a few messages per second instead of one for each token.

use std::time::{Duration, Instant};

use aside_core::json_text::split_within;

use crate::session_update::{AsideMeta, Chunk, Content, SessionUpdate, ThoughtState};

/// Deltas are sent this long after the last ones, or at once if nothing has been sent for that long.
const JOIN_WINDOW: Duration = Duration::from_millis(40);

/// Text of this length is sent without delay, and longer text is split.
const MAX_JOINED: usize = 8 << 10;

/// Which text the deltas belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkTarget {
    pub kind: ChunkKind,
    pub message_id: String,
    pub block: usize,
    /// The item of a summary.
    pub item: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    User,
    Answer,
    Thought(ThoughtState),
}

impl ChunkTarget {
    fn chunk(&self, text: &str) -> SessionUpdate {
        let content = Content::Text { text: text.to_owned() };
        let (message_id, block, item) = (self.message_id.clone(), Some(self.block), self.item);
        match self.kind {
            ChunkKind::User => SessionUpdate::UserMessageChunk(Chunk { content, message_id, meta: None }),
            ChunkKind::Answer => SessionUpdate::AgentMessageChunk(Chunk { content, message_id, meta: None }),
            ChunkKind::Thought(state) => {
                let meta = AsideMeta { block, state: Some(state), item, ..AsideMeta::default() };
                SessionUpdate::AgentThoughtChunk(Chunk { content, message_id, meta: meta.meta() })
            }
        }
    }

    /// Writes the whole text, in pieces that every client can read.
    pub(crate) fn write(&self, mut text: &str, out: &mut Vec<SessionUpdate>) {
        while !text.is_empty() {
            let (piece, rest) = split_within(text, MAX_JOINED);
            out.push(self.chunk(piece));
            text = rest;
        }
    }
}

/// Deltas that have not been sent yet.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    pending: Option<(ChunkTarget, String)>,
    sent: Option<Instant>,
}

impl Growth {
    /// Adds text to a block. `now` is none if the whole text is already known, as in a stored session.
    pub(crate) fn push(
        &mut self,
        target: &ChunkTarget,
        text: &str,
        now: Option<Instant>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match &mut self.pending {
            Some((pending, joined)) if pending == target => joined.push_str(text),
            Some(_) | None => {
                self.flush(out);
                self.pending = Some((target.clone(), text.to_owned()));
            }
        }
        let is_long = self.pending.as_ref().is_some_and(|(_, joined)| joined.len() >= MAX_JOINED);
        let is_due =
            now.is_some_and(|now| self.sent.is_none_or(|sent| now.saturating_duration_since(sent) >= JOIN_WINDOW));
        if is_long || is_due {
            self.sent = now.or(self.sent);
            self.flush(out);
        }
    }

    /// When pending deltas must be sent.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref().and(self.sent).map(|sent| sent + JOIN_WINDOW)
    }

    pub(crate) fn flush_if_due(&mut self, now: Instant, out: &mut Vec<SessionUpdate>) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.sent = Some(now);
            self.flush(out);
        }
    }

    pub(crate) fn flush(&mut self, out: &mut Vec<SessionUpdate>) {
        if let Some((target, text)) = self.pending.take() {
            target.write(&text, out);
        }
    }

    /// Drops deltas of this message that have not been sent yet.
    pub(crate) fn take_back(&mut self, message_id: &str) -> Option<String> {
        let (_, text) = self.pending.take_if(|(target, _)| target.message_id == message_id)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(message_id: &str) -> ChunkTarget {
        ChunkTarget { kind: ChunkKind::Answer, message_id: message_id.to_owned(), block: 0, item: None }
    }

    fn texts(updates: &[SessionUpdate]) -> Vec<String> {
        let text = |update: &SessionUpdate| {
            let SessionUpdate::AgentMessageChunk(Chunk { content: Content::Text { text }, .. }) = update else {
                panic!("{update:?}")
            };
            text.clone()
        };
        updates.iter().map(text).collect()
    }

    #[test]
    fn a2_the_first_delta_is_sent_at_once_and_those_that_follow_are_joined() {
        let (mut growth, mut out) = (Growth::default(), Vec::new());
        let began = Instant::now();
        for millisecond in 0..1000 {
            growth.push(&target("a"), "x", Some(began + Duration::from_millis(millisecond)), &mut out);
            assert!(!out.is_empty(), "the first one does not wait");
        }
        assert_eq!(out.len(), 25, "one for each window");
        let deadline = growth.deadline().expect("the rest is due soon");
        growth.flush_if_due(deadline - Duration::from_millis(1), &mut out);
        assert_eq!(out.len(), 25);
        growth.flush_if_due(deadline, &mut out);
        assert_eq!(texts(&out).concat(), "x".repeat(1000));
        assert_eq!(growth.deadline(), None);
    }

    #[test]
    fn a2_blocks_stay_apart_and_long_text_is_split_between_letters() {
        let (mut growth, mut out) = (Growth::default(), Vec::new());
        let now = Some(Instant::now());
        growth.push(&target("a"), "1", now, &mut out);
        growth.push(&target("a"), "2", now, &mut out);
        growth.push(&target("b"), "3", now, &mut out);
        growth.push(&target("b"), &"漢".repeat(10_000), now, &mut out);
        assert_eq!(texts(&out[..2]), ["1", "2"]);
        assert!(texts(&out).iter().all(|text| text.len() <= MAX_JOINED), "no piece is longer");
        assert_eq!(texts(&out).concat(), format!("123{}", "漢".repeat(10_000)));
    }
}
