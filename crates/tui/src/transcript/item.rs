//! One item of the transcript.

use std::borrow::Cow;

use aside_core::settings::ThinkingDisplay;

use super::plain_text::{Extent, PlainText, PlainTextKind};
use super::thinking::{FoldChoice, ThinkingBlock, ThinkingShape};
use super::tool::{ToolBlock, ToolShape};
use super::user_prompt::UserPrompt;
use super::{OpenHint, RenderContext};
use crate::text::highlight_jobs::{HighlightId, HighlightJob, HighlightResult};
use crate::text::{BaseStyle, LazyText, MarkdownView, Row, SectionRows, Span, TextRole};

#[derive(Debug)]
pub enum TranscriptItem {
    User(UserPrompt),
    Text(LazyText),
    Thinking(Box<ThinkingBlock>),
    Tool(Box<ToolBlock>),
    Notice(PlainText),
    /// The output of a command.
    Output(MarkdownView),
}

/// How an item was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemFold {
    /// It cannot fold.
    None,
    Thinking(Option<FoldChoice>),
    Tool(Option<ToolShape>),
    Prompt(Extent),
}

/// What precedes each row of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gutter {
    None,
    Bar,
    Indent,
}

/// Below this width there is no gutter.
const ROOM_FOR_GUTTER: usize = 6;

impl Gutter {
    pub fn span(self) -> Option<Span> {
        match self {
            Gutter::None => None,
            Gutter::Bar => Some(Span::new(TextRole::Muted, "│ ")),
            Gutter::Indent => Some(Span::new(TextRole::Muted, "  ")),
        }
    }

    pub fn width(self) -> usize {
        match self {
            Gutter::None => 0,
            Gutter::Bar | Gutter::Indent => 2,
        }
    }
}

impl TranscriptItem {
    pub fn notice(role: TextRole, text: &str) -> TranscriptItem {
        TranscriptItem::Notice(PlainText::new(text, PlainTextKind::Notice(role)))
    }

    pub fn user(text: &str) -> TranscriptItem {
        TranscriptItem::User(UserPrompt::new(text))
    }

    /// The text of a reply that is not empty.
    pub fn reply_text(&mut self) -> Option<&mut LazyText> {
        let doc = match self {
            TranscriptItem::Text(text) => text,
            TranscriptItem::Thinking(thinking) => thinking.text_mut(),
            TranscriptItem::User(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => return None,
        };
        (!doc.is_empty()).then_some(doc)
    }

    /// Whether it takes no rows. Needs no layout.
    pub fn is_hidden(&self, view: ThinkingDisplay) -> bool {
        match self {
            TranscriptItem::Text(text) => text.is_blank(),
            TranscriptItem::Output(doc) => doc.is_blank(),
            TranscriptItem::Thinking(thinking) => thinking.shape(view) == ThinkingShape::Hidden,
            TranscriptItem::User(_) | TranscriptItem::Tool(_) | TranscriptItem::Notice(_) => false,
        }
    }

    pub fn can_fold(&self) -> bool {
        match self {
            TranscriptItem::Thinking(_) | TranscriptItem::Tool(_) => true,
            TranscriptItem::User(prompt) => prompt.is_long(),
            TranscriptItem::Text(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_) => false,
        }
    }

    /// Whether it can fold and its first row serves as header.
    pub fn has_row_as_header(&self) -> bool {
        self.can_fold() && !self.has_header()
    }

    fn has_header(&self) -> bool {
        match self {
            TranscriptItem::Thinking(_) | TranscriptItem::Tool(_) => true,
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => false,
        }
    }

    /// Finished thinking that shows only its header.
    pub fn is_folded_thinking(&self, view: ThinkingDisplay) -> bool {
        match self {
            TranscriptItem::Thinking(thinking) => {
                thinking.shape(view) == ThinkingShape::Header && !thinking.is_running()
            }
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => false,
        }
    }

    pub fn toggle(&mut self, view: ThinkingDisplay) {
        match self {
            TranscriptItem::Thinking(thinking) => thinking.toggle(view),
            TranscriptItem::Tool(tool) => tool.toggle(),
            TranscriptItem::User(prompt) => prompt.toggle(),
            TranscriptItem::Text(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_) => (),
        }
    }

    /// Whether more than the header of the block is shown, or all of a long prompt.
    pub fn is_open(&self, view: ThinkingDisplay) -> bool {
        match self {
            TranscriptItem::Thinking(thinking) => thinking.shape(view) == ThinkingShape::Open,
            TranscriptItem::Tool(tool) => tool.is_open(),
            TranscriptItem::User(prompt) => !prompt.is_partial(),
            TranscriptItem::Text(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_) => true,
        }
    }

    /// Headers follow each other without a blank row, and so do notices.
    pub fn is_adjacent_to(&self, before: &TranscriptItem, view: ThinkingDisplay) -> bool {
        if let (TranscriptItem::Notice(_), TranscriptItem::Notice(_)) = (self, before) {
            return true;
        }
        let folded = match before {
            TranscriptItem::Thinking(thinking) => thinking.shape(view) == ThinkingShape::Header,
            TranscriptItem::Tool(tool) => !tool.is_open(),
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => false,
        };
        self.has_header() && folded
    }

    pub fn header(&self, context: &RenderContext, hint: Option<&OpenHint>) -> Option<Row> {
        match self {
            TranscriptItem::Thinking(thinking) => Some(thinking.header(context, hint)),
            TranscriptItem::Tool(tool) => Some(tool.header(context)),
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => None,
        }
    }

    pub fn gutter(&self, width: usize) -> Gutter {
        match self {
            TranscriptItem::Thinking(_) | TranscriptItem::Tool(_) if width < ROOM_FOR_GUTTER => Gutter::None,
            TranscriptItem::Thinking(_) => Gutter::Bar,
            TranscriptItem::Tool(_) => Gutter::Indent,
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => Gutter::None,
        }
    }

    /// The number of sections, each laid out when it becomes visible.
    pub fn sections(&mut self, view: ThinkingDisplay) -> usize {
        match self {
            TranscriptItem::Text(text) => text.sections(),
            TranscriptItem::Thinking(thinking) => thinking.sections(view),
            TranscriptItem::User(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => 1,
        }
    }

    /// The rows of one section below the header, laid out once per width.
    pub fn body(&mut self, section: usize, context: &RenderContext) -> SectionRows<'_> {
        let width = context.width.saturating_sub(self.gutter(context.width).width()).max(1);
        let prose = width.min(context.prose_width);
        let style = BaseStyle::TEXT.with_prose_width(context.prose_width);
        match self {
            TranscriptItem::User(prompt) => SectionRows::of(prompt.body(prose, context.keys)),
            TranscriptItem::Notice(plain) => SectionRows::of(plain.body(prose, Extent::All, context.keys)),
            TranscriptItem::Text(text) => text.section(section, width, style),
            TranscriptItem::Output(doc) => SectionRows::of(doc.body(width, style)),
            TranscriptItem::Thinking(thinking) => thinking.body(section, width, context),
            TranscriptItem::Tool(tool) => SectionRows::of(tool.body(width, context)),
        }
    }

    /// The rows below the body, such as the repetition notice.
    pub fn footer(&self, context: &RenderContext) -> Vec<Row> {
        let width = context.width.saturating_sub(self.gutter(context.width).width()).max(1);
        match self {
            TranscriptItem::Thinking(thinking) => thinking.footer(width, context.view),
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => Vec::new(),
        }
    }

    /// The rows of a section, without the blank row before the item. The header belongs to the
    /// first section, the footer to the last.
    pub fn height(&mut self, section: usize, context: &RenderContext) -> usize {
        if self.is_hidden(context.view) {
            return 0;
        }
        let above = usize::from(section == 0 && self.has_header());
        let is_last = section + 1 == self.sections(context.view);
        let below = if is_last { self.footer(context).len() } else { 0 };
        above + self.body(section, context).len() + below
    }

    /// The next code to highlight in the laid-out part.
    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        match self {
            TranscriptItem::User(_) | TranscriptItem::Notice(_) => None,
            TranscriptItem::Text(text) => text.next_job(next),
            TranscriptItem::Output(doc) => doc.next_job(next),
            TranscriptItem::Thinking(thinking) => thinking.next_job(next),
            TranscriptItem::Tool(tool) => tool.next_job(next),
        }
    }

    /// Applies a result; returns false if it belongs to another item.
    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        match self {
            TranscriptItem::User(_) | TranscriptItem::Notice(_) => false,
            TranscriptItem::Text(text) => text.apply_highlight(result),
            TranscriptItem::Output(doc) => doc.apply_highlight(result),
            TranscriptItem::Thinking(thinking) => thinking.apply_highlight(result),
            TranscriptItem::Tool(tool) => tool.apply_highlight(result),
        }
    }

    pub fn forget_section(&mut self, section: usize) {
        match self {
            TranscriptItem::Text(text) => text.forget_section(section),
            TranscriptItem::Thinking(thinking) => thinking.forget_section(section),
            TranscriptItem::User(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => self.forget_rows(),
        }
    }

    pub fn forget_rows(&mut self) {
        match self {
            TranscriptItem::User(prompt) => prompt.forget_rows(),
            TranscriptItem::Notice(plain) => plain.forget_rows(),
            TranscriptItem::Text(text) => text.forget_rows(),
            TranscriptItem::Output(doc) => doc.forget_rows(),
            TranscriptItem::Thinking(thinking) => thinking.forget_rows(),
            TranscriptItem::Tool(tool) => tool.forget_rows(),
        }
    }

    /// Shows all of it, and returns how it was folded.
    pub(crate) fn open_fully(&mut self) -> ItemFold {
        match self {
            TranscriptItem::Thinking(thinking) => ItemFold::Thinking(thinking.set_choice(Some(FoldChoice::Open))),
            TranscriptItem::Tool(tool) => ItemFold::Tool(tool.set_choice(Some(ToolShape::Open))),
            TranscriptItem::User(prompt) => ItemFold::Prompt(prompt.set_extent(Extent::All)),
            TranscriptItem::Text(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_) => ItemFold::None,
        }
    }

    pub(crate) fn restore_fold(&mut self, fold: ItemFold) {
        match (self, fold) {
            (TranscriptItem::Thinking(thinking), ItemFold::Thinking(choice)) => drop(thinking.set_choice(choice)),
            (TranscriptItem::Tool(tool), ItemFold::Tool(choice)) => drop(tool.set_choice(choice)),
            (TranscriptItem::User(prompt), ItemFold::Prompt(extent)) => drop(prompt.set_extent(extent)),
            (_, ItemFold::None | ItemFold::Thinking(_) | ItemFold::Tool(_) | ItemFold::Prompt(_)) => (),
        }
    }

    /// All text that can be found in it.
    pub(crate) fn searchable_text(&self) -> Cow<'_, str> {
        match self {
            TranscriptItem::User(prompt) => Cow::Borrowed(prompt.source()),
            TranscriptItem::Notice(plain) => Cow::Borrowed(plain.source()),
            TranscriptItem::Text(text) => text.source(),
            TranscriptItem::Output(doc) => Cow::Borrowed(doc.source()),
            TranscriptItem::Thinking(thinking) => thinking.source(),
            TranscriptItem::Tool(tool) => Cow::Owned(tool.searchable_text()),
        }
    }

    /// The text for the clipboard.
    pub fn copy_text(&self) -> String {
        match self {
            TranscriptItem::User(prompt) => prompt.source().to_owned(),
            TranscriptItem::Notice(plain) => plain.source().to_owned(),
            TranscriptItem::Text(text) => text.source().into_owned(),
            TranscriptItem::Output(doc) => doc.source().to_owned(),
            TranscriptItem::Thinking(thinking) => thinking.source().into_owned(),
            TranscriptItem::Tool(tool) => tool.copy_text(),
        }
    }
}
