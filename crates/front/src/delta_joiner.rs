//! Joins the deltas that arrive at once, so that a channel carries one update for all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::event::{BlockId, Event};

use crate::delta_text::{DeltaBuffers, DeltaText};
use crate::update::Update;

/// Deltas of one block that were not sent yet.
#[derive(Debug, Default)]
pub struct DeltaJoiner {
    pending: Option<(BlockId, DeltaText)>,
    buffers: Arc<DeltaBuffers>,
    /// When deltas were last sent because they were due.
    sent: Option<Instant>,
}

/// Deltas that follow each other more closely than this are joined. Much shorter than a frame.
const JOIN_WINDOW: Duration = Duration::from_millis(10);

/// Joined deltas are sent before they exceed this, so that their buffers stay small.
const MAX_JOINED: usize = 8 << 10;

impl DeltaJoiner {
    /// Holds back a delta; any other event first sends the deltas before it. Returns whether the event
    /// was a delta.
    pub fn join(&mut self, event: Event<'_>, send: impl FnOnce(Update)) -> bool {
        let Event::Grew { block, text } = event else {
            self.flush(send);
            return false;
        };
        match &mut self.pending {
            Some((pending, joined)) if *pending == block && joined.len() + text.len() <= MAX_JOINED => {
                joined.push_str(text);
            }
            Some(_) | None => {
                self.flush(send);
                self.pending = Some((block, DeltaText::copied(text, &self.buffers)));
            }
        }
        true
    }

    /// Sends the deltas that were held back, unless some were sent just before `now`.
    pub fn flush_if_due(&mut self, now: Instant, send: impl FnOnce(Update)) {
        let is_due = self.sent.is_none_or(|sent| now.saturating_duration_since(sent) >= JOIN_WINDOW);
        if is_due && self.pending.is_some() {
            self.sent = Some(now);
            self.flush(send);
        }
    }

    /// How long deltas may still be held back; `None` if there are none.
    pub fn due(&self) -> Option<Duration> {
        self.pending.is_some().then_some(JOIN_WINDOW)
    }

    /// Sends the deltas that were held back.
    pub fn flush(&mut self, send: impl FnOnce(Update)) {
        if let Some((block, text)) = self.pending.take() {
            send(Update::Grew { block, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_delta_is_sent_at_once_and_those_that_follow_closely_are_joined() {
        let (mut joiner, mut sent) = (DeltaJoiner::default(), 0);
        let began = Instant::now();
        for millisecond in 0..1000 {
            joiner.join(Event::Grew { block: BlockId(0), text: "x" }, |_| sent += 1);
            joiner.flush_if_due(began + Duration::from_millis(millisecond), |_| sent += 1);
            assert!(sent > 0, "the first one does not wait");
        }
        assert_eq!(sent, 100, "one for each window");
        assert!(joiner.due().is_some());
    }

    #[test]
    fn deltas_of_a_block_are_joined_and_the_order_stays() {
        let (mut joiner, mut sent) = (DeltaJoiner::default(), Vec::new());
        let grew = |block, text| Event::Grew { block: BlockId(block), text };
        for event in [grew(0, "a"), grew(0, "b"), grew(1, "c"), grew(1, "d")] {
            assert!(joiner.join(event, |update| sent.push(update)));
        }
        assert!(!joiner.join(Event::Closed { block: BlockId(1) }, |update| sent.push(update)));
        assert!(joiner.join(grew(2, "e"), |update| sent.push(update)));
        joiner.flush(|update| sent.push(update));
        joiner.flush(|update| sent.push(update));
        let expected = [(0, "ab"), (1, "cd"), (2, "e")];
        let expected = expected.map(|(block, text)| Update::Grew { block: BlockId(block), text: text.into() });
        assert_eq!(sent, expected);
    }

    #[test]
    fn joined_deltas_stay_short_and_a_long_one_stays_whole() {
        let (mut joiner, mut lengths) = (DeltaJoiner::default(), Vec::new());
        let mut send = |update| {
            if let Update::Grew { text, .. } = update {
                lengths.push(text.len());
            }
        };
        for text in [vec!["x".repeat(1000); 20], vec!["y".repeat(20_000)]].concat() {
            joiner.join(Event::Grew { block: BlockId(0), text: &text }, &mut send);
        }
        joiner.flush(&mut send);
        assert_eq!(lengths, [8000, 8000, 4000, 20_000]);
    }
}
