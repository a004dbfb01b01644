//! One thing in the transcript.

use aside_core::settings::Display;

use super::Look;
use super::asked::Asked;
use super::plain::{Extent, Manner, Plain};
use super::thought::{Shape, Thought};
use super::tool::Tool;
use crate::text::light::{Job, Lit, Ticket};
use crate::text::{Base, Doc, Ink, Long, Row, Shown, Span};

#[derive(Debug)]
pub enum Item {
    User(Asked),
    Text(Long),
    Thought(Box<Thought>),
    Tool(Box<Tool>),
    Notice(Plain),
    /// What a command answered.
    Said(Doc),
}

/// What stands before each row of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gutter {
    None,
    Bar,
    Indent,
}

/// Narrower than this there is no room for a gutter.
const ROOM_FOR_GUTTER: usize = 6;

impl Gutter {
    pub fn span(self) -> Option<Span> {
        match self {
            Gutter::None => None,
            Gutter::Bar => Some(Span::new(Ink::Muted, "│ ")),
            Gutter::Indent => Some(Span::new(Ink::Muted, "  ")),
        }
    }

    pub fn width(self) -> usize {
        match self {
            Gutter::None => 0,
            Gutter::Bar | Gutter::Indent => 2,
        }
    }
}

impl Item {
    pub fn notice(ink: Ink, text: &str) -> Item {
        Item::Notice(Plain::new(text, Manner::Notice(ink)))
    }

    pub fn user(text: &str) -> Item {
        Item::User(Asked::new(text))
    }

    /// Takes no room at all. Known without a layout.
    pub fn is_hidden(&self, view: Display) -> bool {
        match self {
            Item::Text(text) => text.is_blank(),
            Item::Said(doc) => doc.is_blank(),
            Item::Thought(thought) => thought.shape(view) == Shape::Hidden,
            Item::User(_) | Item::Tool(_) | Item::Notice(_) => false,
        }
    }

    pub fn can_fold(&self) -> bool {
        match self {
            Item::Thought(_) | Item::Tool(_) => true,
            Item::User(asked) => asked.is_long(),
            Item::Text(_) | Item::Notice(_) | Item::Said(_) => false,
        }
    }

    /// It folds, and its first row is what one does it with.
    pub fn is_headed_by_itself(&self) -> bool {
        self.can_fold() && !self.has_header()
    }

    fn has_header(&self) -> bool {
        match self {
            Item::Thought(_) | Item::Tool(_) => true,
            Item::User(_) | Item::Text(_) | Item::Notice(_) | Item::Said(_) => false,
        }
    }

    /// A thought that is done and shows its header alone.
    pub fn is_folded_thought(&self, view: Display) -> bool {
        match self {
            Item::Thought(thought) => thought.shape(view) == Shape::Line && !thought.is_running(),
            Item::User(_) | Item::Text(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => false,
        }
    }

    pub fn toggle(&mut self, view: Display) {
        match self {
            Item::Thought(thought) => thought.toggle(view),
            Item::Tool(tool) => tool.toggle(),
            Item::User(asked) => asked.toggle(),
            Item::Text(_) | Item::Notice(_) | Item::Said(_) => (),
        }
    }

    /// Headers stand close together, and so do notices; everything else breathes.
    pub fn is_close_to(&self, before: &Item, view: Display) -> bool {
        if let (Item::Notice(_), Item::Notice(_)) = (self, before) {
            return true;
        }
        let folded = match before {
            Item::Thought(thought) => thought.shape(view) == Shape::Line,
            Item::Tool(tool) => !tool.is_open(),
            Item::User(_) | Item::Text(_) | Item::Notice(_) | Item::Said(_) => false,
        };
        self.has_header() && folded
    }

    pub fn header(&self, look: &Look, hint: bool) -> Option<Row> {
        match self {
            Item::Thought(thought) => Some(thought.header(look, hint)),
            Item::Tool(tool) => Some(tool.header(look)),
            Item::User(_) | Item::Text(_) | Item::Notice(_) | Item::Said(_) => None,
        }
    }

    pub fn gutter(&self, width: usize) -> Gutter {
        match self {
            Item::Thought(_) | Item::Tool(_) if width < ROOM_FOR_GUTTER => Gutter::None,
            Item::Thought(_) => Gutter::Bar,
            Item::Tool(_) => Gutter::Indent,
            Item::User(_) | Item::Text(_) | Item::Notice(_) | Item::Said(_) => Gutter::None,
        }
    }

    /// Its body is laid out in so many parts, each when it comes into sight.
    pub fn sections(&mut self, view: Display) -> usize {
        match self {
            Item::Text(text) => text.sections(),
            Item::Thought(thought) => thought.sections(view),
            Item::User(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => 1,
        }
    }

    /// The rows of a part of what is below the header, laid out at most once for a width.
    pub fn body(&mut self, section: usize, look: &Look) -> Shown<'_> {
        let width = look.width.saturating_sub(self.gutter(look.width).width()).max(1);
        match self {
            Item::User(asked) => Shown::of(asked.body(width)),
            Item::Notice(plain) => Shown::of(plain.body(width, Extent::All)),
            Item::Text(text) => text.section(section, width, Base::TEXT),
            Item::Said(doc) => Shown::of(doc.body(width, Base::TEXT)),
            Item::Thought(thought) => thought.body(section, width, look.view),
            Item::Tool(tool) => Shown::of(tool.body(width)),
        }
    }

    /// A row below the body, where there is something to say about it.
    pub fn footer(&self, look: &Look) -> Option<Row> {
        let width = look.width.saturating_sub(self.gutter(look.width).width()).max(1);
        match self {
            Item::Thought(thought) => thought.footer(width, look.view),
            Item::User(_) | Item::Text(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => None,
        }
    }

    /// Rows of a section without the blank one before the item; its header is
    /// part of the first, and what stands below it of the last.
    pub fn height(&mut self, section: usize, look: &Look) -> usize {
        if self.is_hidden(look.view) {
            return 0;
        }
        let above = usize::from(section == 0 && self.has_header());
        let is_last = section + 1 == self.sections(look.view);
        let below = usize::from(is_last && self.footer(look).is_some());
        above + self.body(section, look).len() + below
    }

    /// Code that has no colours yet, as far as it is laid out.
    pub fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        match self {
            Item::User(_) | Item::Notice(_) => None,
            Item::Text(text) => text.wants(next),
            Item::Said(doc) => doc.wants(next),
            Item::Thought(thought) => thought.wants(next),
            Item::Tool(tool) => tool.wants(next),
        }
    }

    /// Takes an answer; false if it was not for this one.
    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        match self {
            Item::User(_) | Item::Notice(_) => false,
            Item::Text(text) => text.lit(lit),
            Item::Said(doc) => doc.lit(lit),
            Item::Thought(thought) => thought.lit(lit),
            Item::Tool(tool) => tool.lit(lit),
        }
    }

    pub fn forget_section(&mut self, section: usize) {
        match self {
            Item::Text(text) => text.forget_section(section),
            Item::Thought(thought) => thought.forget_section(section),
            Item::User(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_) => self.forget_rows(),
        }
    }

    pub fn forget_rows(&mut self) {
        match self {
            Item::User(asked) => asked.forget_rows(),
            Item::Notice(plain) => plain.forget_rows(),
            Item::Text(text) => text.forget_rows(),
            Item::Said(doc) => doc.forget_rows(),
            Item::Thought(thought) => thought.forget_rows(),
            Item::Tool(tool) => tool.forget_rows(),
        }
    }

    /// What it says, for the clipboard.
    pub fn copy_text(&self) -> String {
        match self {
            Item::User(asked) => asked.source().to_owned(),
            Item::Notice(plain) => plain.source().to_owned(),
            Item::Text(text) => text.source().into_owned(),
            Item::Said(doc) => doc.source().to_owned(),
            Item::Thought(thought) => thought.source().into_owned(),
            Item::Tool(tool) => tool.copy_text(),
        }
    }
}
