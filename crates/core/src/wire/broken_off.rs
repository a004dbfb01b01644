//! What a reply lacks whose connection failed after its finish reason and before the protocol's own end.

use crate::event::{Ending, Event, Note, NoteCode, ReplyEnd, Sink};

/// What a decoder has read of the end of a reply.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FinishProgress {
    pub(super) has_reason: bool,
    pub(super) n_usages: u64,
}

/// Watches what comes with and after a finish reason.
#[derive(Debug, Default)]
pub(super) struct FinishReasonWatch {
    is_after_reason: bool,
    content: ContentSeen,
    /// How often usage came before the finish reason. These may be interim values.
    n_interim_usages: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ContentSeen {
    #[default]
    None,
    /// Not after the finish reason.
    Before,
    /// Also after the finish reason, so the reason does not mean that the content is complete.
    After,
}

impl FinishReasonWatch {
    /// The next events come from a frame after the finish reason, or from one that may bring it.
    pub(super) fn start_frame(&mut self, progress: FinishProgress) {
        self.is_after_reason = progress.has_reason;
        if !progress.has_reason {
            self.n_interim_usages = progress.n_usages;
        }
    }

    pub(super) fn wrap<'a>(&'a mut self, sink: &'a mut dyn Sink) -> WatchedSink<'a> {
        WatchedSink { watch: self, sink }
    }

    /// For the events at the end of the input: what they emit arrived earlier.
    pub(super) fn wrap_last_events<'a>(&'a mut self, sink: &'a mut dyn Sink) -> WatchedSink<'a> {
        self.is_after_reason = false;
        WatchedSink { watch: self, sink }
    }

    /// Corrects the end of a reply whose connection failed before the protocol's own end, and says what is missing.
    /// `cut` means that it failed inside a frame.
    pub(super) fn break_off(&self, end: &mut ReplyEnd, progress: FinishProgress, cut: bool) -> Option<Note> {
        let cut_off = |message: &str| Some(Note::new(NoteCode::CutOff, message));
        match (&end.ending, self.content) {
            (Ending::CutOff | Ending::Error, _) => None,
            (Ending::Unsaid, _) => {
                if end.error.is_none() {
                    end.ending = Ending::CutOff;
                }
                None
            }
            (_, ContentSeen::After) => {
                end.ending = Ending::CutOff;
                cut_off("the connection broke, and content had followed the finish reason, so more may be missing")
            }
            // These promise content.
            (Ending::Stop | Ending::ToolCalls | Ending::Pause | Ending::Unrecognized(_), ContentSeen::None) => {
                end.ending = Ending::CutOff;
                cut_off("the connection broke after the finish reason and before any content")
            }
            _ if progress.n_usages <= self.n_interim_usages => {
                let message = "the connection broke after the finish reason: the final usage did not arrive";
                Some(Note::new(NoteCode::UsageMissing, message))
            }
            _ if cut => {
                let message = "the connection broke inside an event after the finish reason; that event was skipped";
                Some(Note::new(NoteCode::Malformed, message))
            }
            _ => None,
        }
    }

    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Opened { .. }
            | Event::Item { .. }
            | Event::Grew { .. }
            | Event::Refiled { .. }
            | Event::Sealed { .. }
            | Event::Restated { .. }
            | Event::NativeItem { .. } => {
                if self.is_after_reason {
                    self.content = ContentSeen::After;
                } else if self.content == ContentSeen::None {
                    self.content = ContentSeen::Before;
                }
            }
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}

/// Passes all events on.
pub(super) struct WatchedSink<'a> {
    watch: &'a mut FinishReasonWatch,
    sink: &'a mut dyn Sink,
}

impl Sink for WatchedSink<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.watch.observe(&event);
        self.sink.take(event);
    }

    fn buffered(&mut self, bytes: usize) {
        self.sink.buffered(bytes);
    }
}
