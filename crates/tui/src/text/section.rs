//! One section of a long text.

use std::borrow::Cow;

use super::base_style::BaseStyle;
use super::highlight_jobs::HighlightedRows;
use super::markdown_view::MarkdownView;
use super::row::Row;
use super::shared_text::SharedText;

/// A part of the text that is laid out on its own.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) doc: MarkdownView,
    pub(super) before: SectionGap,
    /// Length of a repeated fence at the start, which is not part of the text.
    pub(super) opener: usize,
}

/// What separates a section from the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SectionGap {
    #[default]
    None,
    BlankRow,
}

impl Section {
    /// Refers to the text that begins at this byte of a shared one. Returns where it ends there.
    pub(super) fn share(&mut self, shared: &SharedText, from: usize) -> usize {
        let to = from + self.own_text().len();
        // The repeated fence of a section that continues code is not in the shared text.
        if self.opener == 0 {
            self.doc.share(shared, from..to);
        }
        to
    }

    pub(super) fn own_text(&self) -> &str {
        self.doc.source().get(self.opener..).unwrap_or("")
    }

    pub(super) fn rows(&mut self, width: usize, base: BaseStyle) -> SectionRows<'_> {
        let blank = match self.before {
            SectionGap::BlankRow if !is_white_space(self.own_text()) => {
                Some(Row::default().with_background(base.background))
            }
            SectionGap::BlankRow | SectionGap::None => None,
        };
        // The language was already shown where the code began.
        let head = match self.doc.source().get(..self.opener) {
            Some(opener) if !opener.is_empty() => MarkdownView::new(opener).rows(width, base).len(),
            Some(_) | None => 0,
        };
        SectionRows { blank, body: self.doc.body(width, base).skip(head) }
    }
}

/// The rows of one section.
#[derive(Debug)]
pub struct SectionRows<'a> {
    /// A blank row before the section.
    pub blank: Option<Row>,
    pub body: HighlightedRows<'a>,
}

impl<'a> SectionRows<'a> {
    pub fn of(body: HighlightedRows<'a>) -> SectionRows<'a> {
        SectionRows { blank: None, body }
    }

    pub fn len(&self) -> usize {
        usize::from(self.blank.is_some()) + self.body.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row in its colours.
    pub fn row(&self, index: usize) -> Option<Cow<'_, Row>> {
        match (&self.blank, index.checked_sub(1)) {
            (Some(blank), None) => Some(Cow::Borrowed(blank)),
            (Some(_), Some(index)) => self.body.row(index),
            (None, _) => self.body.row(index),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Cow<'_, Row>> {
        (0..self.len()).filter_map(|index| self.row(index))
    }
}

/// Reads only up to the first other character.
pub(super) fn is_white_space(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}
