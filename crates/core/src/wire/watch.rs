//! Tool-call tokens that leak into prose, on every protocol: reported, never
//! executed.

use crate::event::{BlockId, Event, Note, NoteCode, Opening, Sink};
use crate::tags::Watch;

/// Listens to what passes and says so once.
#[derive(Debug)]
pub(super) struct MarkupWatch {
    /// None once a marker was reported, and where none is looked for.
    watch: Option<Watch>,
    /// What each block is, by its id.
    places: Vec<Place>,
    last: Option<BlockId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Thinking,
    Text,
    Elsewhere,
}

impl MarkupWatch {
    pub(super) fn new(markers: &[String]) -> MarkupWatch {
        let watch = (!markers.is_empty()).then(|| Watch::new(markers));
        MarkupWatch { watch, places: Vec::new(), last: None }
    }

    /// Passes events on and listens.
    pub(super) fn over<'a>(&'a mut self, sink: &'a mut dyn Sink) -> Watched<'a> {
        Watched { watch: self, sink }
    }

    fn hear(&mut self, event: &Event<'_>) -> Option<Note> {
        match event {
            Event::Grew { block, text } => self.hear_text(*block, text),
            Event::Restated { block, text, .. } => {
                // The last word is whole; what was heard before it is not part of it.
                self.last = None;
                let mut note = None;
                text.pieces(&mut String::new(), |piece| note = note.take().or(self.hear_text(*block, piece)));
                note
            }
            Event::Opened { opening, .. } => {
                self.places.push(match opening {
                    Opening::Thinking { .. } => Place::Thinking,
                    Opening::Text => Place::Text,
                    Opening::ToolCall { .. } | Opening::Unmodelled => Place::Elsewhere,
                });
                None
            }
            Event::Started { .. }
            | Event::Item { .. }
            | Event::Sealed { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Kept { .. }
            | Event::Closed { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => None,
        }
    }

    fn hear_text(&mut self, block: BlockId, text: &str) -> Option<Note> {
        let watch = self.watch.as_mut()?;
        let place = match self.places.get(block.0 as usize)? {
            Place::Thinking => "a thought",
            Place::Text => "answer text",
            Place::Elsewhere => return None,
        };
        if self.last != Some(block) {
            watch.forget();
            self.last = Some(block);
        }
        let marker = watch.push(text)?;
        let message = format!("`{marker}` inside {place}: that call was not executed");
        self.watch = None;
        Some(Note { code: NoteCode::ToolMarkup, message })
    }
}

pub(super) struct Watched<'a> {
    watch: &'a mut MarkupWatch,
    sink: &'a mut dyn Sink,
}

impl Sink for Watched<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.sink.take(event);
        if let Some(note) = self.watch.hear(&event) {
            self.sink.take(Event::Noted(&note));
        }
    }

    fn hold(&mut self, bytes: usize) {
        self.sink.hold(bytes);
    }
}
