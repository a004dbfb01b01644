//! How long a provider has sent nothing.

use std::time::{Duration, Instant};

use crate::Update;

/// From here on the user is told that the provider sends nothing.
pub const LONG_SILENCE: Duration = Duration::from_secs(10);

/// Measures how long a provider that should send something has sent nothing.
#[derive(Debug, Default)]
pub struct SilenceTimer {
    /// When the provider was heard last, or the wait for it began; none while nothing is expected of it.
    heard_at: Option<Instant>,
}

impl SilenceTimer {
    /// When the silence began.
    pub fn began_at(&self) -> Option<Instant> {
        self.heard_at
    }

    /// How long the provider has sent nothing, once that is long.
    pub fn long_silence(&self, now: Instant) -> Option<Duration> {
        let lasted = now.saturating_duration_since(self.heard_at?);
        (lasted >= LONG_SILENCE).then_some(lasted)
    }

    pub fn on_update(&mut self, update: &Update, now: Instant) {
        match update {
            Update::Sending(_)
            | Update::Opened { .. }
            | Update::Item { .. }
            | Update::Grew { .. }
            | Update::Sealed { .. }
            | Update::Refiled { .. }
            | Update::ClosedAsStreamed { .. }
            | Update::Closed { .. }
            | Update::Emptied { .. } => self.heard_at = Some(now),
            // The wait begins when the request is sent again.
            Update::Retrying { after, .. } => self.heard_at = now.checked_add(*after),
            Update::ReplyEnded(_)
            | Update::ToolStarted(_)
            | Update::ToolEnded(_)
            | Update::QuestionAsked(_)
            | Update::TurnEnded(_)
            | Update::NotSent { .. }
            | Update::Ready
            | Update::Quit => self.heard_at = None,
            Update::Usage(_)
            | Update::Noted(_)
            | Update::TurnNotice(_)
            | Update::ToolOutput { .. }
            | Update::Recorded(_)
            | Update::Detail(_)
            | Update::SessionStored(_)
            | Update::MessageStored(_)
            | Update::QuestionWithdrawn(_)
            | Update::CommandOutput(_)
            | Update::Compacted { .. }
            | Update::Restored(_)
            | Update::Undone(_)
            | Update::NotSteered { .. }
            | Update::TakenBack(_)
            | Update::NotTakenBack(_)
            | Update::GoTo { .. }
            | Update::Status(_)
            | Update::CompletionLists(_)
            | Update::Models(_)
            | Update::PromptHistory(_)
            | Update::Interrupt
            | Update::Suspend => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use aside_core::turn::TurnEnd;

    use super::*;

    #[test]
    fn t18_a_silence_is_measured_only_while_the_provider_is_waited_for() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let retrying = || Update::Retrying { after: Duration::from_secs(5), attempt: 2, why: "busy".into() };
        let block = aside_core::event::BlockId(0);
        let sending = || Update::Sending(Box::default());
        #[rustfmt::skip]
        let cases = [
            ("nothing was sent",    vec![],                                                  None),
            ("before a reply",      vec![(0, sending())],                           Some(12)),
            ("not long yet",        vec![(3, sending())],                           None),
            ("in a reply",          vec![(0, Update::Grew { block, text: "a".into() })],                  Some(12)),
            ("something came",      vec![(0, sending()), (9, Update::Item { block })], None),
            ("before a retry",      vec![(0, retrying())],                                                None),
            ("after the turn",      vec![(0, sending()), (1, Update::TurnEnded(TurnEnd::Answered))], None),
        ];
        for (name, updates, expected) in cases {
            let mut timer = SilenceTimer::default();
            updates.iter().for_each(|(at, update)| timer.on_update(update, after(*at)));
            assert_eq!(timer.long_silence(after(12)), expected.map(Duration::from_secs), "{name}");
        }
    }
}
