//! Detects tool-call markup that leaks into text or thinking, on every protocol.
//! It is reported, never executed.

use crate::event::{BlockId, BlockOpening, Event, Note, NoteCode, Sink};
use crate::tags::MarkerWatch;

/// Watches passing events and reports the first marker.
#[derive(Debug)]
pub(super) struct ToolMarkupDetector {
    /// None after the first report, and if the dialect has no markers.
    watch: Option<MarkerWatch>,
    /// The kind of each block, by id.
    kinds: Vec<MarkupLocation>,
    last: Option<BlockId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkupLocation {
    Thinking,
    Text,
    Other,
}

impl ToolMarkupDetector {
    pub(super) fn new(markers: &[String]) -> ToolMarkupDetector {
        let watch = (!markers.is_empty()).then(|| MarkerWatch::new(markers));
        ToolMarkupDetector { watch, kinds: Vec::new(), last: None }
    }

    /// Wraps a sink: passes events on and checks them.
    pub(super) fn wrap<'a>(&'a mut self, sink: &'a mut dyn Sink) -> ToolMarkupSink<'a> {
        ToolMarkupSink { detector: self, sink }
    }

    fn check(&mut self, event: &Event<'_>) -> Option<Note> {
        match event {
            Event::Grew { block, text } => self.check_text(*block, text),
            Event::Restated { block, text, .. } => {
                // A restatement is complete; earlier text is not part of it.
                self.last = None;
                let mut note = None;
                text.pieces(&mut String::new(), |piece| note = note.take().or(self.check_text(*block, piece)));
                note
            }
            Event::Opened { opening, .. } => {
                self.kinds.push(match opening {
                    BlockOpening::Thinking { .. } => MarkupLocation::Thinking,
                    BlockOpening::Text => MarkupLocation::Text,
                    BlockOpening::ToolCall { .. } | BlockOpening::Unmodelled => MarkupLocation::Other,
                });
                None
            }
            Event::Started { .. }
            | Event::Item { .. }
            | Event::Sealed { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::NativeItem { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => None,
        }
    }

    fn check_text(&mut self, block: BlockId, text: &str) -> Option<Note> {
        let watch = self.watch.as_mut()?;
        let location = match self.kinds.get(block.0 as usize)? {
            MarkupLocation::Thinking => "thinking",
            MarkupLocation::Text => "answer text",
            MarkupLocation::Other => return None,
        };
        if self.last != Some(block) {
            watch.forget();
            self.last = Some(block);
        }
        let marker = watch.push(text)?;
        let message = format!("`{marker}` inside {location}: that call was not executed");
        self.watch = None;
        Some(Note { code: NoteCode::ToolMarkup, message })
    }
}

pub(super) struct ToolMarkupSink<'a> {
    detector: &'a mut ToolMarkupDetector,
    sink: &'a mut dyn Sink,
}

impl Sink for ToolMarkupSink<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.sink.take(event);
        if let Some(note) = self.detector.check(&event) {
            self.sink.take(Event::Noted(&note));
        }
    }

    fn buffered(&mut self, bytes: usize) {
        self.sink.buffered(bytes);
    }
}
